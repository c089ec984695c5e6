"""The MIP model of routes and prohibited turns (:mod:`.rules`): rates times one power of two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nmsolve.model.routing.stage import RoutingStage
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.routing.data import RouteData
from nmsolve.solvers.routing.referee import MISSING
from nmsolve.solvers.routing.rules import Variables, measure, stated
from nmsolve.solvers.search.rows import MipRows
from nmsolve.solvers.search.scaling import Scale, fair_unit


@dataclass(frozen=True, eq=False)
class RouteMipModel:
    """A built Pyomo model; ``mapping`` reads a solution of ``stage`` from the values of :meth:`read`."""

    model: Any
    stage: RoutingStage
    data: RouteData
    v: Variables
    claim: Scale

    def read(self) -> list[Any]:
        """Variables of trees, then those of channels in order."""
        return [x for tree in self.v.tree for x in tree.values()] + list(self.v.order.values())

    def mapping(self, values: FloatArray) -> IntArray:
        """The channels of trees, and numbers that allow every turn the model allows."""
        used, at = [], 0
        for tree in self.v.tree:
            used.append([c for c, on in zip(tree, values[at : at + len(tree)] > 0.5, strict=True) if on])
            at += len(tree)
        allowed = [ab for ab, on in zip(self.v.order, values[at:] > 0.5, strict=True) if on]
        return self.data.solution(self.stage, used, allowed)

    def first(self) -> FloatArray | None:
        """No start: HiGHS completes none that leaves numbers of channels open."""
        return None


def build(stage: RoutingStage, *, bound: float = 0.0) -> RouteMipModel:
    """State ``stage`` in Pyomo; ``bound`` is a proven lower bound, added as a row. The objective ``reward`` is not linear."""
    rows, data = MipRows("routes"), RouteData(stage.problem)
    v, rates = stated(rows, data), stage.problem.flows.rate
    unit = fair_unit(float(rates.max(initial=0.0)))

    def measured(name: str) -> tuple[Any, float]:
        """The objective ``name`` in the model, and how much of that is one of the user's."""
        counts = name in ("turns", MISSING)
        return measure(rows, stage, data, v, name, rates * unit), 1.0 if counts else unit

    for name, most in stage.ceilings:
        cost, factor = measured(name)
        rows.rule("ceilings")
        rows.add(cost <= most * factor * (1 + 1e-9) + 1e-6)
    cost, factor = measured(stage.objective)
    rows.minimise(cost)
    if bound > 0:
        rows.rule("at_least")
        rows.add(cost >= bound * factor * (1 - 1e-9))
    integral = stage.objective in ("turns", MISSING) or stage.problem.integral
    return RouteMipModel(rows.model, stage, data, v, Scale(factor, False, integral))
