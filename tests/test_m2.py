"""Method M2 requirement by requirement, against brute force and independent recomputation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_fakes import QuietContext

from nmsolve.heuristics.mapping.common.repair import repair
from nmsolve.heuristics.mapping.published.m2 import M2
from nmsolve.heuristics.mapping.published.m2.bisection import bisection, split_into, split_until_fit
from nmsolve.heuristics.mapping.published.m2.coarsening import FRACTION, coarsening
from nmsolve.heuristics.mapping.published.m2.forces import force_directed_refinement
from nmsolve.heuristics.mapping.published.m2.placement import placement_by_bisection
from nmsolve.heuristics.mapping.published.m2.region import target_region
from nmsolve.heuristics.mapping.published.m2.topology import Topology, induced, topology_of
from nmsolve.heuristics.mapping.published.m2.uncoarsening import uncoarsening
from nmsolve.model.errors import NmsolveError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping


class Recorder(QuietContext):
    """A context without a clock: keeps every offer, stops after a number of polls if asked to."""

    def __init__(self, problem, seed=0, polls=10**9):
        super().__init__()
        self.problem, self.seed, self.polls = problem, seed, polls
        self.offers = []

    def should_stop(self):
        self.polls -= 1
        return self.polls < 0

    def offer(self, core, move=""):
        assert not check_mapping(self.problem, core)
        self.offers.append(core.copy())
        return True


def no_poll() -> None:
    """Never stops anything."""


def random_graph(n, m, seed, sizes=None, resources=("neurons",)):
    rng = np.random.default_rng(seed)
    return LogicGraph.from_edges(
        n,
        rng.integers(0, n, m),
        rng.integers(0, n, m),
        rng.integers(1, 9, m),
        sizes=sizes,
        resources=resources,
    )


def topology(n, m, seed, sizes=None):
    graph = random_graph(n, m, seed, sizes)
    return topology_of(MappingProblem(graph, Machine("m", (1, 1), (2, 2), capacity={"neurons": n})))


def dense(top: Topology):
    out = np.zeros((top.n, top.n))
    np.add.at(out, (np.repeat(np.arange(top.n), np.diff(top.indptr)), top.indices), top.weights)
    return out


def hops(problem, core):
    row, col = np.divmod(core, problem.machine.cols)
    g = problem.graph
    return float(
        (
            g.weights
            * (np.abs(row[g.edge_source] - row[g.targets]) + np.abs(col[g.edge_source] - col[g.targets]))
        ).sum()
    )


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(2, 30), st.integers(0, 120), st.integers(0, 10**6))
def test_contract_and_induced_match_dense_matrices(n, m, seed):
    top = topology(n, m, seed)
    rng = np.random.default_rng(seed)
    groups = int(rng.integers(1, n + 1))
    group = rng.integers(0, groups, n).astype(np.int32)
    member = np.zeros((n, groups))
    member[np.arange(n), group] = 1
    want = member.T @ dense(top) @ member
    np.fill_diagonal(want, 0)
    small = top.contracted(group, groups)
    assert np.array_equal(dense(small), want)
    assert np.array_equal(small.sizes[:, 0], np.bincount(group, minlength=groups))
    nodes = np.flatnonzero(rng.random(n) < 0.5)
    assert np.array_equal(dense(induced(top, nodes)), dense(top)[np.ix_(nodes, nodes)])


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(2, 40), st.integers(0, 200), st.integers(0, 10**6), st.integers(10, 90))
def test_m2_2_pairs_over_heaviest_connections_within_a_fifteenth(n, m, seed, capacity):
    sizes = np.random.default_rng(seed).integers(1, 4, (n, 1))
    levels = coarsening(
        topology(n, m, seed, sizes), np.array([capacity]), 4, np.random.default_rng(seed), no_poll
    )
    for (fine, group), (coarse, _) in itertools.pairwise(levels):
        count = np.bincount(group)
        assert count.max() <= 2 and len(count) == coarse.n < fine.n
        weight = dense(fine)
        for g in np.flatnonzero(count == 2):
            u, v = np.flatnonzero(group == g)
            assert weight[u, v] > 0
            assert weight[u, v] == weight[u].max() or weight[u, v] == weight[v].max()
            assert FRACTION * coarse.sizes[g, 0] <= capacity
    for before, after in itertools.pairwise(levels[:-1]):
        assert after[0].n <= 0.8 * before[0].n  # only the last level may shrink by less than 20 %


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(2, 30), st.integers(0, 120), st.integers(0, 10**6))
def test_m2_3_bisection_halves_and_reports_its_cut(n, m, seed):
    top = topology(n, m, seed)
    chosen, cut = bisection(top, np.ones(n), n // 2, 6, np.random.default_rng(seed), no_poll)
    assert chosen.sum() == max(1, n // 2)
    assert cut == dense(top)[np.ix_(chosen, ~chosen)].sum()


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.integers(3, 25), st.integers(0, 100), st.integers(0, 10**6))
def test_m2_3_grows_by_least_selection_cost(n, m, seed):
    """One try with every start equals a plain rescan of all unselected vertices (costs made distinct)."""
    rng = np.random.default_rng(seed)
    top = topology(n, m, seed)
    weight = dense(top)
    noise = rng.random((n, n)) * 1e-3
    weight += (noise + noise.T) * (weight > 0)
    top = Topology(
        top.indptr,
        top.indices,
        weight[np.repeat(np.arange(n), np.diff(top.indptr)), top.indices],
        top.sizes,
        top.kind,
    )
    state = np.random.default_rng(seed)
    start = np.random.default_rng(seed).choice(n, size=1, replace=False)[0]
    chosen, _ = bisection(top, np.ones(n), n // 2, 1, state, no_poll)
    want = np.zeros(n, bool)
    want[start] = True
    while want.sum() < n // 2:
        cost = weight[:, ~want].sum(axis=1) - weight[:, want].sum(axis=1)
        cost[want] = np.inf
        least = np.flatnonzero(cost <= cost.min() + 1e-12)
        if len(least) > 1:  # isolated vertices tie; which one comes first is not specified
            return
        want[least[0]] = True
    assert np.array_equal(chosen, want)


def test_m2_3_recursion_ends_when_every_part_fits():
    sizes = np.random.default_rng(1).integers(1, 5, (60, 1))
    top = topology(60, 300, 1, sizes)
    part, parts = split_until_fit(top, np.array([20]), 4, np.random.default_rng(0), no_poll)
    assert np.bincount(part, weights=sizes[:, 0], minlength=parts).max() <= 20
    assert split_until_fit(top, np.array([1000]), 4, np.random.default_rng(0), no_poll)[1] == 1


def test_split_into_makes_exactly_the_parts_asked_for_with_even_load():
    top = topology(200, 900, 3)
    part = split_into(top, np.array([20]), 11, 4, np.random.default_rng(0), no_poll)
    count = np.bincount(part, minlength=11)
    assert len(count) == 11 and count.min() >= 16 and count.max() <= 21


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.integers(4, 40), st.integers(0, 200), st.integers(0, 10**6))
def test_m2_4_refinement_lowers_the_cut_within_capacity(n, m, seed):
    rng = np.random.default_rng(seed)
    top = topology(n, m, seed)
    parts = int(rng.integers(1, 5))
    capacity = np.array([-(-n // parts) + 1])
    part = (rng.permutation(n) % parts).astype(np.int32)
    weight = dense(top)

    def cut(p):
        return weight[p[:, None] != p[None, :]].sum()

    refined = uncoarsening([(top, np.empty(0, np.int32))], part, parts, capacity, rng, no_poll)
    assert cut(refined) <= cut(part)
    assert np.bincount(refined, minlength=parts).max() <= capacity[0]


def test_m2_4_relieves_overfull_parts():
    top = topology(30, 100, 5)
    part = np.zeros(30, np.int32)
    out = uncoarsening(
        [(top, np.empty(0, np.int32))], part, 3, np.array([10]), np.random.default_rng(0), no_poll
    )
    assert np.bincount(out, minlength=3).tolist() == [10, 10, 10]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(1, 7), st.integers(1, 7), st.integers(0, 10**6))
def test_m2_5_region_is_the_best_rectangle(rows, cols, seed):
    rng = np.random.default_rng(seed)
    free = rng.random((rows, cols)) < 0.8
    free[rng.integers(rows), rng.integers(cols)] = True
    parts = int(rng.integers(1, free.sum() + 1))
    chip = (max(1, rows // 2), cols)
    region = target_region(free, chip, parts)
    assert region.sum() == parts and not (region & ~free).any()

    def chips(t, left, h, w):
        return ((t + h - 1) // chip[0] - t // chip[0] + 1) * ((left + w - 1) // chip[1] - left // chip[1] + 1)

    best = min(
        (chips(t, left, h, w), h + w, int(free[t : t + h, left : left + w].sum()) - parts)
        for h in range(1, rows + 1)
        for w in range(1, cols + 1)
        for t in range(rows - h + 1)
        for left in range(cols - w + 1)
        if free[t : t + h, left : left + w].sum() >= parts
    )
    r, c = np.nonzero(region)
    found = (np.ptp(r) + 1) + (np.ptp(c) + 1)
    assert found <= best[1]  # masking surplus cores may only shrink the rectangle


def test_m2_6_places_every_part_once_and_neighbours_near():
    side = 8
    cells = np.arange(side * side).reshape(side, side)
    src = np.concatenate([cells[:, :-1].ravel(), cells[:-1].ravel()])
    dst = np.concatenate([cells[:, 1:].ravel(), cells[1:].ravel()])
    graph = LogicGraph.from_edges(side * side, src, dst, directed=False)
    machine = Machine("m", (1, 1), (side, side), capacity={"neurons": 1})
    problem = MappingProblem(graph, machine)
    rng = np.random.default_rng(0)
    region = np.ones((side, side), bool)
    core = placement_by_bisection(topology_of(problem), region, 8, rng, no_poll)
    assert sorted(core.tolist()) == list(range(side * side))
    random = np.mean([hops(problem, rng.permutation(side * side)) for _ in range(20)])
    assert hops(problem, core) < 0.5 * random


def resultants(top, core, cols):
    y, x = np.divmod(core, cols)
    w = dense(top)
    fx = (w * (x[None, :] - x[:, None])).sum(axis=1)
    fy = (w * (y[None, :] - y[:, None])).sum(axis=1)
    return np.hypot(fx, fy)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.integers(1, 4))
def test_m2_7_swaps_lower_the_two_parts_resultants(seed, rounds):
    """With one part per round, every round is the best swap that brute force finds."""
    top = topology(12, 40, seed)
    core = np.random.default_rng(seed).permutation(12).astype(np.int64)
    cols = 4
    out = force_directed_refinement(top, core, cols, rounds, no_poll)
    want = core.copy()
    w = dense(top)
    for _ in range(rounds):
        y, x = np.divmod(want, cols)
        fx = (w * (x[None, :] - x[:, None])).sum(axis=1)
        fy = (w * (y[None, :] - y[:, None])).sum(axis=1)
        force = np.hypot(fx, fy)
        u = int(np.argsort(-force, kind="stable")[0])
        best, least = -1, -1e-9 * (1 + abs(fx[u]) + abs(fy[u]))
        for v in range(12):
            dx, dy = x[v] - x[u], y[v] - y[u]
            if v == u or dx * fx[u] < 0 or dy * fy[u] < 0 or dx * fx[u] + dy * fy[u] <= 0:
                continue
            trial = want.copy()
            trial[[u, v]] = trial[[v, u]]
            after = resultants(top, trial, cols)
            change = after[u] + after[v] - force[u] - force[v]
            if change < least - 1e-9:
                best, least = v, change
        if best < 0:
            break
        want[[u, best]] = want[[best, u]]
    assert sorted(out.tolist()) == list(range(12))
    assert np.isclose(resultants(top, out, cols).sum(), resultants(top, want, cols).sum()) or np.array_equal(
        out, want
    )


CASES = {
    "plain": lambda: MappingProblem(
        random_graph(200, 1500, 0), Machine("m", (1, 1), (4, 4), capacity={"neurons": 14})
    ),
    "tight": lambda: MappingProblem(
        random_graph(160, 900, 1), Machine("m", (1, 1), (4, 4), capacity={"neurons": 10})
    ),
    "one per core": lambda: MappingProblem(
        random_graph(30, 90, 2), Machine("m", (1, 1), (6, 6), capacity={"neurons": 1})
    ),
    "unlimited": lambda: MappingProblem(random_graph(20, 60, 3), Machine("m", (1, 1), (3, 3))),
    "faults and chips": lambda: MappingProblem(
        random_graph(120, 700, 4),
        Machine(
            "m",
            (1, 2),
            (3, 3),
            capacity={"neurons": 9},
            crossing_weight=4.0,
            faulty_cores=(4, 7),
            taken_cores=(0,),
        ),
    ),
    "two resources": lambda: MappingProblem(
        random_graph(
            90,
            500,
            5,
            np.column_stack([np.ones(90), np.random.default_rng(5).integers(1, 9, 90)]).astype(np.int64),
            ("neurons", "synapses"),
        ),
        Machine("m", (1, 1), (4, 4), capacity={"neurons": 9, "synapses": 35}),
    ),
    "constraints": lambda: MappingProblem(
        random_graph(100, 600, 6),
        Machine("m", (1, 1), (4, 4), capacity={"neurons": 8}),
        constraints=(
            SideConstraint("a", "pin", (3, 4), (5,)),
            SideConstraint("b", "pin", (9,), (10,)),
            SideConstraint("c", "region", tuple(range(20, 50)), (0, 1, 2, 3)),
            SideConstraint("d", "forbid", tuple(range(60, 80)), (0, 5, 10, 15)),
            SideConstraint("e", "apart", (0, 20, 21, 22)),
        ),
    ),
    "one node": lambda: MappingProblem(random_graph(1, 0, 0), Machine("m", (1, 1), (2, 2))),
    "no edges": lambda: MappingProblem(
        random_graph(10, 0, 0), Machine("m", (1, 1), (2, 2), capacity={"neurons": 3})
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_engine_offers_only_legal_mappings_and_the_same_ones_for_the_same_seed(case):
    problem = CASES[case]()
    assert M2().refuses(problem) is None
    runs = []
    for _ in range(2):
        context = Recorder(problem, seed=3)
        M2().run(problem, context)
        assert context.offers
        runs.append(context.offers)
    assert all(np.array_equal(a, b) for a, b in zip(*runs, strict=True))


def test_engine_beats_random_mappings_clearly():
    rng = np.random.default_rng(0)
    cluster = rng.permutation(320) // 20
    src = rng.integers(0, 320, 4000)
    dst = np.array([rng.choice(np.flatnonzero(cluster == cluster[u])) for u in src])
    graph = LogicGraph.from_edges(320, src, dst)
    problem = MappingProblem(graph, Machine("m", (1, 1), (4, 4), capacity={"neurons": 24}))
    context = Recorder(problem)
    M2().run(problem, context)
    assert hops(problem, context.offers[-1]) < 0.5 * hops(problem, rng.permutation(320) // 20)


def test_engine_stops_when_told_to():
    problem = CASES["plain"]()
    context = Recorder(problem, polls=3)
    M2().run(problem, context)
    assert not context.offers


def test_engine_says_why_it_refuses_a_distance_matrix():
    machine = Machine("m", (1, 1), (1, 3), distance_matrix=np.ones((3, 3)) - np.eye(3))
    assert "distance matrix" in M2().refuses(MappingProblem(random_graph(3, 3, 0), machine))


def test_engine_says_so_when_nothing_legal_was_found():
    machine = Machine("m", (1, 1), (1, 2), capacity={"neurons": 10})
    sizes = np.array([[6], [6], [6]])
    with pytest.raises(NmsolveError, match="no mapping"):
        problem = MappingProblem(random_graph(3, 3, 0, sizes), machine)
        M2().run(problem, Recorder(problem))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 10**6))
def test_repair_is_legal_and_keeps_legal_wishes(seed):
    rng = np.random.default_rng(seed)
    problem = CASES["constraints"]()
    core = repair(problem, rng.integers(0, 16, 100))
    assert core is not None and not check_mapping(problem, core)
    assert np.array_equal(repair(problem, core), core)


def test_repair_pushes_a_node_out_of_the_way():
    """Node 1 fills the only core that node 0 fits on beside it being legal elsewhere."""
    graph = random_graph(3, 2, 0, np.array([[3], [2], [2]]))
    machine = Machine("m", (1, 1), (1, 3), capacity={"neurons": 4})
    problem = MappingProblem(graph, machine, constraints=(SideConstraint("p", "region", (1, 2), (0, 1)),))
    core = repair(problem, np.array([0, 0, 1]))
    assert core is not None and not check_mapping(problem, core)
