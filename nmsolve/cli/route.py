"""``nmsolve route``: routes and prohibited turns for the flows of a mapping."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from nmsolve import __version__
from nmsolve.cli import options as opt
from nmsolve.cli.answer import exit_code, prepare_folder
from nmsolve.cli.loading import Loaded, load_answer
from nmsolve.cli.patience import CHECKS, Patience, search_time
from nmsolve.cli.progress import event_to_json, number, percent, watching
from nmsolve.cli.report import CheckPart, ObjectivePart
from nmsolve.cli.route_proofs import FILE as PROOFS
from nmsolve.cli.route_proofs import certificates_text
from nmsolve.model.bound import Result, gap
from nmsolve.model.errors import InputError

if TYPE_CHECKING:
    from nmsolve.model.machine import Machine
    from nmsolve.model.routing.problem import RoutingProblem
    from nmsolve.model.routing.routes import ChosenRoutes
    from nmsolve.model.routing.turns import TurnSet


@dataclass(frozen=True)
class RouteOptions:
    """The options of ``nmsolve route``, as typed."""

    mapping: Path
    graph: Path | None
    machine: str | None
    chips: str | None
    placement: Path | None
    objective: str
    turns: str
    form: str
    table_limit: int | None
    detour: int
    channels: int
    time_limit: str
    gap: str | None
    seed: int
    workers: int
    engines: str | None
    memory: str | None
    out: Path
    json: bool


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


def run_route(o: RouteOptions) -> int:
    """Run the command; returns the exit code.

    Raises
    ------
    InputError : anything wrong with the input, or no routes can exist (names the flow, the cores, the tables)
    """
    from nmsolve.cli.main import STARTED
    from nmsolve.solvers.routing.api import route

    limit, wanted, memory = opt.seconds(o.time_limit), opt.fraction(o.gap), opt.size_in_bytes(o.memory)
    loaded = load_answer(o.mapping, o.graph, o.machine, o.chips, o.placement, memory)
    problem = routing_problem(o, loaded)
    prepare_folder(o.out)
    with Patience(STARTED + limit) as patience:
        with watching(o.json) as observers:
            result = route(
                problem, time_limit=search_time(limit), started=STARTED, gap=wanted or 0.0, seed=o.seed, workers=o.workers,
                engines=opt.names(o.engines), memory=memory, observers=observers,
            )  # fmt: skip
        report = write_routing(o, loaded, problem, result, patience)
    say_routing(o.out, report, o.json)
    return exit_code(result, report, wanted)


def routing_problem(o: RouteOptions, loaded: Loaded) -> RoutingProblem:
    """The flows of the mapping with the rules of the options."""
    from nmsolve.model.routing.flows import flows_of
    from nmsolve.model.routing.problem import RoutingProblem

    flows = flows_of(loaded.graph, loaded.core, loaded.machine.size)
    return RoutingProblem(
        loaded.machine, flows, tuple(opt.names(o.objective) or ()), o.form, o.detour, o.table_limit,
        turns_option(o.turns, loaded.machine), o.channels,
    )  # fmt: skip


def turns_option(text: str, machine: Machine) -> TurnSet | None:
    """``chosen`` -> None; anything that :func:`nmsolve.hw.turns.turn_set` reads -> that turn set."""
    from nmsolve.hw.turns import turn_set

    return None if text == "chosen" else turn_set(text, machine)


#: Names that files of a routing may have.
FILES = ("flow-routes.json", PROOFS, "events.jsonl", "route-report.json", "route.html")


def write_routing(
    o: RouteOptions, loaded: Loaded, problem: RoutingProblem, result: Result[ChosenRoutes], patience: Patience
) -> RouteReport:
    """Write flow-routes.json, events and report; then check the routes from their file alone, draw, and write report and page.

    Whoever loses ``patience`` gets all of it but what is not done yet: checks, the comparison with turn models, the page.
    """
    from nmsolve.cli.routing_page import render_route_html
    from nmsolve.hw.routing.proof import cover_long_messages
    from nmsolve.hw.verify_routes import verify_flow_routes
    from nmsolve.model.file_set import file_set, new_run
    from nmsolve.model.files import write_atomic
    from nmsolve.model.routing.files import write_flow_routes

    run, path, uncovered = new_run(), o.out / "flow-routes.json", ""
    with file_set(o.out, FILES, run) as folder:
        if (found := result.solution) is not None:
            worms, uncovered = cover_long_messages(problem.machine, problem.flows, found.routes)
            write_flow_routes(folder / path.name, problem, found.routes, found.turns, found.numbering, worms)
        proofs = {name: stage.bounds for name, stage in result.stages.items()}
        write_atomic(folder / PROOFS, certificates_text(problem, proofs))
        lines = "".join(json.dumps(event_to_json(e)) + "\n" for e in result.events)
        write_atomic(folder / "events.jsonl", lines)
        report = _report(o, loaded, problem, result, uncovered)
        write_atomic(folder / "route-report.json", _as_json(report))
    page = None
    try:
        with patience.optional(CHECKS):
            if result.solution is not None:
                told = verify_flow_routes(
                    loaded.graph, loaded.machine, loaded.core, path, result.scores, problem.turns
                )
                checks = [CheckPart(c.name, c.ok, c.text) for c in told]
                report = msgspec.structs.replace(report, checks=checks, not_checked=[TURN_MODELS])
        with patience.optional():
            report = msgspec.structs.replace(report, rules=max_link_by_rule(problem), not_checked=[])
            command = verify_command(o, path)
            page = render_route_html(loaded, problem, result, report, command)
    except KeyboardInterrupt:
        print("no time was left for the page", file=sys.stderr)
    with file_set(o.out, (), run) as folder:
        write_atomic(folder / "route-report.json", _as_json(report))
        if page is not None:
            write_atomic(folder / "route.html", page)
    return report


def verify_command(o: RouteOptions, path: Path) -> str:
    """The command that checks the routes in ``path`` again, with all that the mapping's own files do not say."""
    words = ["nmsolve", "verify", str(o.mapping)]
    for option, value in (
        ("--graph", o.graph),
        ("--machine", o.machine),
        ("--chips", o.chips),
        ("--placement", o.placement),
    ):
        words += [] if value is None else [option, str(value)]
    return shlex.join([*words, "--routes", str(path), "--bound"])


