"""Routes: a mapping in; routes and prohibited turns for its flows, a proof and a page out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from nmsolve.kinds.kind import Explainable, Kind, Pictures, Scores, refuse, refuse_of_mappings
from nmsolve.kinds.routing.options import RouteOptions
from nmsolve.report.figures import number

if TYPE_CHECKING:
    from nmsolve.kinds.front import FrontKind
    from nmsolve.kinds.kind import Start
    from nmsolve.kinds.loading import Loaded
    from nmsolve.kinds.mapping.options import DrawOptions, GapOptions, ScoreOptions, VerifyOptions
    from nmsolve.kinds.mapping.report import CheckPart
    from nmsolve.kinds.routing.options import ExplainRouteOptions
    from nmsolve.model.routing.problem import RoutingProblem
    from nmsolve.model.routing.routes import Routes

T = TypeVar("T", "ScoreOptions", "VerifyOptions")


class RouteKind(Kind):
    """Flows over links."""

    name, noun, options = "route", "choice of routes", RouteOptions
    method_tables = (
        "check.routing.recheck:RECHECKED",
        "check.routing.recheck:WORDS",
    )
    files = (
        "flow-routes.json",
        "route-certificates.json",
        "events.jsonl",
        "route-report.json",
        "route.html",
        "better.json",
    )
    answer, report, proofs = "flow-routes.json", "route-report.json", "route-certificates.json"

    def run(self, o: RouteOptions, start: Start | None = None) -> int:
        """Run ``nmsolve route``."""
        from nmsolve.kinds.routing.run import run_route

        return run_route(o, start)

    def answer_of(self, path: Path, source: Path | None = None) -> Path | None:
        """Return flow-routes.json, or that of a folder that has a report of routes and no mapping."""
        if path.is_dir():
            own = (path / self.report).exists() and not (path / "mapping.json").exists()
            return path / self.answer if own else None
        return path if path.name == self.answer else None

    def again(self, inputs: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Return no start: the earlier run is one."""
        return {"warm_start": None}

    def gap(self, path: Path, o: GapOptions) -> int:
        """Raise the bounds; the report beside the routes says what the problem was."""
        from nmsolve.kinds.earlier import run_again

        why = "none: the report beside the answer has the rest"
        refuse({"--constraints": o.constraints, "--balance": o.balance}, "an option for mappings only", why)
        given = {f.name: getattr(o, f.name) for f in fields(o) if f.name not in ("mapping", "graph")}
        return run_again(self, path, given | {"graph": o.graph}, stays=True)

    def _mapping_of(self, path: Path, o: T) -> T | None:
        """Return the options for the mapping that the report beside the routes names; None without such a report."""
        from nmsolve.kinds.earlier import stated_options
        from nmsolve.kinds.loading import read_object
        from nmsolve.kinds.mapping.options import AnswerOptions

        report = path.parent / self.report
        if not report.exists() or (path.parent / "mapping.json").exists():
            return None
        inputs = read_object(report).get("inputs")
        said = vars(stated_options(self, inputs, {}, report, AnswerOptions))
        stated = {name: getattr(o, name) or value for name, value in said.items() if name != "mapping"}
        return replace(o, mapping=said["mapping"], **stated)

    def verify(self, path: Path, o: VerifyOptions) -> list[CheckPart]:
        """Return every check of the mapping and of its routes."""
        from nmsolve.kinds.mapping.check import verify_mapping

        mapped = self._mapping_of(path, o)
        return verify_mapping(o if mapped is None else replace(mapped, routes=o.routes or path))

    def score(self, path: Path, o: ScoreOptions) -> Scores:
        """Return every objective of routes. InputError for routes without their report, as any file that is no mapping."""
        from nmsolve.kinds.loading import load_answer
        from nmsolve.kinds.routing.check import route_scores

        mapped = self._mapping_of(path, o)
        loaded = load_answer(mapped or o, o.memory)
        scores = route_scores(loaded, path)
        names = {"graph": loaded.graph.name, "machine": loaded.machine.name}
        row = {"type": "scores", **names, "scores": scores}
        return Scores(row, [f"{name:16} {number(value):>20}" for name, value in scores.items()])

    def pictures(self, path: Path, o: DrawOptions) -> Pictures:
        """Return ``links``, ``directions`` and, where some are prohibited, ``turns``."""
        from nmsolve.hw.routing.loads import route_loads
        from nmsolve.kinds.earlier import stated_options
        from nmsolve.kinds.loading import load_answer, read_object
        from nmsolve.kinds.routing.page import drawn_links, hottest_links
        from nmsolve.model.routing.files import read_flow_routes
        from nmsolve.report import pictures, pictures_routing

        beside = path.parent / self.report
        inputs = read_object(beside).get("inputs")
        machine = load_answer(stated_options(self, inputs, {"time_limit": "1s"}, beside)).machine  # no search
        file = read_flow_routes(path, machine)
        loads, unit = route_loads(machine, file.problem.flows, file.routes), "messages per step"
        links = drawn_links(machine, loads, hottest_links(machine, loads))
        drawn: Pictures = {
            "links": partial(pictures.link_loads.figure, *links, unit),
            "directions": partial(pictures_routing.direction_loads.figure, machine, loads, unit),
        }
        if (turns := file.problem.turns) is not None and turns.prohibited(machine):
            drawn["turns"] = partial(pictures_routing.turn_map.figure, machine, turns)
        return drawn

    def front_of(self, path: Path, objectives: Sequence[str], first: str, o: VerifyOptions) -> FrontKind:
        """Return flow-routes.json per point."""
        from nmsolve.kinds.earlier import stated_options
        from nmsolve.kinds.loading import load_answer, read_object
        from nmsolve.kinds.routing.front import RouteFront
        from nmsolve.kinds.routing.run import routing_problem

        refuse_of_mappings(path, o)
        more = {
            "objective": ",".join(objectives),
            "graph": o.graph,
            "time_limit": "1s",
        }  # nothing is searched
        options = stated_options(self, read_object(path).get("inputs"), more, path)
        loaded = load_answer(options)
        return RouteFront(routing_problem(options, loaded, options.objective), loaded)

    def front_inputs(
        self, path: Path, inputs: dict[str, Any], objectives: tuple[str, str]
    ) -> tuple[dict[str, Any], Sequence[str]]:
        """Return the rules, and where the mapping was."""
        from nmsolve.kinds.check_fields import inputs_of_options
        from nmsolve.kinds.routing.rewritten import ROUTE_OPTIONS, ROUTE_RULES, asked_objectives

        again = inputs_of_options({"inputs": inputs}, (*ROUTE_OPTIONS, *ROUTE_RULES, "objective"))
        same = asked_objectives(again) == objectives
        return again if same else again | {"objective": ",".join(objectives)}, ROUTE_OPTIONS

    def explained(self, o: ExplainRouteOptions) -> Explainable:
        """Return turns, links and tables."""
        from nmsolve.kinds.loading import load_answer
        from nmsolve.kinds.routing.run import routing_problem

        loaded = load_answer(o, None)
        return explainable(loaded, routing_problem(o, loaded, "max-link"))


def explainable(loaded: Loaded, problem: RoutingProblem) -> Explainable:
    """Return the limits of routes of a mapping, whether there are any or not."""
    from nmsolve.hw.routing.order import allowed_turns, number_of
    from nmsolve.model.routing.files import write_flow_routes
    from nmsolve.solvers.routing.limits import RoutingLimits

    def write(path: Path, routes: Routes) -> None:
        number = number_of(problem, routes)
        assert number is not None  # they were found free of deadlock
        write_flow_routes(path, problem, routes, allowed_turns(problem, number), number)

    names = {"graph": loaded.graph.name, "machine": problem.machine.name}
    return Explainable(
        RoutingLimits(problem), names, f"{loaded.graph.name} on {problem.machine.name}", "routed",
        "choice of routes", "program, which tries all routes,", lambda r: f"routes of {r.count} flows", write,
    )  # fmt: skip


KIND = RouteKind()
