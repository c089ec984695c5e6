"""The worked examples of the method's description (M4): two networks on three units, and on three by three."""

from __future__ import annotations

from pathlib import Path

from nmsolve.hw.schedule.walk import walked
from nmsolve.model.schedule.feasible import earliest_ends
from nmsolve.model.schedule.files import load_schedule
from nmsolve.solvers.schedule.api import solve_schedule

DATA = Path(__file__).parent / "data" / "schedule"
#: What the description switches off in each of the four time units; units that idle for another reason may be off besides.
OFF = [{"3,1"}, {"3,1", "1,2"}, {"3,1", "1,2", "1,3"}, {"3,1", "1,2", "1,3"}]


def test_three_units_run_two_networks_and_their_interaction_as_described() -> None:
    """Paragraph 48: unit 1 runs both networks' first layers, unit 3 what they share at time 3; proved the shortest."""
    problem = load_schedule(DATA / "paragraph48.json").problem
    result = solve_schedule(problem, time_limit=20.0, engines=["schedule-cpsat"])
    assert result.status == "optimal" and result.objective == 4 and result.solution is not None
    start = dict(zip(problem.labels, (result.solution.start + 1).tolist(), strict=True))
    assert start == {"a/1": 1, "a/2": 2, "b/1": 2, "a+b/x": 3, "a/3": 4, "b/2": 4}
    assert int(earliest_ends(problem)[0].max()) == 4, "no schedule is shorter"


def test_units_without_work_are_off_as_described() -> None:
    """Paragraphs 74 and 79: places and times of all processes, the shared unit, and who is off; proved the least energy."""
    problem = load_schedule(DATA / "paragraph79.json").problem
    result = solve_schedule(problem, time_limit=20.0, engines=["schedule-cpsat"])
    assert result.status == "optimal" and result.solution is not None
    seen = walked(problem, result.solution)
    assert seen.complaint is None
    work = [
        {problem.units.names[u] for u, runs in enumerate(seen.work) for b, _, e, _ in runs if b <= t < e}
        for t in range(4)
    ]
    assert work == [
        {"1,1", "2,1", "1,3", "2,3"},
        {"2,2", "3,2", "3,3"},
        {"2,2", "3,2", "3,3"},
        {"3,2", "3,3"},
    ]
    wake = problem.units.wake_time.tolist()
    on = [
        {
            problem.units.names[u]
            for u, spells in enumerate(seen.on)
            for a, b in spells
            if a - wake[u] <= t < b
        }
        for t in range(4)
    ]
    for needed, dark in zip(on, OFF, strict=True):
        assert not needed & dark
    assert {"2,2", "3,3"} <= on[0], "units that the next time unit needs are woken in this one"
