"""route-report.json: what a run of ``nmsolve route`` claims, in one documented object (docs/files.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from nmsolve.kinds.mapping.report import CheckPart, ObjectivePart
from nmsolve.model.errors import InputError

if TYPE_CHECKING:
    from nmsolve.model.routing.problem import RoutingProblem

FLOWS, REPORT, PAGE = "flow-routes.json", "route-report.json", "route.html"


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
