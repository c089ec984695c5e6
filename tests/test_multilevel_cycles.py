"""Starts and combinations: mappings that keep all limits, the same on any number of threads; parts against plain references."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.spatial import Delaunay
from search_fakes import QuietContext

from nmsolve.heuristics.mapping.multilevel.annealing import halved, new_bench
from nmsolve.heuristics.mapping.multilevel.bisect import split
from nmsolve.heuristics.mapping.multilevel.coarsen import clustered, coarser
from nmsolve.heuristics.mapping.multilevel.combining import BEFORE, Combining, combined_part, separates
from nmsolve.heuristics.mapping.multilevel.cycle import Cycle, Found, Style
from nmsolve.heuristics.mapping.multilevel.fm import refine_by_fm
from nmsolve.heuristics.mapping.multilevel.graph import Graph, finest_graph
from nmsolve.heuristics.mapping.multilevel.mapper import map_multilevel
from nmsolve.heuristics.mapping.multilevel.moves import cost, excess, new_state, refine_by_moves
from nmsolve.heuristics.mapping.multilevel.schedule import Budget
from nmsolve.heuristics.mapping.multilevel.threads import ALONE, Threads
from nmsolve.heuristics.mapping.multilevel.tree import tree_of
from nmsolve.heuristics.rng import new_rng
from nmsolve.hw.machines import load_machine
from nmsolve.hw.scores import objective_value
from nmsolve.model.generators import generate
from nmsolve.model.graph import LogicGraph, node_kinds
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.model.types import Int32Array, IntArray
from nmsolve.solvers.mapping.api import make_problem
from nmsolve.solvers.mapping.auto import automatic


def triangulated(n: int, seed: int = 1, weights: bool = False, **nodes: object) -> LogicGraph:
    """Random points in a square and their Delaunay triangulation; weights from 1 to 9."""
    rng = np.random.default_rng(seed)
    corners = np.sort(Delaunay(rng.random((n, 2))).simplices, axis=1)
    edges = np.unique(np.concatenate([corners[:, :2], corners[:, 1:], corners[:, ::2]]), axis=0)
    weight = rng.integers(1, 10, len(edges)) * 1.0 if weights else None
    return LogicGraph.from_edges(n, edges[:, 0], edges[:, 1], weight, directed=False, **nodes)  # type: ignore[arg-type]


def tree_machine() -> Machine:
    """Two racks of three boards of four cores, distances 1, 10 and 100."""
    core = np.arange(24)
    distance = 100.0 - 90 * (core[:, None] // 12 == core // 12) - 9 * (core[:, None] // 4 == core // 4)
    np.fill_diagonal(distance, 0)
    return Machine("tree", (1, 1), (1, 24), distance_matrix=distance)


def sized(n: int, seed: int = 2) -> LogicGraph:
    """A triangulation of nodes that take from 1 to 5 of each of two resources."""
    return triangulated(
        n, seed, sizes=np.random.default_rng(seed).integers(1, 6, (n, 2)), resources=("neurons", "bytes")
    )


def weightless(graph: LogicGraph) -> LogicGraph:
    """The same with no weight on nine in ten edges, and beside them a node that sends to all others for nothing."""
    rng = np.random.default_rng(1)
    weight = np.where(
        rng.random(graph.m) < 0.1, graph.weights, np.where(rng.random(graph.m) < 0.5, 0.0, 1e-50)
    )
    hub, others = np.zeros(graph.n - 1, int), np.arange(1, graph.n)
    ends = np.concatenate([graph.edge_source, hub]), np.concatenate([graph.targets, others])
    return LogicGraph.from_edges(graph.n, *ends, np.concatenate([weight, np.zeros(len(hub))]))


def machines() -> dict[str, MappingProblem]:
    """A problem of every form that the tree of a machine is made from."""
    plain, heavy = triangulated(1500, weights=True), sized(1200)
    roomy = Machine("two", (1, 1), (4, 4), capacity={"neurons": 260, "bytes": 245})
    unlike = replace(roomy, core_capacity={"bytes": np.where(np.arange(16) % 3 == 0, 300, 220)})
    pins = (
        SideConstraint("here", "pin", (3, 4), (5,)),
        SideConstraint("west", "region", tuple(range(20, 60)), (0, 4, 8, 12)),
    )
    closed = (SideConstraint("east", "forbid", tuple(range(1500)), tuple(k for k in range(16) if k % 4 < 2)),)
    empty = triangulated(1200, sizes=np.arange(1200)[:, None] % 3, resources=("neurons",))
    pairs = LogicGraph.from_edges(900, np.arange(0, 900, 2), np.arange(1, 900, 2))
    return {
        "mesh": make_problem(plain, load_machine("mesh:4x5"), balance=0.02),
        "exact fit": make_problem(plain, load_machine("mesh:5x5"), balance=0.0),
        "chips": make_problem(plain, load_machine("mesh:2x3,2x2"), balance=0.05),
        "torus": make_problem(plain, Machine("torus", (1, 1), (4, 4), torus=True), balance=0.05),
        "cores that are faulty": make_problem(plain, Machine("holes", (1, 1), (4, 4), faulty_cores=(0, 5, 6)), balance=0.05),
        "a hierarchy": make_problem(plain, tree_machine(), balance=0.05),
        "cut": make_problem(plain, load_machine("mesh:3x3"), balance=0.05, objective="cut"),
        "one core": make_problem(plain, load_machine("mesh:1x1"), balance=0.0),
        "two resources": MappingProblem(heavy, roomy, "hops"),
        "cores of different sizes": MappingProblem(heavy, unlike, "hops"),
        "pins and regions": MappingProblem(plain, load_machine("mesh:4x4"), "hops", pins, 110),
        "no limits": MappingProblem(plain, load_machine("mesh:3x3"), "hops"),
        "edges of weight 0": MappingProblem(weightless(plain), load_machine("mesh:4x4"), "cut", (), 100),
        "nodes of size 0": MappingProblem(empty, replace(roomy, capacity={"neurons": 200}), "hops"),
        "closed cores": MappingProblem(plain, load_machine("mesh:4x4"), "hops", closed, 300),
        "two nodes": MappingProblem(LogicGraph.from_edges(2, [0], [1]), load_machine("mesh:3x3"), "hops", (), 1),
        "components": make_problem(pairs, load_machine("mesh:3x3"), balance=0.0),
    }  # fmt: skip


MACHINES = machines()


def cycle_of(problem: MappingProblem) -> Cycle:
    return Cycle(finest_graph(problem), tree_of(problem), lambda: False)


@pytest.mark.parametrize("name", MACHINES)
def test_mappings_keep_all_limits_and_cost_what_the_evaluator_says(name: str) -> None:
    """From scratch, within one mapping, and within two; where the first has too much on a core it says so."""
    problem = MACHINES[name]
    cycle, tree = cycle_of(problem), tree_of(problem)
    first = cycle.from_scratch(Style(), 1, ALONE)
    second = cycle.from_scratch(Style(join=True, nodes_per_block=12, starts=2, fm=False), 2, ALONE)
    found = [
        first,
        second,
        cycle.within(first.pos, None, 3, ALONE),
        cycle.within(first.pos, second.pos, 4, ALONE),
    ]
    for one in found:
        core = tree.cores[one.pos]
        broken = check_mapping(problem, core)
        assert bool(broken) == (one.over > 0), broken
        assert one.cost == pytest.approx(objective_value(problem, core), rel=1e-6)
    assert min(found, key=lambda one: one[:2]).over == 0


@pytest.mark.parametrize("name", ["mesh", "a hierarchy", "two resources"])
def test_any_number_of_threads_finds_the_same(name: str) -> None:
    """Also where threads share the nodes of one level: 6,000 of them, so that each has a stretch of its own."""
    problem = (
        MACHINES[name]
        if name != "mesh"
        else make_problem(triangulated(6000), load_machine("mesh:4x4"), balance=0.03)
    )
    found = []
    for count in (1, 2, 4):
        threads = Threads(count)
        one = cycle_of(problem).from_scratch(Style(), 5, threads)
        found.append((one, cycle_of(problem).within(one.pos, None, 6, threads)))
        threads.close()
    assert all(same(a, b) for other in found[1:] for a, b in zip(found[0], other, strict=True))


def same(a: Found, b: Found) -> bool:
    return a[:2] == b[:2] and bool((a.pos == b.pos).all())


def dense_of(g: Graph) -> np.ndarray:
    n = len(g.volume)
    ends = np.repeat(np.arange(n), np.diff(g.ptr))
    return coo_array((g.weight.astype(float), (ends, g.neighbour)), shape=(n, n)).toarray()


@pytest.mark.parametrize("join", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_coarser_graph_has_the_sums_of_its_members(join: bool, threads: int) -> None:
    """Against products of matrices; clusters keep to their numbers, their domains and the volume they may have."""
    problem = MappingProblem(sized(700), Machine("two", (1, 1), (3, 3), capacity={"neurons": 300, "bytes": 300}), "hops",
                             (SideConstraint("west", "region", tuple(range(100)), (0, 3, 6)),))  # fmt: skip
    g = finest_graph(problem)
    inside = (np.arange(700) % 2).astype(np.int32)
    pool = Threads(threads)
    coarse, label = coarser(g, 3 * float(g.volume.mean()), 1, join, inside, pool)
    pool.close()
    k = len(coarse.volume)
    belongs = np.zeros((k, 700))
    belongs[label, np.arange(700)] = 1
    wanted = belongs @ dense_of(g) @ belongs.T
    np.fill_diagonal(wanted, 0)
    assert np.allclose(dense_of(coarse), wanted)
    assert (coarse.sizes == belongs @ g.sizes).all() and np.allclose(coarse.volume, belongs @ g.volume)
    assert (coarse.domain[label] == g.domain).all()
    assert all(len(np.unique(inside[label == c])) == 1 for c in range(k))
    many = np.bincount(label) > 1
    assert (coarse.volume[many] <= 3 * g.volume.mean() + 1e-9).all() and k < 0.75 * 700
    assert bool((np.bincount(label) > 2).any()) == join


def test_a_machine_is_halved_where_its_halves_are_far_apart() -> None:
    """Racks before boards before cores; chips before their cores; blocks of a depth have the room of their cores."""
    tree = tree_of(make_problem(triangulated(300), tree_machine(), balance=0.1))
    assert sorted(map(sorted, halves_of(tree, 1))) == [list(range(12)), list(range(12, 24))]
    assert all(len({core // 4 for core in block}) <= 2 for block in halves_of(tree, 2))
    chips = tree_of(
        make_problem(triangulated(300), Machine("chips", (1, 2), (3, 3), crossing_weight=9.0), balance=0.1)
    )
    assert sorted(map(sorted, halves_of(chips, 1))) == [
        sorted(r * 6 + c + 3 * k for r in range(3) for c in range(3)) for k in (0, 1)
    ]
    for one in (tree, chips):
        for board in one.boards:
            assert (board.room.sum(axis=0) == one.boards[-1].room.sum(axis=0)).all()
            assert (np.diag(board.distance) == 0).all() and (board.distance == board.distance.T).all()


def halves_of(tree: object, depth: int) -> list[list[int]]:
    """The cores of every block of a depth, by following its halvings."""
    blocks = [[k] for k in range(len(tree.cores))]  # type: ignore[attr-defined]
    for halving in reversed(tree.halvings[depth:]):  # type: ignore[attr-defined]
        blocks = [
            blocks[a] + (blocks[b] if b >= 0 else [])
            for a, b in zip(halving.left, halving.right, strict=True)
        ]
    return [[int(tree.cores[k]) for k in block] for block in blocks]  # type: ignore[attr-defined]


def test_halving_finds_the_shortest_cut_of_a_grid() -> None:
    """A grid of 8 by 24 is cut across: 8 edges; and a node that may only be in one half is there."""
    at = np.arange(8 * 24).reshape(8, 24)
    edges = np.concatenate(
        [np.stack([at[:, :-1].ravel(), at[:, 1:].ravel()]), np.stack([at[:-1].ravel(), at[1:].ravel()])],
        axis=1,
    )
    graph = LogicGraph.from_edges(192, edges[0], edges[1], directed=False)
    fixed = (SideConstraint("right", "pin", (0,), (1,)),)
    for constraints in ((), fixed):
        problem = MappingProblem(graph, load_machine("mesh:1x2"), "hops", constraints, 97)
        g, tree = finest_graph(problem), tree_of(problem)
        board = tree.boards[1]
        side = split(
            g, np.zeros(192, np.int32), tree.halvings[0], board.share, board.allowed, 0.0, 6, 4, new_rng(1)
        )
        assert sum(side[a] != side[b] for a, b in edges.T) == 8
        assert sorted(np.bincount(side)) == [96, 96]
        if constraints:
            assert tree.cores[side[0]] == 1


def random_pos(problem: MappingProblem, seed: int) -> Int32Array:
    return (
        np.random.default_rng(seed)
        .permutation(np.arange(problem.n) % len(tree_of(problem).cores))
        .astype(np.int32)
    )


@pytest.mark.parametrize("name", ["mesh", "a hierarchy", "torus"])
def test_refinement_never_makes_a_legal_mapping_worse(name: str) -> None:
    """Neither kind of moves, on the finest level; loads are those of the mapping afterwards; FM keeps its borders."""
    problem = MACHINES[name]
    g, tree = finest_graph(problem), tree_of(problem)
    board = tree.boards[-1]
    for seed in range(3):
        pos = random_pos(problem, seed)
        s = new_state(g, pos, board.room)
        before = cost(g, board, pos, ALONE)
        assert excess(s) == 0
        refine_by_moves(g, board, s, 6, 0.25, ALONE)
        between = cost(g, board, pos, ALONE)
        refine_by_fm(g, board, s, tree.divisions, 4, 25, 4, ALONE, between, new_rng(seed))
        after = cost(g, board, pos, ALONE)
        load = np.zeros_like(board.room)
        np.add.at(load, pos, g.sizes)
        assert before >= between >= after and excess(s) == 0
        assert (load == s.load).all()
        assert after < 0.8 * before


def test_a_core_that_is_too_full_is_emptied() -> None:
    """All nodes on one core of a mesh, in nodes of different sizes: what is left is legal, however far the nodes have to go."""
    problem = MACHINES["two resources"]
    g, tree = finest_graph(problem), tree_of(problem)
    s = new_state(g, np.zeros(problem.n, np.int32), tree.boards[-1].room)
    refine_by_moves(g, tree.boards[-1], s, 8, 0.25, ALONE)
    assert excess(s) == 0 and check_mapping(problem, tree.cores[s.pos]) == []


def test_only_networks_with_small_cuts_separate() -> None:
    """Triangulations do; layered and random ones, dense ones and those on disk do not, nor where cycles take no problem."""
    mesh = load_machine("mesh:4x4")
    rng = np.random.default_rng(3)
    ends = np.sort(rng.integers(0, 3000, (6000, 2)), axis=1)
    ends = np.unique(ends[ends[:, 0] < ends[:, 1]], axis=0)
    assert separates(make_problem(triangulated(4000), mesh, balance=0.05), 60)
    assert not separates(
        make_problem(LogicGraph.from_edges(3000, ends[:, 0], ends[:, 1]), mesh, balance=0.05), 60
    )
    layered = generate("snn", nodes=2000, synapses=20000, layers=4, directed=0)
    assert not separates(make_problem(layered, mesh, balance=0.05), 60)
    assert not separates(make_problem(triangulated(16), mesh), 60)
    tree = load_machine("tree:4:4,1:10")
    sparse = make_problem(
        generate("snn", nodes=2000, synapses=12000, layers=4, directed=0), tree, balance=0.05
    )
    assert not separates(sparse, 60)
    assert combined_part(sparse, 60) == 1.0
    assert combined_part(make_problem(layered, tree, balance=0.05), 60) == 0.0


def test_automatic_mode_takes_it_where_time_is_short() -> None:
    """And for a start before annealing where there is more; for cuts it always is the better one, as on hierarchies."""
    graph, mesh = triangulated(20_000), load_machine("mesh:8x8")

    def finder(problem: MappingProblem, seconds: float) -> tuple[str, float, bool]:
        """The engine, the part that starts and combinations get, and whether all workers are its own."""
        steps = automatic(problem, seconds, 1, lambda name, why: None)
        (step,) = [step for step in steps if step.engine.name in ("multilevel", "external")]
        return step.engine.name, getattr(step.engine, "combined", 0.0), step.threads

    hops = make_problem(graph, mesh, balance=0.03)
    combining = ("multilevel", 1.0, True)
    assert finder(hops, 1) == combining and finder(hops, 60) == ("multilevel", BEFORE, False)
    assert finder(make_problem(graph, mesh, balance=0.03, objective="cut"), 60) == combining
    assert finder(make_problem(graph, tree_machine(), balance=0.03), 60) == combining
    windows = generate("snn", nodes=2000, synapses=20000, layers=4, directed=0)
    assert finder(make_problem(windows, mesh, balance=0.03), 60) == ("multilevel", 0.0, False)
    layered = generate("snn", nodes=6000, synapses=60000, layers=4, directed=0)
    assert finder(make_problem(layered, mesh, balance=0.03, objective="cut"), 1)[0] == "external"


class Brief(QuietContext):
    """Says at once, or after some looks, that time is up."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self.looks, self.seed = looks, 1

    def should_stop(self) -> bool:
        self.looks -= 1
        return self.looks < 0

    def offer(self, core: IntArray, move: str = "") -> bool:
        self.best = core
        return True


