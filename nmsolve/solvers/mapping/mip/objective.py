"""Objective of the Pyomo model of mapping."""

from __future__ import annotations

from typing import Any

from nmsolve.solvers.mapping.exact.data import ExactData
from nmsolve.solvers.mapping.mip.nets import net_length
from nmsolve.solvers.mapping.mip.variables import pair_distance
from nmsolve.solvers.search.scaling import fair_unit


def total_cost(model: Any, data: ExactData) -> Any:
    """Traffic times distance, plus the nets, in the user's units.

    ``sum_e w_e d_e + sum_i rate_i (step (sum_p present_i[p] - 1) + length_i)``; weights rounded down where
    :mod:`nmsolve.solvers.search.scaling` had to round, so that the twins state the same problem.
    """
    w, step = data.weight / data.weight_factor, data.step / data.distance_factor
    cost: Any = 0.0 * model.x[0, 0]  # keeps the expression linear in a variable even where cost is constant
    cost += sum(float(w[e]) * pair_distance(model, data, e) for e in range(data.edges))
    for i, net in enumerate(data.nets):
        rate = net.rate / data.weight_factor
        if step:
            cost += rate * step * (sum(model.present[i, p] for p in range(data.cores)) - 1)
        if data.spans:
            cost += rate * net_length(model, data, i)
    return cost


def unit_of(data: ExactData) -> float:
    """What the objective is multiplied with so that its largest term is of a size that solvers work well with."""
    heaviest = max([int(data.weight.max(initial=0)), *(net.rate for net in data.nets)])
    return fair_unit(heaviest / data.weight_factor * int(data.dense.max(initial=0)) / data.distance_factor)


def minimise(model: Any, data: ExactData, unit: float) -> None:
    """Minimise :func:`total_cost` times ``unit``."""
    import pyomo.environ as pyo

    model.cost = pyo.Objective(expr=unit * total_cost(model, data), sense=pyo.minimize)


def at_least(model: Any, data: ExactData, bound: float, unit: float) -> None:
    """A lower bound proven elsewhere as a row: ``total cost >= bound`` (only where the data are exact), times ``unit``."""
    import pyomo.environ as pyo

    row = data.claim.floor_row(bound)
    if row is not None:
        model.at_least = pyo.Constraint(expr=model.cost.expr >= unit * row / data.scale)
