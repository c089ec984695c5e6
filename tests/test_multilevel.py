"""The multilevel mapper end to end: valid, repeatable, good on cases that can be checked."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from search_fakes import TimedContext

from nmsolve.heuristics.mapping.first_fit import filled
from nmsolve.heuristics.mapping.multilevel import mapper
from nmsolve.heuristics.mapping.multilevel.coarsen import thinned
from nmsolve.heuristics.mapping.multilevel.mapper import Multilevel, map_multilevel
from nmsolve.hw.cost import core_distance
from nmsolve.model.bound import Bound
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping


def pairwise(problem: MappingProblem, core: np.ndarray) -> float:
    """The pairwise objective, straight from its definition."""
    d = core_distance(problem).dense()
    graph = problem.graph
    return float((graph.weights * d[core[graph.edge_source], core[graph.targets]]).sum())


def random_graph(seed: int, n: int, edges: int, sizes: np.ndarray | None = None) -> LogicGraph:
    """Random directed graph with whole weights."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, n, edges), rng.integers(0, n, edges)
    keep = a != b
    resources = ("neurons",) if sizes is None else tuple(f"r{i}" for i in range(sizes.shape[1]))
    weights = rng.integers(1, 9, int(keep.sum())).astype(float)
    return LogicGraph.from_edges(n, a[keep], b[keep], weights, sizes=sizes, resources=resources)


def search(problem: MappingProblem, seed: int = 1, work: float = 3e7) -> tuple[np.ndarray, list[np.ndarray]]:
    """Final mapping and all offers, each checked."""
    offers: list[np.ndarray] = []
    best = map_multilevel(problem, seed, work, lambda: False, lambda core, _: offers.append(core))
    assert best is not None
    for core in offers:
        assert check_mapping(problem, core) == []
    costs = [pairwise(problem, core) for core in offers]
    assert costs == sorted(costs, reverse=True)
    assert (offers[-1] == best).all()
    return best, offers


def grid_graph(rows: int, cols: int) -> LogicGraph:
    """Grid graph with unit weights."""
    at = np.arange(rows * cols).reshape(rows, cols)
    a = np.concatenate([at[:, :-1].ravel(), at[:-1].ravel()])
    b = np.concatenate([at[:, 1:].ravel(), at[1:].ravel()])
    return LogicGraph.from_edges(rows * cols, a, b, directed=False)


@pytest.mark.parametrize("objective", ["hops", "cut"])
@pytest.mark.parametrize("seed", range(3))
def test_tiny_problems_are_solved_to_optimality(objective: str, seed: int) -> None:
    """8 nodes, 4 cores, capacity 2 (no slack at all): equal to the best of all mappings."""
    problem = MappingProblem(random_graph(seed, 8, 20), Machine("m", (1, 1), (2, 2)), objective, (), 2)
    best, _ = search(problem)
    every = (
        np.array(c) for c in itertools.product(range(4), repeat=8) if max(np.bincount(c, minlength=4)) == 2
    )
    assert pairwise(problem, best) == min(pairwise(problem, c) for c in every)


def test_a_grid_is_laid_out_as_a_grid() -> None:
    """A 16x16 grid on 4x4 cores of 16 nodes without slack: the optimum is 16 squares, 96 edges across."""
    problem = MappingProblem(grid_graph(16, 16), Machine("m", (1, 1), (4, 4)), "hops", (), 16)
    costs = [pairwise(problem, search(problem, seed, 2e8)[0]) for seed in (1, 2, 3)]
    assert min(costs) <= 110 and max(costs) <= 135


def test_same_seed_same_mapping_and_other_seed_still_valid() -> None:
    """The result is a function of problem, seed and work."""
    problem = MappingProblem(random_graph(4, 150, 500), Machine("m", (1, 1), (3, 3)), "hops", (), 18)
    first, second = search(problem, 7)[0], search(problem, 7)[0]
    assert (first == second).all()
    search(problem, 8)


