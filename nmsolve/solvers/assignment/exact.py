"""The exact models of sums and of loads (:mod:`.rules`) and their engines: stated on the assignment, not on its cost network.

For CP-SAT numbers are whole, rounded down only where their sum is beyond 2^50; for MIP solvers costs and bytes are in units that
suit tolerances.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from nmsolve.model.assignment.assignment import Assignment
from nmsolve.model.assignment.network import CostNetwork
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.engine import Context
from nmsolve.model.types import AnyArray
from nmsolve.solvers.assignment import rules
from nmsolve.solvers.assignment.checker import AssignChecker
from nmsolve.solvers.assignment.data import AssignData, assign_data
from nmsolve.solvers.search.exact import Worth, run_model
from nmsolve.solvers.search.incumbent import judge
from nmsolve.solvers.search.rows import Built, CpSatRows, MipRows
from nmsolve.solvers.search.scaling import OBJECTIVE_LIMIT, Scale, fair_unit
from nmsolve.solvers.search.write_model import require_statable

#: Clauses are in the linear relaxation: with it alone resnet50 on three processors is proved in 0.3 s, without them not in 45 s.
LEVEL = 2


def cpsat_model(data: AssignData, *, start: Assignment | None = None, bound: float = 0.0) -> Built:
    """State the problem for CP-SAT.

    Parameters
    ----------
    start : an assignment to begin with, as a hint
    bound : a proven lower bound on the objective, added as a row
    """
    rows, amounts = CpSatRows(), whole_numbers(data.problem)
    v = rules.make_variables(rows, data, amounts)
    for rule in rules.RULES:
        rule(rows, data, amounts, v)
    costs = amounts.energy if data.problem.objective == "energy" else amounts.time
    claim = Scale(costs.factor, costs.exact, integral=True)
    rules.ceilings(
        rows, data, amounts, v, lambda costs, most: Scale(costs.factor, costs.exact, True).ceiling_row(most)
    )
    goal = rules.objective(rows, data, amounts, v, 0, OBJECTIVE_LIMIT)
    least = claim.floor_row(bound)
    if least is not None:
        rows.add(goal >= least)
    rows.minimise(goal)
    if start is not None:
        rules.hint(rows, data, v, start)
    return Built(rows.model, claim, partial(rules.answer_of, data, v), data, v, level=LEVEL)


def whole_numbers(problem: AssignProblem) -> rules.Amounts:
    """Return the problem's costs as they are, or divided by a power of two: then what is paid is rounded down, what is gained up,
    so that no assignment costs more in the model than in truth."""
    flows, groups = problem.flows, problem.groups
    return rules.Amounts(
        time=_whole(problem.time, flows.time, groups.time),
        energy=_whole(problem.energy, flows.energy, groups.energy),
        room=1.0,
    )


def _whole(run: AnyArray, moved: AnyArray, gain: AnyArray) -> rules.Costs:
    total = float(run.max(axis=1).astype(float).sum() + moved.astype(float).sum())
    shift = max(0, int(np.ceil(np.log2(max(1.0, total) / OBJECTIVE_LIMIT))))
    run = np.maximum(run, 0)
    return rules.Costs(run >> shift, moved >> shift, -(-gain >> shift), 2.0**-shift, shift == 0)


def mip_model(data: AssignData, *, start: Assignment | None = None, bound: float = 0.0) -> Built:
    """State the problem in Pyomo.

    Parameters
    ----------
    start : an assignment to begin with
    bound : a proven lower bound on the objective, added as a row
    """
    rows, amounts = MipRows("assignment"), fair_numbers(data.problem)
    rows.rule("variables")
    v = rules.make_variables(rows, data, amounts)
    for rule in rules.RULES:
        rows.rule(rule.__name__)
        rule(rows, data, amounts, v)
    rows.rule("ceilings")
    rules.ceilings(rows, data, amounts, v, lambda costs, most: most * costs.factor * (1 + 1e-9) + 1e-9)
    rows.rule("loads")
    goal = rules.objective(rows, data, amounts, v, 0.0, np.inf)
    rows.minimise(goal)
    costs = amounts.energy if data.problem.objective == "energy" else amounts.time
    if bound > 0:
        rows.rule("at_least")
        rows.add(goal >= bound * costs.factor * (1 - 1e-9))
    if start is not None:
        rules.hint(rows, data, v, start)
    claim = Scale(costs.factor, exact=False, integral=True)
    return Built(rows.model, claim, partial(rules.answer_of, data, v), data, v)


def fair_numbers(problem: AssignProblem) -> rules.Amounts:
    """Return costs times a power of two that brings the largest to about a thousand, and bytes in parts of the largest limit."""
    flows, groups, capacity = problem.flows, problem.groups, problem.units.capacity
    return rules.Amounts(
        time=_fair(problem.time, flows.time, groups.time),
        energy=_fair(problem.energy, flows.energy, groups.energy),
        room=max(1.0, float(capacity[np.isfinite(capacity)].max(initial=1.0))),
    )


def _fair(run: AnyArray, moved: AnyArray, gain: AnyArray) -> rules.Costs:
    unit = fair_unit(float(max(run.max(initial=0), moved.max(initial=0))))
    return rules.Costs(np.maximum(run, 0) * unit, moved * unit, gain * unit, unit, unit == 1.0)


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
    return mip_model(data), cpsat_model(data)


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
        built = cpsat_model(assign_data(problem), start=_start(problem, context), bound=context.bound())
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
        built = mip_model(assign_data(problem), start=_start(problem, context), bound=context.bound())
        run_model(built, "highs", self.name, context, worth(problem))


def _start(problem: AssignProblem, context: Context) -> Assignment | None:
    known, _ = context.incumbent()
    return None if known is None else Assignment.unpacked(problem, known)
