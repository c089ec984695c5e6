"""Net objectives at scale: lists, tables and changes against the evaluator; same answer however many threads work."""

from __future__ import annotations

import tempfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.heuristics.mapping.common.rng import new_rng
from nmsolve.heuristics.mapping.external import nets_engine, nets_incidence
from nmsolve.heuristics.mapping.external.nets_engine import PartOfTime, refine_nets, refuses_nets
from nmsolve.heuristics.mapping.external.nets_incidence import incidence, one_list
from nmsolve.heuristics.mapping.external.nets_levels import (
    Messages,
    NetLevel,
    Plan,
    _vertices,
    coarsen,
    grouped,
    in_order,
    level_of,
    numbering,
    on_level,
    overlap,
)
from nmsolve.heuristics.mapping.external.nets_moves import may_move, one_change, shift, weigh
from nmsolve.heuristics.mapping.external.nets_state import empty_tables, new_work
from nmsolve.heuristics.mapping.external.nets_sweep import Sweeper
from nmsolve.heuristics.mapping.external.nets_whole import sampled, trade, whole_cores
from nmsolve.hw.scores import objective_value
from nmsolve.model.engine import ScratchPlace
from nmsolve.model.errors import NmsolveError
from nmsolve.model.generators import generate
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Figure, Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping

OBJECTIVES = ("multicast-hops", "connectivity", "energy")
ENERGY = {
    "message": Figure(7.0), "router": Figure(2.0), "link_x": Figure(3.0), "link_y": Figure(4.0), "crossing": Figure(11.0),
}  # fmt: skip
PLAN = Plan(5, 2, None, None, lambda: False)


def some_problem(
    seed, objective="multicast-hops", capacity=8, constraints=(), n=24, rows=4, cols=5, chips=(1, 1)
):
    """A random hypergraph or directed multicast graph on a mesh; some messages cost nothing."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 3, (n, 1))
    if seed % 2:
        m = 90
        graph = LogicGraph.from_edges(
            n, rng.integers(0, n, m), rng.integers(0, n, m),
            multicast=np.ones(n, bool), rate=rng.integers(0, 6, n).astype(float), sizes=sizes,
        )  # fmt: skip
    else:
        length = rng.integers(2, 9, 18)
        ptr = np.concatenate([[0], np.cumsum(length)])
        pins = np.concatenate([rng.permutation(n)[:k] for k in length])
        graph = LogicGraph.from_nets(n, ptr, pins, rng.integers(0, 6, 18).astype(float), sizes=sizes)
    machine = Machine(
        "m", chips, (rows, cols), capacity={"neurons": capacity}, crossing_weight=5.0, energy=ENERGY
    )
    return MappingProblem(graph, machine, objective, constraints)


def level_with(problem, label, count, **options):
    """The level with ``label`` (nodes,)."""
    vertices = _vertices(problem, np.asarray(label, np.int32), count)
    plan = Plan(5, options.get("workers", 1), options.get("memory"), options.get("scratch"), lambda: False)
    return level_of(problem, Messages.of(problem), vertices, plan, [])


def sweeper_of(problem, level, core, workers=1, seed=0):
    """The level's tables at ``core``."""
    sweeper = Sweeper(
        empty_tables(problem, level.vertices, Messages.of(problem).rate, level.inner),
        level.lists,
        level.source,
        seed,
        workers,
    )
    assert sweeper.put(core)
    return sweeper


def spread(problem, label, count, seed):
    """A level with these vertices, anywhere on the board, and its tables."""
    level = level_with(problem, label, count)
    return level, sweeper_of(problem, level, np.random.default_rng(seed).integers(0, problem.cores, count))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), coarse=st.booleans(), workers=st.integers(1, 3), own=st.booleans())
