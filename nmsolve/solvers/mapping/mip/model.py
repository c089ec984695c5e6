"""The Pyomo model of mapping, put together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.mapping.exact.data import ExactData, exact_data
from nmsolve.solvers.mapping.exact.symmetry import board_symmetry, cores_alike, first_come
from nmsolve.solvers.mapping.mip import constraints as rules
from nmsolve.solvers.mapping.mip import nets
from nmsolve.solvers.mapping.mip.objective import at_least, minimise, unit_of
from nmsolve.solvers.mapping.mip.symmetry import cores_in_order, heaviest_node_in_one_part
from nmsolve.solvers.mapping.mip.variables import add_variables
from nmsolve.solvers.search.scaling import Scale

#: The rules of the problem: a mapping is feasible if and only if it obeys these.
RULES = (
    rules.one_core_per_node,
    rules.usable_cores_only,
    rules.capacity,
    rules.pin,
    rules.region,
    rules.forbid,
    rules.apart,
    rules.migration,
    rules.axon_tables,
)
#: What ties distances and nets to the mapping.
MEASURES = (
    rules.cut_lines,
    rules.crossings,
    rules.flows,
    rules.on_different_cores,
    nets.net_presence,
    nets.net_routes,
)
#: Valid rows that follow from the others and tighten the relaxation.
STRENGTHENERS = (
    rules.least_distances,
    rules.company,
    rules.star_rows,
    rules.triangle_rows,
    nets.net_links,
)


@dataclass(frozen=True, eq=False)
class MipModel:
    """A built Pyomo model with its data and, if one was given, the start mapping the symmetry rows allow.

    ``unit``: the model's objective per unit of the user's.
    """

    model: Any
    data: ExactData
    start: IntArray | None
    unit: float

    @property
    def claim(self) -> Scale:
        """What the model's objective says of the problem's."""
        return Scale(self.unit, False, self.data.integral)

    def read(self) -> list[Any]:
        """The variables that make a mapping: ``x``, node by node."""
        return [self.model.x[u, p] for u in range(self.data.n) for p in range(self.data.cores)]

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
    import pyomo.environ as pyo

    data = exact_data(problem)
    model = pyo.ConcreteModel(name="mapping")
    add_variables(model, data)
    for rule in (*RULES, *MEASURES, *STRENGTHENERS):
        rule(model, data)
    start = _break_symmetry(model, data, start) if break_symmetry else start
    unit = unit_of(data)
    minimise(model, data, unit)
    at_least(model, data, bound, unit)
    if start is not None:
        for u in range(data.n):
            for p in range(data.cores):
                model.x[u, p].set_value(int(start[u] == p))
    return MipModel(model, data, start, unit)


def _break_symmetry(model: Any, data: ExactData, start: IntArray | None) -> IntArray | None:
    """Add the symmetry rows that hold here; return ``start`` moved to where they allow it."""
    if cores_alike(data):
        cores_in_order(model, data)
        return None if start is None else first_come(data, start)
    symmetry = board_symmetry(data)
    if symmetry is None:
        return start
    heaviest_node_in_one_part(model, data, symmetry)
    return None if start is None else symmetry.reflect(start)
