"""The exact models of sums and of loads as engines; they are stated on the assignment itself, not on its cost network."""

from __future__ import annotations

from nmsolve.model.assignment.assignment import Assignment
from nmsolve.model.assignment.network import CostNetwork
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.engine import Context
from nmsolve.solvers.assignment import cpsat, mip
from nmsolve.solvers.assignment.checker import AssignChecker
from nmsolve.solvers.assignment.data import assign_data
from nmsolve.solvers.search.exact import Worth, run_model
from nmsolve.solvers.search.incumbent import judge
from nmsolve.solvers.search.rows import Built
from nmsolve.solvers.search.write_model import require_statable

#: Most variables of a model, about, for CP-SAT and for HiGHS.
MAX_VARIABLES, MAX_MIP_VARIABLES = 300_000, 60_000


def refusal(problem: AssignProblem | CostNetwork, most: int) -> str | None:
    """Return why a model of ``most`` variables does not take the problem, or None."""
    if isinstance(problem, CostNetwork):
        return "takes assignments, not cost networks"
    if problem.objective == "makespan" or any(name == "makespan" for name, _ in problem.ceilings):
        return "states no schedule, which the makespan needs"
    size = assign_data(problem).size
    return f"a model of about {size} variables, the limit is {most}" if size > most else None


def models(problem: AssignProblem) -> tuple[Built, Built]:
    """Return the twin models (MIP, CP-SAT), to be written to files.

    Raises
    ------
    InputError : too large, or a makespan
    """
    require_statable(refusal(problem, MAX_VARIABLES))
    data = assign_data(problem)
    return mip.build(data), cpsat.build(data)


def worth(problem: AssignProblem) -> Worth:
    """Return what says how good a packed solution is; inf where it breaks a rule or a ceiling."""
    checker = AssignChecker(problem)
    return lambda solution: judge(checker, solution)[2]


class AssignCpSat:
    """Exact assignments by OR-Tools CP-SAT; runs in a child process."""

    name = "assign-cpsat"
    finds = "both"

    def refuses(self, problem: AssignProblem | CostNetwork) -> str | None:
        """Makespans, and what is too large."""
        return refusal(problem, MAX_VARIABLES)

    def run(self, problem: AssignProblem, context: Context) -> None:
        """Solve the model; assignments and bounds are forwarded as they come. CP-SAT's own status is the certificate."""
        built = cpsat.build(assign_data(problem), start=_start(problem, context), bound=context.bound())
        run_model(built, "cpsat", self.name, context, worth(problem))


class AssignHighs:
    """Exact assignments by HiGHS, a second opinion; runs in a child process."""

    name = "assign-highs"
    finds = "both"

    def refuses(self, problem: AssignProblem | CostNetwork) -> str | None:
        """Makespans, and what is too large."""
        return refusal(problem, MAX_MIP_VARIABLES)

    def run(self, problem: AssignProblem, context: Context) -> None:
        """Solve the model; assignments are forwarded as they come, the bound is the one that HiGHS states at the end."""
        built = mip.build(assign_data(problem), start=_start(problem, context), bound=context.bound())
        run_model(built, "highs", self.name, context, worth(problem))


def _start(problem: AssignProblem, context: Context) -> Assignment | None:
    known, _ = context.incumbent()
    return None if known is None else Assignment.unpacked(problem, known)
