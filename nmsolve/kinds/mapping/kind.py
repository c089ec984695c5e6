"""Mappings: a graph and a machine in; a core for every node, a proof and a page out."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from nmsolve.kinds import clock
from nmsolve.kinds import values as opt
from nmsolve.kinds.answer import FEASIBLE, OK, UNKNOWN, prepare_folder
from nmsolve.kinds.in_order import to_errors
from nmsolve.kinds.kind import Explainable, Pictures, Scores, plain_scores
from nmsolve.kinds.mapping.given import MAP_FILES, Given, MapSearch
from nmsolve.kinds.mapping.options import MapOptions
from nmsolve.kinds.mapping.statement import load_map, map_inputs, objectives_of
from nmsolve.kinds.progress import watching
from nmsolve.kinds.run import Asked, Keep, RunKind, Searched
from nmsolve.kinds.time_left import search_time
from nmsolve.model.errors import InputError
from nmsolve.model.quantities import counted
from nmsolve.model.stop import PICTURES

if TYPE_CHECKING:
    from nmsolve.kinds.front import FrontKind
    from nmsolve.kinds.kind import Start
    from nmsolve.kinds.mapping.options import ExplainOptions
    from nmsolve.kinds.mapping.report import Report
    from nmsolve.kinds.parts import CheckPart
    from nmsolve.kinds.time_left import TimeLeft
    from nmsolve.kinds.verbs import DrawOptions, GapOptions, ScoreOptions, VerifyOptions
    from nmsolve.model.bound import Bound, Result
    from nmsolve.model.graph import LogicGraph
    from nmsolve.model.machine import Machine
    from nmsolve.model.mapping.constraints import SideConstraint
    from nmsolve.model.types import IntArray
    from nmsolve.solvers.multi_objective import Objectives
    from nmsolve.solvers.run import Options


class MapKind(RunKind):
    """Nodes on cores."""

    name, noun, options = "map", "mapping", MapOptions
    method_tables = ("check.mapping.recheck:METHODS",)
    answer, files = "mapping.json", MAP_FILES
    of_models = "mapping"
    pictures_take = PICTURES
    explain = None  # what states a mapping says it where it helps

    @property
    def unchecked(self) -> Sequence[str]:
        """What a report names before the checks are done."""
        from nmsolve.check.mapping.verify import STAGES

        return STAGES

    @property
    def free(self) -> Collection[str]:
        """Methods of which a recomputed bound holds under all ceilings."""
        from nmsolve.check.mapping.recheck import RECHECKS

        return RECHECKS

    def about(self, given: Given) -> str:
        """Return the hash of the problem."""
        return given.problem.hash

    def none(self, given: Given) -> str:
        """Return what is not there, where `nmsolve explain` knows all limits."""
        return "" if given.problem.limits_moves or given.options.route == "joint" else "mapping exists"

    def asked(self, o: MapOptions, stays: bool) -> Asked:
        """Return the options themselves, and their objectives."""
        return Asked(o, *objectives_of(o))

    def loaded(self, o: MapOptions, inputs: MapOptions) -> Given:
        """Load graph, machine, constraints and the mapping to start from."""
        return load_map(o)

    def require(self, o: MapOptions, given: Given, asked: Asked) -> None:
        """Refuse a folder for large data that cannot be used."""
        if o.scratch is not None:
            prepare_folder(o.scratch)

    def first(
        self, o: MapOptions, start: Start | None, given: Given
    ) -> tuple[IntArray | None, Sequence[Bound]]:
        """Return the mapping of an earlier run with its bounds, else that of ``--warm-start``."""
        from nmsolve.model.mapping.files import read_mapping

        if start is None:
            return given.start, ()
        if o.route == "joint":
            wanted = (
                "`nmsolve map --warm-start` with another --out, which keeps the mapping and finds new routes"
            )
            raise InputError("a run with free routes", str(start.answer.parent), wanted)
        problem = given.problem
        known = [bound for _, bound in start.known(self.proofs, problem.hash)]
        return read_mapping(start.answer, problem.graph, problem.machine), known

    def recorded(self, o: MapOptions, given: Given, inputs: MapOptions) -> dict[str, Any]:
        """Return what ``verify`` needs; of several objectives in order the first, which is kept on the way."""
        found = map_inputs(replace(given.options, out=o.out), given.problem)
        return found if o.pareto is not None else found | {"objectives": [given.problem.objective]}

    def models(self, given: Given) -> tuple[Any, Any]:
        """Return the models of the mapping, with its routes where they are free."""
        from nmsolve.solvers.mapping.models import models

        return models(given.problem, free_routes=given.options.route == "joint")

    def search(
        self, given: Given, inputs: Any, asked: Asked, first: IntArray | None, stays: bool, seconds: float, how: dict[str, Any]
    ) -> Searched:  # fmt: skip
        """Return the best mapping, or how good a given one is."""
        from nmsolve.kinds.mapping.search import search_map
        from nmsolve.solvers.mapping.api import bound_mapping

        if stays and first is not None:
            found = bound_mapping(given.problem, first, time_limit=seconds, **how)
            return Searched(given, inputs, found.result, better=found.better)
        return search_map(MapSearch(given, inputs, first, seconds, how))

    def refined(self, o: MapOptions, found: Searched, time_left: TimeLeft) -> Searched:
        """Return the mapping with the routes that come after it."""
        from nmsolve.kinds.mapping.routes import with_routes

        end = clock.end(search_time(opt.seconds(o.time_limit)))
        return with_routes(found, opt.search(o), end, time_left.asked, watching(o.json, (), o.out), to_errors)

    def objectives(
        self, given: Given, options: Options, first: IntArray | None, known: tuple[Bound, ...] = ()
    ) -> Objectives[IntArray]:
        """Return all of them."""
        from nmsolve.kinds.mapping.search import objectives_from

        return objectives_from(given, vars(options), first)

    def front(self, given: Given) -> FrontKind:
        """Return mapping.json per point."""
        from nmsolve.kinds.mapping.front import MapFront

        return MapFront(given.problem)

    def write_solution(self, path: Path, given: Given, solution: Any) -> None:
        """Write mapping.json; of a mapping with free routes the cores."""
        from nmsolve.model.mapping.files import write_mapping

        core = getattr(solution, "core", solution)
        write_mapping(path, given.problem.graph, given.problem.machine, core)

    def beside(self, o: MapOptions, folder: Path, given: Given, result: Result[Any], report: Report) -> None:
        """Write what a budget counts from, routes, and what other tools read."""
        from nmsolve.kinds.mapping.answer import write_beside

        write_beside(folder, given, result)

    def build_report(
        self, o: MapOptions, given: Given, result: Result[Any], inputs: dict[str, Any], left: Sequence[str]
    ) -> Report:
        """Return objective, bounds and machine, with the figures of added routes."""
        from nmsolve.kinds.mapping.report import build_report
        from nmsolve.kinds.mapping.routes import ADDED

        mapped = given.mapped
        left = [*left, ADDED] if left and mapped is not None else left
        return build_report(given.problem, result, [], inputs, left, None if mapped is None else mapped.part)

    def complete(
        self,
        o: MapOptions,
        given: Given,
        result: Result[Any],
        report: Report,
        time_left: TimeLeft,
        keep: Keep,
    ) -> None:
        """Check the mapping and its routes, then try simple methods on its problem."""
        from nmsolve.kinds.mapping.answer import checks_of_run
        from nmsolve.kinds.mapping.yardsticks import seconds_for, yardsticks

        if result.core is None:
            return
        checks, left = checks_of_run(o.out, given, result, time_left)
        report = msgspec.structs.replace(report, checks=checks, not_checked=left)
        keep(report)
        seconds = seconds_for(given.options, given.problem, opt.seconds(o.time_limit))
        if seconds:
            rules = time_left.optional(
                lambda: yardsticks(given.problem, result, seconds, result.seed), seconds
            )
            keep(msgspec.structs.replace(report, rules=rules))

    def search_time(self, o: MapOptions, given: Given, limit: float) -> float:
        """Return seconds of a limit that are for searching, without those for simple methods."""
        from nmsolve.kinds.mapping.yardsticks import seconds_for

        return super().search_time(o, given, limit) - seconds_for(given.options, given.problem, limit)

    def page_of(
        self, o: MapOptions, given: Given, result: Result[Any], report: Report, time_left: TimeLeft
    ) -> str:
        """Return the page; without pictures a mapping's has no board to explore either."""
        command = f"nmsolve verify {o.out} --bound"
        return time_left.page(
            lambda: self.render(given, result, report, command, o.plain),
            lambda: self.render(given, result, report, command, o.plain, drawn=False),
        )

    def render(
        self, given: Given, result: Result[Any], report: Report, command: str, plain: bool, drawn: bool = True
    ) -> str:
        """Return the page."""
        from nmsolve.kinds.mapping.page import render_html

        return render_html(given.problem, result, report, command, drawn, given.mapped, plain)

    def words(self, report: Report) -> Iterator[str]:
        """Yield engines, objective with its gap, and checks."""
        from nmsolve.kinds.mapping.report import run_words

        return run_words(report)

    def after(
        self, o: MapOptions, given: Given, result: Result[Any], run: str, time_left: TimeLeft, code: int
    ) -> int:
        """Say the rest, and count routes that were asked for and are not there as no answer."""
        from nmsolve.kinds.mapping.report import tick_part, tick_words, waiting_words
        from nmsolve.kinds.mapping.routes import AFTER

        if given.trouble is not None:
            raise given.trouble
        problem, core = given.problem, result.core
        waits, ticks = waiting_words(problem, core), tick_words(tick_part(problem.machine, result.scores))
        for text in (*given.words, *waits, *ticks):
            print(text, file=sys.stderr if o.json else sys.stdout)
        lacking = given.options.route in AFTER and core is not None and given.mapped is None
        return UNKNOWN if lacking and code in (OK, FEASIBLE) else code

    def answer_of(self, path: Path, source: Path | None = None) -> Path | None:
        """Return the file, or that in the folder; any file may hold a mapping."""
        return path / self.answer if (path / self.answer).exists() else path

    def again(self, inputs: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Return objectives and limits as options have them, and where a migration budget counts from."""
        limits = msgspec.convert(inputs.get("limits", {}), dict[str, float])
        budget = inputs.get("migration_budget")
        return {
            "objective": ",".join(msgspec.convert(inputs.get("objectives", ["hops"]), list[str])),
            "limit": [f"{k}={v!r}" for k, v in limits.items()] or None,
            "warm_start": None if budget is None else inputs.get("reference_file"),
            "gap": None,
        }

    def gap(self, path: Path, o: GapOptions) -> int:
        """Raise the bound; what the options do not state is as in the report beside the mapping."""
        from nmsolve.kinds.mapping.gap import stated_by

        opt.search(o)  # refuses wrong options before anything is read
        options, given, inputs, known = stated_by(o)
        return self.search_stated(options, Asked(inputs), given, inputs, given.start, known, stays=True)

    def verify(self, path: Path, o: VerifyOptions) -> list[CheckPart]:
        """Return every check, also of routes beside it."""
        from nmsolve.kinds.mapping.check import verify_mapping

        return verify_mapping(o)

    def score(self, path: Path, o: ScoreOptions) -> Scores:
        """Return every objective of mappings."""
        from nmsolve.hw.scores import score
        from nmsolve.kinds.loading import load_answer

        loaded = load_answer(o, o.memory)
        scores = score(loaded.graph, loaded.machine, loaded.core, loaded.terms(), loaded.turns())
        return plain_scores({"graph": loaded.graph.name, "machine": loaded.machine.name}, scores)

    def pictures(self, path: Path, o: DrawOptions) -> Pictures:
        """Return ``cores``, ``resources`` and ``links``."""
        from nmsolve.kinds.loading import load_answer
        from nmsolve.kinds.mapping.page import mapping_pictures

        loaded = load_answer(o)
        return mapping_pictures(loaded.problem(), loaded.core)

    def front_of(self, path: Path, objectives: Sequence[str], first: str, o: VerifyOptions) -> FrontKind:
        """Return mapping.json per point."""
        from nmsolve.kinds.loading import load_answer
        from nmsolve.kinds.mapping.front import MapFront
        from nmsolve.model.mapping.problem import MappingProblem

        given = load_answer(replace(o, mapping=path.parent / first, placement=None))
        problem = MappingProblem(
            given.graph, given.machine, objectives[0], given.constraints(o.constraints), given.node_limit(o.balance),
            given.migration(), turns=given.turns(),
        )  # fmt: skip
        return MapFront(problem, o.prohibit_turns or given.inputs.prohibit_turns)

    def front_inputs(
        self, path: Path, inputs: dict[str, Any], objectives: tuple[str, str]
    ) -> tuple[dict[str, Any], Sequence[str]]:
        """Return those that state the problem, and how it is searched."""
        from nmsolve.kinds.check_fields import inputs_again
        from nmsolve.kinds.loading import stated_inputs
        from nmsolve.kinds.mapping.check import MAP_OPTIONS

        names = {"objectives": list(objectives)} if "objectives" in inputs else {}
        stated = stated_inputs(path)
        known: dict[str, Any] = (
            {} if stated.route in ("given", None) else {"route": "given"}
        )  # fronts have no other
        known |= {k: none for k, none in (("limits", {}), ("before", [])) if k in inputs}  # nor any of these
        return inputs_again({"inputs": inputs}, stated, MAP_OPTIONS) | names | known, MAP_OPTIONS

    def explained(self, o: ExplainOptions) -> Explainable:
        """Return capacities and side constraints."""
        from nmsolve.kinds.loading import given_reading, instance
        from nmsolve.model.mapping.constraints_file import load_constraints

        graph, machine = instance(o.graph, o.machine, o.chips, None, o.occupied or (), given_reading(o))
        constraints = () if o.constraints is None else load_constraints(o.constraints, graph, machine)
        return explainable(graph, machine, constraints, o.balance)


def explainable(
    graph: LogicGraph, machine: Machine, constraints: Sequence[SideConstraint], balance: float | None
) -> Explainable:
    """Return the limits of a problem, whether it can be solved or not."""
    from nmsolve.model.mapping.files import write_mapping
    from nmsolve.model.mapping.problem import MappingProblem, default_node_limit
    from nmsolve.solvers.mapping.explain import MappingLimits

    limit = default_node_limit(graph, machine, balance) if machine.usable.any() else None
    limits = MappingLimits(MappingProblem(graph, machine, "cut", tuple(constraints), limit))

    def found(core: IntArray) -> str:
        return f"a mapping onto {counted(len(set(core.tolist())), 'core')}"

    def write(path: Path, core: IntArray) -> None:
        write_mapping(path, graph, machine, core)

    return Explainable(
        limits, {"graph": graph.name, "machine": machine.name}, f"{graph.name} on {machine.name}", "mapped",
        "mapping", "program, node by node,", found, write,
    )  # fmt: skip


KIND = MapKind()
