"""The kernels of the multilevel mapper against slow recomputation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from nmsolve.heuristics.mapping.common.heap import changed, push, remove
from nmsolve.heuristics.mapping.multilevel.coarsen import clustered, renumber, thinned, threshold
from nmsolve.heuristics.mapping.multilevel.descent import descend, evict, promises
from nmsolve.heuristics.mapping.multilevel.graph import Graph, finest_graph
from nmsolve.heuristics.mapping.multilevel.heatbath import heat_sweep
from nmsolve.heuristics.mapping.multilevel.lines import (
    Lines,
    State,
    line_cost,
    lines_of,
    new_state,
    weight_between,
)
from nmsolve.heuristics.mapping.multilevel.pack import first_fit, make_feasible
from nmsolve.heuristics.mapping.multilevel.schedule import scratch_for
from nmsolve.heuristics.rng import below, new_rng, shuffle, uniform
from nmsolve.hw.cost import core_distance
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem


def random_problem(seed: int, n: int = 40, edges: int = 120, **kind: object) -> MappingProblem:
    """A random graph on a small board; ``kind`` may set machine, objective, node_limit, sizes."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, n, edges), rng.integers(0, n, edges)
    keep = a != b
    graph = LogicGraph.from_edges(n, a[keep], b[keep], rng.integers(1, 9, int(keep.sum())).astype(float))
    machine = kind.get("machine", Machine("m", (1, 1), (3, 4)))
    assert isinstance(machine, Machine)
    limit = kind.get("node_limit", -(-n // int(machine.usable.sum())) + 1)
    return MappingProblem(graph, machine, str(kind.get("objective", "hops")), (), limit)  # type: ignore[arg-type]


def dense_cost(problem: MappingProblem, core: np.ndarray) -> float:
    """The pairwise objective, straight from its definition."""
    d = core_distance(problem).dense()
    graph = problem.graph
    return float((graph.weights * d[core[graph.edge_source], core[graph.targets]]).sum())


def small_state(problem: MappingProblem, seed: int) -> tuple[Graph, Lines, State]:
    """A random feasible placement."""
    board = lines_of(problem, core_distance(problem))
    net = finest_graph(problem)
    pos = first_fit(net, board, new_rng(seed), 0.3)
    return net, board, new_state(net, board, pos, board.capacity, True)


MACHINES = {
    "mesh": Machine("m", (1, 1), (3, 4)),
    "torus": Machine("m", (1, 1), (4, 5), torus=True),
    "chips": Machine("m", (2, 2), (2, 2), crossing_weight=5.0, faulty_cores=(3,), taken_cores=(8,)),
    "row": Machine("m", (1, 1), (1, 6)),
}


def test_random_numbers_are_uniform_and_repeatable() -> None:
    """Same seed, same numbers; other stream, other numbers; means where they belong."""
    a, b = new_rng(5), new_rng(5)
    first = [uniform(a) for _ in range(2000)]
    assert first == [uniform(b) for _ in range(2000)]
    assert first != [uniform(new_rng(5, 1)) for _ in range(2000)]
    assert abs(np.mean(first) - 0.5) < 0.03 and min(first) >= 0 and max(first) < 1
    assert set(np.bincount([below(a, 7) for _ in range(700)], minlength=7) > 50) == {True}
    items = np.arange(50)
    shuffle(a, items)
    assert sorted(items) == list(range(50)) and list(items) != list(range(50))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 11), st.integers(-50, 50)), max_size=60))
def test_heap_keeps_the_largest_key_on_top(steps: list[tuple[int, int, int]]) -> None:
    """Random pushes, removals and key changes against a dictionary."""
    heap, place = np.zeros(12, np.int32), np.full(12, -1, np.int32)
    key, size = np.zeros(12), np.zeros(1, np.int64)
    model: dict[int, float] = {}
    for what, item, value in steps:
        if item not in model:
            key[item] = value
            push(heap, place, key, size, item)
            model[item] = value
        elif what == 0:
            remove(heap, place, key, size, item)
            del model[item]
        else:
            key[item] = value
            changed(heap, place, key, size, item)
            model[item] = value
        assert size[0] == len(model)
        if model:
            assert key[heap[0]] == max(model.values())


