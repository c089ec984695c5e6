"""The options of ``nmsolve route``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated as A

from nmsolve.kinds.options import AnswerOptions, ConflictOptions, Json, Out, Points, SearchOptions
from nmsolve.kinds.parameters import Option

# One option, one line:
# fmt: off

@dataclass(frozen=True)
class RouteProblemOptions(AnswerOptions):
    """Which routes are allowed for a mapping."""

    turns: A[str, Option(help="chosen: prohibited turns are chosen too; or a turn model (xy, west-first, ...), turns to "
                         "prohibit (WS,EN) or a .json file.")] = "chosen"
    form: A[str, Option(help="What decides the next link: flow, source (one tree per core) or destination (one table by "
                        "target).")] = "flow"
    table_limit: A[int | None, Option(min=0, help="Limit on the routing table entries of every core.")] = None
    detour: A[int, Option(min=0, help="Number of links by which a route may exceed a shortest one.")] = 0
    channels: A[int, Option(min=1, help="Number of virtual channels per link.")] = 1


@dataclass(frozen=True)
class RouteOptions(SearchOptions, RouteProblemOptions):
    """Choose routes and prohibited turns together for a mapping: least link load, no deadlock, with a bound."""

    objective: A[str, Option(help="In order of priority: max-link, total-link, turns, reward.")] = "max-link,total-link,turns"
    warm_start: A[Path | None, Option(help="Start from these routes (flow-routes.json, or its folder).")] = None
    pareto: A[str | None, Option(help="Compute the front of two objectives, e.g. max-link,total-link.")] = None
    points: Points = 8
    out: Out = Path("nmsolve-route")
    json: Json = False


@dataclass(frozen=True)
class ExplainRouteOptions(ConflictOptions, RouteProblemOptions):
    """Find out whether a mapping has any routes; if not, show a smallest set of limits that conflict."""


#: Of the command, and of ``nmsolve explain``.
OPTIONS, EXPLAIN = RouteOptions, ExplainRouteOptions
#: Where the names of its objectives are.
OBJECTIVE_TABLE = "model.routing.objectives:ROUTING_OBJECTIVES"
#: What folders of instances hold, for ``nmsolve bench``.
BENCHED = "output folders of map"
