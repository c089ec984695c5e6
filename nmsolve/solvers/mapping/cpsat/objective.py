"""Objective of the CP-SAT model of mapping."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nmsolve.solvers.mapping.cpsat.constraints import net_length
from nmsolve.solvers.mapping.cpsat.variables import Variables, dot, pair_distance, total
from nmsolve.solvers.mapping.exact.data import ExactData

if TYPE_CHECKING:
    from ortools.sat.python import cp_model


def total_cost(data: ExactData, v: Variables) -> Any:
    """Traffic times distance, plus the nets: ``sum_e w_e d_e + sum_i rate_i (step (sum_p present_i[p] - 1) + length_i)``.

    The whole-number weights and their rounding are stated in :mod:`nmsolve.solvers.search.scaling`.
    """
    parts = [dot(data.weight, [pair_distance(data, v, e) for e in range(data.edges)])]
    for net, nv in zip(data.nets, v.nets, strict=True):
        parts.append(dot([net.rate * data.step], [total(nv.present) - 1]))
        if data.spans:
            parts.append(dot([net.rate], [net_length(data, nv)]))
    return total(parts)


def minimise(model: cp_model.CpModel, data: ExactData, v: Variables) -> None:
    """Minimise :func:`total_cost`."""
    model.minimize(total_cost(data, v))


def at_least(model: cp_model.CpModel, data: ExactData, v: Variables, bound: float) -> None:
    """A lower bound proven elsewhere as a row: ``total cost >= bound`` (only where the data are exact)."""
    row, cost = data.claim.floor_row(bound), total_cost(data, v)
    if row is not None and not isinstance(cost, int):
        model.add(cost >= row)


def at_most(model: cp_model.CpModel, data: ExactData, v: Variables, value: int) -> None:
    """Nothing worse than a known mapping: ``total cost <= its model objective``."""
    cost = total_cost(data, v)
    if not isinstance(cost, int):
        model.add(cost <= value)
