"""The CP-SAT model of mapping, put together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.cpsat.distances import DISTANCES, CpSatVariables, make_variables
from nmsolve.solvers.mapping.cpsat.hint import hint_mapping
from nmsolve.solvers.mapping.exact import rules
from nmsolve.solvers.mapping.exact.data import ExactData, exact_data
from nmsolve.solvers.search.rows import CpSatRows
from nmsolve.solvers.search.scaling import Scale

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
    variables: CpSatVariables

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
    data, rows = exact_data(problem), CpSatRows()
    v = make_variables(rows, data)
    strengtheners = STRENGTHENERS if mapping_digits(data) > SMALL_SEARCH else ()
    for rule in (*rules.RULES, *DISTANCES, *rules.MEASURES, *rules.HINTS, *strengtheners):
        rule(rows, data, v)
    start = rules.break_symmetry(rows, data, v, start) if break_symmetry else start
    cost = rules.total_cost(rows, data, v)
    rows.minimise(cost)
    row = data.claim.floor_row(bound)
    if row is not None:
        rows.add(cost >= row)
    if start is not None:
        hint_mapping(rows.model, data, v, start)
        rows.add(cost <= data.value(start))
    return MappingModel(rows.model, data, v)


def mapping_digits(data: ExactData) -> float:
    """Decimal digits of the number of mappings: of ``P! / (P - n)!`` with one node per core, else of ``P^n``.

    P is the number of usable cores; the count is an upper estimate, 0 if there is no mapping.
    """
    usable = int(data.problem.machine.usable.sum())
    free = usable - np.arange(data.n) if data.problem.one_per_core else np.full(data.n, usable)
    return float(np.log10(np.maximum(free, 1)).sum())
