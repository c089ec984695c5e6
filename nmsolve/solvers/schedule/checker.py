"""How the search judges schedules: every rule as it is stated, ceilings by the evaluator, the objective."""

from __future__ import annotations

from nmsolve.hw.schedule.evaluate import all_objectives, objective
from nmsolve.model.schedule.check import schedule_complaint
from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule
from nmsolve.model.types import IntArray
from nmsolve.solvers.search.checker import AsStated, over_ceiling


class ScheduleChecker(AsStated):
    """Implements :class:`nmsolve.solvers.search.checker.Checker`; solutions are :meth:`Schedule.packed`."""

    def __init__(self, problem: ScheduleProblem) -> None:
        self.problem = problem
        self.size = 3 * problem.count

    def complaint(self, lifted: IntArray) -> str | None:
        """Return the first broken rule of the schedule (packed, one-dimensional), or None."""
        if lifted.shape != (self.size,):
            return f"{lifted.shape} numbers for {self.size}"
        loaded = lifted[2 * self.problem.count :]
        if ((loaded < 0) | (loaded > 1)).any():
            return f"a process loads (1) or does not (0), not {loaded[(loaded < 0) | (loaded > 1)][0]}"
        answer = Schedule.unpacked(lifted)
        return schedule_complaint(self.problem, answer) or ceiling_complaint(self.problem, answer)

    def score(self, lifted: IntArray) -> float:
        """Return the problem's objective; ``lifted`` (size,)."""
        return float(objective(self.problem, Schedule.unpacked(lifted)))


def ceiling_complaint(problem: ScheduleProblem, answer: Schedule) -> str | None:
    """Return which ceiling on another objective a legal schedule exceeds, or None."""
    return over_ceiling(problem.ceilings, lambda: all_objectives(problem, answer))