def _as_json(report: RouteReport) -> bytes:
    return msgspec.json.format(msgspec.json.encode(report), indent=2)


def _report(
    o: RouteOptions, loaded: Loaded, problem: RoutingProblem, result: Result[ChosenRoutes], uncovered: str
) -> RouteReport:
    """What the search says, before anything is checked."""
    return RouteReport(
        version=__version__,
        status=result.status,
        stop_reason=result.stop_reason,
        machine=loaded.machine.name,
        flows=problem.flows.count,
        objectives=[
            ObjectivePart(
                k, value := result.scores.get(k), low := result.bound_of(k), gap(value, low), result.proved(k)
            )
            for k in problem.objective
        ],
        rules={},
        checks=[],
        not_checked=[*(["routes"] if result.solution is not None else []), TURN_MODELS],
        long_messages=uncovered,
        wall_seconds=round(result.wall_seconds, 3),
        cpu_seconds=round(result.cpu_seconds, 3),
        memory_peak=result.memory_peak,
        seed=result.seed,
        inputs=_inputs(o, loaded),
    )


def max_link_by_rule(problem: RoutingProblem) -> dict[str, float]:
    """The largest link load of one greedy choice of routes within every turn model that connects all flows, to compare with.

    The least that a model allows is another question: ``--turns MODEL`` searches for that.
    """
    from nmsolve.hw.routing.loads import route_loads
    from nmsolve.hw.routing.named import named_routes
    from nmsolve.hw.turns import RULES

    out = {}
    for rule in RULES:
        try:
            routes = named_routes(problem.machine, problem.flows, rule)
        except InputError:  # this rule cuts a pair off, or takes no rings: nothing to compare with
            continue
        out[rule] = float(route_loads(problem.machine, problem.flows, routes).max(initial=0.0))
    return out


def _inputs(o: RouteOptions, loaded: Loaded) -> dict[str, Any]:
    """What it takes to run this again."""
    graph = loaded.inputs.graph if o.graph is None else str(o.graph.resolve())
    return {
        "mapping": str(o.mapping.resolve()), "graph": graph, "machine": o.machine or loaded.inputs.machine,
        "chips": o.chips or loaded.inputs.chips, "objective": o.objective, "turns": o.turns, "form": o.form,
        "table_limit": o.table_limit, "detour": o.detour, "channels": o.channels, "time_limit": opt.seconds(o.time_limit),
        "engines": o.engines,
    }  # fmt: skip


def say_routing(out: Path, report: RouteReport, as_json: bool) -> None:
    """The last words: JSON result on stdout, or a summary for people."""
    if as_json:
        print(
            json.dumps({"type": "result", **msgspec.to_builtins(report), "out": str(out)}),
            flush=True,
        )
    stream = sys.stderr if as_json else sys.stdout
    print(
        f"\n{report.status}: {report.flows} flows (stopped: {report.stop_reason}, {report.wall_seconds:.1f} s)",
        file=stream,
    )
    for part in report.objectives:
        words = "proved" if part.proved else f"gap {percent(part.gap)}"
        print(
            f"  {part.name:12} {number(part.value):>16}  bound {number(part.bound):>16}  {words}", file=stream
        )
    if report.rules:
        rest = ", ".join(f"{name} {number(value)}" for name, value in report.rules.items())
        print(f"  max-link of one quick choice of routes within each turn model: {rest}", file=stream)
        print("  (not the least a model allows: route --turns MODEL proves that)", file=stream)
    for check in report.checks:
        print(f"  {'ok' if check.ok else 'FAILED':6} {check.name}: {check.text}", file=stream)
    if report.long_messages:
        print(f"  multicast messages of many flits can block each other: {report.long_messages}", file=stream)
    if report.not_checked:
        print(f"  not done for lack of time: {', '.join(report.not_checked)}", file=stream)
    page = out / "route.html"
    print(f"report: {page if page.exists() else out / 'route-report.json'}", file=stream)
