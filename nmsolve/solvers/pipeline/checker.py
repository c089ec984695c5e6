"""How the search judges plans: every rule as it is stated, and the largest load, recomputed."""

from __future__ import annotations

from nmsolve.hw.pipeline.stages import held_complaint, objective
from nmsolve.model.pipeline.check import plan_complaint
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import IntArray


def complaint(problem: PipelineProblem, plan: PipelinePlan) -> str | None:
    """Return the first rule that a plan breaks, or what it has too much of where another goal is held; None."""
    return plan_complaint(problem, plan) or held_complaint(problem, plan)


class PipelineChecker:
    """Implements :class:`nmsolve.solvers.search.checker.Checker`; solutions are :meth:`PipelinePlan.packed`."""

    def __init__(self, problem: PipelineProblem) -> None:
        self.problem = problem
        self.size = problem.count + problem.slots

    @property
    def lattice(self) -> float:
        """None: loads are any numbers."""
        return 0.0

    def lift(self, solution: IntArray) -> IntArray:
        """Return ``solution`` (L + slots,) as it is."""
        return solution

    def complaint(self, lifted: IntArray) -> str | None:
        """Return the first broken rule of the plan (packed, one-dimensional), or None."""
        cores = lifted[self.problem.count :]
        if (cores < -1).any() or ((cores[:-1] < 0) & (cores[1:] >= 0)).any():
            return f"groups of {cores.tolist()} cores; unused stages are -1 and come last"
        return complaint(self.problem, PipelinePlan.unpacked(self.problem, lifted))

    def score(self, lifted: IntArray) -> float:
        """Return the largest load of a stage; ``lifted`` (L + slots,)."""
        return objective(self.problem, PipelinePlan.unpacked(self.problem, lifted))
