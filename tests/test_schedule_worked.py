"""The worked examples of the method's description (M4): two networks on three units, and on three by three."""

from __future__ import annotations

from pathlib import Path

import pytest
from schedule_exact_support import run_alone

from nmsolve.check.schedule.reevaluate import reevaluate
from nmsolve.model.schedule.feasible import earliest_ends
from nmsolve.model.schedule.files import load_schedule
from nmsolve.model.schedule.tasks import stated
from nmsolve.model.schedule.tasks_file import Power, Process, TaskEntry, TasksFile, Unit
from nmsolve.solvers.schedule.api import solve_schedule
from nmsolve.solvers.schedule.exact import ScheduleCpSat, ScheduleHighs

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
    seen = reevaluate(problem, result.solution)
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
            for u, intervals in enumerate(seen.on)
            for a, b in intervals
            if a - wake[u] <= t < b
        }
        for t in range(4)
    ]
    for needed, dark in zip(on, OFF, strict=True):
        assert not needed & dark
    assert {"2,2", "3,3"} <= on[0], "units that the next time unit needs are woken in this one"


#: Uses of units by time unit that switch off just the units that paragraph 79 names, and no others.
USED = [
    ({"1,1", "2,1", "1,2"}, {"1,3", "2,3"}),
    ({"1,1", "2,1", "2,2"}, {"1,3", "2,3", "3,2", "3,3"}),
    ({"1,1", "2,1", "2,2"}, {"2,3", "3,2", "3,3"}),
    ({"1,1", "2,1", "2,2"}, {"2,3", "3,2", "3,3"}),
]


@pytest.mark.parametrize("engine", [ScheduleCpSat(), ScheduleHighs()], ids=lambda engine: engine.name)
def test_the_sets_of_paragraph_79_are_those_of_the_least_energy_for_uses_that_allow_them(engine):
    """The off sets to the letter, proved by both models.

    The text names the sets, but the processes of paragraph 74 need less: they leave (3,2) without work in the first time unit,
    (1,1) and (2,1) from the second on. Of those units it says only that some may stay on, not which, and that starting takes
    time. So the uses are chosen here: with them no other sets are best. The test above has the processes of paragraph 74, and
    there the sets of the text are parts of what is off.
    """
    names = [f"{r},{c}" for r in (1, 2, 3) for c in (1, 2, 3)]
    networks = [
        TaskEntry(
            name,
            [
                Process(f"{t}", span=1, sets=[sorted(used[k])], after=[f"{t - 1}"] if t else [])
                for t, used in enumerate(USED)
            ],
        )
        for k, name in enumerate(("1", "2"))
    ]
    file = TasksFile(
        networks, units=[Unit(name, at=(int(name[0]), int(name[2]))) for name in names], objective="energy",
        power=Power(on=10, idle=4, off=0, off_time=0, wake_time=1, switch_energy=3), ceilings={"makespan": 4},
    )  # fmt: skip
    problem = stated(file, "paragraph 79").problem
    ran = run_alone(engine, problem)
    assert ran.value == ran.low < float("inf") and not ran.refused
    seen = reevaluate(problem, ran.answer)
    on = [
        {names[u] for u, intervals in enumerate(seen.on) for a, b in intervals if a - 1 <= t < b}
        for t in range(4)
    ]
    assert [set(names) - some for some in on] == OFF
