"""The MIP model of routes and prohibited turns (:mod:`.rules`): rates times one power of two."""

from __future__ import annotations

from functools import partial
from typing import Any

from nmsolve.model.routing.stage import RoutingStage
from nmsolve.solvers.routing.checker import MISSING
from nmsolve.solvers.routing.data import RouteData
from nmsolve.solvers.routing.rules import measure, read, stated
from nmsolve.solvers.search.rows import Built, MipRows
from nmsolve.solvers.search.scaling import Scale, fair_unit


def build(stage: RoutingStage, *, bound: float = 0.0) -> Built:
    """State ``stage`` in Pyomo; ``bound`` is a proven lower bound, added as a row. The objective ``reward`` is not linear.

    It takes no start: HiGHS completes none that leaves numbers of channels open.
    """
    rows, data = MipRows("routes"), RouteData(stage.problem)
    v, rates = stated(rows, data), stage.problem.flows.rate
    unit = fair_unit(float(rates.max(initial=0.0)))

    def measured(name: str) -> tuple[Any, float]:
        """Return the objective ``name`` in the model, and how much of that is one of the user's."""
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
    return Built(rows.model, Scale(factor, False, integral), partial(read, stage, data, v), data, v)
