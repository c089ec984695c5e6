"""Why a problem cannot be mapped, found by counting before any search.

Every statement is a proof of infeasibility on its own; an empty list proves nothing (packing is hard).
"""

from __future__ import annotations

from nmsolve.model.errors import DoesNotFitError
from nmsolve.model.mapping.limits import LIMITS
from nmsolve.model.mapping.problem import MappingProblem


def explain_misfit(problem: MappingProblem) -> list[str]:
    """Return all reasons found why no mapping exists, most telling first; empty if none was found.

    Each is one line that names nodes, constraints or resources, how much is needed, and the limit.
    """
    machine = problem.machine
    if not machine.usable.any():
        return [f"none of the {machine.size} cores of {machine.name} is usable (all are faulty or taken)"]
    for counted in dict.fromkeys(kind.counted for kind in LIMITS):
        reasons = counted(problem)
        if reasons:  # later counts take for granted that these limits can be kept
            return reasons
    return []


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
