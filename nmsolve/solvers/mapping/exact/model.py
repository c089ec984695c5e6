"""The exact model of mapping, put together for CP-SAT or in Pyomo."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from nmsolve.hw.scores import broken_ceiling, objective_value
from nmsolve.model.engine import Context
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.exact import cut_lines, positions, rules
from nmsolve.solvers.mapping.exact.data import ExactData, exact_data
from nmsolve.solvers.mapping.exact.size import refuses_exact
from nmsolve.solvers.search.exact import run_model
from nmsolve.solvers.search.rows import Built, CpSatRows, MipRows, Rows
from nmsolve.solvers.search.scaling import Scale

#: Up to 10 to this power mappings, CP-SAT searches without the rows of stars. They slow a search that would end anyway (nine
#: nodes, all talking, on 3x3: 1.3 s without, 12 s with them) and are the only bound where it would not.
SMALL_SEARCH = 7.0


def build(
    problem: MappingProblem,
    cpsat: bool = True,
    *,
    start: IntArray | None = None,
    bound: float = 0.0,
    break_symmetry: bool = True,
) -> Built:
    """State ``problem`` for CP-SAT, else in Pyomo.

    Parameters
    ----------
    start : a feasible mapping (n,), reflected into the symmetry rows; CP-SAT gets it as a complete hint and as an upper limit,
        a MIP as the values of ``x``
    bound : a proven lower bound on the objective, added as a row
    break_symmetry : False states the bare problem

    Raises
    ------
    InputError : the machine's distances cannot be computed (dead links cut it in two)
    """
    data, twin = exact_data(problem), positions if cpsat else cut_lines
    rows: Rows = CpSatRows() if cpsat else MipRows("mapping")
    v = twin.make_variables(rows, data)
    stars = () if cpsat and mapping_digits(data) <= SMALL_SEARCH else (rules.star_rows,)
    for rule in (*rules.RULES, *twin.DISTANCES, *rules.MEASURES, *rules.HINTS, *stars):
        rows.rule(rule.__name__)
        rule(rows, data, v)
    start = rules.break_symmetry(rows, data, v, start) if break_symmetry else start
    unit = rules.unit_of(data)
    cost = rows.per(1, 1 / unit) * rules.total_cost(rows, data, v)
    rows.minimise(cost)
    row = data.claim.floor_row(bound)
    if row is not None:
        rows.rule("at_least")
        rows.add(cost >= rows.per(row, data.scale / unit))
    if start is not None and isinstance(v, positions.CpSatVariables):
        positions.hint_mapping(rows, data, v, start)  # type: ignore[arg-type]
        rows.add(cost <= data.value(start))
    elif start is not None:
        rules.hint_places(rows, v.x, start)
    claim = data.claim if cpsat else Scale(unit, False, data.integral)
    return Built(rows.model, claim, partial(rules.placed, v.x), data, v)


def mapping_digits(data: ExactData) -> float:
    """Decimal digits of the number of mappings: of ``P! / (P - n)!`` with one node per core, else of ``P^n``.

    P is the number of usable cores; the count is an upper estimate, 0 if there is no mapping.
    """
    usable = int(data.problem.machine.usable.sum())
    free = usable - np.arange(data.n) if data.problem.one_per_core else np.full(data.n, usable)
    return float(np.log10(np.maximum(free, 1)).sum())


class _Exact:
    """Exact mapping by one solver."""

    name: str
    solver: str
    finds = "both"
    refuses = refuses_exact

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Solve the model, forwarding mappings and bounds as the solver tells them."""

        def worth(core: IntArray) -> float:
            return np.inf if broken_ceiling(problem, core) else objective_value(problem, core)

        start, _ = context.incumbent()
        model = built(problem, self.solver == "cpsat", start=start, bound=context.bound())
        run_model(model, self.solver, self.name, context, worth)


class CpSat(_Exact):
    """Exact mapping by OR-Tools CP-SAT."""

    name = solver = "cpsat"


class Mip(_Exact):
    """Exact mapping by mixed-integer programming; ``solver`` is ``highs`` or the name of any that Pyomo finds."""

    name = "mip"

    def __init__(self, solver: str = "highs") -> None:
        self.solver = solver


def built(problem: MappingProblem, cpsat: bool, *, free: bool = False, **known: Any) -> Built:
    """The model in one of its twin forms; with links where the objective or a ceiling needs them, or ``free`` routes."""
    if free or problem.uses_links or problem.ceilings:
        from nmsolve.solvers.mapping.joint import model as routed

        return routed.build(problem, cpsat, free=free, **known)
    return build(problem, cpsat, **known)
