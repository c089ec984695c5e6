"""Queues run on the simulated component: as planned without noise, in order with it, and on after a unit died."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.check.schedule.reevaluate import reevaluate
from nmsolve.hw.schedule.evaluate import all_objectives, energies
from nmsolve.hw.schedule.faults import reschedule, with_history
from nmsolve.hw.schedule.simulator import difference, noisy_runs, plan_of, queues_of, simulate
from nmsolve.model.errors import InputError
from nmsolve.model.schedule.check import schedule_complaint
from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule
from tests.schedule_support import random_problem, random_schedule


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 5))
def test_queues_run_as_planned(seed: int, processes: int, units: int) -> None:
    problem = random_problem(seed, processes, units, 2)
    answer = random_schedule(problem, seed)
    seen = simulate(problem, answer, queues_of(problem, answer))
    assert difference(problem, answer, seen) is None
    assert seen.objectives == all_objectives(problem, answer)
    assert seen.energy == energies(problem, answer)
    assert seen.peak.tolist() == reevaluate(problem, answer).peak


@settings(deadline=None)
@given(st.integers(0, 10**6))
def test_a_queue_in_another_order_is_noticed(seed: int) -> None:
    problem = random_problem(seed, 8, 2)
    answer = random_schedule(problem, seed)
    queues = queues_of(problem, answer)
    long = np.flatnonzero(np.diff(queues.indptr) > 1)
    if not len(long):
        return
    k = int(queues.indptr[long[0]])
    process = queues.process.copy()
    process[[k, k + 1]] = process[[k + 1, k]]
    seen = simulate(problem, answer, replace(queues, process=process))
    assert difference(problem, answer, seen) is not None


@settings(deadline=None)
@given(st.integers(0, 10**6))
def test_a_unit_that_stays_on_takes_more(seed: int) -> None:
    problem = random_problem(seed, 8, 2)
    answer = random_schedule(problem, seed)
    queues = queues_of(problem, answer)
    seen = simulate(problem, answer, replace(queues, off_after=np.zeros_like(queues.off_after)))
    assert difference(problem, answer, seen) is None
    assert seen.objectives["energy"] >= all_objectives(problem, answer)["energy"]
    assert (seen.dark_begin < 0).all()


@settings(deadline=None)
@given(st.integers(0, 10**6))
def test_noise_moves_starts_and_keeps_rules(seed: int) -> None:
    problem = random_problem(seed, 8, 3)
    answer = random_schedule(problem, seed)
    queues = queues_of(problem, answer)
    rng, plan = np.random.default_rng(seed), plan_of(problem, answer, queues)
    span = np.maximum(plan.span > 0, np.rint(plan.span * rng.uniform(0.5, 2, problem.count))).astype(np.int64)
    seen = simulate(problem, answer, queues, plan._replace(span=span))
    assert (seen.end == seen.start + span).all()
    assert (seen.start >= answer.start).all()
    assert (seen.peak <= problem.units.memory).all()
    e = problem.edges
    delay = problem.delay(np.arange(e.count), answer.mode[e.source], answer.mode[e.target])
    assert (seen.start[e.target] >= seen.end[e.source] + delay).all()
    for u in range(problem.units.count):
        own = queues.process[queues.indptr[u] : queues.indptr[u + 1]]
        assert (seen.begin[own][1:] >= seen.end[own][:-1]).all()


def test_noise_is_drawn_by_seed_and_zero_noise_is_none() -> None:
    problem = random_problem(5, 12, 3)
    answer = random_schedule(problem, 5)
    queues = queues_of(problem, answer)
    planned = all_objectives(problem, answer)
    none = noisy_runs(problem, answer, queues, 0.0, 3)
    assert set(none.makespan.tolist()) == {planned["makespan"]}
    assert set(none.energy.tolist()) == {planned["energy"]}
    one, two, other = (noisy_runs(problem, answer, queues, 0.3, 20, seed) for seed in (1, 1, 2))
    assert one.makespan.tolist() == two.makespan.tolist() != other.makespan.tolist()
    assert one.makespan.min() >= planned["makespan"] - 2
    with pytest.raises(InputError, match="noise"):
        noisy_runs(problem, answer, queues, 1.0)


def _anew(problem: ScheduleProblem, answer: Schedule, late: int) -> Schedule:
    """Return a legal schedule of a problem left: history first, the rest one after the other."""
    m, order = problem.modes, problem.order
    mode, start, loaded = m.first[:-1].copy(), answer.start.copy(), answer.loaded.copy()
    indptr, into = problem.before
    now = late
    for p in order.tolist():
        if problem.deadline[p] - problem.release[p] == m.span[m.first[p]]:
            continue
        item = int(m.item[mode[p]])
        start[p] = now + (int(problem.items.load[item]) if item >= 0 else 0)
        loaded[p] = item >= 0
        for e in into[indptr[p] : indptr[p + 1]].tolist():
            s = int(problem.edges.source[e])
            start[p] = max(start[p], start[s] + m.span[mode[s]] + int(problem.delay(e, mode[s], mode[p])))
        now = int(start[p] + m.span[mode[p]])
    return Schedule(mode, start, loaded)


@settings(deadline=None)
@given(st.integers(0, 10**5), st.booleans(), st.integers(0, 40))
def test_after_a_fault_the_rest_is_planned_anew(seed: int, stay: bool, at: int) -> None:
    problem = random_problem(seed, 8, 4)
    answer = random_schedule(problem, seed)
    dead = seed % 4
    try:
        left = reschedule(problem, answer, at, [dead], stay)
    except InputError as refused:
        assert "cannot run without" in str(refused)
        return
    p = left.problem
    assert (p.release[left.history] == answer.start[left.history]).all()
    assert (p.earliest[~left.history] >= at).all()
    touched = {k for k in range(problem.sets.count) if dead in problem.sets.of(k)}
    for q in range(p.count):
        own = {int(k) for k in p.modes.unit_set[p.modes.first[q] : p.modes.first[q + 1]]}
        assert left.history[q] or not own & touched
        if stay and not left.history[q] and int(problem.modes.unit_set[answer.mode[q]]) not in touched:
            assert len(own) == 1
    later = with_history(answer, left, _anew(p, answer, max(at, int(answer.end(problem).max()))))
    assert schedule_complaint(p, later) is None
    assert reevaluate(p, later).complaint is None
    assert difference(p, later, simulate(p, later, queues_of(p, later))) is None


def test_what_was_for_nothing_has_taken_energy() -> None:
    """Of what is cut off the part of its ticks, rounded up; all of what had ended and must be made again."""
    seen = 0
    for seed in range(60):
        problem = random_problem(seed, 8, 3)
        answer = random_schedule(problem, seed)
        begin, end, m = answer.begin(problem), answer.end(problem), problem.modes
        for at in range(1, int(end.max())):
            try:
                left = reschedule(problem, answer, at, [seed % 3])
            except InputError:
                continue
            spent = 0
            for p in np.flatnonzero(left.lost).tolist():
                mode = int(answer.mode[p])
                run = Fraction(min(max(0, at - int(answer.start[p])), int(m.span[mode])), int(m.span[mode]))
                spent += math.ceil(run * int(m.energy[mode]))
                if answer.loaded[p]:
                    load = int(answer.start[p] - begin[p])
                    part = Fraction(min(at - int(begin[p]), load), load)
                    spent += math.ceil(part * int(problem.items.energy[m.item[mode]]))
            assert left.lost_energy == spent
            seen += bool(spent) and bool(((end > at) & left.lost).any())
    assert seen > 10


def test_results_that_only_a_dead_unit_held_are_made_again() -> None:
    for seed in range(300):
        problem = random_problem(seed, 8, 3)
        answer = random_schedule(problem, seed)
        e, end = problem.edges, answer.end(problem)
        for k in range(e.count):
            source, target, at = int(e.source[k]), int(e.target[k]), int(end[e.source[k]])
            unit_set = int(problem.modes.unit_set[answer.mode[source]])
            if unit_set < 0 or answer.begin(problem)[target] < at:
                continue
            try:
                left = reschedule(problem, answer, at, [int(problem.sets.of(unit_set)[0])])
            except InputError:
                continue
            assert not left.history[source]
            assert left.lost[source]
            return
    pytest.fail("no case found")