@pytest.mark.parametrize("looks", [0, 1, 2, 5, 10, 20, 50])
def test_whenever_time_is_up_there_is_a_legal_mapping(looks: int) -> None:
    """First fit, or better."""
    problem = MACHINES["chips"]
    context = Brief(looks)
    Combining().run(problem, context)
    assert context.best is not None and check_mapping(problem, context.best) == []


def test_what_crosses_on_networks_that_separate_and_on_others() -> None:
    """As the limits of `separates` suppose: edges for the root of nodes times cores, on a plane, in a box, between blocks."""
    at = np.arange(27_000).reshape(30, 30, 30)
    ends = [
        np.stack([np.moveaxis(at, k, 0)[:-1].ravel(), np.moveaxis(at, k, 0)[1:].ravel()]) for k in range(3)
    ]
    box = LogicGraph.from_edges(27_000, *np.concatenate(ends, axis=1), directed=False)
    rng = np.random.default_rng(1)
    a = rng.integers(0, 32_000, 160_000)
    b = np.where(
        rng.random(len(a)) < 0.995,
        a // 500 * 500 + rng.integers(0, 500, len(a)),
        rng.integers(0, 32_000, len(a)),
    )
    pairs = np.unique(np.sort(np.stack([a, b], axis=1)[a != b], axis=1), axis=0)
    blocks = LogicGraph.from_edges(32_000, pairs[:, 0], pairs[:, 1], directed=False)
    mesh, found = load_machine("mesh:8x8"), {}
    for name, graph in (("plane", triangulated(30_000)), ("box", box), ("blocks", blocks)):
        problem = make_problem(graph, mesh, balance=0.03)
        half, whole = cycle_of(problem).crossings(1, np.inf)
        found[name] = whole * graph.m / np.sqrt(64 * graph.n), whole / (half * np.sqrt(32))
    assert 2 < found["plane"][0] < 6 and found["plane"][1] > 1.5
    assert found["box"][0] > 10
    assert found["blocks"][0] < 6 and found["blocks"][1] < 0.8


