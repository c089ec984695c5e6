"""The search for schedules: legal, never below the best there is, the same for equal seeds, with ceilings kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from schedule_reference import optimum

from nmsolve.heuristics.schedule import search as module
from nmsolve.heuristics.schedule.decode import EARLIEST, MAKESPAN, state_from
from nmsolve.heuristics.schedule.rules import NO_TASTE, grounded, heft, published
from nmsolve.heuristics.schedule.search import ScheduleSearch
from nmsolve.heuristics.schedule.windows import open_window, window_of
from nmsolve.hw.schedule.evaluate import all_objectives
from nmsolve.model.schedule.generate import generate_problem
from nmsolve.model.schedule.problem import OBJECTIVES, ScheduleProblem
from nmsolve.solvers.schedule.api import ScheduleChecker
from nmsolve.solvers.schedule.registry import plan_of
from tests.schedule_support import random_problem
from tests.strength.counted import Counted

NAMES = [name for name in OBJECTIVES if name != "weighted"]


def searched(problem: ScheduleProblem, seed: int = 1, stops: float = 40) -> Counted:
    """The context after a run; every offer is checked as the run of a search checks it."""
    checker = ScheduleChecker(problem)

    def value(packed: np.ndarray) -> float:
        assert checker.complaint(packed) is None, checker.complaint(packed)
        return checker.score(packed)

    context = Counted(value, seed=seed, stops=stops)
    assert ScheduleSearch().refuses(problem) is None
    ScheduleSearch().run(problem, context)
    return context


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "IDLE_ROUNDS", 2)
    monkeypatch.setattr(module, "MOST_STEPS", 200)


@settings(max_examples=10, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 14),
    st.integers(1, 5),
    st.integers(0, 2),
    st.sampled_from(list(OBJECTIVES)),
)
def test_answers_are_legal(seed: int, processes: int, units: int, resources: int, objective: str) -> None:
    weights = (("makespan", 3), ("energy", 2)) if objective == "weighted" else ()
    problem = random_problem(seed, processes, units, resources, objective=objective, weights=weights)
    found = searched(problem, seed).best
    assert found is not None
    # the last start was found for another objective, and the search is cut short here: deadlines leave it some room
    end = int(found[problem.count : 2 * problem.count].max()) + 12
    held = replace(problem, deadline=np.full(problem.count, end))
    assert searched(held, seed).best is not None


@pytest.mark.parametrize("objective", NAMES)
def test_nothing_is_below_the_best_there_is(objective: str) -> None:
    """Equal to it on nearly all: what waits without need is not searched beyond gaps."""
    equal = 0
    for seed in range(4):
        problem = random_problem(seed, 3, 2, 1, objective=objective)
        best, found = optimum(problem, 20), searched(problem).value
        assert found >= best
        equal += found == best
    assert equal >= 3


def test_equal_seeds_give_equal_answers() -> None:
    problem = random_problem(4, 30, 5, 0, objective="energy")
    one, two, other = (searched(problem, seed, stops=400) for seed in (1, 1, 2))
    assert (one.best == two.best).all() and not (one.best == other.best).all()


@pytest.mark.parametrize("objective", [*NAMES, "weighted"])
def test_windows_cost_what_the_whole_costs(objective: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run by windows is legal and no worse than its start."""
    monkeypatch.setattr(module, "MANY", 1)
    monkeypatch.setattr(module, "WINDOW", 10)
    weights = (("makespan", 3), ("energy", 2)) if objective == "weighted" else ()
    problem = random_problem(5, 40, 5, 0, objective=objective, weights=weights)
    one, two = (searched(problem, stops=stops) for stops in (1, 60))
    assert two.value <= one.value


def test_ends_of_stretches_are_exact() -> None:
    """Without memory limits, what follows a window takes as long as its longest path to the end."""
    for seed in range(6):
        problem = random_problem(seed, 30, 5, 0)
        problem = replace(problem, units=replace(problem.units, memory=np.full(5, 2**50)))
        g, w = grounded(problem)
        state, v = state_from(problem, heft(problem)), window_of(g)
        open_window(g, state, w, v, 10, 20, EARLIEST, NO_TASTE)
        assert v.crest[0] == w.value[MAKESPAN]
        for i in range(10):
            p = state.order[i]
            assert w.start[p] + v.length[p] <= w.value[MAKESPAN]
        assert max(int(w.start[p] + v.length[p]) for p in range(30)) == w.value[MAKESPAN]


def test_ceilings_are_kept() -> None:
    problem = random_problem(7, 30, 5, 0, objective="makespan")
    values = all_objectives(problem, published(problem))
    limited = replace(problem, objective="energy", ceilings=(("makespan", values["makespan"]),))
    found = searched(limited, stops=400)
    assert found.value < values["energy"]
    hopeless = replace(limited, ceilings=(("makespan", 1.0),))
    assert searched(hopeless).best is None


def test_cpsat_does_not_begin_what_it_could_not_state_in_time() -> None:
    """A model of 43,649 variables takes 2.6 CPU seconds to state: half of 5 s are too few, half of 6 s are not."""
    problem = generate_problem(20, 30, 64, seed=1).problem
    for seconds, begins in ((5.0, False), (6.0, True), (60.0, True)):
        steps, refusals = plan_of(problem, None, seconds)
        assert any(step.engine.name == "schedule-cpsat" for step in steps) is begins
        assert ("to state the model" in refusals.get("schedule-cpsat", "")) is not begins
    for asked in (["schedule-cpsat"], ["auto", "schedule-cpsat"]):
        steps, _ = plan_of(problem, asked, 1.0)
        assert any(step.engine.name == "schedule-cpsat" for step in steps)


def test_cpsat_begins_on_few_processes_however_short_the_run_is() -> None:
    """Three networks of five processes are 1,004 variables."""
    steps, _ = plan_of(generate_problem(3, 5, 6, seed=1).problem, None, 0.5)
    assert any(step.engine.name == "schedule-cpsat" for step in steps)