def test_lists_are_the_transpose_of_the_contracted_graph(seed, coarse, workers, own):
    """Brute force over all edges; in a file as in memory, in one part or many, for any number of threads."""
    problem = some_problem(seed)
    graph, rng = problem.graph, np.random.default_rng(seed)
    count = 7 if coarse else graph.n
    label = (rng.integers(0, count, graph.n) if coarse else rng.permutation(graph.n)).astype(np.int32)
    charged = Messages.of(problem).listed
    expected = [set() for _ in range(count)]
    for row in np.flatnonzero(charged):
        for target in graph.targets[graph.indptr[row] : graph.indptr[row + 1]]:
            if label[target] != label[graph.source[row]]:
                expected[label[target]].add(int(row))
    with tempfile.TemporaryFile() as file:
        found = incidence(
            graph, charged, label, count, workers=workers, memory=9 if own else None, scratch=file.fileno
        )
        assert [one_list(found, v).tolist() for v in range(count)] == [sorted(rows) for rows in expected]
        assert found.entries == sum(len(rows) for rows in expected)
        assert (found.data is None) == (own and int(found.at[-1]) > 9)


def test_rows_of_any_distance_are_listed():
    """Gaps of one, two and three bytes."""
    n = 40_000
    rows = np.array([0, 127, 128, 200, 17_000, 39_999])
    graph = LogicGraph.from_edges(n, rows, np.full(6, 5), multicast=np.ones(n, bool), rate=np.ones(n))
    found = incidence(graph, np.ones(n, bool), np.arange(n, dtype=np.int32), n)
    assert one_list(found, 5).tolist() == rows.tolist()
    assert int(found.at[-1]) == 1 + 1 + 1 + 1 + 3 + 3


@pytest.mark.parametrize("objective", OBJECTIVES)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), coarse=st.booleans())
def test_every_change_is_the_evaluators(objective, seed, coarse):
    """Weighing a vertex for all cores, and for one, equals moving its nodes and scoring anew."""
    problem = some_problem(seed, objective, chips=(2, 1))
    rng = np.random.default_rng(seed)
    count = 9 if coarse else problem.n
    label = rng.integers(0, count, problem.n) if coarse else rng.permutation(problem.n)
    level, sweeper = spread(problem, label, count, seed)
    t, s = sweeper.tables, new_work(sweeper.tables)
    nodes = t.core[label].astype(np.int64)
    now = objective_value(problem, nodes)
    assert sweeper.cost == pytest.approx(now)
    for v in range(count):
        rows = one_list(level.lists, v)
        weigh(t, s, v, rows)
        weighed, slack = s.fine.copy(), t.unit * problem.graph.rate.sum() if t.unit != 1.0 else 1e-3
        for q in range(problem.cores):
            moved = np.where(label == v, q, nodes)
            exact = objective_value(problem, moved) - now
            assert weighed[q] == pytest.approx(exact, abs=slack)
            assert one_change(t, s, v, q, rows) == pytest.approx(exact, abs=slack)


@pytest.mark.parametrize("objective", OBJECTIVES)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), coarse=st.booleans())
def test_moves_keep_all_tables_as_if_filled_anew(objective, seed, coarse):
    """Any moves: the change returned is the evaluator's, and every table is the one of the new mapping."""
    problem = some_problem(seed, objective, chips=(2, 1))
    rng = np.random.default_rng(seed)
    count = 9 if coarse else problem.n
    label = rng.integers(0, count, problem.n) if coarse else rng.permutation(problem.n)
    level, sweeper = spread(problem, label, count, seed)
    t, s = sweeper.tables, new_work(sweeper.tables)
    for _ in range(30):
        before = objective_value(problem, t.core[label])
        v, q = int(rng.integers(count)), int(rng.integers(problem.cores))
        if q != t.core[v]:
            change = shift(t, s, v, q, one_list(level.lists, v))
            assert change == pytest.approx(objective_value(problem, t.core[label]) - before, abs=1e-6)
    fresh = sweeper_of(problem, level, t.core).tables
    for name in ("load", "origin", "hits", "fan", "lone", "low", "high", "span", "paid", "price", "busy"):
        assert np.array_equal(getattr(t, name), getattr(fresh, name)), name