def test_clusters_hold_no_nodes_of_different_kinds_and_none_that_are_to_be_apart() -> None:
    """Pairs and label propagation; on every level those that are to be apart are still known, and alone."""
    plain = triangulated(900)
    kinds = node_kinds([f"k{k}" for k in np.arange(900) % 3])
    graph = LogicGraph.from_edges(900, plain.edge_source, plain.targets, plain.weights, kinds=kinds)
    machine = Machine("kinds", (1, 1), (4, 4), capacity={"neurons": 70}, kinds_per_core=1)
    problem = MappingProblem(
        graph, machine, "hops", (SideConstraint("far", "apart", tuple(range(0, 60, 5))),)
    )
    fine = finest_graph(problem)
    everywhere = np.zeros(0, np.int32)
    for coarse, label in (
        coarser(fine, 0.1, 1, True, everywhere, ALONE),
        clustered(fine, 0.1, everywhere, new_rng(1)),
    ):
        k = len(coarse.volume)
        assert k < 700 and all(len(np.unique(fine.kind[label == c])) == 1 for c in range(k))
        assert (coarse.kind[label] == fine.kind).all()
        for u in range(0, 60, 5):
            c = label[u]
            assert (label == c).sum() == 1
            others = coarse.apart[coarse.apart_ptr[c] : coarse.apart_ptr[c + 1]]
            assert sorted(others) == sorted(label[v] for v in range(0, 60, 5) if v != u)
        assert coarse.apart_ptr[-1] == 12 * 11


