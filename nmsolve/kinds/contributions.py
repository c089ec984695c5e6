"""What each engine contributed to an answer, in a sentence or two."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from nmsolve.model.bound import GIVEN, INFEASIBLE, EngineShare, Result
from nmsolve.report.figures import percent

#: How a status begins of an engine that did not run, and of one with nothing to credit.
NOT_RUN = ("refused", "not run")
LEFT_OUT = (*NOT_RUN, INFEASIBLE)
#: Differences relative to the objective that are rounding.
ROUNDING = 1e-9


def contributions(result: Result[Any]) -> list[str]:
    """Return who found the first answer, who improved it by how much, who proved the bound, and who ran in vain.

    One list for every objective where several were minimised in order.
    """
    if not result.stages:
        return _of_one(result)
    return [f"{name}: {text}" for name, one in result.stages.items() for text in _of_one(one)]


def found_words(report: Any) -> list[str]:
    """Return how the answer of a report was found: by which published method alone, or what each engine contributed."""
    if report.method is None:
        return list(report.contributions)
    own = f"Published method {report.method} alone, as published"
    return [own + ": " + text if k == 0 else text for k, text in enumerate(report.contributions)] or [
        f"{own}."
    ]


def _of_one(result: Result[Any]) -> list[str]:
    best = result.objective if result.better_objective is None else result.better_objective
    steps = [
        (event.engine, event.objective)
        for event in result.events
        if event.kind == "incumbent"
        and event.objective is not None
        and best is not None
        and event.objective >= best - ROUNDING * abs(best)
    ]
    gains: dict[str, float] = {}
    for (_, before), (engine, after) in pairwise(steps):
        gains[engine] = gains.get(engine, 0.0) + before - after
    first = steps[0][0] if steps else ""
    prover = _prover(result)
    parts = []
    if steps:
        total = abs(steps[0][1])
        own = gains.pop(first, 0.0)
        more = f" and improved it by {percent(own / total)}" if own and total else ""
        begins = (
            "the search began with a known answer" if first in GIVEN else f"{first} found the first answer"
        )
        parts.append(begins + more)
        for engine, gain in sorted(gains.items(), key=lambda one: -one[1]):
            parts.append(f"{engine} improved it by {percent(gain / total) if total else '-'}")
    if prover:
        parts.append(
            f"{prover} proved {'that it is the best' if result.status == 'optimal' else 'the bound'}"
        )
    vain = [
        text
        for one in result.engines
        if one.engine not in {first, prover, *gains, *GIVEN} and (text := _in_vain(one, best))
    ]
    sentences = ["; ".join(parts) + "."] if parts else []
    return sentences + ([f"No part in it: {', '.join(vain)}."] if vain else [])


def _prover(result: Result[Any]) -> str:
    """Return the engine with the best bound; "" if none says anything."""
    found = [one for one in result.engines if one.bound is not None and one.bound > 0]
    return max(found, key=lambda one: one.bound or 0.0).engine if found and result.bound else ""


def _in_vain(one: EngineShare, objective: float | None) -> str:
    """Return an engine that looked for answers, with what became of it; "" for one that only proves, or did not run."""
    if one.status.startswith(LEFT_OUT) or (one.best is None and one.bound is not None):
        return ""
    if one.best is None:
        return f"{one.engine} ({one.status.removeprefix('stopped: ').removeprefix('done: ')}, {one.cpu_seconds:.1f} s)"
    behind = (one.best - objective) / abs(objective) if objective else 0.0
    how = f"its best {percent(behind)} above" if behind > ROUNDING else "as good as it, but later"
    return f"{one.engine} ({how}, {one.cpu_seconds:.1f} s)"
