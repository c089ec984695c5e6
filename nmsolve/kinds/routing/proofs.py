"""What reports claim of bounds on routes, recomputed by ``verify`` from route-certificates.json."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from nmsolve.check.claims import gap_check, status_check
from nmsolve.kinds.check_bounds import Proofs
from nmsolve.kinds.parts import CheckPart, ObjectivePart
from nmsolve.kinds.routing.report import PROOFS, REPORT
from nmsolve.kinds.verdict import unread
from nmsolve.model.bound import BoundCheck, Stage
from nmsolve.model.errors import InputError
from nmsolve.report.figures import number

if TYPE_CHECKING:
    from nmsolve.model.bound import Bound
    from nmsolve.model.routing.problem import RoutingProblem


@dataclass(frozen=True)
class RouteBounds:
    """Bounds of routes."""

    problem: RoutingProblem
    exact = False
    slow = ()

    @property
    def free(self) -> Collection[str]:
        """Bounds that are recomputed hold whatever the ceilings."""
        from nmsolve.check.routing.recheck import RECHECKED

        return RECHECKED

    def check(
        self, stage: Stage, bound: Bound, solution: None, least: float, seconds: float = math.inf
    ) -> BoundCheck:
        """In whole numbers and fractions."""
        from nmsolve.check.routing.recheck import check_routing_bound

        found = check_routing_bound(self.problem, stage.objective, bound)
        if found.word and stage.problem != self.problem.content_hash:
            text = f"given about problem {stage.problem[:64]}, this one is {self.problem.content_hash}"
            return BoundCheck(False, math.nan, text)
        if found.ok and bound.value > least * (1 + 1e-9):
            return BoundCheck(False, math.nan, f"{bound.value:.10g} is above known routes with {least:.10g}")
        return found

    def step(self, objective: str) -> float:
        """1 for numbers of turns and sums of whole rates."""
        from nmsolve.check.routing.recheck import whole_values

        return 1.0 if whole_values(self.problem, objective) else 0.0

    def hash_of(self, stage: Stage) -> str:
        """Return the hash of the routing problem with all its objectives."""
        return self.problem.content_hash


@dataclass(frozen=True)
class Said:
    """What the report beside routes says of them.

    Attributes
    ----------
    file, content : route-report.json, else the report.json of a mapping that has them
    parts : of the objectives
    turns : those that were given; None or ``chosen``: none were
    """

    file: Path
    content: dict[str, Any]
    parts: list[ObjectivePart]
    turns: str | None

    @property
    def alone(self) -> bool:
        """Whether the report is about routes and nothing else."""
        return self.file.name == REPORT

    @property
    def values(self) -> dict[str, Any]:
        """Objectives, and how many turns are prohibited."""
        values: dict[str, Any] = {part.name: part.value for part in self.parts}
        prohibited = (self.content if self.alone else self.content["routing"]).get("prohibited")
        return values if prohibited is None else {"turns": prohibited} | values


def said_beside(path: Path) -> Said | None:
    """Return what the report beside the routes ``path`` says of them; None without one. InputError: it is no report of routes."""
    from nmsolve.kinds.loading import read_object

    for name in (REPORT, "report.json"):
        beside = path.parent / name
        if not beside.exists():
            continue
        content = read_object(beside)
        part = content if name == REPORT else content.get("routing")
        if isinstance(part, dict):
            option, what = "turns" if name == REPORT else "prohibit_turns", "objectives"
            try:
                parts = msgspec.convert(part.get("objectives") or [], list[ObjectivePart])
                what = "inputs"
                inputs = msgspec.convert(content.get("inputs") or {}, dict[str, Any])
                return Said(beside, content, parts, msgspec.convert(inputs.get(option), str | None))
            except msgspec.ValidationError as error:
                wanted = "a report that nmsolve wrote"
                raise InputError(f"invalid {what} ({error})", str(beside), wanted) from None
    return None


def claim_checks(
    path: Path, said: Said, problem: RoutingProblem, values: Mapping[str, float], thorough: bool
) -> list[CheckPart]:
    """Return what is claimed to be proved of the routes ``path``.

    Parameters
    ----------
    problem : what was to be routed under which rules, from graph, mapping and the file of routes
    values : the objectives as recomputed
    thorough : certificates are recomputed; else the claims are only said not to have been looked at

    Raises
    ------
    InputError : a file is missing or not of its shape
    """
    from nmsolve.kinds.loading import read_certificates

    parts = said.parts
    checks = [_figures(said, problem)]
    claims = [p for p in parts if p.bound or p.proved]
    if not claims:
        return checks
    if not thorough:
        words = [f"{p.name} {'proved best' if p.proved else f'at least {number(p.bound)}'}" for p in claims]
        return [*checks, unread(f"routes: {', '.join(words)}", "--bound does")]
    file = path.parent / PROOFS
    if not file.exists():
        text = f"no {PROOFS} beside the routes: nothing proves what the report claims"
        return [*checks, CheckPart("route bounds", False, text)]
    about, bounds = read_certificates(file)
    asked = replace(problem, objective=tuple(p.name for p in parts))
    proofs = Proofs(RouteBounds(asked), [(None, values)])
    for name, b in bounds:
        if name in asked.objective:
            checks += proofs.take(Stage(name, (), about, (b,)), named=True)
        else:
            text = f"one is about {name[:40]!r}, the report is not"
            checks.append(CheckPart("route certificates", False, text))
    return checks + [proofs.claim(f"{p.name} bound", p.bound, values.get(p.name), p.name, {}) for p in claims]


def _figures(said: Said, problem: RoutingProblem) -> CheckPart:
    """That status, gaps and rules follow from the report's own figures and from the routes' file."""
    wrong, parts, report = [], said.parts, said.content
    if len({p.name for p in parts}) < len(parts):
        wrong.append("an objective is listed twice")
    for p in parts:
        found = [gap_check("gap", p.value, p.bound, p.gap)]
        if p.proved:
            found.append(status_check({"status": "optimal"}, p.value, p.bound))
        wrong += [f"{p.name[:40]}: {c.text}" for c in found if not c.ok]
    if said.alone:
        done = bool(parts) and all(p.proved for p in parts)
        if report.get("status") != ("optimal" if done else "feasible"):
            wrong.append(f"the status is {str(report.get('status'))[:40]!r}")
        inputs = report.get("inputs")
        given: Mapping[str, Any] = inputs if isinstance(inputs, dict) else {}
        for name in ("form", "detour", "table_limit", "channels"):
            if given.get(name) != getattr(problem, name):
                wrong.append(
                    f"{name} is {getattr(problem, name)}, the report says {str(given.get(name))[:40]}"
                )
    return CheckPart(
        "route claims", not wrong, "; ".join(wrong) or "status, gaps and rules agree with the routes"
    )
