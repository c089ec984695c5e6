"""flow-routes.json of a mapping: written, and checked from the file alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmsolve.kinds.parts import CheckPart, check_parts
from nmsolve.kinds.routing.report import long_messages

if TYPE_CHECKING:
    from nmsolve.kinds.loading import Loaded
    from nmsolve.model.routing.problem import RoutingProblem
    from nmsolve.model.routing.routes import ChosenRoutes
    from nmsolve.model.turns import TurnSet


def write_answer(path: Path, problem: RoutingProblem, solution: ChosenRoutes) -> None:
    """Write flow-routes.json, with numbers for long multicast messages where there are some."""
    from nmsolve.model.routing.files import write_flow_routes

    packets, _ = long_messages(problem, solution.routes)
    write_flow_routes(path, problem, solution.routes, solution.turns, solution.numbering, packets)


def file_checks(of: Loaded, path: Path, claimed: Mapping[str, Any], turns: TurnSet | None) -> list[CheckPart]:
    """Check routes by what is ``claimed`` of them and the ``turns`` that were given, if any."""
    from nmsolve.check.routing.routes import verify_flow_routes

    return check_parts(verify_flow_routes(of.graph, of.machine, of.core, path, claimed, turns))
