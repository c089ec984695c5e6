"""Several objectives of schedules (:mod:`nmsolve.solvers.multi_objective`): the same processes, another one minimised."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial

from nmsolve.check.schedule.recheck import RECHECKS
from nmsolve.hw.schedule.evaluate import all_objectives
from nmsolve.model.bound import Bound, Ceilings, Result, Stage
from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule
from nmsolve.solvers.multi_objective import better_start
from nmsolve.solvers.run import Options, solve
from nmsolve.solvers.schedule.api import ScheduleTask
from nmsolve.solvers.schedule.checker import ceiling_complaint


@dataclass(frozen=True)
class ScheduleObjectives:
    """The objectives of a problem; ``first`` is a schedule to start from, or None; ``known`` bounds of its own objective."""

    problem: ScheduleProblem
    options: Options
    first: Schedule | None = None
    known: tuple[Bound, ...] = ()

    @property
    def recomputed(self) -> Collection[str]:
        """Methods with a re-check."""
        return RECHECKS.keys()

    def minimise(
        self, name: str, ceilings: Ceilings, seconds: float, start: Schedule | None
    ) -> tuple[Stage, Result[Schedule]]:
        """Minimise this objective under these ceilings and those that the problem has."""
        weights = self.problem.weights if name == "weighted" else ()
        problem = replace(
            self.problem, objective=name, weights=weights, ceilings=(*self.problem.ceilings, *ceilings)
        )
        start = better_start(
            (start, self.first),
            lambda one: ceiling_complaint(problem, one) is None,
            partial(self.value, name),
        )
        known = self.known if name == self.problem.objective else ()
        options = replace(
            self.options, time_limit=seconds, started=None, known=known, words=not ceilings,
            keep=None if ceilings else self.options.keep,
        )  # fmt: skip
        result = solve(ScheduleTask(problem, start), options)
        return Stage(name, problem.ceilings, problem.content_hash, result.bounds), result

    def value(self, name: str, solution: Schedule) -> float:
        """Return the objective ``name`` of a schedule, by the evaluator."""
        return float(all_objectives(self.problem, solution)[name])
