"""Parts of the reports of every kind, and sentences about what is proved."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from nmsolve.kinds.contributions import contributions
from nmsolve.model.bound import INFEASIBLE, Bound, gap, meets
from nmsolve.model.version import VERSION
from nmsolve.report.figures import percent

if TYPE_CHECKING:
    from nmsolve.check.claims import Check


class BoundPart(msgspec.Struct, frozen=True):
    """The best bound of one method; its certificate is in certificates.json. ``package``: the other one that recomputed it."""

    method: str
    scope: str
    value: float
    package: str = ""


class EnginePart(msgspec.Struct, frozen=True):
    """What one engine contributed."""

    engine: str
    cpu_seconds: float
    offers: int
    incumbents: int
    best: float | None
    gain: float
    bound: float | None
    status: str


class CheckPart(msgspec.Struct, frozen=True):
    """One independent check of the final mapping; ``word``: whose word it rests on where nothing could be recomputed."""

    name: str
    ok: bool
    text: str
    word: str = ""


def check_parts(checks: Iterable[Check]) -> list[CheckPart]:
    """Return checks of rules and figures as reports hold them."""
    return [CheckPart(c.name, c.ok, c.text) for c in checks]


class ObjectivePart(msgspec.Struct, frozen=True):
    """One objective of routes; the bound holds for routes that are as good in all objectives before it. ``package``: the other
    one that alone recomputed it."""

    name: str
    value: float | None
    bound: float | None
    gap: float | None
    proved: bool
    package: str = ""


class RulePart(msgspec.Struct, frozen=True):
    """What a rule of compilers, or of the literature, made of the same problem; ``gap`` to the bound, ``loss`` against the
    answer."""

    name: str
    objective: float | None
    gap: float | None
    loss: float | None
    status: str


class MemoryPart(msgspec.Struct, frozen=True):
    """Bytes that all processes were allowed to hold (None: any number), and the most they held, checks included."""

    budget: int | None
    peak: int


def ended(result: Any) -> dict[str, Any]:
    """Return what every report says of its run."""
    return {
        "version": VERSION,
        "status": result.status,
        "stop_reason": result.stop_reason,
        "method": result.method,
        "contributions": contributions(result),
        "wall_seconds": round(result.wall_seconds, 3),
        "cpu_seconds": round(result.cpu_seconds, 3),
        "seed": result.seed,
    }


def parts_of(result: Any) -> dict[str, Any]:
    """Return what every report says of engines and their bounds."""
    return {
        "engines": [
            EnginePart(
                e.engine, round(e.cpu_seconds, 3), e.offers, e.incumbents, e.best, e.gain, e.bound, e.status
            )
            for e in result.engines
        ],
        "bounds": [BoundPart(b.method, b.scope, b.value, b.package) for b in result.bounds],
    }


def rule_parts(result: Any, rules: Sequence[str]) -> list[RulePart]:
    """Return what the engines of ``rules`` offered in a run."""
    out = []
    for e in result.engines:
        if e.engine in rules:
            loss = e.best / result.objective - 1.0 if e.best is not None and result.objective else None
            out.append(RulePart(e.engine, e.best, gap(e.best, result.bound), loss, e.status))
    return out


def rule_words(rules: Sequence[RulePart], shown: Callable[[float], str]) -> list[str]:
    """Return a sentence for every rule of what it loses; ``shown``: the objective as people read it."""
    return [
        f"The rule {r.name} gives {shown(r.objective)}, {percent(abs(r.loss))} {'less' if r.loss < 0 else 'more'} "
        f"(gap {percent(r.gap)})."
        for r in rules
        if r.objective is not None and r.loss is not None
    ]


def by_word(report: Any, recomputed: Collection[str]) -> str:
    """Return the solver or package on whose word the bound of a problem in whole numbers rests, in brackets, if none of the
    bounds that can be ``recomputed`` reaches it."""
    bound = report.bound or 0.0
    proved = [b.value for b in report.bounds if b.method in recomputed]
    if any(meets(value, bound, 1.0, exact=True) for value in proved):
        return ""
    best = max((b for b in report.bounds if b.method not in recomputed), key=lambda b: b.value, default=None)
    return "" if best is None else f" (on the word of {best.package or best.method})"


def package_behind(bounds: Iterable[Bound | BoundPart]) -> str:
    """Return the other package whose re-check alone says the best bound, "" if a bound that needs none is as good."""
    full = (b for b in bounds if b.scope == "full")
    best = max(full, key=lambda b: (b.value, not b.package), default=None)
    return "" if best is None else best.package


def rests_on(package: str) -> str:
    """Return the sentence about a bound that only another package recomputed."""
    return f"The bound was recomputed by {package} only: it rests on the word of that package."


def among(
    things: str, inputs: Mapping[str, Any], limits: str, shown: Callable[[str, float], str], *more: str
) -> str:
    """Return how a sentence begins about a bound that covers only the ``things`` within limits; "" if it covers all.

    Parameters
    ----------
    inputs : of a report; ``before`` are objectives that were minimised first
    limits : the field of ``inputs`` that has limits by the names of objectives; "" where there is none
    shown : a value by the name of its objective, for people
    more : limits of another kind, in words
    """
    held = {b["objective"]: b["value"] for b in inputs.get("before", ())}
    most = {**inputs.get(limits, {}), **held}
    words = [*(f"{name} at most {shown(name, value)}" for name, value in most.items()), *more]
    return f"Among {things} with {' and '.join(words)}: " if words else ""


def proved_by(found: Any) -> str:
    """Return whose proof it is that there is no solution, by a report or a result: nothing has re-checked it."""
    who = next((e.engine for e in getattr(found, "engines", ()) if e.status == INFEASIBLE), "")
    return f"Proved by {who} alone" if who else "Proved"


def proved_words(report: Any, thing: str, about: str, figure: Callable[[float], str], word: str = "") -> str:
    """Say how far an answer can be from the best, in a sentence that claims exactly what is proved.

    Parameters
    ----------
    report : with status, objective, bound and gap
    thing : what is looked for, e.g. ``plan``
    about : how the sentence begins, e.g. ``The slowest stage takes``
    figure : how values of the objective are written
    word : on whose word the bound rests, in brackets, "" if it is recomputed
    """
    if report.status == "infeasible":
        return f"{proved_by(report)}: no {thing} keeps all these rules."
    if report.objective is None:
        return f"No {thing} was found in the time given; one may still exist."
    least = f"{about} {figure(report.objective)}"
    if report.status == "optimal":
        return f"{least}, proved to be the least possible{word}."
    if report.bound is None or not report.bound > 0:
        return f"{least}; no useful bound is proved."
    return (
        f"{least}; no {thing} gets below {figure(report.bound)}: at most {percent(report.gap)} "
        f"could still be saved{word}."
    )
