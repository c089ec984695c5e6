"""route-report.json: what a run of ``nmsolve route`` claims, in one documented object (docs/files.md)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from nmsolve.kinds.parts import CheckPart, ObjectivePart, ended, package_behind
from nmsolve.model.bound import gap
from nmsolve.model.errors import InputError

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

    ``not_checked``: what was left out for lack of time, ``routes`` or ``turn models``;
    ``long_messages``: which multicast messages of many flits could block each other, "" if none can; ``inputs`` holds the
    paths and options that ``verify`` needs.
    """

    version: str
    status: str
    stop_reason: str
    method: str | None = None
    contributions: list[str] = []
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
