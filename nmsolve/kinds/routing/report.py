"""route-report.json: what a run of ``nmsolve route`` claims, in one documented object (docs/files.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from nmsolve.kinds.mapping.report import CheckPart, ObjectivePart, ended, package_behind
from nmsolve.model.bound import gap
from nmsolve.model.errors import InputError
from nmsolve.report.figures import number, percent

if TYPE_CHECKING:
    from nmsolve.kinds.routing.statement import Given
    from nmsolve.model.bound import Result
    from nmsolve.model.routing.problem import RoutingProblem
    from nmsolve.model.routing.routes import ChosenRoutes, Routes
    from nmsolve.model.types import IntArray

FLOWS, REPORT, PAGE = "flow-routes.json", "route-report.json", "route.html"
#: Bounds of every objective with their certificates.
PROOFS = "route-certificates.json"
#: The comparison with turn models, in ``not_checked``.
TURN_MODELS = "turn models"


class RouteReport(msgspec.Struct, frozen=True, kw_only=True):
    """The object in route-report.json.

    ``not_checked``: what was left out for lack of time or patience, ``routes`` or ``turn models``;
    ``long_messages``: which multicast messages of many flits could block each other, "" if none can; ``inputs`` holds the
    paths and options that ``verify`` needs.
    """

    version: str
    status: str
    stop_reason: str
    machine: str
    flows: int
    objectives: list[ObjectivePart]
    rules: dict[str, float]
    checks: list[CheckPart]
    not_checked: list[str]
    long_messages: str
    wall_seconds: float
    cpu_seconds: float
    memory_peak: int
    seed: int
    inputs: dict[str, Any]


@lru_cache(maxsize=1)
def long_messages(problem: RoutingProblem, routes: Routes) -> tuple[IntArray | None, str]:
    """Return numbers for multicast messages of many flits, or why there are none; file and report both need them."""
    from nmsolve.hw.routing.proof import cover_long_messages

    return cover_long_messages(problem.machine, problem.flows, routes)


def build_route_report(
    given: Given, result: Result[ChosenRoutes], inputs: dict[str, Any], left: Sequence[str]
) -> RouteReport:
    """Return what the search says, before anything is checked; ``left``: what is not checked."""
    problem, found = given.problem, result.solution
    uncovered = "" if found is None else long_messages(problem, found.routes)[1]
    return RouteReport(
        **ended(result),
        machine=problem.machine.name,
        flows=problem.flows.count,
        objectives=[_objective(name, result) for name in problem.objective],
        rules={},
        checks=[],
        not_checked=list(left),
        long_messages=uncovered,
        memory_peak=result.memory_peak,
        inputs=inputs,
    )


def _objective(name: str, result: Result[ChosenRoutes]) -> ObjectivePart:
    """Return what the search says of one objective."""
    value, low = result.scores.get(name), result.bound_of(name)
    package = package_behind(result.stages[name].bounds if name in result.stages else ())
    return ObjectivePart(name, value, low, gap(value, low), result.proved(name), package)


def report_words(report: RouteReport) -> Iterator[str]:
    """Yield what the report says, for people."""
    how = f"(stopped: {report.stop_reason}, {report.wall_seconds:.1f} s)"
    yield f"\n{report.status}: {report.flows} flows {how}"
    for part in report.objectives:
        words = "proved" if part.proved else f"gap {percent(part.gap)}"
        words += f"  (on the word of {part.package})" if part.package else ""
        yield f"  {part.name:12} {number(part.value):>16}  bound {number(part.bound):>16}  {words}"
    if report.rules:
        rest = ", ".join(f"{name} {number(value)}" for name, value in report.rules.items())
        yield f"  max-link of one quick choice of routes within each turn model: {rest}"
        yield "  (not the least that a model allows: `nmsolve route --turns MODEL` proves that)"
    for check in report.checks:
        yield f"  {'ok' if check.ok else 'FAILED':6} {check.name}: {check.text}"
    if report.long_messages:
        yield f"  multicast messages of many flits can block each other: {report.long_messages}"
    if report.not_checked:
        yield f"  not done for lack of time: {', '.join(report.not_checked)}"


def max_link_by_rule(problem: RoutingProblem) -> dict[str, float]:
    """The largest link load of one greedy choice of routes within every turn model that connects all flows, to compare with.

    The least that a model allows is another question: ``--turns MODEL`` searches for that.
    """
    from nmsolve.hw.routing.loads import route_loads
    from nmsolve.hw.routing.named import named_routes
    from nmsolve.model.turns import RULES

    out = {}
    for rule in RULES:
        try:
            routes = named_routes(problem.machine, problem.flows, rule)
        except InputError:  # this rule cuts a pair off, or takes no rings: nothing to compare with
            continue
        out[rule] = float(route_loads(problem.machine, problem.flows, routes).max(initial=0.0))
    return out
