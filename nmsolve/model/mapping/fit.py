"""Why a problem cannot be mapped, found by counting before any search.

Every statement is a proof of infeasibility on its own; an empty list proves nothing (packing is hard).
"""

from __future__ import annotations

from nmsolve.model.errors import DoesNotFitError
from nmsolve.model.mapping.axons_fit import axon_misfit
from nmsolve.model.mapping.conflicts import constraint_conflicts
from nmsolve.model.mapping.migration_fit import migration_misfit
from nmsolve.model.mapping.overflow import overflows
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.tables_fit import table_misfit


def explain_misfit(problem: MappingProblem) -> list[str]:
    """All reasons found why no mapping exists, most telling first; empty if none was found.

    Each is one line that names nodes, constraints or resources, how much is needed, and the limit.
    """
    machine = problem.machine
    if not machine.usable.any():
        return [f"none of the {machine.size} cores of {machine.name} is usable (all are faulty or taken)"]
    conflicts = constraint_conflicts(problem) + overflows(problem)
    return conflicts or axon_misfit(problem) or table_misfit(problem) or migration_misfit(problem)


def require_fit(problem: MappingProblem) -> None:
    """Raise if the problem provably has no mapping.

    Raises
    ------
    DoesNotFitError : the first of :func:`explain_misfit`, and how many more there are
    """
    reasons = explain_misfit(problem)
    if reasons:
        more = len(reasons) - 1
        tail = f" (and {more} more reason{'s' * (more > 1)})" if more else ""
        raise DoesNotFitError(reasons[0] + tail, f"{problem.graph.name} on {problem.machine.name}")
