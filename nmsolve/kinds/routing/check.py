"""flow-routes.json written; ``nmsolve verify`` and ``score`` of routes, from files alone, without trusting what made them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmsolve.kinds.parts import CheckPart, check_parts
from nmsolve.kinds.routing.report import FLOWS, PROOFS, REPORT, long_messages
from nmsolve.kinds.routing.statement import turns_option
from nmsolve.kinds.verdict import UNREAD
from nmsolve.model.file_set import require_one_run

if TYPE_CHECKING:
    from nmsolve.kinds.loading import Loaded
    from nmsolve.kinds.verbs import VerifyOptions
    from nmsolve.model.routing.problem import RoutingProblem
    from nmsolve.model.routing.routes import ChosenRoutes
    from nmsolve.model.turns import TurnSet


def route_checks(loaded: Loaded, o: VerifyOptions) -> list[CheckPart]:
    """Check the routes that are given or beside the mapping, and that the mapping's own report mentions no others."""
    own = loaded.folder / FLOWS
    beside = own.exists() and (o.mapping.is_dir() or o.mapping.name == "mapping.json")
    checks = []
    if loaded.report is not None and loaded.report.get("routing") is not None:
        if not beside:
            text = "the report mentions routes, but flow-routes.json is missing beside it"
            checks.append(CheckPart("flow-routes", False, text))
        elif (own.parent / REPORT).exists():
            text = "the routes in report.json are older than route-report.json and are not checked"
            checks.append(CheckPart("routing", True, text, UNREAD))
    paths = [own] if beside and (o.routes is None or loaded.inputs.in_turns) else []
    for path in [*paths, *([] if o.routes is None else [o.routes])]:
        checks += _checks_of_routes(loaded, path, o.prohibit_turns, o.bound)
    return checks


def _checks_of_routes(loaded: Loaded, path: Path, turns: str | None, bound: bool) -> list[CheckPart]:
    """Return checks of one flow-routes.json; if it passes all of them, of what the report beside it claims."""
    from nmsolve.hw.routing.values import routing_value
    from nmsolve.kinds.routing.proofs import claim_checks, said_beside
    from nmsolve.kinds.routing.rewritten import route_fields
    from nmsolve.model.routing.files import read_flow_routes
    from nmsolve.model.routing.flows import flows_of
    from nmsolve.model.routing.objectives import ROUTING_OBJECTIVES
    from nmsolve.model.turns import turn_set

    report = REPORT if (path.parent / REPORT).exists() else "report.json"
    require_one_run(path.parent, [path.name, report, PROOFS])
    said = said_beside(path)
    own = None if said is None else turns_option(said.turns, loaded.machine)
    given = own if turns is None else turn_set(turns, loaded.machine)
    checks = file_checks(loaded, path, {} if said is None else said.values, given)
    if said is None or not all(check.ok for check in checks):
        return checks
    file = read_flow_routes(path, loaded.machine)
    values = {}
    if file.numbering is not None:
        names = [k for k in said.values if k in ROUTING_OBJECTIVES]
        values = {k: routing_value(file.problem, file.routes, file.numbering, k) for k in names}
    flows = flows_of(loaded.graph, loaded.core, loaded.machine.size)
    problem = replace(file.problem, flows=flows, turns=own)
    checks += claim_checks(path, said, problem, values, bound)
    return checks + route_fields(loaded, path, file, problem, said)


def write_answer(path: Path, problem: RoutingProblem, solution: ChosenRoutes) -> None:
    """Write flow-routes.json, with numbers for long multicast messages where there are some."""
    from nmsolve.model.routing.files import write_flow_routes

    packets, _ = long_messages(problem, solution.routes)
    write_flow_routes(path, problem, solution.routes, solution.turns, solution.numbering, packets)


def file_checks(of: Loaded, path: Path, claimed: Mapping[str, Any], turns: TurnSet | None) -> list[CheckPart]:
    """Check routes by what is ``claimed`` of them and the ``turns`` that were given, if any."""
    from nmsolve.check.routing.routes import verify_flow_routes

    return check_parts(verify_flow_routes(of.graph, of.machine, of.core, path, claimed, turns))
