"""``nmsolve route``: routes and prohibited turns for the flows of a mapping."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace as replace_option
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from nmsolve.kinds import clock
from nmsolve.kinds import values as opt
from nmsolve.kinds.answer import (
    BETTER,
    FRONT_FILES,
    Answer,
    as_json,
    event_lines,
    explained,
    finish,
    prepare_folder,
    write_models,
)
from nmsolve.kinds.command_line import as_command
from nmsolve.kinds.loading import Loaded, load_answer
from nmsolve.kinds.mapping.options import VerifyOptions
from nmsolve.kinds.mapping.report import ObjectivePart, check_parts, ended, package_behind
from nmsolve.kinds.pareto import require_front, run_front
from nmsolve.kinds.patience import CHECKS, Patience, search_time
from nmsolve.kinds.progress import watching
from nmsolve.kinds.routing.options import RouteOptions, RouteProblemOptions
from nmsolve.kinds.routing.proofs import FILE as PROOFS
from nmsolve.kinds.routing.proofs import certificates_text
from nmsolve.kinds.routing.report import FLOWS, PAGE, REPORT, RouteReport, max_link_by_rule
from nmsolve.model.bound import Result, gap
from nmsolve.model.file_set import new_run
from nmsolve.model.routing.objectives import ROUTING_OBJECTIVES
from nmsolve.report.figures import number, percent
from nmsolve.solvers.multi_objective import objective_names

if TYPE_CHECKING:
    from nmsolve.kinds.kind import Start
    from nmsolve.model.bound import Bound
    from nmsolve.model.machine import Machine
    from nmsolve.model.routing.problem import RoutingProblem
    from nmsolve.model.routing.routes import ChosenRoutes
    from nmsolve.model.turns import TurnSet


#: A result, and a better answer than the given one where only bounds were to be raised.
Searched = tuple[Result["ChosenRoutes"], "ChosenRoutes | None"]
#: The comparison with turn models, in ``not_checked``.
TURN_MODELS = "turn models"


def run_route(o: RouteOptions, start: Start | None = None) -> int:
    """Run the command, going on from an earlier run where there is a ``start``; returns the exit code.

    Raises
    ------
    InputError : anything wrong with the input, or no routes can exist (names the flow, the cores, the tables)
    """
    limit, how = opt.seconds(o.time_limit), opt.search(o)
    names = None
    if o.pareto is not None:
        names = require_front(o, objective_names(o.pareto, ROUTING_OBJECTIVES, "--pareto"))
        o = replace_option(o, objective=o.pareto)
    loaded = load_answer(o, o.memory)
    problem = routing_problem(o, loaded, o.objective)
    search = _search(o, start, problem)
    prepare_folder(o.out, (*FILES, *FRONT_FILES), o)
    if o.write_model is not None:
        from nmsolve.solvers.routing.exact import models

        with explained("route"):
            write_models("routes", lambda: models(problem), o.write_model)
    if names is not None:
        return _route_front(o, names, loaded, problem)
    with Patience(clock.end(limit)) as patience:
        with watching(o.json, out=o.out) as observers, explained("route"):
            run = new_run()
            keep = partial(write_unchecked, o, loaded, problem, run)
            result, better = search(time_limit=search_time(limit), observers=observers, keep=keep, **how)
        report = write_routing(o, loaded, problem, result, patience, run, better)
    return finish(o, result, report, _words(report), (PAGE, REPORT), "route", "routes exist")


def _route_front(o: RouteOptions, names: tuple[str, str], loaded: Loaded, problem: RoutingProblem) -> int:
    """Compute the front of two objectives; return the exit code."""
    from nmsolve.kinds.routing.front import RouteFront
    from nmsolve.model.routing.files import routes_again
    from nmsolve.solvers.routing.api import first_solution
    from nmsolve.solvers.routing.fit import require_routes
    from nmsolve.solvers.routing.multi_objective import RoutingObjectives
    from nmsolve.solvers.run import Options

    with explained("route"):
        require_routes(problem)
    first, limit = None, opt.seconds(o.time_limit)
    if (path := o.warm_start) is not None:
        first = first_solution(problem, *routes_again(path / FLOWS if path.is_dir() else path, problem))
    with Patience(clock.end(limit)) as patience:
        objectives = RoutingObjectives(problem, Options(**opt.search(o)), first)
        kind = RouteFront(problem, loaded)
        return run_front(o, kind, objectives, names, limit, patience, route_inputs(o, loaded))


def _search(o: RouteOptions, start: Start | None, problem: RoutingProblem) -> Callable[..., Searched]:
    """What is to be done, after a look at the files that it begins with: routes as good as possible, or the bound of those that
    are given, with better ones met on the way."""
    from nmsolve.model.routing.files import routes_again
    from nmsolve.solvers.routing.api import bound_routes, route
    from nmsolve.solvers.run import Options

    path = o.warm_start if start is None else start.answer
    if path is None:
        return lambda **how: (route(problem, **how), None)
    routes, numbering = routes_again(path / FLOWS if path.is_dir() else path, problem)
    known: dict[str, list[Bound]] = {}
    for name, bound in [] if start is None else start.known(PROOFS, problem.content_hash):
        known.setdefault(name, []).append(bound)

    def raise_bounds(**how: Any) -> Searched:
        found = bound_routes(problem, routes, Options(**how), numbering, known)
        return found.result, found.better

    if start is not None and start.stays:
        return raise_bounds
    return lambda **how: (
        route(problem, warm_start=routes, numbering=numbering, known=known, **how),
        None,
    )


def routing_problem(o: RouteProblemOptions, loaded: Loaded, objective: str) -> RoutingProblem:
    """Return the flows of the mapping with the rules of the options."""
    from nmsolve.model.routing.flows import flows_of
    from nmsolve.model.routing.problem import RoutingProblem

    flows = flows_of(loaded.graph, loaded.core, loaded.machine.size)
    return RoutingProblem(
        loaded.machine, flows, tuple(opt.names(objective) or ()), o.form, o.detour, o.table_limit,
        turns_option(o.turns, loaded.machine), o.channels,
    )  # fmt: skip


def turns_option(text: str, machine: Machine) -> TurnSet | None:
    """Parse ``chosen`` -> None; anything that :func:`nmsolve.model.turns.turn_set` reads -> that turn set."""
    from nmsolve.model.turns import turn_set

    return None if text == "chosen" else turn_set(text, machine)


#: Possible file names of a routing.
FILES = (FLOWS, PROOFS, "events.jsonl", REPORT, PAGE, BETTER)


def write_routing(
    o: RouteOptions, loaded: Loaded, problem: RoutingProblem, result: Result[ChosenRoutes], patience: Patience, run: str,
    better: ChosenRoutes | None = None,
) -> RouteReport:  # fmt: skip
    """Write flow-routes.json, events and report; then check the routes from their file alone, draw, and write report and page.

    Whoever loses ``patience`` gets all of it but what is not done yet: checks, the comparison with turn models, the page.
    """
    from nmsolve.check.routing.routes import verify_flow_routes
    from nmsolve.kinds.routing.page import render_route_html

    answer, path = Answer(o.out, FILES, run), o.out / FLOWS
    report = write_unchecked(o, loaded, problem, run, result, better)
    again = VerifyOptions(
        o.mapping, o.graph, o.machine, o.chips, o.placement, o.nodes, o.multicast, o.pattern, o.absolute,
        routes=path, bound=True,
    )  # fmt: skip
    command = as_command("verify", again)
    with answer.added() as files:
        with patience.optional(CHECKS):
            if result.solution is not None:
                told = verify_flow_routes(
                    loaded.graph, loaded.machine, loaded.core, path, result.scores, problem.turns
                )
                report = replace(report, checks=check_parts(told), not_checked=[TURN_MODELS])
        files[REPORT] = as_json(report)
        with patience.drawing():
            report = replace(report, rules=max_link_by_rule(problem), not_checked=[])
            files[REPORT] = as_json(report)
            files[PAGE] = render_route_html(loaded, problem, result, report, command, o.plain)
    return report


def write_unchecked(
    o: RouteOptions, loaded: Loaded, problem: RoutingProblem, run: str, result: Result[ChosenRoutes],
    better: ChosenRoutes | None = None,
) -> RouteReport:  # fmt: skip
    """Write flow-routes.json, certificates, events and a report that says what is not checked yet."""
    from nmsolve.hw.routing.proof import cover_long_messages
    from nmsolve.model.files import write_atomic
    from nmsolve.model.routing.files import write_flow_routes

    uncovered = ""
    with Answer(o.out, FILES, run).found() as folder:
        if (found := result.solution) is not None:
            worms, uncovered = cover_long_messages(problem.machine, problem.flows, found.routes)
            write_flow_routes(folder / FLOWS, problem, found.routes, found.turns, found.numbering, worms)
        if better is not None:
            write_flow_routes(folder / BETTER, problem, better.routes, better.turns, better.numbering)
        proofs = {name: stage.bounds for name, stage in result.stages.items()}
        write_atomic(folder / PROOFS, certificates_text(problem, proofs))
        write_atomic(folder / "events.jsonl", event_lines(result.events))
        report = _report(o, loaded, problem, result, uncovered)
        write_atomic(folder / REPORT, as_json(report))
    return report


def _report(
    o: RouteOptions, loaded: Loaded, problem: RoutingProblem, result: Result[ChosenRoutes], uncovered: str
) -> RouteReport:
    """Return what the search says, before anything is checked."""
    return RouteReport(
        **ended(result),
        machine=loaded.machine.name,
        flows=problem.flows.count,
        objectives=[_objective(k, result) for k in problem.objective],
        rules={},
        checks=[],
        not_checked=[*(["routes"] if result.solution is not None else []), TURN_MODELS],
        long_messages=uncovered,
        memory_peak=result.memory_peak,
        inputs=route_inputs(o, loaded),
    )


def _objective(name: str, result: Result[ChosenRoutes]) -> ObjectivePart:
    """Return what the search says of one objective."""
    value, low = result.scores.get(name), result.bound_of(name)
    package = package_behind(result.stages[name].bounds if name in result.stages else ())
    return ObjectivePart(name, value, low, gap(value, low), result.proved(name), package)


def route_inputs(o: RouteOptions, loaded: Loaded) -> dict[str, Any]:
    """Return what it takes to run this again."""
    own = ("objective", "turns", "form", "table_limit", "detour", "channels", "engines")
    return (
        loaded.named(o) | {name: getattr(o, name) for name in own} | {"time_limit": opt.seconds(o.time_limit)}
    )


def _words(report: RouteReport) -> Iterator[str]:
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
