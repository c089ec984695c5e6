"""The Pyomo model of mapping, put together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.mapping.exact import rules
from nmsolve.solvers.mapping.exact.data import ExactData, exact_data
from nmsolve.solvers.mapping.mip.distances import DISTANCES, MipVariables, make_variables
from nmsolve.solvers.search.rows import MipRows
from nmsolve.solvers.search.scaling import Scale


@dataclass(frozen=True, eq=False)
class MipModel:
    """A built Pyomo model with its data and, if one was given, the start mapping the symmetry rows allow.

    ``unit``: the model's objective per unit of the user's.
    """

    model: Any
    data: ExactData
    v: MipVariables
    start: IntArray | None
    unit: float

    @property
    def claim(self) -> Scale:
        """What the model's objective says of the problem's."""
        return Scale(self.unit, False, self.data.integral)

    def read(self) -> list[Any]:
        """The variables that make a mapping: ``x``, node by node."""
        return [x for xs in self.v.x for x in xs]

    def mapping(self, values: FloatArray) -> IntArray:
        """(n,) cores from the values of :meth:`read`: the largest entry of every node."""
        out: IntArray = np.argmax(values.reshape(self.data.n, self.data.cores), axis=1).astype(np.int64)
        return out

    def first(self) -> FloatArray | None:
        """Values of :meth:`read` of the start, or None."""
        if self.start is None:
            return None
        flat = np.zeros(self.data.n * self.data.cores)
        flat[np.arange(self.data.n) * self.data.cores + self.start] = 1.0
        return flat


def build(
    problem: MappingProblem,
    *,
    start: IntArray | None = None,
    bound: float = 0.0,
    break_symmetry: bool = True,
) -> MipModel:
    """State ``problem`` in Pyomo.

    Parameters
    ----------
    start : a feasible mapping (n,); it is reflected into the symmetry rows and becomes the values of ``x``
    bound : a proven lower bound on the objective, added as a row
    break_symmetry : False states the bare problem

    Raises
    ------
    InputError : the machine's distances cannot be computed (dead links cut it in two)
    """
    data, rows = exact_data(problem), MipRows("mapping")
    v = make_variables(rows, data)
    for rule in (*rules.RULES, *DISTANCES, *rules.MEASURES, *rules.HINTS, rules.star_rows):
        rows.rule(rule.__name__)
        rule(rows, data, v)
    start = rules.break_symmetry(rows, data, v, start) if break_symmetry else start
    unit, cost = rules.unit_of(data), rules.total_cost(rows, data, v)
    rows.minimise(unit * cost)
    row = data.claim.floor_row(bound)
    if row is not None:
        rows.rule("at_least")
        rows.add(unit * cost >= unit * row / data.scale)
    if start is not None:
        for u, xs in enumerate(v.x):
            for p, x in enumerate(xs):
                x.set_value(int(start[u] == p))
    return MipModel(rows.model, data, v, start, unit)
