"""Routes: a mapping in; routes and prohibited turns for its flows, a proof and a page out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import msgspec

from nmsolve.kinds import values as opt
from nmsolve.kinds.kind import Explainable, Scores, plain_scores
from nmsolve.kinds.routing.options import RouteOptions
from nmsolve.kinds.routing.report import FLOWS, PAGE, PROOFS, REPORT, TURN_MODELS
from nmsolve.kinds.routing.statement import (
    PLACES,
    Given,
    RouteInputs,
    mapping_options,
    moved,
    state_problem,
    stated_inputs,
)
from nmsolve.kinds.run import Asked, Keep
from nmsolve.kinds.stated import StatedKind
from nmsolve.model.errors import InputError
from nmsolve.model.quantities import counted
from nmsolve.report.figures import number, percent

if TYPE_CHECKING:
    from nmsolve.kinds.front import FrontKind
    from nmsolve.kinds.parts import CheckPart
    from nmsolve.kinds.routing.options import ExplainRouteOptions
    from nmsolve.kinds.routing.report import RouteReport
    from nmsolve.kinds.time_left import TimeLeft
    from nmsolve.kinds.verbs import GapOptions, ScoreOptions, VerifyOptions
    from nmsolve.model.bound import Bound, Result
    from nmsolve.model.routing.problem import RoutingProblem
    from nmsolve.model.routing.routes import ChosenRoutes, Routes
    from nmsolve.model.types import IntArray
    from nmsolve.solvers.bounding import Bounded
    from nmsolve.solvers.multi_objective import Objectives
    from nmsolve.solvers.run import Options


class RouteKind(StatedKind):
    """Flows over links. Several objectives are minimised by one search, each with bounds of its own."""

    name, noun, source = "route", "choice of routes", "graph"
    method_tables = ("check.routing.recheck:RECHECKED", "check.routing.recheck:WORDS")
    files = (FLOWS, PROOFS, "events.jsonl", REPORT, PAGE, "better.json")
    answer, report, proofs, page = FLOWS, REPORT, PROOFS, PAGE
    options, inputs = RouteOptions, RouteInputs
    reports = "kinds.routing.report:RouteReport"
    unchecked = ("routes", TURN_MODELS)
    both = "max-link,total-link"
    no_gap = ("constraints", "balance", "bind", "library")
    of_models = "routes"

    def asked(self, o: RouteOptions, stays: bool) -> Asked:
        """Return mapping, rules and objectives, those of a front instead where there is one."""
        inputs, front = stated_inputs(o), None if o.pareto is None else self.front_names(o)
        if o.pareto is not None:
            inputs = msgspec.structs.replace(inputs, objective=o.pareto)
        return Asked(inputs, front=front)

    def none(self, given: Given) -> str:
        """Return what there is none of."""
        return "routes exist"

    def on_front(self, given: Given, inputs: Any, names: tuple[str, str]) -> tuple[Given, Any]:
        """Return them with these objectives."""
        return replace(given, problem=replace(given.problem, objective=names)), inputs

    def state(self, inputs: RouteInputs) -> Given:
        """Load the mapping, and state the problem of its flows."""
        return state_problem(inputs)

    def loaded(self, o: RouteOptions, inputs: RouteInputs) -> Given:
        """Return the same; a large graph stays on disk."""
        return state_problem(inputs, o.memory)

    def recorded(self, o: RouteOptions, given: Given, inputs: RouteInputs) -> RouteInputs:
        """Return them with what the report beside the mapping says, and with the options of the search."""
        named, limit = given.loaded.named(o), opt.seconds(o.time_limit)
        return msgspec.structs.replace(inputs, **named, engines=o.engines, time_limit=limit)

    def is_source(self, path: Path) -> bool:
        """Return False: graphs are sources of mappings."""
        return False

    def alone(self, o: RouteOptions) -> bool:
        """Return False: routes may lie beside their mapping."""
        return False

    def require(self, o: RouteOptions, given: Given, asked: Asked) -> None:
        """Refuse a front of flows that have no routes; a search for one answer says so itself."""
        from nmsolve.solvers.routing.fit import require_routes

        if asked.front is not None:
            require_routes(given.problem)

    def read(self, path: Path, given: Given) -> ChosenRoutes:
        """Read flow-routes.json of the same flows in any order; channels without numbers get some. InputError: they have none."""
        from nmsolve.hw.routing.order import allowed_turns, number_of
        from nmsolve.model.routing.files import routes_again
        from nmsolve.model.routing.routes import ChosenRoutes

        problem = given.problem
        routes, stated = routes_again(path, problem)
        numbering = number_of(problem, routes) if stated is None else stated
        if numbering is None:
            what = "the routes cannot be used: their channels depend on each other in a cycle"
            raise InputError(what, str(path), "routes of this problem")
        return ChosenRoutes(routes, numbering, allowed_turns(problem, numbering))

    def write_solution(self, path: Path, given: Given, solution: ChosenRoutes) -> None:
        """Write flow-routes.json, with numbers for long multicast messages where there are some."""
        from nmsolve.kinds.routing.check import write_answer

        write_answer(path, given.problem, solution)

    def models(self, given: Given) -> tuple[Any, Any]:
        """Return the MIP's and CP-SAT's."""
        from nmsolve.solvers.routing.exact import models

        return models(given.problem)

    def solve(
        self, problem: RoutingProblem, warm_start: ChosenRoutes | None = None, **how: Any
    ) -> Result[ChosenRoutes]:
        """Search."""
        from nmsolve.solvers.routing.api import route

        if warm_start is not None:
            how |= {"warm_start": warm_start.routes, "numbering": warm_start.numbering}
        return route(problem, **how)

    def bound(
        self, problem: RoutingProblem, solution: ChosenRoutes, known: Mapping[str, Sequence[Bound]] = {}, **how: Any
    ) -> Bounded[ChosenRoutes]:  # fmt: skip
        """Raise the bounds."""
        from nmsolve.solvers.routing.api import bound_routes
        from nmsolve.solvers.run import Options

        return bound_routes(problem, solution.routes, Options(**how), solution.numbering, known)

    def rows(self, result: Result[ChosenRoutes]) -> Sequence[tuple[str, Bound]]:
        """Return the bounds of all objectives."""
        return [(name, bound) for name, stage in result.stages.items() for bound in stage.bounds]

    def known(self, rows: Sequence[tuple[str, Bound]]) -> dict[str, list[Bound]]:
        """Return them by objective."""
        found: dict[str, list[Bound]] = {}
        for name, bound in rows:
            found.setdefault(name, []).append(bound)
        return found

    def objectives(
        self, given: Given, options: Options, first: ChosenRoutes | None, known: tuple[Bound, ...] = ()
    ) -> Objectives[IntArray]:
        """Return all of them; solutions are packed."""
        from nmsolve.solvers.routing.api import first_solution
        from nmsolve.solvers.routing.multi_objective import RoutingObjectives

        problem = given.problem
        packed = None if first is None else first_solution(problem, first.routes, first.numbering)
        return RoutingObjectives(problem, options, packed)

    def front(self, given: Given) -> FrontKind:
        """Return flow-routes.json per point."""
        from nmsolve.kinds.routing.front import RouteFront

        return RouteFront(given.problem, given.loaded)

    def build_report(
        self, o: RouteOptions, given: Given, result: Result[ChosenRoutes], inputs: dict[str, Any], left: Sequence[str]
    ) -> RouteReport:  # fmt: skip
        """Return objectives with their bounds."""
        from nmsolve.kinds.routing.report import build_route_report

        return build_route_report(given, result, inputs, left or [TURN_MODELS])

    def complete(
        self, o: RouteOptions, given: Given, result: Result[ChosenRoutes], report: RouteReport, time_left: TimeLeft, keep: Keep
    ) -> None:  # fmt: skip
        """Check the routes from their file alone, and compare with turn models."""
        from nmsolve.kinds.routing.check import file_checks
        from nmsolve.kinds.routing.report import max_link_by_rule

        if result.solution is not None:
            turns = given.problem.turns

            def checks() -> Iterator[list[CheckPart]]:
                yield file_checks(given.loaded, o.out / self.answer, result.scores, turns)

            report = self.keep_checks(report, time_left, keep, checks, ([TURN_MODELS],))
        else:
            keep(report)
        rules = time_left.optional(lambda: max_link_by_rule(given.problem))
        keep(msgspec.structs.replace(report, rules=rules, not_checked=[]))

    def render(
        self, given: Given, result: Result[ChosenRoutes], report: RouteReport, command: str, plain: bool
    ) -> str:
        """Return the page."""
        from nmsolve.kinds.routing.page import render_route_html

        return render_route_html(given.loaded, given.problem, result, report, command, plain)

    def words(self, report: RouteReport) -> Iterator[str]:
        """Yield objectives, turn models and checks."""
        from nmsolve.kinds.contributions import found_words

        how = f"(stopped: {report.stop_reason}, {report.wall_seconds:.1f} s)"
        yield f"\n{report.status}: {counted(report.flows, 'flow')} {how}"
        yield from (f"  {text}" for text in found_words(report))
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

    def drawings(
        self, given: Given, solution: ChosenRoutes, report: RouteReport
    ) -> Mapping[str, tuple[Any, tuple[Any, ...]]]:
        """Return ``links``, ``directions`` and, where some are prohibited, ``turns``."""
        from nmsolve.hw.routing.loads import route_loads
        from nmsolve.kinds.routing.page import route_drawings

        machine = given.problem.machine
        loads = route_loads(machine, given.problem.flows, solution.routes)
        return route_drawings(machine, loads, solution.turns)

    def answer_checks(
        self, given: Given, solution: ChosenRoutes, objective: object, scores: Mapping[str, Any]
    ) -> tuple[list[CheckPart], dict[str, float]]:
        """Check the routes from a file that is written for this."""
        from nmsolve.hw.routing.values import routing_value
        from nmsolve.kinds.routing.check import file_checks
        from nmsolve.model.routing.objectives import ROUTING_OBJECTIVES

        problem = given.problem
        with TemporaryDirectory() as folder:
            path = Path(folder) / self.answer
            self.write_solution(path, given, solution)
            checks = file_checks(given.loaded, path, scores, problem.turns)
        if not all(check.ok for check in checks):
            return checks, {}
        routes, numbering = solution.routes, solution.numbering
        return checks, {k: routing_value(problem, routes, numbering, k) for k in ROUTING_OBJECTIVES}

    def inputs_for(self, path: Path, o: ScoreOptions | GapOptions) -> RouteInputs:
        """Return those of the report beside it, but for what options say."""
        return moved(self.inputs_beside(path), o)

    def verify(self, path: Path, o: VerifyOptions) -> list[CheckPart]:
        """Return every check of the mapping and of its routes."""
        from nmsolve.kinds.mapping.check import verify_mapping

        named = mapping_options(moved(self.run_at(path)[1], o))
        return verify_mapping(replace(o, **named, routes=o.routes or path))

    def score(self, path: Path, o: ScoreOptions) -> Scores:
        """Return every objective of the routes in a file."""
        from nmsolve.kinds.routing.front import route_scores

        given = state_problem(self.inputs_for(path, o), o.memory)
        return plain_scores(given.names, route_scores(given, path))

    def front_inputs(
        self, path: Path, inputs: dict[str, Any], objectives: tuple[str, str]
    ) -> tuple[dict[str, Any], Sequence[str]]:
        """Return the rules, and where the mapping was."""
        found, _ = super().front_inputs(path, inputs, objectives)
        stated = self.read_inputs(path)[1]
        return found if stated.names == objectives else found | {"objective": ",".join(objectives)}, PLACES

    def explained(self, o: ExplainRouteOptions) -> Explainable:
        """Return turns, links and tables."""
        return explainable(state_problem(stated_inputs(o)))


def explainable(given: Given) -> Explainable:
    """Return the limits of routes of a mapping, whether there are any or not."""
    from nmsolve.hw.routing.order import allowed_turns, number_of
    from nmsolve.model.routing.files import write_flow_routes
    from nmsolve.solvers.routing.limits import RoutingLimits

    problem = given.problem

    def write(path: Path, routes: Routes) -> None:
        number = number_of(problem, routes)
        assert number is not None  # they were found free of deadlock
        write_flow_routes(path, problem, routes, allowed_turns(problem, number), number)

    return Explainable(
        RoutingLimits(problem), given.names, " on ".join(given.names.values()), "routed",
        "choice of routes", "program, which tries all routes,", lambda r: f"routes of {counted(r.count, 'flow')}", write,
    )  # fmt: skip


KIND = RouteKind()
