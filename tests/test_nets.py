"""Net objectives: tables and changes against the evaluator, the search under all side constraints."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nets_support import sweeper_of
from search_fakes import QuietContext

from nmsolve.heuristics.mapping.common.kinds import recount
from nmsolve.heuristics.mapping.common.repair import repair
from nmsolve.heuristics.mapping.nets import Nets
from nmsolve.heuristics.mapping.nets.incidence import one_list
from nmsolve.heuristics.mapping.nets.levels import Messages, in_order, level_bytes, one_level
from nmsolve.heuristics.mapping.nets.moves import one_change, shift, weigh
from nmsolve.heuristics.mapping.nets.search import refine
from nmsolve.heuristics.mapping.nets.state import empty_tables, fill, new_work, pairs_at
from nmsolve.hw.scores import objective_value
from nmsolve.model.graph import LogicGraph, node_kinds
from nmsolve.model.machine import Figure, Machine
from nmsolve.model.mapping.axons import AXONS_IN, AXONS_OUT
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
    level = one_level(problem, Messages.of(problem))
    t = sweeper_of(problem, level, core).tables
    s, cost = new_work(t), objective_value(problem, core)
    assert np.isclose(fill(t, s, level.source, level.lists.data, level.lists.at), cost)
    slack = 1e-3 if t.unit == 1.0 else t.unit * problem.graph.rate.sum()
    for u in nodes:
        rows = one_list(level.lists, u)
        weigh(t, s, u, rows)
        weighed = s.fine.copy()
        for q in range(problem.cores):
            trial = core.copy()
            trial[u] = q
            want = objective_value(problem, trial) - cost
            assert np.isclose(weighed[q], want, atol=slack), (u, q)
            assert np.isclose(one_change(t, s, u, q, rows), want, atol=slack), (u, q)
            if q != core[u]:
                assert np.isclose(shift(t, s, u, q, rows), want, atol=1e-9), (u, q)
                shift(t, s, u, int(core[u]), rows)


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
    """Messages of both kinds, few destinations on many cores."""
    problem = random_problem(seed, objective, 9, 9, n=12, m=60)
    rng = np.random.default_rng(seed)
    level = one_level(problem, Messages.of(problem))
    t = sweeper_of(problem, level, rng.integers(0, 81, problem.n)).tables
    s = new_work(t)
    for _ in range(150):
        u, q = int(rng.integers(problem.n)), int(rng.integers(81))
        if t.room.core[u] != q:
            shift(t, s, u, q, one_list(level.lists, u))
    fresh = sweeper_of(problem, level, t.room.core).tables
    assert np.array_equal(t.room.load, fresh.room.load)
    for name in ("origin", "hits", "fan", "lone", "low", "high", "span", "paid", "price", "busy"):
        assert np.array_equal(getattr(t, name), getattr(fresh, name)), name


def test_tables_without_prices_know_the_change_of_every_move():
    """As a search on another objective uses them."""
    problem = random_problem(4, "energy", 5, 5, n=30, m=200)
    messages = Messages.of(problem)
    level = one_level(problem, messages)
    t = empty_tables(problem, level.vertices, level.source, messages.rate, pairs=level.pairs, priced=False)
    rng, s = np.random.default_rng(0), new_work(t)
    t.room.core[:] = rng.integers(0, 25, 30)
    value = fill(t, s, level.source, level.lists.data, level.lists.at)
    for _ in range(100):
        u, q = int(rng.integers(30)), int(rng.integers(25))
        if t.room.core[u] != q:
            value += shift(t, s, u, q, one_list(level.lists, u))
            assert value == pytest.approx(objective_value(problem, t.room.core))


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("heat", [0.0, 5.0])
def test_a_sweep_reports_the_change_it_made_and_stays_legal(objective, heat):
    problem = random_problem(
        7, objective, 2, 2, (1, 2), n=30, m=200, capacity=4,
        constraints=(
            SideConstraint("a", "pin", (0,), (3,)),
            SideConstraint("b", "region", (1, 2, 3, 4), (0, 1)),
            SideConstraint("c", "apart", (5, 6, 7)),
        ),
    )  # fmt: skip
    core = repair(problem, np.arange(30) % 8)
    sweeper = sweeper_of(problem, one_level(problem, Messages.of(problem)), core)
    for _ in range(20):
        assert sweeper.sweep(lambda: heat)
    found = sweeper.tables.room.core
    assert not check_mapping(problem, found)
    assert np.isclose(objective_value(problem, found), sweeper.cost)
    assert sweeper.tally[1] > 0
    if heat == 0.0:
        assert sweeper.cost < objective_value(problem, core)


@pytest.mark.parametrize("objective", [*OBJECTIVES, "hops"])
def test_kinds_of_every_core_stay_within_their_limit(objective):
    """The search knows which kinds are where, and what it offers passes the checker."""
    problem = random_problem(13, objective, 2, 3, n=40, m=250, capacity=9)
    kinds = node_kinds([f"k{u % 5}" for u in range(40)])
    limits = {"neurons": 9, AXONS_IN: 28, AXONS_OUT: 60} if objective == "hops" else {"neurons": 9}
    machine = replace(problem.machine, kinds_per_core=2, capacity=limits)
    problem = MappingProblem(replace(problem.graph, kinds=kinds), machine, objective)
    assert problem.kinds is not None
    context = Recorder(problem, polls=3000)
    Nets().run(problem, context)
    assert context.best is not None
    core = in_order(problem)
    sweeper = sweeper_of(problem, one_level(problem, Messages.of(problem)), core)
    for _ in range(5):
        assert sweeper.sweep(lambda: 3.0, lambda: 1.0)
    room = sweeper.tables.room
    seen = room.kinds.nodes.copy()
    recount(room.kinds, room.kind_of, room.core)
    assert np.array_equal(seen, room.kinds.nodes)
    assert (room.kinds.kinds <= 2).all()


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
    ends = [refine(problem, core, Recorder(problem, polls=2000), 0.1) for _ in "12"]
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


def test_free_messages_cost_nothing_and_memory_is_estimated():
    problem = random_problem(0, "multicast-hops")
    messages = Messages.of(problem)
    assert not messages.listed[problem.graph.rate == 0].any()
    level = one_level(problem, messages)
    t = sweeper_of(problem, level, np.zeros(problem.n, np.int64)).tables
    real = sum(a.nbytes for a in (t.hits, t.price, t.low, t.high, t.pairs.other, t.pairs.weight))
    assert real <= level_bytes(problem)
    assert all(pairs_at(t, v, 0) == 0.0 for v in range(problem.n))


def test_a_sweep_ends_where_nodes_have_no_messages_and_cores_are_few():
    graph = LogicGraph.from_edges(1, [], [], [], multicast=np.ones(1, bool))
    machine = Machine("m", (1, 1), (1, 3), faulty_cores=(1, 2))
    problem = MappingProblem(graph, machine, "multicast-hops")
    context = Recorder(problem, polls=50)
    Nets().run(problem, context)
    assert context.best is not None and context.best.tolist() == [0]
