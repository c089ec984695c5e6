"""Several objectives of assignments (:mod:`nmsolve.solvers.multi_objective`): the same tables, another one minimised."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial

from nmsolve.check.assignment.recheck import RECHECKS
from nmsolve.hw.assignment.evaluate import all_objectives
from nmsolve.model.assignment.assignment import Assignment
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.bound import Bound, Ceilings, Result, Stage
from nmsolve.solvers.assignment.api import AssignTask
from nmsolve.solvers.assignment.checker import ceiling_complaint
from nmsolve.solvers.multi_objective import better_start
from nmsolve.solvers.run import Options, solve


@dataclass(frozen=True)
class AssignObjectives:
    """The objectives of a problem; ``first`` is an assignment to start from, or None; ``known`` bounds of its own objective."""

    problem: AssignProblem
    options: Options
    first: Assignment | None = None
    known: tuple[Bound, ...] = ()

    @property
    def recomputed(self) -> Collection[str]:
        """Methods with a re-check."""
        return RECHECKS.keys()

    def minimise(
        self, name: str, ceilings: Ceilings, seconds: float, start: Assignment | None
    ) -> tuple[Stage, Result[Assignment]]:
        """Minimise this objective under these ceilings and those that the problem has."""
        problem = replace(self.problem, objective=name, ceilings=(*self.problem.ceilings, *ceilings))
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
        result = solve(AssignTask(problem, start), options)
        return Stage(name, problem.ceilings, problem.content_hash, result.bounds), result

    def value(self, name: str, solution: Assignment) -> float:
        """Return the objective ``name`` of an assignment, by the evaluator."""
        return float(all_objectives(self.problem, solution)[name])
