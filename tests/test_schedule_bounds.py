"""Bounds of schedules: below every schedule, recomputed by other code, and damaged certificates prove nothing false."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.check.schedule.conflict import impossible
from nmsolve.check.schedule.recheck import check_schedule_bound as check
from nmsolve.hw.schedule.evaluate import objective
from nmsolve.model.bound import Bound
from nmsolve.model.schedule.problem import Edges, Modes, ScheduleProblem
from nmsolve.solvers.schedule.bounds import ScheduleCounting
from tests.schedule_support import random_problem, random_schedule
from tests.search_fakes import QuietContext

KINDS: list[tuple[str, dict[str, object]]] = [
    ("makespan", {}), ("energy", {}), ("moved", {}), ("tardiness", {}),
    ("weighted", {"weights": (("makespan", 3), ("energy", 2), ("moved", 1), ("tardiness", 1))}),
]  # fmt: skip


def found(problem: ScheduleProblem) -> list[Bound]:
    context = QuietContext()
    ScheduleCounting().run(problem, context)
    return list(context.bounds)


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 4), st.integers(0, 2))
def test_bounds_are_below_every_schedule_and_recomputed(seed: int, kind: int, resources: int) -> None:
    name, more = KINDS[kind]
    problem = random_problem(seed, 8, 3, resources, objective=name, **more)
    bounds = found(problem)
    assert bounds
    for bound in bounds:
        outcome = check(problem, bound, 1.0)
        assert outcome.ok, outcome.text
        assert not outcome.word
    for again in range(5):
        worth = objective(problem, random_schedule(problem, again))
        assert all(b.value <= worth for b in bounds)


@settings(deadline=None)
@given(st.integers(0, 10**6))
def test_a_ceiling_on_the_makespan_counts(seed: int) -> None:
    free = random_problem(seed, 8, 3, objective="energy")
    answer = random_schedule(free, seed)
    most = int(answer.end(free).max())
    problem = random_problem(seed, 8, 3, objective="energy", ceilings=(("makespan", float(most)),))
    for bound in found(problem):
        assert bound.value <= objective(problem, answer)
        assert check(problem, bound, 1.0).ok
    tight = random_problem(seed, 8, 3, objective="energy", ceilings=(("makespan", 1.0),))
    hopeless = found(tight)
    assert [b.value for b in hopeless] == [float("inf")]
    assert check(tight, hopeless[0], 1.0).ok
    assert "paths do not bound" in check(problem, hopeless[0], 1.0).text


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 4), st.data())
def test_forged_prices_prove_nothing_false(seed: int, kind: int, data: st.DataObject) -> None:
    name, more = KINDS[kind]
    problem = random_problem(seed, 6, 3, objective=name, **more)
    worth = min(objective(problem, random_schedule(problem, again)) for again in range(4))
    bound = found(problem)[-1]
    forged = dict(bound.certificate)
    for _ in range(data.draw(st.integers(1, 4))):
        lists = [k for k, v in forged.items() if isinstance(v, list) and v]
        if not lists:
            break
        field = data.draw(st.sampled_from(lists))
        value = list(forged[field])
        at = data.draw(st.integers(0, len(value) - 1))
        value[at] = data.draw(
            st.sampled_from([0, 1, 2**30, 2**90, -1, 1.5, True, "x", None, [], [2**40], value[0]])
        )
        forged[field] = value
    claim = Bound(float(worth + 1), bound.method, certificate=forged)
    outcome = check(problem, claim, 1.0)
    assert not outcome.ok
    assert not outcome.value > worth


def test_prices_share_work_between_units() -> None:
    """Ten processes of 6 ticks on any of three units: 20 ticks; one alone shows 6."""
    from nmsolve.model.schedule.problem import NEVER, Edges, Items, Modes, Network, Units, UnitSets

    none, three = np.zeros(0, np.int64), np.zeros(3, np.int64)
    ten = np.zeros(10, np.int64)
    problem = ScheduleProblem(
        "shared", tuple(map(str, range(10))), ("n",), ten, ten - 1,
        Units(("a", "b", "c"), three + NEVER, np.zeros((3, 3), np.int64), three, three, three, three, three),
        UnitSets(np.arange(4), np.arange(3), np.zeros((3, 3), np.int64)),
        Modes(np.arange(0, 31, 3), np.full(30, 6), np.tile(np.arange(3), 10), np.zeros((30, 0), np.int64), np.zeros(30, np.int64),
              np.full(30, -1), np.zeros(30, np.int64)),
        Items((), none, none, none, none), Edges(none, none, none, none), Network(), (), none, ten, ten + NEVER, ten + NEVER, ten,
    )  # fmt: skip
    assert [b.value for b in found(problem)] == [6.0, 20.0]


def test_paths_know_what_haste_costs() -> None:
    """Three steps in a row take 10 ticks each for nothing, or 1 tick for 30 units; conversions take 5 ticks in between.

    A tick for 3 units makes haste dearer than it is worth, one for 4 units does not.
    """
    from nmsolve.model.schedule.problem import NEVER, Items, Network, Units, UnitSets

    none, one, three = np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(3, np.int64)
    problem = ScheduleProblem(
        "haste", ("a", "b", "c"), ("n",), three, three - 1,
        Units(("u",), one + NEVER, np.zeros((1, 1), np.int64), one, one, one, one, one),
        UnitSets(np.arange(2), one, np.zeros((1, 1), np.int64)),
        Modes(np.arange(0, 7, 2), np.array([10, 1] * 3), np.tile(0, 6) - 1, np.zeros((6, 0), np.int64), np.array([0, 30] * 3),
              np.full(6, -1), np.zeros(6, np.int64)),
        Items((), none, none, none, none),
        Edges(np.array([0, 1]), np.array([1, 2]), three[:2], np.array([5, 5])), Network(), (), none,
        three, three + NEVER, three + NEVER, three, objective="weighted", weights=(("energy", 1), ("makespan", 3)),
    )  # fmt: skip
    assert found(problem)[-1].value == 3 * (3 * 10 + 2 * 5)
    cheap = replace(problem, weights=(("energy", 1), ("makespan", 4)))
    assert found(cheap)[-1].value == 3 * 30 + 4 * 13


def test_windows_prove_more_than_loads() -> None:
    """Two processes of 4 ticks that nothing precedes and two of 1 that must follow 10 other ticks, on one resource of 1."""
    one = np.ones(4, np.int64)
    problem = random_problem(
        0, 4, 1, 1, release=np.array([0, 0, 10, 10]), ready=None, capacity=np.ones(1, np.int64),
        edges=Edges(*np.zeros((4, 0), np.int64)),
        modes=Modes(np.arange(5), np.array([4, 4, 3, 3]), one * -1, one[:, None], one, one * -1, one * 0),
    )  # fmt: skip
    bounds = {b.method: b.value for b in found(problem)}
    assert bounds["energetic"] == 16.0
    assert bounds["prices"] < 16.0


def two_in_turn() -> ScheduleProblem:
    """Two processes of 4 ticks that take all there is of one resource."""
    one = np.ones(2, np.int64)
    return random_problem(
        0, 2, 1, 1, release=one * 0, ready=None, capacity=np.ones(1, np.int64), edges=Edges(*np.zeros((4, 0), np.int64)),
        modes=Modes(np.arange(3), one * 4, one * -1, one[:, None], one, one * -1, one * 0),
    )  # fmt: skip


@pytest.mark.parametrize("window", [[0, 8, 8], [0, 4, 8], [2, 6, 8]])
def test_a_window_that_is_just_full_proves_nothing(window: list[int]) -> None:
    """Both end by 8: all of 0 to 8 is full; one may come after 4, and each may work 2 ticks only from 2 to 6."""
    fit = {"method": "energetic", "rows": [0, 1], "window": window}
    assert not check(two_in_turn(), Bound(9.0, "energetic", certificate=fit), 1.0).ok
    tight = {**fit, "window": [0, 7, 7]}
    assert check(two_in_turn(), Bound(8.0, "energetic", certificate=tight), 1.0).ok


def test_lateness_by_paths_is_that_of_the_fastest_mode() -> None:
    one = np.ones(1, np.int64)
    problem = random_problem(
        0, 1, 1, 0, objective="tardiness", release=one * 0, ready=None, due=one, weight=one,
        edges=Edges(*np.zeros((4, 0), np.int64)),
        modes=Modes(np.array([0, 2]), np.array([9, 2]), np.array([-1, -1]), np.zeros((2, 0), np.int64), np.zeros(2, np.int64),
                    np.array([-1, -1]), np.zeros(2, np.int64)),
    )  # fmt: skip
    assert [b.value for b in found(problem)] == [1.0]
    assert not check(problem, Bound(2.0, "critical-path", certificate={"method": "critical-path"}), 1.0).ok


def test_work_that_just_fits_before_its_deadline_is_no_conflict() -> None:
    def on_one_unit(deadline: int) -> ScheduleProblem:
        two = np.ones(2, np.int64)
        return random_problem(
            0, 2, 1, 0, release=two * 0, ready=None, deadline=two * deadline, edges=Edges(*np.zeros((4, 0), np.int64)),
            modes=Modes(np.arange(3), two * 4, two * 0, np.zeros((2, 0), np.int64), two, two * -1, two * 0),
        )  # fmt: skip

    assert impossible(on_one_unit(8), 1.0) is None
    assert impossible(on_one_unit(7), 1.0) is True


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3))
def test_windows_are_valid_and_recomputed(seed: int, resources: int) -> None:
    problem = random_problem(seed, 9, 2, resources)
    worth = min(objective(problem, random_schedule(problem, again)) for again in range(4))
    windows = [b for b in found(problem) if b.method == "energetic"]
    for bound in windows:
        assert bound.value <= worth
        assert check(problem, bound, 1.0).ok
        assert not check(problem, replace(bound, value=bound.value + 1), 1.0).ok
        wider = {**bound.certificate, "window": [0, problem.horizon, problem.horizon]}
        assert not check(problem, replace(bound, certificate=wider), 1.0).ok


@settings(deadline=None)
@given(st.integers(0, 10**6))
def test_evenly_shared_loads_are_valid_and_no_better_than_the_program(seed: int) -> None:
    """Prices prove no more; windows, which are looked for by the loads that they weigh, may."""
    problem = random_problem(seed, 9, 3)
    best = max(b.value for b in found(problem) if b.method != "energetic")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nmsolve.solvers.schedule.bounds.MOST_SHARES", -1)
        even = found(problem)
    assert max(b.value for b in even if b.method != "energetic") <= best
    worth = min(objective(problem, random_schedule(problem, again)) for again in range(4))
    assert even[-1].value <= worth
    assert check(problem, even[-1], 1.0).ok


@pytest.mark.parametrize("name", ["idle", "waste"])
def test_nothing_is_claimed_where_nothing_is_counted(name: str) -> None:
    assert not found(random_problem(1, objective=name))
