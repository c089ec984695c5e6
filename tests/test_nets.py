"""Net objectives: tables and changes against the evaluator, the search under all side constraints."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_fakes import QuietContext

from nmsolve.heuristics.mapping.nets import Nets
from nmsolve.heuristics.mapping.nets.anneal import anneal
from nmsolve.heuristics.mapping.nets.changes import all_changes, new_ramps
from nmsolve.heuristics.mapping.nets.engine import refine
from nmsolve.heuristics.mapping.nets.model import nets_of, state_bytes
from nmsolve.heuristics.mapping.nets.moves import move, move_change
from nmsolve.heuristics.mapping.nets.search import build
from nmsolve.heuristics.mapping.nets.tables import total_cost
from nmsolve.heuristics.rng import new_rng
from nmsolve.hw.scores import objective_value
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Figure, Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping

OBJECTIVES = ("connectivity", "multicast-hops", "energy")
ENERGY = {
    "message": Figure(7.0),
    "router": Figure(2.0),
    "link_x": Figure(3.0),
    "link_y": Figure(4.0),
    "crossing": Figure(11.0),
}


class Recorder(QuietContext):
    """A context with a fixed work budget in place of a clock: time left falls with every poll."""

    def __init__(self, problem, seed=0, core=None, polls=40):
        super().__init__()
        self.problem, self.seed, self.polls, self.total = problem, seed, polls, polls
        self.best, self.value = core, float("inf") if core is None else objective_value(problem, core)

    def time_left(self):
        return 0.2 * max(self.polls, 0) / self.total

    def should_stop(self):
        self.polls -= 1
        return self.polls < 0

    def offer(self, core, move=""):
        assert not check_mapping(self.problem, core)
        value = objective_value(self.problem, core)
        if value < self.value:
            self.best, self.value = core.copy(), value
            return True
        return False


def random_problem(
    seed, objective, rows=3, cols=4, chips=(1, 1), n=14, m=40, part=0.7, capacity=None, constraints=()
):
    """A mixed graph: most rows multicast, the others edge by edge, with whole weights."""
    rng = np.random.default_rng(seed)
    graph = LogicGraph.from_edges(
        n,
        rng.integers(0, n, m),
        rng.integers(0, n, m),
        rng.integers(0, 6, m),
        multicast=rng.random(n) < part,
        rate=rng.integers(0, 6, n).astype(float),
    )
    limits = {} if capacity is None else {"neurons": capacity}
    machine = Machine("m", chips, (rows, cols), capacity=limits, crossing_weight=5.0, energy=ENERGY)
    if objective != "connectivity" and not graph.multicast.any():
        graph.multicast.setflags(write=True)
        graph.multicast[0] = True
    return MappingProblem(graph, machine, objective, constraints)


def check_all_changes(problem, core, nodes):
    """All three ways to a node's cost on every core agree: one pass, one move, the evaluator."""
    state = build(problem, core)
    ramps, change = new_ramps(state), np.zeros(problem.cores)
    cost = objective_value(problem, core)
    assert np.isclose(total_cost(state), cost)
    for u in nodes:
        all_changes(state, ramps, u, change)
        for q in range(problem.cores):
            trial = core.copy()
            trial[u] = q
            want = objective_value(problem, trial) - cost
            assert np.isclose(change[q], want, atol=1e-9), (u, q)
            if q != core[u]:
                assert np.isclose(move_change(state, u, q), want, atol=1e-9), (u, q)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.sampled_from(OBJECTIVES), st.booleans())
def test_every_change_equals_full_recomputation(seed, objective, crowded):
    problem = random_problem(seed, objective, 2, 3, (1, 2) if seed % 2 else (2, 1))
    rng = np.random.default_rng(seed)
    core = rng.integers(0, 3 if crowded else problem.cores, problem.n)
    check_all_changes(problem, core, rng.integers(0, problem.n, 3))


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("shape", [(70, 2), (2, 70), (1, 9), (9, 1)])
def test_boards_of_more_than_64_lines_and_of_one(objective, shape):
    problem = random_problem(3, objective, *shape, n=12, m=60)
    core = np.random.default_rng(0).integers(0, problem.cores, problem.n)
    check_all_changes(problem, core, [0, 5])


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_hypergraphs_with_several_nets_per_source(objective):
    rng = np.random.default_rng(1)
    indptr = np.concatenate([[0], np.cumsum(rng.integers(1, 6, 30))])
    pins, rate = rng.integers(0, 10, indptr[-1]), rng.integers(1, 9, 30).astype(float)
    graph = LogicGraph.from_nets(10, indptr, pins, rate)
    problem = MappingProblem(graph, Machine("m", (1, 1), (3, 3), energy=ENERGY), objective)
    check_all_changes(problem, rng.integers(0, 9, 10), range(10))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.sampled_from(OBJECTIVES))
