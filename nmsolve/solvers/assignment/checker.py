"""How the search judges assignments and strategies: every rule as it is stated, ceilings by the evaluator, the objective."""

from __future__ import annotations

from nmsolve.hw.assignment.evaluate import all_objectives, objective
from nmsolve.model.assignment.assignment import Assignment, assignment_complaint, packed_size
from nmsolve.model.assignment.network import CostNetwork, network_complaint, network_cost
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.search.checker import AsStated, over_ceiling


class AssignChecker(AsStated):
    """Implements :class:`nmsolve.solvers.search.checker.Checker`; solutions are :meth:`Assignment.packed`."""

    def __init__(self, problem: AssignProblem) -> None:
        self.problem = problem
        self.size = packed_size(problem)

    def complaint(self, lifted: IntArray) -> str | None:
        """Return the first broken rule of the assignment (packed, one-dimensional), or None."""
        if lifted.shape != (self.size,):
            return f"{lifted.shape} numbers for {self.size}"
        fused = lifted[self.problem.count : self.problem.count + self.problem.groups.count]
        if ((fused < 0) | (fused > 1)).any():
            return f"groups are fused (1) or not (0), not {fused[(fused < 0) | (fused > 1)][0]}"
        answer = Assignment.unpacked(self.problem, lifted)
        return assignment_complaint(self.problem, answer) or ceiling_complaint(self.problem, answer)

    def score(self, lifted: IntArray) -> float:
        """Return the problem's objective; ``lifted`` (size,)."""
        return float(objective(self.problem, Assignment.unpacked(self.problem, lifted)))


class NetworkChecker(AsStated):
    """The same for cost networks; solutions are (N,) strategies."""

    def __init__(self, network: CostNetwork) -> None:
        self.problem = network
        self.size = network.count

    def complaint(self, lifted: IntArray) -> str | None:
        """Return the first broken rule of the strategies, or None."""
        return network_complaint(self.problem, lifted)

    def score(self, lifted: IntArray) -> float:
        """Return what the strategies (N,) cost."""
        return float(network_cost(self.problem, lifted))


def ceiling_complaint(problem: AssignProblem, answer: Assignment) -> str | None:
    """Return which ceiling on another objective a legal assignment exceeds, or None."""
    return over_ceiling(problem.ceilings, lambda: all_objectives(problem, answer))
