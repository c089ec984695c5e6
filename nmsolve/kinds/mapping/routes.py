"""``nmsolve map --route RULE``: routes for the mapping that was found, by a named rule or chosen for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmsolve.kinds.answer import event_lines
from nmsolve.kinds.mapping.given import CHOSEN, MappedRoutes
from nmsolve.kinds.mapping.report import RoutingPart
from nmsolve.kinds.parts import CheckPart, ObjectivePart, check_parts
from nmsolve.kinds.routing.report import PROOFS
from nmsolve.model.bound import gap
from nmsolve.model.clock import now
from nmsolve.model.errors import InputError
from nmsolve.model.turns import RULES

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from nmsolve.kinds.mapping.given import Given
    from nmsolve.kinds.mapping.options import MapOptions
    from nmsolve.kinds.run import Searched
    from nmsolve.model.bound import Result
    from nmsolve.model.machine import Machine
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.model.routing.flows import Flows
    from nmsolve.model.routing.problem import RoutingProblem
    from nmsolve.model.routing.routes import ChosenRoutes
    from nmsolve.model.types import IntArray
    from nmsolve.solvers.search.incumbent import Observer


#: What ``--route`` takes that adds routes to a mapping.
AFTER = (*RULES, CHOSEN)
#: All that it takes.
ROUTES = ("given", "joint", *AFTER)


#: Least seconds for the routes, however late it is.
LEAST = 0.5
#: What is checked of routes that were added to a mapping, beside :data:`nmsolve.check.mapping.verify.STAGES`.
ADDED = "routes"
#: The routes of a mapping.
FLOWS = "flow-routes.json"


def require_route(o: MapOptions) -> None:
    """Raise InputError if ``--route`` is unknown or cannot be combined with the other options."""
    if o.route not in ROUTES:
        raise InputError(f"unknown routes {o.route!r}", "--route", f"given, joint or {', '.join(AFTER)}")
    if o.route in AFTER and o.pareto is not None:
        raise InputError(
            "routes for a front of mappings", "--route", "given; `nmsolve route` takes its points"
        )


def with_routes(
    found: Searched,
    how: Mapping[str, Any],
    end: float,
    asked: bool,
    watching: AbstractContextManager[list[Observer]],
    say: Callable[[str], None],
) -> Searched:
    """Return what was found with the routes that the options ask for after the mapping; a failure must not cost it its files.

    Parameters
    ----------
    how : the options of every search
    end : ``clock.now()`` at which the limit is over
    asked : the end of the run was asked for
    watching, say : who observes a search for routes, and who takes sentences for people
    """
    given, core = found.given, found.result.core
    route = given.options.route
    if route not in AFTER or core is None or given.mapped is not None:
        return found
    if asked and route == CHOSEN:
        say("interrupted: no routes are chosen; `nmsolve route` can do it")
        return found
    left = max(LEAST, end - now())
    if not given.options.json:
        say(f"routes ({route}): {left:.1f} s")
    try:
        mapped = routes_after(given, core, left, how, watching)
    except InputError as error:
        return found._replace(given=replace(given, trouble=error))
    if mapped is None:
        say("no routes were found in the time left; `nmsolve route` can continue")
    return found._replace(given=replace(given, mapped=mapped))


def routes_after(
    given: Given,
    core: IntArray,
    seconds: float,
    how: Mapping[str, Any],
    watching: AbstractContextManager[list[Observer]],
) -> MappedRoutes | None:
    """Return routes for the mapping ``core`` (n,); None if none were found in time.

    Parameters
    ----------
    seconds : of wall time, for ``chosen``

    Raises
    ------
    InputError : turns and dead links disconnect a pair of cores that the mapping needs
    """
    from nmsolve.model.routing.flows import flows_of

    problem, rule = given.problem, given.options.route
    flows = flows_of(problem.graph, core, problem.machine.size)
    if rule != CHOSEN:
        return routes_by_rule(problem.machine, flows, rule)
    from nmsolve.model.routing.problem import RoutingProblem
    from nmsolve.solvers.routing.api import route

    asked = RoutingProblem(problem.machine, flows, turns=problem.turns)
    told = {name: how[name] for name in ("seed", "workers", "memory", "cluster") if name in how}
    with watching as observers:
        found = route(asked, time_limit=seconds, started=now(), observers=observers, **told)
    return None if found.solution is None else chosen_part(asked, found)


def chosen_part(asked: RoutingProblem, found: Result[ChosenRoutes], scored: bool = False) -> MappedRoutes:
    """Return routes that were found by search, their values recomputed from them."""
    from nmsolve.hw.routing.values import routing_value

    assert found.solution is not None
    routes, numbering, turns = found.solution.routes, found.solution.numbering, found.solution.turns
    objectives = []
    for k in asked.objective:
        value, bound = routing_value(asked, routes, numbering, k), found.bound_of(k)
        objectives.append(ObjectivePart(k, value, bound, gap(value, bound), found.proved(k)))
    prohibited = None if turns is None else turns.prohibited(asked.machine)
    part = RoutingPart(CHOSEN, asked.flows.count, objectives, prohibited)
    bounds = {name: stage.bounds for name, stage in found.stages.items()}
    lines = event_lines(found.events)
    return MappedRoutes(asked, routes, turns, numbering, part, lines, scored, bounds)


def routes_by_rule(machine: Machine, flows: Flows, rule: str) -> MappedRoutes:
    """Return routes by a rule with a name, numbered if that is possible."""
    from nmsolve.hw.routing.lengths import extra_links
    from nmsolve.hw.routing.loads import route_loads
    from nmsolve.hw.routing.named import named_routes
    from nmsolve.hw.routing.proof import prove
    from nmsolve.model.routing.problem import RoutingProblem
    from nmsolve.model.turns import turn_set

    routes, turns = named_routes(machine, flows, rule), turn_set(rule, machine)
    asked = RoutingProblem(
        machine, flows, detour=extra_links(machine, flows, routes), turns=turns, channels=routes.channels
    )
    proof, loads = prove(machine, flows, routes), route_loads(machine, flows, routes)
    values = {"max-link": float(loads.max(initial=0.0)), "total-link": float(loads.sum())}
    objectives = [ObjectivePart(k, v, None, None, False) for k, v in values.items()]
    part = RoutingPart(rule, flows.count, objectives, turns.prohibited(machine))
    return MappedRoutes(asked, routes, turns, proof.numbering if proof.free else None, part, "")


def write_mapped_routes(out: Path, mapped: MappedRoutes) -> None:
    """Write flow-routes.json, and the events of a search for them, beside the mapping."""
    from nmsolve.check.certificates import certificates_text
    from nmsolve.hw.routing.proof import cover_long_messages
    from nmsolve.model.files import write_atomic
    from nmsolve.model.routing.files import write_flow_routes

    problem = mapped.problem
    worms = None
    if mapped.numbering is not None:
        worms, _ = cover_long_messages(problem.machine, problem.flows, mapped.routes)
    write_flow_routes(out / FLOWS, problem, mapped.routes, mapped.turns, mapped.numbering, worms)
    if mapped.bounds:
        rows = ((name, bound) for name, some in mapped.bounds.items() for bound in some)
        write_atomic(out / PROOFS, certificates_text(problem.content_hash, rows))
    if mapped.events:
        write_atomic(out / "route-events.jsonl", mapped.events)


def mapped_checks(
    out: Path, problem: MappingProblem, core: IntArray, mapped: MappedRoutes
) -> list[CheckPart]:
    """Return the independent checks of the routes, from their file alone."""
    from nmsolve.check.routing.routes import verify_flow_routes

    claimed = {o.name: o.value for o in mapped.part.objectives}
    found = verify_flow_routes(problem.graph, problem.machine, core, out / FLOWS, claimed, problem.turns)
    return check_parts(found)
