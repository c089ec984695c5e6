"""``nmsolve score`` and ``nmsolve verify``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nmsolve.kinds.answer import tell
from nmsolve.kinds.check import checked, scored
from nmsolve.kinds.verdict import verdict

if TYPE_CHECKING:
    from nmsolve.kinds.verbs import ScoreOptions, VerifyOptions


def run_score(o: ScoreOptions) -> int:
    """Print every objective of an answer."""
    found = scored(o)
    return tell(o.json, [found.row], found.lines)


def run_verify(o: VerifyOptions) -> int:
    """Print one line per check; 1 if any fails, 6 if the claims rest on a word that is not to be trusted."""
    return verdict(checked(o), o.bound, o.trust_solver, o.json)
