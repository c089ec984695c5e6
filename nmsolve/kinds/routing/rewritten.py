"""What files and reports say of routes, written again from mapping and routes, for :mod:`nmsolve.kinds.check_fields`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from nmsolve.kinds import values as opt
from nmsolve.kinds.check_fields import (
    RUN,
    answer_check,
    field_check,
    inputs_of_options,
    not_read,
    under,
)
from nmsolve.kinds.loading import require_types
from nmsolve.kinds.mapping.report import RoutingPart
from nmsolve.kinds.parts import CheckPart, ObjectivePart
from nmsolve.kinds.routing.statement import PLACES, RouteInputs
from nmsolve.model.bound import gap
from nmsolve.model.turns import RULES

if TYPE_CHECKING:
    from pathlib import Path

    from nmsolve.kinds.loading import Loaded
    from nmsolve.kinds.mapping.given import MappedRoutes
    from nmsolve.kinds.routing.proofs import Said
    from nmsolve.model.routing.files import FlowRoutes
    from nmsolve.model.routing.problem import RoutingProblem


def route_fields(
    loaded: Loaded, path: Path, file: FlowRoutes, problem: RoutingProblem, beside: Said
) -> list[CheckPart]:  # fmt: skip
    """Check every other field of a flow-routes.json that passed all checks, and of the report beside it.

    Parameters
    ----------
    problem : the flows of graph and mapping, with the turns that were given
    beside : that report; the fields of a route-report.json are checked here, too
    """
    from nmsolve.kinds.routing.report import PAGE, REPORT, RouteReport, long_messages, max_link_by_rule

    said, rule = beside.content, None if beside.alone else loaded.inputs.route
    checks = [routes_check(path, file, _rules(loaded, file, problem, rule), rule)]
    if not beside.alone:
        return checks
    require_types(said, RouteReport, path.parent / REPORT)
    names = asked_objectives(said.get("inputs") or {})
    content: dict[str, Any] = {
        "machine": loaded.machine.name,
        "flows": file.problem.flows.count,
        "objectives": msgspec.to_builtins(objectives_again(file, names, said.get("objectives") or ())),
        "rules": max_link_by_rule(replace(problem, objective=names)) if names and said.get("rules") else {},
        "long_messages": long_messages(file.problem, file.routes)[1],
        "inputs": inputs_of_options(said, RouteInputs.__struct_fields__),
        "status": said.get("status"),
    }
    unread = RUN | {"objectives.package"} | under("inputs", PLACES)
    left = [f for f in ("events.jsonl", PAGE) if (path.parent / f).exists()]
    return [
        *checks,
        field_check(REPORT, said, content, unread),
        not_read([(REPORT, said, unread)], left),
    ]


def routes_check(path: Path, file: FlowRoutes, problem: RoutingProblem, rule: str | None = None) -> CheckPart:
    """Check every other field of a file of routes, which keeps the rules of ``problem``; ``rule``: the routes are by it."""
    return answer_check(path, partial(_write, file, problem, rule))


def routing_again(loaded: Loaded, said: RoutingPart) -> RoutingPart:
    """Return what a report.json says of the routes in the flow-routes.json beside it, as it would be written again."""
    from nmsolve.kinds.mapping.given import CHOSEN
    from nmsolve.model.routing.files import read_flow_routes

    rule = loaded.inputs.route
    if rule in RULES:
        return _named(loaded, rule).part
    file = read_flow_routes(loaded.folder / "flow-routes.json", loaded.machine)
    problem = _rules(loaded, file, file.problem, rule)
    parts = objectives_again(file, problem.objective, msgspec.to_builtins(said.objectives))
    turns = file.problem.turns
    prohibited = None if turns is None else turns.prohibited(loaded.machine)
    return RoutingPart(CHOSEN, file.problem.flows.count, parts, prohibited)


def asked_objectives(inputs: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the objectives that the inputs of a route name, in order; none where they are no text."""
    text = inputs.get("objective")
    return tuple(opt.names(text) or ()) if isinstance(text, str) else ()


def objectives_again(
    file: FlowRoutes, names: Sequence[str], said: Sequence[Mapping[str, Any]]
) -> list[ObjectivePart]:
    """Return what a report says of the objectives ``names``: values and gaps again, bounds as ``said``."""
    from nmsolve.hw.routing.values import routing_value

    out = []
    for k, name in enumerate(names):
        row = said[k] if k < len(said) else {}
        value = (
            row.get("value")
            if file.numbering is None
            else routing_value(file.problem, file.routes, file.numbering, name)
        )
        low = row.get("bound")
        proved = low is not None and low == value
        out.append(ObjectivePart(name, value, low, gap(value, low), proved, row.get("package", "")))
    return out


def _rules(loaded: Loaded, file: FlowRoutes, problem: RoutingProblem, rule: str | None) -> RoutingProblem:
    """Return the file's flows with the rules that they were routed under: those of a report, else those of ``map``."""
    from nmsolve.model.routing.problem import RoutingProblem

    if rule in RULES:
        return _named(loaded, rule).problem
    own = RoutingProblem(loaded.machine, file.problem.flows)
    if (
        loaded.inputs.in_turns
    ):  # as long as the first routes were; that the routes keep it is checked with them
        return replace(own, detour=file.problem.detour)
    if rule is not None:
        return own
    return replace(
        own,
        form=problem.form,
        detour=problem.detour,
        table_limit=problem.table_limit,
        channels=problem.channels,
    )


def _named(loaded: Loaded, rule: str | None) -> MappedRoutes:
    """Return the routes of a mapping by a rule with a name."""
    from nmsolve.kinds.mapping.routes import routes_by_rule
    from nmsolve.model.routing.flows import flows_of

    flows = flows_of(loaded.graph, loaded.core, loaded.machine.size)
    return routes_by_rule(loaded.machine, flows, str(rule))


def _write(file: FlowRoutes, problem: RoutingProblem, rule: str | None, path: Path) -> None:
    """Write the routes of a file under the rules of ``problem``."""
    from nmsolve.model.routing.files import write_flow_routes

    turns = problem.turns if rule in RULES else file.problem.turns
    write_flow_routes(path, problem, file.routes, turns, file.numbering, file.worms)