def test_weights_that_are_no_whole_numbers_give_prices_that_are_0_only_for_free_cores():
    problem = some_problem(4, "energy", chips=(2, 1))
    _, sweeper = spread(problem, np.arange(problem.n), problem.n, 1)
    t = sweeper.tables
    scaled = t._replace(x=t.x * 0.0371, y=t.y * 0.0371, step=0.0, unit=t.unit)
    sweeper.tables = scaled
    sweeper.refresh()
    for row in np.flatnonzero(t.rate > 0):
        reached = t.hits[row] > 0
        assert (t.price[row, : problem.cores][reached] == 0).all()


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_answer_does_not_depend_on_threads_or_where_lists_lie(objective):
    """Three sweeps, hot to cold, from the same start."""
    problem = some_problem(11, objective, capacity=4, n=60, rows=5, cols=7)
    start = in_order(problem)
    answers = []
    with tempfile.TemporaryFile() as file:
        for workers, memory in ((1, None), (2, None), (3, 20)):
            vertices = numbering(problem, 3)
            plan = Plan(3, workers, memory, file.fileno, lambda: False)
            level = level_of(problem, Messages.of(problem), vertices, plan, [])
            with sweeper_of(problem, level, on_level(vertices, start), workers) as sweeper:
                heats = [sweeper.neutral_heat(), 2.0, 0.0]
                for heat in heats:
                    assert sweeper.sweep(lambda h=heat: h)
                answers.append((heats, sweeper.cost, sweeper.tables.core[vertices.label].tolist()))
    assert answers[0] == answers[1] == answers[2]
    nodes = np.array(answers[0][2])
    assert answers[0][1] == pytest.approx(objective_value(problem, nodes))
    assert answers[0][1] < objective_value(problem, start)
    assert not check_mapping(problem, nodes)


def test_clusters_stay_within_limits_cores_and_kinds():
    constraints = (
        SideConstraint("a", "apart", (0, 1, 2)),
        SideConstraint("p", "region", (3, 4, 5, 6), (0, 1)),
    )
    problem = some_problem(21, n=80, capacity=100, constraints=constraints)
    messages, vertices = Messages.of(problem), numbering(problem, 1)
    level = level_of(problem, messages, vertices, PLAN, [])
    core = np.random.default_rng(0).integers(0, 3, problem.n)
    label, n = grouped(problem, messages, level, PLAN, core)
    assert sorted(set(label.tolist())) == list(range(n))
    assert n < 70
    of_node = label[vertices.label]
    limit = min(5 * problem.sizes.mean(), 0.1 * 100)
    assert max(np.bincount(of_node, weights=problem.sizes[:, 0])) <= max(limit, 2)
    for c in range(n):
        members = np.flatnonzero(label == c)
        assert len(set(core[members].tolist())) == 1
        assert len(set(vertices.domain_of[members].tolist())) == 1
    assert all((of_node == of_node[u]).sum() == 1 for u in (0, 1, 2))
    one, two = (grouped(problem, messages, level, PLAN._replace(workers=w), core)[0] for w in (1, 2))
    assert np.array_equal(one, two)


def test_coarse_levels_cost_what_their_nodes_cost():
    """Total sizes are kept, and a mapping costs the same on every level."""
    graph = generate("snn", nodes=2000, synapses=40_000, layers=4, directed=1)
    problem = MappingProblem(graph, Machine("m", (1, 1), (3, 3)), "multicast-hops", node_limit=250)
    messages, nodes = Messages.of(problem), in_order(problem)
    finest = level_of(problem, messages, numbering(problem, 2), PLAN, [])
    levels = coarsen(problem, messages, finest, PLAN, nodes)
    assert len(levels) >= 3
    value = objective_value(problem, nodes)
    for level in levels:
        assert level.vertices.sizes.sum() == problem.sizes.sum()
        with sweeper_of(problem, level, on_level(level.vertices, nodes)) as sweeper:
            assert sweeper.cost == pytest.approx(value)


