"""The output of ``nmsolve verify``: one line per check, and the verdict."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nmsolve.kinds.check_bounds import positive
from nmsolve.kinds.parts import CheckPart
from nmsolve.report.figures import number

if TYPE_CHECKING:
    from nmsolve.kinds.loading import Held

#: Exit code: nothing failed, but what the report claims rests on a solver's word.
TRUSTED = 6
#: The ``word`` of a claim that was not checked.
UNREAD = "the report"
#: Name of the line that lists which fields and files were not read.
NOT_READ = "not read"


def headline(check: CheckPart) -> bool:
    """Return whether it is about what a report claims in the end, not about one of the bounds behind that (``bound METHOD``)."""
    return not check.name.startswith("bound ")


def unread(claim: str, how: str) -> CheckPart:
    """Return the check that was not made: a claim that only the report makes, and how to check it."""
    return CheckPart("claims", True, f"{claim}: only claimed, not looked at here ({how})", UNREAD)


def unread_checks(report: Mapping[str, Any] | None, before: Sequence[Held]) -> list[CheckPart]:
    """Return what a report claims of bounds, where none was asked to be re-checked."""
    claims = {} if report is None else {k: report.get(k) for k in ("bound", "placement_bound")}
    words = [f"{k.replace('_', ' ')} {number(positive(v))}" for k, v in claims.items() if positive(v)]
    if report is not None and report.get("status") == "optimal":
        words.append("optimal")
    words += [f"{b.objective} at least {number(b.bound)} before" for b in before if b.bound]
    return [unread(", ".join(words), "--bound does")] if words else []


def label(check: CheckPart) -> str:
    """Return ``FAILED``; ``ok``; ``word``: nothing speaks against it, and nothing but a word for it; ``-``: not looked at."""
    return "FAILED" if not check.ok else "-" if check.name == NOT_READ else "word" if check.word else "ok"


def words_behind(checks: Iterable[CheckPart]) -> list[str]:
    """Return the solvers, or the report, on whose word rests what is claimed in the end."""
    return list(dict.fromkeys(c.word for c in checks if c.word and headline(c)))


def verdict(checks: Sequence[CheckPart], bound: bool, trust: bool, as_json: bool) -> int:
    """Print all checks and the verdict.

    Parameters
    ----------
    bound : bounds were to be re-checked
    trust : a solver's word is as good as a proof

    Returns
    -------
    1 if any check failed; :data:`TRUSTED` if bounds were to be re-checked, and what is claimed in the end rests on a word that
    is not to be trusted; else 0
    """
    for c in checks:
        if as_json:
            print(json.dumps({"type": "check", "name": c.name, "ok": c.ok, "text": c.text, "word": c.word}))
        else:
            print(f"{label(c):7} {c.name:24} {c.text}")
    if not all(c.ok for c in checks):
        return 1
    words = words_behind(checks)
    if not bound or not words:
        return 0
    names = [c.name for c in checks if c.word and headline(c)]
    if not as_json:
        print(
            f"{', '.join(names)}: not proved here; rests on the word of {', '.join(words)}"
            + " (trusted)" * trust
        )
    return 0 if trust else TRUSTED