@pytest.mark.parametrize(
    "name", ["mesh", "cores that are faulty", "chips", "a hierarchy", "pins and regions"]
)
def test_boards_of_too_many_cores_for_tables_are_halved_down_to_tiles(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every tile is a few cores side by side; they are filled evenly; cores that cannot be used get nothing."""
    monkeypatch.setattr("nmsolve.heuristics.mapping.multilevel.tree.MOST_BLOCKS", 6)
    stated = MACHINES[name]
    problem = MappingProblem(
        stated.graph, stated.machine, stated.objective, stated.constraints, stated.node_limit
    )
    tree, bench = tree_of(problem), new_bench(problem, Budget(1e9, lambda: False, lambda: 0.0), 1)
    usable = problem.machine.usable
    assert len(tree.cores) <= 12 and (tree.tiles >= 0).tolist() == usable.tolist()
    assert (tree.boards[-1].room.sum(axis=0) == problem.capacity[usable].sum(axis=0)).all()
    core = halved(finest_graph(problem), bench, lambda: False)
    assert core is not None and usable[core].all()
    assert np.bincount(core, minlength=problem.cores)[usable].min() > 0
    found = map_multilevel(problem, 1, 1e8, lambda: False, lambda core, move: None)
    assert found is not None and not check_mapping(problem, found)