@pytest.mark.parametrize("name", sorted(MACHINES))
@pytest.mark.parametrize("objective", ["hops", "cut"])
@pytest.mark.parametrize("partners", ["on all cores", "on a few"])
def test_sweeps_and_descent_keep_state_and_cost_exact(
    name: str, objective: str, partners: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After hot and cold sweeps and descent, tables, loads and member lists equal a fresh recomputation."""
    monkeypatch.setattr("nmsolve.heuristics.mapping.multilevel.descent.FULL", 1)
    problem = random_problem(3, machine=MACHINES[name], objective=objective)
    net, board, s = small_state(problem, 1)
    scratch, rng = scratch_for(board), new_rng(2)
    for temperature in (50.0, 5.0, 0.5):
        heat_sweep(net, board, s, 7, 300, temperature, scratch.bits, scratch.prob, scratch.step, rng)
    hot = line_cost(board, s)
    table = np.zeros((0, 0), np.float32) if partners == "on all cores" else promises(board, s)
    descend(net, board, s, np.arange(problem.n, dtype=np.int32), table, scratch.step)
    assert line_cost(board, s) <= hot
    fresh = new_state(net, board, s.pos, board.capacity, True)
    np.testing.assert_allclose(s.lines, fresh.lines, rtol=1e-5, atol=1e-3)
    np.testing.assert_array_equal(s.load, fresh.load)
    assert (s.load <= board.capacity).all()
    for p in range(problem.cores):
        members = s.slots[s.first[p] : s.first[p] + s.held[p]]
        assert sorted(members) == np.flatnonzero(s.pos == p).tolist()
        assert all(s.slots[s.slot[u]] == u for u in members)
    assert line_cost(board, s) == pytest.approx(dense_cost(problem, s.pos), rel=1e-6)


def test_descent_ends_where_no_move_and_no_exchange_helps() -> None:
    """Brute force over all moves and exchanges finds nothing better."""
    problem = random_problem(11, n=14, edges=40, machine=Machine("m", (1, 1), (2, 3)), node_limit=3)
    net, board, s = small_state(problem, 1)
    scratch = scratch_for(board)
    nodes = np.arange(problem.n, dtype=np.int32)
    everywhere = np.zeros((0, 0), np.float32)
    while descend(net, board, s, nodes, everywhere, scratch.step):
        pass
    best = dense_cost(problem, s.pos)
    for u in range(problem.n):
        for p in range(problem.cores):
            if (s.pos == p).sum() < 3:
                other = s.pos.copy()
                other[u] = p
                assert dense_cost(problem, other) >= best - 1e-6
        for v in range(u):
            other = s.pos.copy()
            other[u], other[v] = other[v], other[u]
            assert dense_cost(problem, other) >= best - 1e-6


def test_heat_bath_visits_states_by_their_boltzmann_weight() -> None:
    """One free node between two fixed ones on a row: the share of visits to each core follows exp(-cost/T)."""
    graph = LogicGraph.from_edges(3, [0, 1], [2, 2], [3.0, 1.0])
    problem = MappingProblem(graph, Machine("m", (1, 1), (1, 4)))
    board = lines_of(problem, core_distance(problem))
    net = finest_graph(problem)
    s = new_state(net, board, np.array([0, 3, 0], np.int32), board.capacity, True)
    scratch, rng = scratch_for(board), new_rng(4)
    temperature, seen = 2.0, np.zeros(4)
    for _ in range(20_000):
        heat_sweep(net, board, s, 2, 1, temperature, scratch.bits, scratch.prob, scratch.step, rng)
        seen[s.pos[2]] += 1
    weight = np.exp(-np.array([3.0, 5.0, 7.0, 9.0]) / temperature)
    np.testing.assert_allclose(seen / seen.sum(), weight / weight.sum(), atol=0.04)


def test_binary_search_finds_the_traffic_of_every_pair() -> None:
    """``weight_between`` equals the dense traffic matrix."""
    problem = random_problem(5, n=15, edges=40)
    net = finest_graph(problem)
    dense = np.zeros((15, 15))
    np.add.at(dense, (problem.graph.edge_source, problem.graph.targets), problem.graph.weights)
    dense += dense.T
    for u in range(15):
        for v in range(15):
            if u != v:
                assert weight_between(net, u, v) == dense[u, v]


@pytest.mark.parametrize("seed", range(4))
def test_contraction_keeps_cost_sizes_and_symmetry(seed: int) -> None:
    """A mapping of clusters costs the same as its projection; sizes add up; no cluster exceeds the limit."""
    problem = random_problem(seed, n=60, edges=200)
    board = lines_of(problem, core_distance(problem))
    net = finest_graph(problem)
    coarse, label = clustered(net, 0.5, np.zeros(0, np.int32), new_rng(seed))
    assert coarse.volume.max() <= 0.5 + 1e-6 and len(coarse.volume) < 60
    assert (coarse.sizes.sum(axis=0) == net.sizes.sum(axis=0)).all()
    for c in range(len(coarse.volume)):
        row = coarse.neighbour[coarse.ptr[c] : coarse.ptr[c + 1]]
        assert (np.diff(row) > 0).all() and c not in row
    pos = np.random.default_rng(seed).integers(0, 12, len(coarse.volume)).astype(np.int32)
    small = new_state(coarse, board, pos, board.capacity, True)
    assert line_cost(board, small) == pytest.approx(dense_cost(problem, pos[label]), rel=1e-6)


def test_clusters_of_a_v_cycle_never_span_cores() -> None:
    """With a placement given, every cluster lies on one core."""
    problem = random_problem(2, n=60, edges=200)
    net, _, s = small_state(problem, 2)
    _, label = clustered(net, 1.0, s.pos, new_rng(0))
    for c in range(int(label.max()) + 1):
        assert len(np.unique(s.pos[label == c])) == 1


def test_renumbering_changes_names_only() -> None:
    """Every edge keeps its weight under the new names."""
    problem = random_problem(8)
    net = finest_graph(problem)
    order = np.random.default_rng(0).permutation(problem.n).astype(np.int32)
    other = renumber(net, order)
    for i in range(problem.n):
        for v in range(problem.n):
            if v != i:
                assert weight_between(other, i, v) == weight_between(net, order[i], order[v])


def test_evict_empties_overfull_cores_when_there_is_room() -> None:
    """All nodes start on one core; afterwards no core is overfull."""
    problem = random_problem(1)
    board = lines_of(problem, core_distance(problem))
    net = finest_graph(problem)
    s = new_state(net, board, np.zeros(problem.n, np.int32), board.capacity, True)
    assert evict(net, board, s, scratch_for(board).step) == 0
    assert (s.load <= board.capacity).all()


def test_overfull_cores_pass_nodes_on_instead_of_sending_them_far() -> None:
    """A chain lies along a row of cores of which the first is one node too full and only the last has room."""
    graph = LogicGraph.from_edges(12, np.arange(11), np.arange(1, 12))
    problem = MappingProblem(graph, Machine("m", (1, 1), (1, 4)), node_limit=3)
    board, net = lines_of(problem, core_distance(problem)), finest_graph(problem)
    s = new_state(net, board, np.repeat(np.arange(4), (4, 3, 3, 2)).astype(np.int32), board.capacity, True)
    assert evict(net, board, s, scratch_for(board).step) == 0
    assert s.pos.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert line_cost(board, s) == 3


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 3), st.booleans())
def test_evict_keeps_the_state_in_order(seed: int, spare: int, matrix: bool) -> None:
    """Wherever nodes of one size begin, all fit in the end, and loads, members and lines are those of the new positions."""
    distance = np.abs(np.subtract.outer(np.arange(8), np.arange(8))) ** 0.5 if matrix else None
    machine = Machine("m", (1, 1), (1, 8) if matrix else (2, 4), distance_matrix=distance)
    problem = random_problem(seed, machine=machine, node_limit=5 + spare)
    board, net = lines_of(problem, core_distance(problem)), finest_graph(problem)
    pos = new_rng(seed)
    start = np.array([below(pos, 8) for _ in range(problem.n)], np.int32)
    s = new_state(net, board, start, board.capacity, True)
    assert evict(net, board, s, scratch_for(board).step) == 0
    again = new_state(net, board, s.pos.copy(), board.capacity, True)
    assert np.array_equal(s.load, again.load) and (s.load <= board.capacity).all()
    np.testing.assert_allclose(s.lines, again.lines, rtol=1e-4, atol=1e-3)
    for p in range(8):
        members = s.slots[s.first[p] : s.first[p] + s.held[p]]
        assert sorted(members.tolist()) == np.flatnonzero(s.pos == p).tolist()


def test_make_feasible_packs_without_any_slack() -> None:
    """Two resources, sizes cut from full cores: a perfect packing exists and is found."""
    rng = np.random.default_rng(0)
    sizes = []
    for _ in range(4):
        cut_a, cut_b = np.sort(rng.integers(1, 30, 2)), np.sort(rng.integers(1, 20, 2))
        sizes += list(zip(np.diff([0, *cut_a, 30]), np.diff([0, *cut_b, 20]), strict=True))
    table = np.array(sizes, np.int64)
    n = len(table)
    graph = LogicGraph.from_edges(n, [0], [1], resources=("a", "b"), sizes=table)
    problem = MappingProblem(graph, Machine("m", (1, 1), (2, 2), capacity={"a": 30, "b": 20}))
    board = lines_of(problem, core_distance(problem))
    net = finest_graph(problem)
    pos = make_feasible(net, board, np.zeros(n, np.int32), new_rng(1))
    assert pos is not None
    assert (new_state(net, board, pos, board.capacity, False).load <= board.capacity).all()


def test_a_core_promises_what_its_best_member_makes_of_an_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmsolve.heuristics.mapping.multilevel.descent.FULL", 1)
    problem = random_problem(11, n=14, edges=40, machine=Machine("m", (1, 1), (2, 3)), node_limit=3)
    _, board, s = small_state(problem, 1)
    table = promises(board, s)
    # (n, P) what a node costs on a core
    at = s.lines[:, board.col] + s.lines[:, len(board.lines_x) + board.row]
    for p in range(problem.cores):
        members = np.flatnonzero(s.pos == p)
        expected = (at[members] - at[members, p][:, None]).min(axis=0, initial=np.inf)
        np.testing.assert_allclose(table[p], expected, rtol=1e-6, atol=1e-6)


def test_descent_finds_the_partner_that_promises_most() -> None:
    """Two cores full of nodes that belong on the other one: nothing fits, and one pass of exchanges sets all right."""
    n = 2 * 64
    one, other = np.triu_indices(64, 1)
    graph = LogicGraph.from_edges(n, np.r_[one, one + 64], np.r_[other, other + 64])
    problem = MappingProblem(graph, Machine("m", (1, 1), (1, 2)), node_limit=64)
    board, net = lines_of(problem, core_distance(problem)), finest_graph(problem)
    core = (np.arange(n) >= 64).astype(np.int32)
    core[:16], core[64:80] = 1, 0
    s = new_state(net, board, core, board.capacity, True)
    table = promises(board, s)
    assert table.shape == (2, 2)
    moves = descend(net, board, s, np.arange(n, dtype=np.int32), table, scratch_for(board).step)
    assert moves == 32
    assert line_cost(board, s) == 0


@given(st.lists(st.just(0.0) | st.floats(1e-6, 1e6), min_size=1, max_size=40), st.floats(0.001, 1.0))
def test_a_threshold_keeps_the_share_that_was_asked_for(weights: list[float], share: float) -> None:
    w = np.array(weights)
    least = threshold(w, share)
    kept = np.minimum(1.0, w / least).mean() if least > 0 else np.mean(w > 0)
    assert kept == pytest.approx(min(share, np.mean(w > 0)), rel=1e-6)


def dense_problem(n: int, share: float, seed: int = 5) -> MappingProblem:
    """A random network in which a node talks to this share of all others, by weights over four orders of magnitude."""
    rng = np.random.default_rng(seed)
    a, b = np.nonzero(np.triu(rng.random((n, n)) < share, 1))
    graph = LogicGraph.from_edges(n, a, b, np.exp(rng.normal(0, 2, len(a))))
    return MappingProblem(graph, Machine("m", (1, 1), (3, 4)), node_limit=n // 10)


def test_a_sample_of_a_dense_network_costs_the_same_on_average() -> None:
    """Symmetric, about as large as asked for, heavy connections as they are, light ones as heavy as the threshold."""
    problem = dense_problem(600, 0.6)
    net, board = finest_graph(problem), lines_of(problem, core_distance(problem))
    whole = csr_array((net.weight, net.neighbour, net.ptr)).toarray()
    pos = first_fit(net, board, new_rng(1), 0.3)
    costs, sizes, rng = [], [], new_rng(3)
    for _ in range(30):
        some = thinned(net, rng)
        assert some.sizes is net.sizes
        part = csr_array((some.weight, some.neighbour, some.ptr)).toarray()
        assert (part == part.T).all()
        assert (part[part > 0] >= whole[part > 0]).all()
        light = part > whole
        assert len(np.unique(part[light])) == 1
        assert (whole[(part == 0)] < part[light][0]).all()
        costs.append(line_cost(board, new_state(some, board, pos, board.capacity, True)))
        sizes.append(len(some.neighbour) / problem.n)
    whole_cost = line_cost(board, new_state(net, board, pos, board.capacity, True))
    assert np.mean(sizes) == pytest.approx(64, rel=0.02)
    assert len(set(costs)) == 30
    assert np.mean(costs) == pytest.approx(whole_cost, rel=4 * np.std(costs) / whole_cost / np.sqrt(30))


def test_a_network_with_few_neighbours_stays_whole() -> None:
    net = finest_graph(dense_problem(200, 0.5))
    assert thinned(net, new_rng(1)) is net
