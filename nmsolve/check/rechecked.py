"""Shared by all re-checks of bounds: which checker handles a method, and which solver statuses are trusted."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from nmsolve.check.foreign import foreign_recheck, unknown_method
from nmsolve.model.bound import Bound, BoundCheck, Ceilings, float_below
from nmsolve.model.errors import CertificateError
from nmsolve.model.lookup import named
from nmsolve.model.members import mapped


class Hashed(Protocol):
    """A problem that says what it is."""

    @property
    def content_hash(self) -> str:
        """Hexadecimal, of everything that decides what the problem is."""


def recheck(
    problem: Hashed,
    bound: Bound,
    seconds: float,
    about: str | None,
    *,
    checks: Mapping[str, str],
    words: Collection[str],
    kind: str,
    solutions: str,
    ceilings: Ceilings = (),
) -> BoundCheck:
    """Re-check a bound from its certificate, by code that did not find it.

    Parameters
    ----------
    seconds : about how long it may take
    about : hash of the problem that the bound was kept with; None for one that was just found
    checks : ``module:function`` below ``nmsolve`` by method; each takes the problem, the bound and seconds
    words : methods that leave only a solver's status; their word counts for this very problem only
    kind : of problem, by which other packages name their re-checks
    solutions : what is bounded, e.g. ``assignments``; ``ceilings`` : limits on other objectives, which a word is about
    """
    if bound.method not in checks and bound.method not in words:
        found = foreign_recheck(kind, bound, (problem,), seconds)
        return found or refused(unknown_method(bound.method))
    method = bound.certificate.get("method", bound.method)
    if not isinstance(method, str) or method != bound.method:
        return refused(f"the certificate is for {method!r:.40}, the bound claims {bound.method!r}")
    if math.isnan(bound.value) or bound.scope != "full":
        return refused(f"{bound.value} with scope {bound.scope!r:.40} claims nothing")
    if bound.value <= 0:
        return BoundCheck(True, 0.0, "no objective is below 0")
    if bound.method in words:
        limits = [f"{k} at most {v:,.0f}" for k, v in ceilings]
        only = f"; about {solutions} with {' and '.join(limits)} only" if limits else ""
        return _on_trust(problem, bound, about, only)
    try:
        whole = replace(bound, certificate=mapped(bound.certificate, _whole))
        outcome: BoundCheck = named(checks[bound.method])(problem, whole, seconds)
    except CertificateError as broken:
        return refused(f"certificate of {bound.method}: {broken}")
    return outcome


def refused(text: str) -> BoundCheck:
    """Return that a bound is not proved, and why."""
    return BoundCheck(False, math.nan, text)


def compared(bound: Bound, proved: float, text: str) -> BoundCheck:
    """Return whether a bound claims no more than is ``proved``, which ``text`` says."""
    holds = bound.value <= proved
    said = text if holds else f"{text}, the claim is {bound.value:,.17g}"
    return BoundCheck(holds, float_below(proved), said)


def _whole(value: Any) -> Any:
    """Return a list of whole numbers as engines give it where a file made floats of it, anything else as it is.

    Nothing was lost: reading leaves lists alone that floats do not hold.
    """
    if not isinstance(value, np.ndarray):
        return value
    numbers = value.tolist()
    whole = all(isinstance(x, int | float) and math.isfinite(x) and x == int(x) for x in numbers)
    return [int(x) for x in numbers] if whole else numbers


def _on_trust(problem: Hashed, bound: Bound, about: str | None, only: str) -> BoundCheck:
    here = problem.content_hash
    if about is not None and about != here:
        return refused(f"given about problem {about[:64]}, this one is {here}")
    status = bound.certificate.get("status")
    status = status[:40] if isinstance(status, str) else "none"
    text = f"rests on the word of {bound.method} (status {status}); nothing here can be recomputed{only}"
    return BoundCheck(True, bound.value, text, bound.method)
