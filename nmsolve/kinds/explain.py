"""Is there any answer within the limits of a problem; if not, which of them conflict?"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from nmsolve.kinds.patience import Patience

if TYPE_CHECKING:
    from nmsolve.solvers.search.conflict import Explanation, Limits

S = TypeVar("S")
#: Part of the time limit for finding a conflict; the rest is for checking it with a second program.
FIND_PART = 0.7


def find_conflict(limits: Limits[S], seconds: float, seed: int) -> tuple[Explanation[S], bool | None]:
    """Look for a solution or a smallest conflict; the latter is confirmed by a second program, or None: it could not tell."""
    from nmsolve.solvers.search.conflict import recheck_conflict, smallest_conflict

    with Patience() as patience:
        found = smallest_conflict(limits, FIND_PART * seconds, seed)
        confirmed = None
        if found.conflict is not None and not patience.asked:
            confirmed = recheck_conflict(limits, found.certificate, (1 - FIND_PART) * seconds)
    return found, confirmed