def test_structure_is_told_from_noise():
    """A network that is random below its populations has clusters that share little more than chance; a local one has."""
    found = []
    for graph in (
        generate("microcircuit", scale=0.02),
        generate("snn", nodes=2000, synapses=40_000, layers=4, directed=1),
    ):
        problem = MappingProblem(
            graph, Machine("m", (1, 1), (4, 4)), "multicast-hops", node_limit=graph.n // 12
        )
        messages = Messages.of(problem)
        level = level_of(problem, messages, numbering(problem, 0), PLAN, [])
        label, _ = grouped(problem, messages, level, PLAN)
        found.append(overlap(level.lists, label, graph.rows))
    assert 0.8 < found[0] < nets_engine.STRUCTURE < found[1] / 2


class Clock:
    """A context whose time runs with its polls."""

    scratch = ScratchPlace()

    def __init__(self, problem, polls, memory=None, workers=1):
        self.problem, self.polls, self.total, self.memory, self.workers = (
            problem,
            polls,
            polls,
            memory,
            workers,
        )
        self.seed, self.best, self.values = 1, None, []

    def incumbent(self):
        return None, float("inf")

    def time_left(self):
        return 1.0 * max(0, self.polls) / max(1, self.total)

    def should_stop(self):
        self.polls -= 1
        return self.polls < 0

    def offer(self, core, move=""):
        assert not check_mapping(self.problem, core)
        self.values.append(objective_value(self.problem, core))
        self.best = core
        return True


def no_pairs(problem, context):
    """A pairwise search that finds nothing."""


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_engine_improves_and_obeys_all_constraints(objective):
    constraints = (
        SideConstraint("a", "apart", (0, 1, 2, 3)),
        SideConstraint("p", "pin", (4,), (7,)),
        SideConstraint("f", "forbid", tuple(range(10, 30)), (0, 1, 2)),
    )
    problem = some_problem(31, objective, capacity=5, n=60, constraints=constraints)
    context = Clock(problem, 3000)
    refine_nets(problem, context, no_pairs)
    assert len(context.values) >= 2
    assert context.values[-1] < 0.93 * context.values[0]
    assert context.values == sorted(context.values, reverse=True)


def test_pairwise_start_is_used_where_there_is_structure():
    graph = generate("snn", nodes=1500, synapses=15_000, layers=3, directed=1)
    problem = MappingProblem(graph, Machine("m", (1, 1), (4, 4)), "multicast-hops", node_limit=110)
    seen = []

    def pairwise(as_pairs, part):
        assert isinstance(part, PartOfTime)
        assert as_pairs.objective == "hops"
        assert part.incumbent()[0] is None
        assert 0 < part.time_left() < 0.5
        seen.append(in_order(as_pairs)[::-1].copy())
        assert part.offer(seen[0])
        assert not part.offer(seen[0].copy())
        assert part.incumbent()[0] is seen[0]

    context = Clock(problem, 4000)
    refine_nets(problem, context, pairwise)
    assert len(seen) == 1
    assert context.values[-1] < 0.8 * context.values[0]


def test_stops_at_once_when_asked():
    """The first mapping is offered whatever the time; afterwards nothing is begun."""
    problem = some_problem(7, n=60)
    context = Clock(problem, 0)
    refine_nets(problem, context, no_pairs)
    assert len(context.values) == 1


def test_too_little_memory_is_said_in_one_line():
    problem = some_problem(7, n=60)
    with pytest.raises(NmsolveError, match=r"^its tables take 64 MiB, 1 MiB of --memory are left$"):
        refine_nets(problem, Clock(problem, 100, memory=1 << 20), no_pairs)


