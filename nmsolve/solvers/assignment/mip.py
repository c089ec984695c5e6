"""The MIP model of an assignment (:mod:`.rules`), costs and bytes in units that suit the tolerances of MIP solvers."""

from __future__ import annotations

from functools import partial

import numpy as np

from nmsolve.model.assignment.assignment import Assignment
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.types import AnyArray
from nmsolve.solvers.assignment import rules
from nmsolve.solvers.assignment.data import AssignData
from nmsolve.solvers.search.rows import Built, MipRows
from nmsolve.solvers.search.scaling import Scale, fair_unit


def build(data: AssignData, *, start: Assignment | None = None, bound: float = 0.0) -> Built:
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
