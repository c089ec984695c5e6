"""route-certificates.json: bounds on routes with their certificates, written by searches and recomputed by ``verify``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from nmsolve.check.claims import gap_check, status_check
from nmsolve.kinds.check_bounds import Proofs, RouteBounds
from nmsolve.kinds.mapping.report import CheckPart, ObjectivePart
from nmsolve.kinds.verdict import unread
from nmsolve.model.bound import Stage
from nmsolve.model.errors import InputError
from nmsolve.report.figures import number

if TYPE_CHECKING:
    from nmsolve.model.bound import Bound
    from nmsolve.model.routing.problem import RoutingProblem

FILE = "route-certificates.json"


def certificates_text(problem: RoutingProblem, bounds: Mapping[str, Sequence[Bound]]) -> str:
    """Return the file: as certificates.json of a mapping, each bound with its ``objective``."""
    from nmsolve.check import certificates

    rows = ((name, b) for name, some in bounds.items() for b in some)
    return certificates.certificates_text(problem.content_hash, rows)


def claims_of(path: Path) -> tuple[Path, dict[str, Any], list[ObjectivePart]] | None:
    """Return the report beside the routes ``path``, and what it claims of their objectives; None without one.

    Raises
    ------
    InputError : the report is no report of routes
    """
    from nmsolve.kinds.loading import read_object

    for name in ("route-report.json", "report.json"):
        beside = path.parent / name
        if not beside.exists():
            continue
        content = read_object(beside)
        part = content if name == "route-report.json" else content.get("routing")
        if isinstance(part, dict):
            try:
                return beside, content, msgspec.convert(part.get("objectives") or [], list[ObjectivePart])
            except msgspec.ValidationError as error:
                raise InputError(
                    f"invalid objectives ({error})", str(beside), "a report that nmsolve wrote"
                ) from None
    return None


def claim_checks(
    path: Path, problem: RoutingProblem, values: Mapping[str, float], thorough: bool
) -> list[CheckPart]:
    """Return what the report beside the routes ``path`` claims to be proved of them.

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

    found = claims_of(path)
    if found is None:
        return []
    beside, content, parts = found
    checks = [_figures(beside, content, parts, problem)]
    claims = [p for p in parts if p.bound or p.proved]
    if not claims:
        return checks
    if not thorough:
        words = [f"{p.name} {'proved best' if p.proved else f'at least {number(p.bound)}'}" for p in claims]
        return [*checks, unread(f"routes: {', '.join(words)}", "--bound does")]
    file = path.parent / FILE
    if not file.exists():
        text = f"no {FILE} beside the routes: nothing proves what the report claims"
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


def _figures(
    path: Path, report: Mapping[str, Any], parts: Sequence[ObjectivePart], problem: RoutingProblem
) -> CheckPart:
    """That status, gaps and rules follow from the report's own figures and from the routes' file."""
    wrong = []
    if len({p.name for p in parts}) < len(parts):
        wrong.append("an objective is listed twice")
    for p in parts:
        found = [gap_check("gap", p.value, p.bound, p.gap)]
        if p.proved:
            found.append(status_check({"status": "optimal"}, p.value, p.bound))
        wrong += [f"{p.name[:40]}: {c.text}" for c in found if not c.ok]
    if path.name == "route-report.json":
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
