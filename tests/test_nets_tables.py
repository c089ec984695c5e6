"""Changes and tables of net objectives at scale against the evaluator."""

from __future__ import annotations

import tempfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nets_support import OBJECTIVES, level_with, some_problem, spread, sweeper_of

from nmsolve.heuristics.mapping.common.room import fits
from nmsolve.heuristics.mapping.nets import sweep
from nmsolve.heuristics.mapping.nets.incidence import one_list
from nmsolve.heuristics.mapping.nets.levels import (
    Messages,
    Plan,
    in_order,
    level_of,
    numbering,
    on_level,
)
from nmsolve.heuristics.mapping.nets.moves import one_change, shift, weigh
from nmsolve.heuristics.mapping.nets.state import new_work
from nmsolve.hw.scores import objective_value
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.model.types import read_only


@pytest.mark.parametrize("objective", OBJECTIVES)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), coarse=st.booleans())
def test_every_change_is_the_evaluators(objective, seed, coarse):
    """Weighing a vertex for all cores, and for one, equals moving its nodes and scoring anew."""
    problem = some_problem(seed, objective, chips=(2, 1))
    label, level, sweeper = spread(problem, seed, coarse)
    t, s = sweeper.tables, new_work(sweeper.tables)
    nodes = t.room.core[label].astype(np.int64)
    now = objective_value(problem, nodes)
    assert sweeper.cost == pytest.approx(now)
    for v in range(level.vertices.n):
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
    label, level, sweeper = spread(problem, seed, coarse)
    t, s = sweeper.tables, new_work(sweeper.tables)
    for _ in range(30):
        before = objective_value(problem, t.room.core[label])
        v, q = int(rng.integers(level.vertices.n)), int(rng.integers(problem.cores))
        if q != t.room.core[v]:
            change = shift(t, s, v, q, one_list(level.lists, v))
            assert change == pytest.approx(objective_value(problem, t.room.core[label]) - before, abs=1e-6)
    fresh = sweeper_of(problem, level, t.room.core).tables
    assert np.array_equal(t.room.load, fresh.room.load)
    for name in ("origin", "hits", "fan", "lone", "low", "high", "span", "paid", "price", "busy"):
        assert np.array_equal(getattr(t, name), getattr(fresh, name)), name


def test_cores_that_a_message_reaches_are_free_whatever_the_weights():
    """Prices are rounded to bytes, up: also where the lengths of links are no whole numbers."""
    problem = some_problem(4, "energy", chips=(2, 1))
    _, _, sweeper = spread(problem, 1)
    t = sweeper.tables
    scaled = t._replace(x=read_only(t.x * 0.0371), y=read_only(t.y * 0.0371), step=0.0, unit=t.unit)
    sweeper.tables = scaled
    sweeper.refresh()
    for row in np.flatnonzero(t.rate > 0):
        reached = t.hits[row] > 0
        assert (t.price[row, : problem.cores][reached] == 0).all()


def test_whether_a_vertex_fits_is_the_checkers_word():
    """Capacity, allowed cores and ``apart``, with and without a partner that leaves."""
    constraints = (SideConstraint("a", "apart", (0, 1, 2)), SideConstraint("f", "forbid", (5, 6), (0, 1)))
    problem = some_problem(9, capacity=4, constraints=constraints, n=30)
    core = in_order(problem)
    level = level_with(problem, np.arange(problem.n), problem.n)
    t = sweeper_of(problem, level, core).tables
    for v in range(problem.n):
        for q in range(problem.cores):
            moved = core.copy()
            moved[v] = q
            assert q == core[v] or fits(t.room, v, q, -1) == (not check_mapping(problem, moved))
        for u in np.flatnonzero(core != core[v]):
            moved = core.copy()
            moved[[u, v]] = core[[v, u]]
            both = fits(t.room, v, core[u], u) and fits(t.room, u, core[v], v)
            assert both == (not check_mapping(problem, moved))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_answer_does_not_depend_on_threads_or_where_lists_lie(objective, monkeypatch):
    """Three sweeps, hot to cold, from the same start; batches of any size go to all threads."""
    monkeypatch.setattr(sweep, "ALONE", 0)
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
                answers.append((heats, sweeper.cost, sweeper.tables.room.core[vertices.label].tolist()))
    assert answers[0] == answers[1] == answers[2]
    nodes = np.array(answers[0][2])
    assert answers[0][1] == pytest.approx(objective_value(problem, nodes))
    assert answers[0][1] < objective_value(problem, start)
    assert not check_mapping(problem, nodes)
