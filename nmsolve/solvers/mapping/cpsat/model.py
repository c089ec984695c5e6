"""The CP-SAT model of mapping, put together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.cpsat import constraints as rules
from nmsolve.solvers.mapping.cpsat.hint import hint_mapping
from nmsolve.solvers.mapping.cpsat.objective import at_least, at_most, minimise
from nmsolve.solvers.mapping.cpsat.symmetry import cores_in_order, heaviest_node_in_one_part
from nmsolve.solvers.mapping.cpsat.variables import Variables, make_variables
from nmsolve.solvers.mapping.exact.data import ExactData, exact_data
from nmsolve.solvers.mapping.exact.symmetry import board_symmetry, cores_alike, first_come
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
    rules.positions,
    rules.axis_distances,
    rules.matrix_distances,
    rules.on_different_cores,
    rules.net_presence,
    rules.net_routes,
)
#: Valid rows that follow from the others and are cheap to carry.
HINTS = (rules.least_distances, rules.company, rules.triangle_rows, rules.net_links)
#: Valid rows that lift the relaxation. They slow a search that would end anyway (nine nodes, all talking, on
#: 3x3: 1.3 s without, 12 s with them) and are the only bound where it would not.
STRENGTHENERS = (rules.star_rows,)
#: Up to 10 to this power mappings, CP-SAT searches without the strengtheners.
SMALL_SEARCH = 7.0


@dataclass(frozen=True, eq=False)
class MappingModel:
    """A built model: the proto behind ``model``, its variables, and how to read a mapping from it."""

    model: Any
    data: ExactData
    variables: Variables

    @property
    def claim(self) -> Scale:
        """What the model's objective says of the problem's."""
        return self.data.claim

    def mapping(self, value: Any) -> IntArray:
        """(n,) core of every node; ``value(x)`` tells the value of a Boolean variable."""
        out = np.zeros(self.data.n, np.int64)
        for u, xs in enumerate(self.variables.x):
            out[u] = next(p for p, x in enumerate(xs) if value(x))
        return out


def build(
    problem: MappingProblem,
    *,
    start: IntArray | None = None,
    bound: float = 0.0,
    break_symmetry: bool = True,
) -> MappingModel:
    """State ``problem`` for CP-SAT.

    Parameters
    ----------
    start : a feasible mapping (n,), reflected into the symmetry rows, hinted, and an upper limit
    bound : a proven lower bound on the objective, added as a row
    break_symmetry : False states the bare problem

    Raises
    ------
    InputError : the machine's distances cannot be computed (dead links cut it in two)
    """
    from ortools.sat.python import cp_model

    data = exact_data(problem)
    model = cp_model.CpModel()
    v = make_variables(model, data)
    strengtheners = STRENGTHENERS if mapping_digits(data) > SMALL_SEARCH else ()
    for rule in (*RULES, *MEASURES, *HINTS, *strengtheners):
        rule(model, data, v)
    start = _break_symmetry(model, data, v, start) if break_symmetry else start
    minimise(model, data, v)
    at_least(model, data, v, bound)
    if start is not None:
        hint_mapping(model, data, v, start)
        at_most(model, data, v, data.value(start))
    return MappingModel(model, data, v)


def mapping_digits(data: ExactData) -> float:
    """Decimal digits of the number of mappings: of ``P! / (P - n)!`` with one node per core, else of ``P^n``.

    P is the number of usable cores; the count is an upper estimate, 0 if there is no mapping.
    """
    usable = int(data.problem.machine.usable.sum())
    free = usable - np.arange(data.n) if data.problem.one_per_core else np.full(data.n, usable)
    return float(np.log10(np.maximum(free, 1)).sum())


def _break_symmetry(model: Any, data: ExactData, v: Variables, start: IntArray | None) -> IntArray | None:
    """Add the symmetry rows that hold here; return ``start`` moved to where they allow it."""
    if cores_alike(data):
        cores_in_order(model, data, v)
        return None if start is None else first_come(data, start)
    symmetry = board_symmetry(data)
    if symmetry is None:
        return start
    heaviest_node_in_one_part(model, data, v, symmetry)
    return None if start is None else symmetry.reflect(start)