MACHINES = {
    "torus": Machine("m", (1, 1), (4, 4), torus=True),
    "chips": Machine("m", (2, 3), (2, 2), crossing_weight=4.0, faulty_cores=(0, 5), taken_cores=(7,)),
    "row": Machine("m", (1, 1), (1, 7)),
    "one core": Machine("m", (1, 1), (1, 1)),
    "matrix": Machine(
        "m",
        (1, 1),
        (1, 6),
        distance_matrix=np.array([[abs(i - j) * (i + j) for j in range(6)] for i in range(6)], float),
    ),
}


@pytest.mark.parametrize("name", sorted(MACHINES))
def test_every_kind_of_machine_gets_a_valid_mapping(name: str) -> None:
    """Torus, chips with faulty and taken cores, a row, a single core, any distances; better than random."""
    machine = MACHINES[name]
    limit = -(-120 // int(machine.usable.sum()))
    problem = MappingProblem(random_graph(5, 120, 400), machine, "hops", (), limit)
    best, offers = search(problem)
    assert len(offers) >= 1
    if name != "one core":
        shuffled = np.random.default_rng(1).permutation(best)
        assert pairwise(problem, best) < 0.95 * pairwise(problem, shuffled)


@pytest.mark.parametrize("seed", range(4))
def test_two_resources_with_two_percent_slack(seed: int) -> None:
    """Unequal sizes in two resources: always feasible here."""
    sizes = np.random.default_rng(seed).integers(1, 30, (160, 2))
    cap = np.ceil(sizes.sum(axis=0) / 12 * 1.02).astype(int)
    machine = Machine("m", (1, 1), (3, 4), capacity={"r0": int(cap[0]), "r1": int(cap[1])})
    search(MappingProblem(random_graph(seed, 160, 500, sizes), machine), seed)


def test_side_constraints_hold_in_every_offer() -> None:
    """Pin, region, forbid and apart together (``search`` checks every offer)."""
    constraints = (
        SideConstraint("near", "region", tuple(range(20, 50)), (0, 1, 4, 5)),
        SideConstraint("here", "pin", (1, 2), (5,)),
        SideConstraint("not", "forbid", (70, 71), (3,)),
        SideConstraint("spread", "apart", tuple(range(100, 112))),
    )
    problem = MappingProblem(random_graph(6, 150, 450), Machine("m", (1, 1), (4, 4)), "hops", constraints, 11)
    search(problem)


def test_no_limit_at_all_puts_everything_on_one_core() -> None:
    """Without capacities the optimum is 0."""
    problem = MappingProblem(random_graph(7, 60, 200), Machine("m", (1, 1), (4, 4)))
    best, _ = search(problem)
    assert pairwise(problem, best) == 0


def test_one_node_per_core_is_answered_too() -> None:
    """Every core is full, so only exchanges are possible."""
    problem = MappingProblem(random_graph(8, 16, 40), Machine("m", (1, 1), (4, 4)), "hops", (), 1)
    best, _ = search(problem)
    assert sorted(best) == list(range(16))


def test_multicast_objectives_get_a_valid_start() -> None:
    """Net objectives are searched through their pairwise surrogate."""
    graph = LogicGraph.from_nets(30, np.array([0, 4, 9, 12]), np.arange(12))
    search(MappingProblem(graph, Machine("m", (1, 1), (2, 2)), "multicast-hops", (), 8))


def test_impossible_problems_end_without_an_offer() -> None:
    """Three nodes of 6 do not pack into two cores of 9, though the total fits."""
    graph = LogicGraph.from_edges(3, [0], [1], sizes=np.array([[6], [6], [6]]))
    problem = MappingProblem(graph, Machine("m", (1, 1), (1, 2), capacity={"neurons": 9}))
    assert map_multilevel(problem, 1, 1e6, lambda: False, lambda *_: pytest.fail("offered")) is None


class FakeContext(TimedContext):
    """A context that stops by the clock and keeps offers."""

    seed = 3

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.offers: list[np.ndarray] = []
        self.moves: list[str] = []

    def offer(self, core: np.ndarray, move: str = "") -> bool:
        """Keep it."""
        self.offers.append(core)
        self.moves.append(move)
        return True

    def raise_bound(self, bound: Bound) -> bool:
        """Not expected."""
        raise AssertionError


def test_engine_answers_within_moments_and_when_already_late() -> None:
    """A first offer comes even with no time, and the engine takes what the clock allows."""
    problem = MappingProblem(grid_graph(20, 20), Machine("m", (1, 1), (4, 4)), "hops", (), 26)
    engine = Multilevel()
    assert engine.refuses(problem) is None and engine.finds == "mappings"
    for seconds in (0.0, 0.3):
        context = FakeContext(seconds)
        engine.run(problem, context)
        assert context.offers
        assert all(check_mapping(problem, core) == [] for core in context.offers)


def test_one_engine_decides_for_every_problem_and_not_again_for_repeats(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the first problem asked for must not decide for the second; a repeat has less time, another run may have more."""
    first, second = (
        MappingProblem(grid_graph(20, 20), Machine("m", (1, 1), (4, 4)), "hops", (), 26) for _ in range(2)
    )
    asked: list[MappingProblem] = []
    monkeypatch.setattr(
        mapper, "combined_part", lambda problem, seconds: asked.append(problem) or float(problem is first)
    )
    engine, moves = Multilevel(), []
    for problem, seconds in ((first, 0.3), (first, 0.2), (second, 0.3), (second, 0.5)):
        context = FakeContext(seconds)
        engine.run(problem, context)
        moves.append(set(context.moves))
    assert all("deep multilevel" in one for one in moves[:2])
    assert all("bisection" in one and "deep multilevel" not in one for one in moves[2:])
    assert [problem is first for problem in asked] == [True, False, False]
    monkeypatch.setattr(mapper, "combined_part", lambda problem, seconds: pytest.fail("decided"))
    Multilevel(combined=0.0).run(first, FakeContext(0.1))


@pytest.mark.parametrize(
    ("part", "first", "then"), [(0.0, False, True), (0.25, True, True), (1.0, True, False)]
)
def test_annealing_has_what_combining_leaves(
    part: float, first: bool, then: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Starts and combinations end when their part of the time is over."""
    problem = MappingProblem(grid_graph(20, 20), Machine("m", (1, 1), (4, 4)), "hops", (), 26)
    context, left = FakeContext(0.8), []
    monkeypatch.setattr(
        mapper.Annealing, "run", lambda self, problem, context: left.append(context.time_left())
    )
    Multilevel(combined=part).run(problem, context)
    assert ("deep multilevel" in context.moves, bool(left)) == (first, then)
    assert not left or left[0] <= 0.8 * (1 - part)


def test_some_mapping_comes_before_the_search_only_where_none_is_known() -> None:
    """It is offered, and the search does not start from it: the rest is as if it had not been."""
    problem = MappingProblem(grid_graph(20, 20), Machine("m", (1, 1), (4, 4)), "hops", (), 26)
    fresh, known = FakeContext(0.0), FakeContext(0.0)
    known.best = filled(problem)
    for context in (fresh, known):
        Multilevel().run(problem, context)
    assert fresh.moves[:2] == ["first fit", "bisection"]
    assert "first fit" not in known.moves


def test_a_dense_network_is_searched_on_samples_and_ends_in_an_optimum_of_the_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every offer is feasible and costs less than the one before, by the connections of the whole network."""
    rng = np.random.default_rng(2)
    group = np.arange(600) // 50
    near = np.abs(group[:, None] - group) <= 2
    a, b = np.nonzero(np.triu((rng.random((600, 600)) < 0.5) & (near | (rng.random((600, 600)) < 0.3)), 1))
    shuffled = rng.permutation(600)
    graph = LogicGraph.from_edges(600, shuffled[a], shuffled[b])
    problem = MappingProblem(graph, Machine("m", (1, 1), (3, 4)), node_limit=50)
    seen = []
    monkeypatch.setattr(mapper, "thinned", lambda net, rng: seen.append(thinned(net, rng)) or seen[-1])
    best, _ = search(problem, work=2e8)
    assert seen and all(len(net.neighbour) < 0.6 * 2 * len(a) for net in seen)
    cost = pairwise(problem, best)
    for u in range(600):  # no exchange of two nodes helps
        for v in range(u):
            if best[u] != best[v] and rng.random() < 0.002:
                other = best.copy()
                other[u], other[v] = best[v], best[u]
                assert pairwise(problem, other) >= cost - 1e-6
