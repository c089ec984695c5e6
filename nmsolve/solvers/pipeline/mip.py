"""The MIP model of a pipeline (:mod:`.rules`), times in a unit of its own.

HiGHS takes what differs by 1e-6 for equal, whatever the numbers mean; so times are multiplied by a power of two that makes the
even share of all work about :data:`SHARE`.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.solvers.pipeline import rules
from nmsolve.solvers.pipeline.data import PipelineData
from nmsolve.solvers.search.rows import Built, MipRows
from nmsolve.solvers.search.scaling import Scale

#: The binary exponent of the times.
SHARE = 8


def build(
    data: PipelineData, *, start: PipelinePlan | None = None, bound: float = 0.0, below: float = np.inf
) -> Built:
    """State the problem in Pyomo.

    Parameters
    ----------
    start : a plan to begin with
    bound : a proven lower bound on the objective
    below : only plans with a lower value are of interest; the model may hold those of this very value
    """
    unit, most = unit_for(data), data.problem.memory
    room = 1.0 if most is None else max(most, 1e-300)  # storage is counted in memories of a core
    host = np.where(np.isfinite(data.host), data.host, 0.0)
    amounts = rules.Amounts(
        data.time * unit, host * unit, data.cost * unit, data.storage / room, (most or 0.0) / room
    )
    rows, below = MipRows("pipeline"), below * unit
    v = rules.make_variables(rows, data, bound * unit * (1 - 1e-9), below)
    for rule in rules.RULES:
        rows.rule(rule.__name__)
        rule(rows, data, amounts, v)
    rules.packing(rows, data, amounts, v, below * (1 + 1e-9))
    rows.minimise(v.worst)
    if start is not None:
        rules.hint(rows, data, v, start)
    claim = Scale(unit, exact=False, integral=False)
    return Built(rows.model, claim, partial(rules.plan_of, data, v), data, v)


def unit_for(data: PipelineData) -> float:
    """Return the power of two that brings the largest of all times and the even share of the work to about :data:`SHARE`."""
    least = np.minimum(data.area, data.host)
    top = max(
        float(least.sum()) / (data.most_cores + data.problem.hosts), float(data.time[:, -1].max(initial=0.0))
    )
    top = max(top, float(data.cost.max(initial=0.0)))
    return math.ldexp(1.0, max(-900, min(900, SHARE - math.frexp(top)[1]))) if top > 0 else 1.0
