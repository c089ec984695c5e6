"""Every compiled kernel of schedules run as plain Python on small problems: there an index out of bounds is an error.

Compiled, it reads or writes whatever is beside the array. Run in a process of its own by ``test_schedule_kernels.py``:
``NUMBA_DISABLE_JIT=1 python tests/kernels_in_python.py``."""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace

import numpy as np
from numba.core import config
from schedule_support import random_problem
from search_fakes import QuietContext

from nmsolve.heuristics.schedule import search as general
from nmsolve.heuristics.schedule.genetic import ActivityLists
from nmsolve.heuristics.schedule.rules import heft, peft, published
from nmsolve.heuristics.schedule.search import ScheduleSearch
from nmsolve.heuristics.schedule.tabu import TabuBlocks
from nmsolve.hw.schedule.simulator import difference, noisy_runs, queues_of, simulate
from nmsolve.model.schedule.problem import NEVER, Items, Modes, ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule
from nmsolve.solvers.schedule.api import ScheduleChecker
from nmsolve.solvers.schedule.bounds import ScheduleCounting


class Looks(QuietContext):
    """Stops after some looks at the clock; every schedule that is offered must be legal."""

    def __init__(self, problem: ScheduleProblem, looks: int) -> None:
        super().__init__()
        self.checker, self.left, self.offers = ScheduleChecker(problem), looks, 0

    def should_stop(self) -> bool:
        self.left -= 1
        return self.left < 0

    def offer(self, core: np.ndarray, move: str = "") -> bool:
        assert self.checker.complaint(core) is None, (move, self.checker.complaint(core))
        self.offers += 1
        if self.checker.score(core) < self.value:
            self.best, self.value = core, self.checker.score(core)
        return True


def shop(problem: ScheduleProblem) -> ScheduleProblem:
    """The problem with processes on one unit each, and no items."""
    single = int(np.flatnonzero(np.diff(problem.sets.indptr) == 1)[0])
    m, none = problem.modes, np.zeros(0, np.int64)
    one = np.diff(problem.sets.indptr)[m.unit_set] == 1
    modes = replace(
        m, unit_set=np.where((m.unit_set >= 0) & one, m.unit_set, single), item=np.full(m.count, -1)
    )
    units = replace(problem.units, memory=np.full(problem.units.count, NEVER))
    return replace(problem, modes=modes, items=Items((), none, none, none, none), units=units)


def project(problem: ScheduleProblem) -> ScheduleProblem:
    """The problem with one mode of every process, and without units for it."""
    m = problem.modes
    first = m.first[:-1]
    none = np.full(len(first), -1)
    modes = Modes(
        np.arange(len(first) + 1), m.span[first], none, m.demand[first], m.energy[first], none, np.zeros(len(first), np.int64)
    )  # fmt: skip
    empty = np.zeros(0, np.int64)
    return replace(problem, modes=modes, items=Items((), empty, empty, empty, empty))


def run(engine: object, problem: ScheduleProblem, looks: int) -> None:
    """Run an engine for a short while; it must find something."""
    assert engine.refuses(problem) is None, engine.name
    context = Looks(problem, looks)
    engine.run(problem, context)
    assert engine.finds == "bounds" or context.offers, engine.name


def main() -> int:
    """Run everything; 1 if kernels are compiled here."""
    if not config.DISABLE_JIT:
        print("NUMBA_DISABLE_JIT=1 is not set")
        return 1
    warnings.filterwarnings(
        "ignore", "overflow encountered", RuntimeWarning
    )  # random numbers wrap around on purpose
    for seed, objective in enumerate(("makespan", "energy", "tardiness", "idle")):
        problem = random_problem(seed, 9, 4, seed % 2, objective=objective)
        for rule in (published, heft, peft):
            answer = rule(problem)
            queues = queues_of(problem, answer)
            assert difference(problem, answer, simulate(problem, answer, queues)) is None
        noisy_runs(problem, answer, queues, 0.3, 2)
        run(ScheduleCounting(), problem, 10**9)
        general.STEPS, general.SAMPLE = 4, 40
        run(ScheduleSearch(), problem, 8)
        assert isinstance(answer, Schedule)
    general.MANY, general.WINDOW = 8, 6
    for seed in (11, 12):
        run(ScheduleSearch(), random_problem(seed, 14, 3, 0, objective=("makespan", "energy")[seed % 2]), 9)
    run(TabuBlocks(), shop(random_problem(21, 9, 3, 0)), 5)
    run(ActivityLists(), project(random_problem(31, 7, 3, 2)), 5)
    print("every index was within its array")
    return 0


if __name__ == "__main__":
    sys.exit(main())
