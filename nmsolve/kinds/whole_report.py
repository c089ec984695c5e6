"""Reports of answers whose objectives are whole numbers: what assignments and schedules say alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from nmsolve.kinds.contributions import found_words
from nmsolve.kinds.parts import (
    BoundPart,
    CheckPart,
    EnginePart,
    MemoryPart,
    RulePart,
    ended,
    parts_of,
    rule_parts,
)
from nmsolve.kinds.verdict import label
from nmsolve.model.host.memory import own_peak
from nmsolve.report.figures import percent

if TYPE_CHECKING:
    from nmsolve.model.bound import Result


class WholeReport(msgspec.Struct, frozen=True, kw_only=True):
    """The keys that ``map`` has in report.json; ``unit``: of objective and bound; ``inputs``: what states the problem again."""

    version: str
    command: str
    status: str
    stop_reason: str
    method: str | None = None
    contributions: list[str] = []
    objective_name: str
    unit: str
    objective: float | None
    bound: float | None
    bound_scope: str | None
    gap: float | None
    placement_bound: float | None = None
    placement_gap: float | None = None
    scores: dict[str, float]
    left_out: dict[str, str] = {}
    wall_seconds: float
    cpu_seconds: float
    memory: MemoryPart
    seed: int
    engines: list[EnginePart]
    bounds: list[BoundPart]
    checks: list[CheckPart]
    not_checked: list[str]
    routing: None = None
    tick: None = None
    rules: list[RulePart]
    inputs: dict[str, Any]


def whole_parts(
    result: Result[Any], unit: str, rules: Sequence[str], inputs: Mapping[str, Any], left: Sequence[str]
) -> dict[str, Any]:
    """Return the fields of a :class:`WholeReport` but for its command, without checks.

    Parameters
    ----------
    unit : of the objective
    rules : engines that are rules to compare with
    left : what is not checked
    """
    return {
        **ended(result),
        **parts_of(result),
        "objective_name": result.objective_name,
        "unit": unit,
        "objective": result.objective,
        "bound": result.bound,
        "bound_scope": None if result.bound is None else "full",
        "gap": result.gap,
        "scores": dict(result.scores),
        "memory": MemoryPart(result.memory_budget, max(result.memory_peak, own_peak())),
        "checks": [],
        "not_checked": list(left),
        "rules": rule_parts(result, rules),
        "inputs": dict(inputs),
    }


def closing_words(
    report: WholeReport, sentences: Sequence[str], shown: Callable[[str, float | None], str]
) -> Iterator[str]:
    """Yield the last lines for people: objective and bound, ``sentences``, other objectives, checks.

    ``shown`` : the value of an objective, by its name, as people read it
    """
    name = report.objective_name
    yield (
        f"\n{report.status}: {name} {shown(name, report.objective)}, bound {shown(name, report.bound)}, "
        f"gap {percent(report.gap)} (stopped: {report.stop_reason}, {report.wall_seconds:.1f} s)"
    )
    yield from found_words(report)
    yield from sentences
    others = {k: v for k, v in report.scores.items() if k != name}
    if others:
        yield "also: " + ", ".join(f"{k} {shown(k, v)}" for k, v in others.items())
    for check in report.checks:
        yield f"  {label(check):6} {check.name}: {check.text}"
    if report.not_checked:
        yield f"not checked here (nmsolve verify --bound does): {', '.join(report.not_checked)}"