def test_lists_go_to_a_file_where_memory_is_short(monkeypatch):
    """Same answer with lists in a scratch file, in several blocks."""
    monkeypatch.setattr(nets_incidence, "BLOCK", 64)
    problem = some_problem(33, capacity=5, n=60)
    values, much = [], 1 << 30
    tables = much - nets_engine._list_memory(problem, Clock(problem, 1, memory=much))
    for memory in (None, tables + 100):
        context = Clock(problem, 2000, memory=memory)
        refine_nets(problem, context, no_pairs)
        values.append(context.values)
    assert values[0] == values[1]


def test_refusals():
    problem = some_problem(7)
    assert refuses_nets(problem) is None
    assert "route tree" in refuses_nets(MappingProblem(problem.graph, problem.machine, "cut"))
    torus = Machine("t", (1, 1), (4, 4), torus=True)
    assert "torus" in refuses_nets(MappingProblem(problem.graph, torus, "multicast-hops"))
    mixed = LogicGraph.from_edges(
        4, [0, 1], [1, 2], multicast=np.array([True, False, True, True]), rate=np.ones(4)
    )
    assert "others are not" in refuses_nets(
        MappingProblem(mixed, Machine("m", (1, 1), (2, 2)), "multicast-hops")
    )
    assert refuses_nets(MappingProblem(mixed, Machine("m", (1, 1), (2, 2)), "connectivity")) is None


def test_may_move_is_the_checkers_word():
    """Capacity, allowed cores and ``apart``, with and without a partner that leaves."""
    constraints = (SideConstraint("a", "apart", (0, 1, 2)), SideConstraint("f", "forbid", (5, 6), (0, 1)))
    problem = some_problem(9, capacity=4, constraints=constraints, n=30)
    core = in_order(problem)
    level = NetLevel(*level_with(problem, np.arange(problem.n), problem.n))
    t = sweeper_of(problem, level, core).tables
    for v in range(problem.n):
        for q in range(problem.cores):
            moved = core.copy()
            moved[v] = q
            assert q == core[v] or may_move(t, v, q, -1) == (not check_mapping(problem, moved))


@pytest.mark.parametrize("objective", ["multicast-hops", "energy"])
def test_whole_cores_trade_places_at_the_evaluators_price(objective):
    """The level of whole cores costs what the nodes cost; trades keep the checker content and know their change."""
    constraints = (SideConstraint("f", "forbid", (5, 6, 7), (0, 1)), SideConstraint("a", "apart", (0, 1, 2)))
    problem = some_problem(41, objective, capacity=5, n=60, chips=(2, 1), constraints=constraints)
    nodes, rate = in_order(problem), Messages.of(problem).rate
    label = np.arange(problem.n)
    fine = sweeper_of(problem, level_with(problem, label, problem.n), nodes)
    whole, allowed = whole_cores(fine.tables, nodes, sampled(rate, 1))
    t = empty_tables(problem, whole.vertices, rate)._replace(domains=allowed)
    with Sweeper(t, whole.lists, whole.source, 0, 1) as sweeper:
        assert sweeper.put(on_level(whole.vertices, nodes))
        assert sweeper.cost == pytest.approx(objective_value(problem, nodes))
    tenant = np.full(problem.cores, -1, np.int32)
    tenant[t.core] = np.arange(len(t.core))
    rows = [np.zeros(len(rate), np.int32) for _ in range(2)]
    change = 0.0
    for heat in (1000.0, 0.0):
        worse = np.zeros(500)
        lists = whole.lists
        change += trade(
            t, new_work(t), lists.data, lists.at, *rows, tenant, heat, len(worse), new_rng(3), worse
        )
        moved = t.core[whole.vertices.label].astype(np.int64)
        assert not check_mapping(problem, moved)
        assert objective_value(problem, moved) - objective_value(problem, nodes) == pytest.approx(change)
        assert (worse > 0).any()
    assert change < 0


def test_sampled_messages_stand_for_all():
    rate = np.random.default_rng(0).random(50_000)
    some = sampled(rate, 4)
    assert (some > 0).sum() == 1000
    assert some.sum() == pytest.approx(rate.sum(), rel=0.1)
    assert np.array_equal(sampled(rate[:900], 4), rate[:900])
