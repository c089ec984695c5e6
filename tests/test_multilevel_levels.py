"""Machines of groups of groups: what their levels are, division among them; minimum cuts between two blocks by brute force."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from test_multilevel_cycles import sized, triangulated

from nmsolve.heuristics.mapping.multilevel.flow import refine_by_flow
from nmsolve.heuristics.mapping.multilevel.graph import Board, Graph, board_of, finest_graph
from nmsolve.heuristics.mapping.multilevel.levels import Region, groups_of
from nmsolve.heuristics.mapping.multilevel.moves import State, cost, excess, new_state
from nmsolve.heuristics.mapping.multilevel.sections import Sections, subgraph
from nmsolve.heuristics.mapping.multilevel.threads import ALONE, Threads
from nmsolve.heuristics.mapping.multilevel.tree import tree_of
from nmsolve.heuristics.rng import new_rng
from nmsolve.hw.machines import load_machine
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.model.types import FloatArray, Int32Array
from nmsolve.solvers.mapping.api import make_problem

TREE = load_machine("tree:4:3:2,1:10:100")


def nested(region: Region) -> object:
    """The groups as nested lists of core numbers, each with the distance between its parts."""
    return [region.distance, *map(nested, region.parts)] if region.parts else int(region.cores[0])


def test_levels_of_a_machine_are_found_from_its_distances() -> None:
    """Also where groups differ in size and depth, and whatever the order of the cores."""
    assert nested(groups_of(load_machine("tree:2:2,1:5").distance_matrix)) == [5.0, [1.0, 0, 1], [1.0, 2, 3]]
    lone = np.array([[0, 1, 7, 7], [1, 0, 7, 7], [7, 7, 0, 3], [7, 7, 3, 0.0]])
    assert nested(groups_of(lone)) == [7.0, [1.0, 0, 1], [3.0, 2, 3]]
    order = np.array([2, 0, 3, 1])
    assert nested(groups_of(lone[np.ix_(order, order)])) == [7.0, [3.0, 0, 2], [1.0, 1, 3]]


@pytest.mark.parametrize(
    "distance",
    [
        np.abs(np.arange(5.0)[:, None] - np.arange(5.0)),  # a path: 0-1 and 1-2 are near, 0-2 is not
        1.0 - np.eye(4),  # one level
        np.zeros((3, 3)),
        np.array([[0, 0, 2, 5], [0, 0, 2, 5], [2, 2, 0, 5], [5, 5, 5, 0.0]]),  # two cores are in one place
    ],
)
def test_other_machines_have_no_levels(distance: FloatArray) -> None:
    assert groups_of(distance) is None


def problems() -> dict[str, MappingProblem]:
    """Problems on machines with levels."""
    plain = triangulated(2500, weights=True)
    roomy = Machine(
        "two", (1, 1), (1, 24), distance_matrix=TREE.distance_matrix, capacity={"neurons": 170, "bytes": 160}
    )
    rules = (
        SideConstraint("here", "pin", (3, 4), (5,)),
        SideConstraint("first rack", "region", tuple(range(20, 60)), tuple(range(12))),
    )
    broken = Machine(
        "broken", (1, 1), (1, 24), distance_matrix=TREE.distance_matrix, faulty_cores=(0, 1, 2, 7)
    )
    return {
        "plain": make_problem(plain, TREE, balance=0.05),
        "two resources": MappingProblem(sized(1200), roomy, "hops"),
        "pins and regions": MappingProblem(plain, TREE, "hops", rules, 115),
        "faulty cores": make_problem(plain, broken, balance=0.05),
        "no limits": MappingProblem(plain, TREE, "hops"),
    }


PROBLEMS = problems()


def sections_of(problem: MappingProblem) -> Sections:
    board = tree_of(problem).boards[-1]
    top = groups_of(board.distance)
    assert top is not None
    return Sections(finest_graph(problem), board, top, lambda: False)


@pytest.mark.parametrize("name", PROBLEMS)
def test_division_level_by_level_keeps_all_limits_on_any_number_of_threads(name: str) -> None:
    problem, found = PROBLEMS[name], []
    for count in (1, 2, 4):
        threads = Threads(count)
        try:
            found.append(sections_of(problem).mapping(5, 0.0, threads))
        finally:
            threads.close()
    assert (found[0] == found[1]).all() and (found[0] == found[2]).all()
    assert check_mapping(problem, tree_of(problem).cores[found[0]]) == []


def test_division_is_given_up_once_time_is_over() -> None:
    problem = PROBLEMS["plain"]
    board = tree_of(problem).boards[-1]
    top = groups_of(board.distance)
    assert top is not None
    assert Sections(finest_graph(problem), board, top, lambda: True).mapping(1, 1.0, ALONE) is None


def test_a_subgraph_has_what_joins_its_nodes() -> None:
    g = finest_graph(PROBLEMS["two resources"])
    nodes = np.random.default_rng(2).permutation(len(g.volume))[:300].astype(np.int32)
    names = np.full(len(g.volume), -1, np.int32)
    one = subgraph(g, nodes, names)
    assert (names == -1).all() and (one.sizes == g.sizes[nodes]).all()
    assert (matrix(one) == matrix(g)[np.ix_(nodes, nodes)]).all()


def matrix(g: Graph) -> FloatArray:
    out = np.zeros((len(g.volume), len(g.volume)))
    out[np.repeat(np.arange(len(g.volume)), np.diff(g.ptr)), g.neighbour] = g.weight
    return out


NODES, BLOCKS = 10, 3


def small(seed: int, spare: int) -> tuple[Graph, Board, State]:
    """A random graph on three blocks at random distances, each with so much room to spare."""
    rng = np.random.default_rng(seed)
    weight = np.triu(rng.integers(1, 6, (NODES, NODES)) * (rng.random((NODES, NODES)) < 0.4), 1).astype(float)
    weight += weight.T
    ptr = np.concatenate([[0], np.cumsum((weight > 0).sum(axis=1))])
    sizes, none = rng.integers(1, 3, (NODES, 1)), np.zeros(0, np.int32)
    g = Graph(
        ptr, np.nonzero(weight)[1].astype(np.int32), weight[weight > 0].astype(np.float32), sizes, sizes[:, 0] / 10.0,
        np.zeros(NODES, np.int32), np.zeros(NODES + 1, np.int64), none, none,
    )  # fmt: skip
    distance = np.triu(rng.integers(1, 9, (BLOCKS, BLOCKS)), 1).astype(float)
    pos = rng.integers(0, BLOCKS, NODES).astype(np.int32)
    room = np.bincount(pos, sizes[:, 0], BLOCKS).astype(np.int64)[:, None] + spare
    board = board_of(distance + distance.T, room, np.full(BLOCKS, 9.0), np.ones((1, BLOCKS), bool))
    return g, board, new_state(g, pos, room)


def paid(g: Graph, board: Board, pos: Int32Array) -> float:
    """Half the sum over all connections, by the definition."""
    return float((matrix(g) * board.distance[np.ix_(pos, pos)]).sum()) / 2


@pytest.mark.parametrize("seed", range(12))
def test_no_division_of_two_blocks_is_better_than_a_minimum_cut(seed: int) -> None:
    """Where there is room for all: of every pair that an edge joins, all divisions are tried."""
    g, board, s = small(seed, 100)
    before = paid(g, board, s.pos)
    gain = refine_by_flow(g, board, s, 30, new_rng(seed))
    after = paid(g, board, s.pos)
    assert before - gain == pytest.approx(after) and after < before
    joined = matrix(g) > 0
    for p, q in combinations(range(BLOCKS), 2):
        if not joined[np.ix_(s.pos == p, s.pos == q)].any():
            continue
        both = np.flatnonzero((s.pos == p) | (s.pos == q))
        for sides in product((p, q), repeat=len(both)):
            other = s.pos.copy()
            other[both] = sides
            assert paid(g, board, other) >= after - 1e-6


@pytest.mark.parametrize("seed", range(12))
def test_a_minimum_cut_overfills_no_block(seed: int) -> None:
    """With hardly any room the mapping gets no worse, and loads are those of the mapping."""
    g, board, s = small(seed, 2)
    before = paid(g, board, s.pos)
    gain = refine_by_flow(g, board, s, 30, new_rng(seed))
    assert gain >= 0 and paid(g, board, s.pos) == pytest.approx(before - gain)
    assert excess(s) == 0 and (s.load[:, 0] == np.bincount(s.pos, g.sizes[:, 0], BLOCKS)).all()


def test_a_minimum_cut_straightens_the_border_of_a_grid() -> None:
    """Two halves of a 12 x 12 grid whose border has a step of four rows: 12 edges are the fewest."""
    at = np.arange(144).reshape(12, 12)
    ends = np.concatenate(
        [np.stack([at[:, 1:].ravel(), at[:, :-1].ravel()]), np.stack([at[1:].ravel(), at[:-1].ravel()])],
        axis=1,
    )
    problem = make_problem(
        LogicGraph.from_edges(144, *ends, directed=False), load_machine("mesh:1x2"), balance=0.1
    )
    g, board = finest_graph(problem), tree_of(problem).boards[-1]
    row, col = np.divmod(np.arange(144), 12)
    s = new_state(g, (col >= np.where(row < 6, 4, 8)).astype(np.int32), board.room)
    assert cost(g, board, s.pos, ALONE) == 16
    refine_by_flow(g, board, s, 5, new_rng(1))
    assert cost(g, board, s.pos, ALONE) == 12 and excess(s) == 0


def test_nodes_stay_where_they_must() -> None:
    """Pins and regions hold after minimum cuts."""
    problem = PROBLEMS["pins and regions"]
    g, tree = finest_graph(problem), tree_of(problem)
    pos = sections_of(problem).mapping(3, 0.0, ALONE)
    assert pos is not None
    s = new_state(g, pos, tree.boards[-1].room)
    refine_by_flow(g, tree.boards[-1], s, 3, new_rng(2))
    assert check_mapping(problem, tree.cores[s.pos]) == []
