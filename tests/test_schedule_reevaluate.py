"""Two evaluators and two checks of schedules agree, on legal schedules and on damaged ones."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.check.schedule.reevaluate import reevaluate
from nmsolve.hw.schedule.evaluate import all_objectives, energies, gaps_of
from nmsolve.model.errors import InputError
from nmsolve.model.schedule.check import schedule_complaint
from nmsolve.model.schedule.schedule import Schedule
from tests.schedule_support import random_problem, random_schedule


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 5))
def test_both_evaluators_agree(seed: int, processes: int, units: int) -> None:
    problem = random_problem(
        seed, processes, units, objective="weighted", weights=(("makespan", 3), ("energy", 2))
    )
    answer = random_schedule(problem, seed)
    assert schedule_complaint(problem, answer) is None
    seen = reevaluate(problem, answer)
    assert seen.complaint is None
    assert seen.objectives == all_objectives(problem, answer)
    assert seen.energy == energies(problem, answer)


@settings(deadline=None)
@given(st.integers(0, 10**6))
def test_units_are_off_in_the_same_gaps(seed: int) -> None:
    problem = random_problem(seed, 10, 2)
    answer = random_schedule(problem, seed)
    gaps = gaps_of(problem, answer)
    lit = reevaluate(problem, answer).on
    dark = {(u, a[1], b[0]) for u, intervals in enumerate(lit) for a, b in pairwise(intervals)}
    assert dark == set(zip(*(x[gaps.off].tolist() for x in (gaps.unit, gaps.begin, gaps.end)), strict=True))


@settings(deadline=None)
@given(st.integers(0, 10**6), st.data())
def test_both_checks_refuse_the_same(seed: int, data: st.DataObject) -> None:
    problem = random_problem(seed, 8, 3)
    answer = random_schedule(problem, seed)
    mode, start, loaded = answer.mode.copy(), answer.start.copy(), answer.loaded.copy()
    for _ in range(data.draw(st.integers(1, 3))):
        p = data.draw(st.integers(0, problem.count - 1))
        what = data.draw(st.sampled_from(["mode", "start", "loaded"]))
        if what == "mode":
            mode[p] = data.draw(st.integers(-1, problem.modes.count))
        elif what == "start":
            start[p] = max(-3, start[p] + data.draw(st.integers(-6, 3)))
        else:
            loaded[p] = ~loaded[p]
    damaged = Schedule(mode, start, loaded)
    one, two = schedule_complaint(problem, damaged), reevaluate(problem, damaged).complaint
    assert (one is None) == (two is None), (one, two)
    if one is None:
        assert reevaluate(problem, damaged).objectives == all_objectives(problem, damaged)


def test_both_checks_refuse_a_byte_too_much_and_a_load_too_few() -> None:
    """A memory of what the peak takes is enough, one byte less is not; whoever does not load must find its data."""
    tight = lacking = 0
    for seed in range(60):
        problem = random_problem(seed, 12, 1)
        answer = random_schedule(problem, seed)
        peak = np.array(reevaluate(problem, answer).peak)
        for u in np.flatnonzero(peak > 0).tolist():
            for less in (0, 1):
                memory = problem.units.memory.copy()
                memory[u] = peak[u] - less
                try:
                    there = replace(problem, units=replace(problem.units, memory=memory))
                except InputError:  # a mode does not fit alone
                    continue
                both = schedule_complaint(there, answer), reevaluate(there, answer).complaint
                assert [text is None for text in both] == [not less] * 2, both
                tight += less
        for p in np.flatnonzero(answer.loaded).tolist():
            loaded = answer.loaded.copy()
            loaded[p] = False
            other = Schedule(answer.mode, answer.start, loaded)
            both = schedule_complaint(problem, other), reevaluate(problem, other).complaint
            assert (both[0] is None) == (both[1] is None), both
            lacking += both[0] is not None and "whose weights are not loaded" in both[0]
    assert tight > 5 and lacking > 5, (tight, lacking)


@pytest.mark.parametrize("what", ["weight", "deadline"])
def test_deadlines_and_lateness_count(what: str) -> None:
    problem = random_problem(3, 6, 3)
    answer = random_schedule(problem, 3)
    end = int(answer.end(problem).max())
    late = {"weight": np.full(6, 2), "due": np.zeros(6, np.int64)}
    if what == "weight":
        problem = random_problem(3, 6, 3, **late)
        assert all_objectives(problem, answer)["tardiness"] == 2 * int(answer.end(problem).sum())
    else:
        problem = random_problem(3, 6, 3, deadline=np.full(6, end - 1))
        assert "deadline" in (schedule_complaint(problem, answer) or "")
        assert "deadline" in (reevaluate(problem, answer).complaint or "")


def test_starts_beyond_all_use_are_refused() -> None:
    problem = random_problem(3, 6, 3)
    answer = random_schedule(problem, 3)
    late = Schedule(answer.mode, answer.start + 2**59, answer.loaded)
    assert "later than anything" in (schedule_complaint(problem, late) or "")
    assert reevaluate(problem, late).complaint is not None


def test_a_schedule_that_was_written_to_is_evaluated_again() -> None:
    """One evaluation is kept, and arrays are not read-only: a check must not tell what they held before."""
    problem = random_problem(3, 6, 3)
    answer = random_schedule(problem, 3)
    assert reevaluate(problem, answer).complaint is None
    answer.start[:] = 0
    answer.mode[:] = answer.mode[0]
    assert schedule_complaint(problem, answer) is not None
    assert reevaluate(problem, answer).complaint is not None
