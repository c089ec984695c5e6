"""Axon tables in the engine for net objectives at scale: exact counts, legal answers, the same however many threads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nets_support import OBJECTIVES, PLAN, Clock, no_pairs, some_problem, spread, sweeper_of

from nmsolve.heuristics.mapping.external.engine import External
from nmsolve.heuristics.mapping.nets import sweep
from nmsolve.heuristics.mapping.nets.axons import entries, newcomers, swapped
from nmsolve.heuristics.mapping.nets.incidence import one_list
from nmsolve.heuristics.mapping.nets.levels import (
    Messages,
    in_order,
    level_of,
    numbering,
    on_level,
)
from nmsolve.heuristics.mapping.nets.moves import shift
from nmsolve.heuristics.mapping.nets.search import refine_nets
from nmsolve.heuristics.mapping.nets.state import new_work
from nmsolve.hw.scores import objective_value
from nmsolve.model.formats import save_graph
from nmsolve.model.generators import generate
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.axons import AXONS_IN, AXONS_OUT, axon_usage
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.model.store import open_graph


class Listener(Clock):
    """A context that knows the best mapping so far and keeps notes."""

    def __init__(self, problem, polls):
        super().__init__(problem, polls)
        self.notes = []

    def incumbent(self):
        return self.best, self.values[-1] if self.values else float("inf")

    def note(self, text):
        self.notes.append(text)


def limited(problem, most_in, most_out):
    """The problem with axon tables of these sizes."""
    capacity = {**problem.machine.capacity, AXONS_IN: most_in, AXONS_OUT: most_out}
    return replace(problem, machine=replace(problem.machine, capacity=capacity))


def expected(problem, nodes):
    """Entries (2, P) and how many are too many, counted from the graph."""
    used = np.array(axon_usage(problem.graph, problem.cores, nodes, problem.axons.inner))
    most = np.array([[problem.axons.most_in], [problem.axons.most_out]])
    return used, int(np.maximum(0, used - most).sum())


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), coarse=st.booleans())
def test_every_move_keeps_the_counts(seed, coarse):
    """Messages that cost nothing and those to their own cluster included; of nodes as of clusters."""
    problem = limited(some_problem(seed), 4, 6)
    rng = np.random.default_rng(seed)
    label, level, sweeper = spread(problem, seed, coarse)
    t, s = sweeper.tables, new_work(sweeper.tables)
    for _ in range(30):
        used, excess = expected(problem, t.room.core[label])
        assert np.array_equal(t.used, used)
        assert sweeper.excess == excess
        v, q = int(rng.integers(level.vertices.n)), int(rng.integers(problem.cores))
        rows = one_list(level.lists, v)
        newcomers(t, s, rows)
        assert np.array_equal(s.new, (t.hits[rows] == 0).sum(axis=0))
        full = rows[t.used[1, t.origin[rows]] >= t.most[1]]
        assert np.array_equal(s.aside, (t.hits[full] == 0).sum(axis=0))
        if q != t.room.core[v]:
            shift(t, s, v, q, rows)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), coarse=st.booleans())
def test_a_move_is_judged_by_its_entries(seed, coarse):
    """Entries that come and go at both cores are exact if no source of theirs is there, and the excess within a little."""
    problem = limited(some_problem(seed), 4, 10**6)
    _, level, sweeper = spread(problem, seed, coarse)
    t, s = sweeper.tables, new_work(sweeper.tables)
    for v in range(level.vertices.n):
        p, rows = int(t.room.core[v]), one_list(level.lists, v)
        for q in range(problem.cores):
            if q == p:
                continue
            own = entries(t, v, q, rows)
            before, excess = t.used.copy(), sweeper.excess
            more = swapped(t, p, q, own, (0, 0, 0, 0, 0))
            shift(t, s, v, q, rows)
            assert before[0, p] - t.used[0, p] == own[0]
            assert t.used[0, q] - before[0, q] == own[2]
            assert sweeper.excess - excess == more
            shift(t, s, v, p, rows)
            assert np.array_equal(t.used, before)


def small(objective="multicast-hops"):
    """A layered network on a small board, and what the fullest core of the free answer needs."""
    graph = generate("snn", nodes=600, synapses=9000, layers=3, directed=1)
    problem = MappingProblem(graph, Machine("m", (1, 1), (3, 4)), objective, node_limit=60)
    context = Listener(problem, 1500)
    refine_nets(problem, context, no_pairs)
    used = axon_usage(graph, problem.cores, context.best)
    return problem, context.best, [int(part.max()) for part in used]


@pytest.mark.parametrize("objective", OBJECTIVES[:2])
def test_answer_within_tighter_tables_than_the_free_one_needs(objective):
    """Clock.offer checks every mapping that the engine shows."""
    free, best, (most_in, most_out) = small(objective)
    problem = limited(free, int(0.9 * most_in), int(0.9 * most_out))
    assert check_mapping(problem, best)
    context = Listener(problem, 3000)
    refine_nets(problem, context, no_pairs)
    assert context.best is not None
    assert not check_mapping(problem, context.best)
    assert context.values[-1] < 1.15 * objective_value(free, best)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_answer_does_not_depend_on_threads(objective, monkeypatch):
    """Three sweeps, the price rising; counts are those of the mapping, and none is too many once none was."""
    monkeypatch.setattr(sweep, "ALONE", 0)
    problem = limited(some_problem(11, objective, capacity=4, n=60, rows=5, cols=7), 6, 12)
    start, answers = in_order(problem), []
    assert check_mapping(problem, start)
    for workers in (1, 3):
        vertices = numbering(problem, 3)
        level = level_of(problem, Messages.of(problem), vertices, PLAN._replace(workers=workers), [])
        seen = []
        with sweeper_of(problem, level, on_level(vertices, start), workers) as sweeper:
            for heat, price in ((4.0, 0.5), (2.0, 5.0), (1.0, 50.0), (0.5, 50.0), (0.0, 50.0)):
                assert sweeper.sweep(lambda h=heat: h, lambda c=price: c)
                nodes = sweeper.tables.room.core[vertices.label].astype(np.int64)
                used, excess = expected(problem, nodes)
                assert np.array_equal(sweeper.tables.used, used)
                assert sweeper.excess == excess
                seen.append((excess, sweeper.cost, nodes.tolist()))
        answers.append(seen)
    assert answers[0] == answers[1]
    excesses = [excess for excess, _, _ in answers[0]]
    assert excesses[-1] < expected(problem, start)[1]
    assert excesses == sorted(excesses, reverse=True)


def test_a_graph_on_disk_is_mapped_as_one_in_memory(tmp_path, monkeypatch):
    """From the same start, the order of the file: in memory the search begins breadth first where that is better."""
    monkeypatch.setattr("nmsolve.heuristics.mapping.nets.search.first_fit", lambda *_: None)
    free, _, (most_in, most_out) = small()
    save_graph(free.graph, tmp_path / "net.nmz")
    values = []
    for graph in (free.graph, open_graph(tmp_path / "net.nmz")):
        problem = limited(replace(free, graph=graph), int(0.95 * most_in), int(0.95 * most_out))
        context = Listener(problem, 3000)
        refine_nets(problem, context, no_pairs)
        values.append(context.values)
    assert values[0]
    assert values[0] == values[1]


def test_pairwise_objectives_are_refused_where_axon_tables_could_bind():
    problem = some_problem(7)
    assert External().refuses(limited(problem, 3, 3)) is None
    hops = MappingProblem(problem.graph, problem.machine, "hops")
    assert External().refuses(hops) is None
    assert "limits on axon tables" in External().refuses(limited(hops, 3, 3))


def test_an_answer_that_breaks_the_limits_is_not_offered():
    problem = limited(some_problem(7, n=60), 1, 1)
    context = Listener(problem, 400)
    refine_nets(problem, context, no_pairs)
    assert context.best is None
    assert context.notes == ["no mapping within the limits on axon tables was found"]