def test_tables_after_many_moves_equal_tables_built_anew(seed, objective):
    """Few destinations on many cores, so that counts live in hash tables and entries are deleted."""
    problem = random_problem(seed, objective, 9, 9, n=12, m=60)
    rng = np.random.default_rng(seed)
    state = build(problem, rng.integers(0, 81, problem.n))
    assert (np.diff(state.base) < 81).any()
    for _ in range(150):
        u, q = int(rng.integers(problem.n)), int(rng.integers(81))
        if state.room.core[u] != q:
            move(state, u, q)
    fresh = build(problem, state.room.core)
    assert total_cost(state) == total_cost(fresh)
    assert np.array_equal(state.room.load, fresh.room.load) and np.array_equal(state.origin, fresh.origin)
    assert np.array_equal(state.row_bits, fresh.row_bits) and np.array_equal(state.col_bits, fresh.col_bits)
    for e in range(len(state.source)):
        piece = slice(state.base[e], state.base[e + 1])
        if state.base[e + 1] - state.base[e] == problem.cores:
            assert np.array_equal(state.hits[piece], fresh.hits[piece])
        else:
            entries = [
                sorted((k, c) for k, c in zip(s.keys[piece], s.hits[piece], strict=True) if k >= 0)
                for s in (state, fresh)
            ]
            assert entries[0] == entries[1]
    for p in range(81):
        ring, u = [], state.room.head[p]
        while u >= 0 and u not in ring:
            ring.append(int(u))
            u = state.room.after[u]
        assert sorted(ring) == np.flatnonzero(state.room.core == p).tolist()


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("heat", [0.0, 5.0])
def test_a_slice_reports_the_change_it_made_and_stays_legal(objective, heat):
    problem = random_problem(
        7, objective, 2, 2, (1, 2), n=30, m=200, capacity=4,
        constraints=(
            SideConstraint("a", "pin", (0,), (3,)),
            SideConstraint("b", "region", (1, 2, 3, 4), (0, 1)),
            SideConstraint("c", "apart", (5, 6, 7)),
        ),
    )  # fmt: skip
    from nmsolve.heuristics.mapping.common.repair import repair

    core = repair(problem, np.arange(30) % 8)
    state = build(problem, core)
    tally = np.zeros(3, np.int64)
    change = anneal(state, new_ramps(state), np.zeros(8), heat, 200_000, new_rng(1), tally)
    assert not check_mapping(problem, state.room.core)
    assert np.isclose(objective_value(problem, core) + change, objective_value(problem, state.room.core))
    assert tally[1] > 0 and tally[2] > 0
    if heat == 0.0:
        assert change < 0


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_small_cases_reach_the_optimum(objective):
    problem = random_problem(11, objective, 1, 3, n=7, m=14, part=1.0, capacity=3)
    every = np.stack(np.meshgrid(*[np.arange(3)] * 7, indexing="ij"), -1).reshape(-1, 7)
    legal = every[[max(np.bincount(c, minlength=3)) <= 3 for c in every]]
    best = min(objective_value(problem, c) for c in legal)
    context = Recorder(problem)
    Nets().run(problem, context)
    assert context.value == best


def test_better_than_its_start_and_the_same_for_the_same_seed():
    problem = random_problem(5, "connectivity", 4, 4, n=200, m=2000, part=1.0, capacity=15)
    core = np.arange(200, dtype=np.int64) // 13
    first = objective_value(problem, core)
    ends = [refine(problem, core, 3, 2e6, lambda: False, lambda core, move: True) for _ in range(2)]
    assert np.array_equal(*ends)
    assert objective_value(problem, ends[0]) < 0.9 * first


def test_engine_starts_without_an_incumbent_and_stops_at_once_when_told():
    problem = random_problem(5, "multicast-hops", 3, 3, n=60, m=400, part=1.0, capacity=8)
    context = Recorder(problem, polls=300)
    Nets().run(problem, context)
    assert context.best is not None
    stopped = Recorder(problem, polls=0)
    Nets().run(problem, stopped)
    assert stopped.best is None


def test_connectivity_on_a_distance_matrix_needs_no_mesh():
    rng = np.random.default_rng(0)
    graph = LogicGraph.from_edges(20, rng.integers(0, 20, 80), rng.integers(0, 20, 80))
    machine = Machine("m", (1, 1), (1, 4), capacity={"neurons": 6}, distance_matrix=1.0 - np.eye(4))
    problem = MappingProblem(graph, machine, "connectivity")
    assert Nets().refuses(problem) is None
    context = Recorder(problem)
    Nets().run(problem, context)
    assert context.best is not None


def test_what_it_refuses_and_why():
    graph = random_problem(0, "hops").graph
    mesh = Machine("m", (1, 1), (3, 4))
    assert "route tree" in Nets().refuses(MappingProblem(graph, mesh, "hops"))
    torus = Machine("m", (1, 1), (3, 4), torus=True)
    assert "torus" in Nets().refuses(MappingProblem(graph, torus, "multicast-hops"))
    dead = Machine("m", (1, 1), (3, 4), faulty_links=((0, 1), (1, 0)))
    assert "dead links" in Nets().refuses(MappingProblem(graph, dead, "energy"))
    for machine in (mesh, torus, dead):
        assert Nets().refuses(MappingProblem(graph, machine, "connectivity")) is None
    assert Nets().refuses(MappingProblem(graph, mesh, "energy")) is None


def test_free_messages_are_left_out_and_memory_is_estimated():
    problem = random_problem(0, "multicast-hops")
    nets = nets_of(problem)
    assert (nets.rate > 0).all() and (np.diff(nets.pin_ptr) > 0).all()
    state = build(problem, np.zeros(problem.n, np.int64))
    real = state.hits.nbytes + state.row_bits.nbytes + state.col_bits.nbytes
    assert real <= state_bytes(problem)


def test_a_slice_ends_where_nodes_have_no_messages_and_cores_are_few():
    graph = LogicGraph.from_edges(1, [], [], [], multicast=np.ones(1, bool))
    machine = Machine("m", (1, 1), (1, 3), faulty_cores=(1, 2))
    state = build(MappingProblem(graph, machine, "multicast-hops"), np.zeros(1, np.int64))
    tally = np.zeros(3, np.int64)
    assert anneal(state, new_ramps(state), np.zeros(3), 0.0, 50, new_rng(1), tally) == 0.0
    assert 0 < tally[0] <= 50
