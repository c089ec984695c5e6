"""Pipelines: a model or cost graph in, stages on groups of cores out, with a bound and a page."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from nmsolve.kinds import clock
from nmsolve.kinds import values as opt
from nmsolve.kinds.answer import FEASIBLE, OK, prepare_file
from nmsolve.kinds.kind import OF_GRAPHS, Explainable
from nmsolve.kinds.pipeline.options import PipelineOptions
from nmsolve.kinds.pipeline.statement import (
    Given,
    PipelineInputs,
    objectives_in,
    require_policy,
    state_problem,
    stated_inputs,
)
from nmsolve.kinds.run import Asked, Keep
from nmsolve.kinds.time_left import search_time
from nmsolve.kinds.verdict import label
from nmsolve.kinds.whole import WholeKind
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.objectives import BATCH, ENERGY, PERIOD
from nmsolve.model.quantities import counted
from nmsolve.report.figures import number, percent

if TYPE_CHECKING:
    from nmsolve.kinds.check_fields import Again
    from nmsolve.kinds.check_whole import FileChecks
    from nmsolve.kinds.front import FrontKind
    from nmsolve.kinds.parts import CheckPart
    from nmsolve.kinds.pipeline.options import ExplainPipelineOptions
    from nmsolve.kinds.pipeline.report import PipelineReport, StagePart
    from nmsolve.kinds.time_left import TimeLeft
    from nmsolve.kinds.verbs import GapOptions, ScoreOptions, VerifyOptions
    from nmsolve.model.bound import Bound, Result, Stage
    from nmsolve.model.pipeline.plan import PipelinePlan
    from nmsolve.model.pipeline.problem import PipelineProblem
    from nmsolve.solvers.bounding import Bounded
    from nmsolve.solvers.multi_objective import Objectives
    from nmsolve.solvers.run import Options

#: Part of the time that ``--place`` keeps for the placement.
PLACE_PART = 0.5
TRACE = "trace.json"
#: Stages that are listed on the terminal; the page has all.
LISTED = 24
#: Options and fields of reports that are gone, until 0.1: of training, which was planned, too.
GONE = ("training", "recompute", "weight_copies")
GONE_FIELDS = (
    "training",
    "stages.kept",
    "stages.flights",
    "stages.again",
    *(f"inputs.{name}" for name in GONE),
)


#: Units of objectives that do not depend on the input.
UNITS = {PERIOD: "", BATCH: "", ENERGY: "uJ"}


class PipelineKind(WholeKind):
    """Layers in stages on groups of cores."""

    name, noun, source = "pipeline", "plan", "model"
    method_tables = ("check.pipeline.recheck:METHODS",)
    answer, report, page = "plan.json", "pipeline-report.json", "pipeline.html"
    #: An older placement belongs to the older plan.
    files = (
        "plan.json", "certificates.json", "events.jsonl", "pipeline-report.json", "pipeline.html", "better.json", TRACE,
        "placement/*.json", "placement/*.jsonl", "placement/report.html",
    )  # fmt: skip
    options, inputs, units = PipelineOptions, PipelineInputs, UNITS
    reports = "kinds.pipeline.report:PipelineReport"
    unchecked = ("plan",)
    both = "period,cores"
    no_score = ("machine", "chips", "placement", "memory", "library", *OF_GRAPHS)
    no_gap = ("constraints", "balance", "objective", "machine", "chips", "placement", "library", *OF_GRAPHS)

    def asked(self, o: PipelineOptions, stays: bool) -> Asked:
        """Return model, rules, objectives in order and front."""
        inputs, names = stated_inputs(o, o.reward), objectives_in(o.objective)
        if stays:
            inputs = msgspec.structs.replace(inputs, objective=names[-1])
        else:
            require_policy(o.reward, opt.names(o.engines))
        several = () if stays or len(names) == 1 else names
        return Asked(inputs, several, None if o.pareto is None else self.front_names(o))

    def on_front(
        self, given: Given, inputs: PipelineInputs | None, names: tuple[str, str]
    ) -> tuple[Given, PipelineInputs | None]:
        """Return them as they are, if no rule fixes an objective."""
        from nmsolve.model.pipeline.objectives import require_free

        require_free(given.problem, names)
        return given, inputs

    def state(self, inputs: PipelineInputs) -> Given:
        """Load model and machine."""
        return state_problem(inputs)

    def is_source(self, path: Path) -> bool:
        """Return False: models state assignments, too."""
        return False

    def require(self, o: PipelineOptions, given: Given, asked: Asked) -> None:
        """Refuse early what must not wait for the end of the search."""
        from nmsolve.solvers.pipeline.fit import require_fit

        if o.place and given.machine is None:
            raise InputError(
                "no machine to place on", "--place", "--machine PRESET, mesh:RxC or machine.toml"
            )
        if o.place and given.problem.groups.replicas > 1:
            raise InputError("replicas of stages are not placed", "--place", "--replicas 1")
        if o.write_onnx is not None:
            if given.graph is None:
                raise InputError("the input is not an ONNX model", "--write-onnx", "a .onnx input")
            if o.write_onnx.resolve().parent != o.out.resolve():  # which is made later
                prepare_file(o.write_onnx, o)
            if o.write_onnx.resolve() in (o.model.resolve(), o.out.resolve()):
                raise InputError("it is the model or the output folder", str(o.write_onnx), "another file")
        if asked.front is not None:
            self.on_front(given, asked.inputs, asked.front)
            require_fit(given.problem)

    def read(self, path: Path, given: Given) -> PipelinePlan:
        """Read plan.json."""
        from nmsolve.model.pipeline.files import read_plan

        return read_plan(path, given.problem, other_rules=True)

    def write_solution(self, path: Path, given: Given, solution: PipelinePlan) -> None:
        """Write plan.json."""
        from nmsolve.model.pipeline.files import write_plan

        write_plan(path, given.problem, solution)

    def models(self, given: Given) -> tuple[Any, Any]:
        """Return CP-SAT's and the MIP's."""
        from nmsolve.solvers.pipeline.exact import models

        return models(given.problem)

    def solve(self, problem: PipelineProblem, **how: Any) -> Result[PipelinePlan]:
        """Search."""
        from nmsolve.solvers.pipeline.api import plan

        return plan(problem, **how)

    def bound(self, problem: PipelineProblem, solution: PipelinePlan, **how: Any) -> Bounded[PipelinePlan]:
        """Raise the bound."""
        from nmsolve.solvers.pipeline.api import bound_plan
        from nmsolve.solvers.run import Options

        return bound_plan(problem, solution, Options(**how))

    def objectives(
        self, given: Given, options: Options, first: PipelinePlan | None, known: tuple[Bound, ...] = ()
    ) -> Objectives[PipelinePlan]:
        """Return what can be minimised, and what limits can be lowered to."""
        from nmsolve.solvers.pipeline.multi_objective import PlanObjectives

        return PlanObjectives(given.problem, options, first, given.goals)

    def in_order(
        self, given: Given, inputs: Any, names: Sequence[str], first: Any, seconds: float, how: Mapping[str, Any],
        say: Callable[[str], None] | None = None,
    ) -> tuple[Any, Any, Result[Any], Sequence[Stage]]:  # fmt: skip
        """Minimise several objectives in order; one that the problem does not have, or that no engine takes which was asked for,
        is refused before the first is searched."""
        from nmsolve.solvers.pipeline.registry import plan_of
        from nmsolve.solvers.run import require_steps

        engines = how.get("engines")
        for k, name in enumerate(names):
            problem = given.aimed(name, ()).problem
            if k == 0 or name != PERIOD:  # a later period is found by questions of the other goal
                require_steps(engines, *plan_of(problem, engines))
        return super().in_order(given, inputs, names, first, seconds, how, say)

    def restated(self, given: Given, stage: Stage) -> Given:
        """Return the same layers with another objective and what is held."""
        return given.aimed(stage.objective, stage.ceilings)

    def front(self, given: Given) -> FrontKind:
        """Return plan.json per point."""
        from nmsolve.kinds.pipeline.front import PlanFront

        return PlanFront(given.problem)

    def search_time(self, o: PipelineOptions, given: Given, limit: float) -> float:
        """Return half where tiles are placed, too."""
        return limit * (1 - PLACE_PART) if o.place else super().search_time(o, given, limit)

    def build_report(
        self,
        o: PipelineOptions,
        given: Given,
        result: Result[Any],
        inputs: dict[str, Any],
        left: Sequence[str],
    ) -> PipelineReport:
        """Return loads of stages, plans to compare with, micro-batches."""
        from nmsolve.kinds.pipeline.report import build_pipeline_report

        return build_pipeline_report(given, result, [], o.batches, inputs, list(left))

    def beside(
        self, o: PipelineOptions, folder: Path, given: Given, result: Result[Any], report: PipelineReport
    ) -> None:
        """Write trace.json."""
        if result.solution is not None and o.trace:
            _write_trace(folder / TRACE, given, result.solution, report)

    def complete(
        self, o: PipelineOptions, given: Given, result: Result[Any], report: PipelineReport, time_left: TimeLeft, keep: Keep
    ) -> None:  # fmt: skip
        """Write the model with stages, and check the plan from its file alone."""
        from nmsolve.kinds.pipeline.check import plan_checks
        from nmsolve.model.pipeline.files import read_plan

        if result.solution is None:
            return keep(report)
        if o.write_onnx is not None and given.graph and given.layers:
            from nmsolve.model.formats.onnx_plan import write_onnx_plan

            nesting = given.layers.nesting
            unfolded = None if nesting is None else nesting.unfolded
            write_onnx_plan(
                o.model, o.write_onnx, given.graph, given.layers.operators, result.solution, unfolded
            )

        def checks() -> Iterator[list[CheckPart]]:
            plan = read_plan(o.out / self.answer, given.problem)
            yield plan_checks(given.problem, plan, result.objective, result.bounds)

        self.keep_checks(report, time_left, keep, checks)

    def after(
        self, o: PipelineOptions, given: Given, result: Result[Any], run: str, time_left: TimeLeft, code: int
    ) -> int:
        """Place the tiles of the plan, if asked for."""
        if not o.place or result.solution is None or code not in (OK, FEASIBLE):
            return code
        from nmsolve.kinds.pipeline.place import place_tiles

        if time_left.asked:
            print("interrupted: no tiles are placed", file=sys.stderr)
            return code
        until = clock.end(search_time(opt.seconds(o.time_limit)))
        placed = place_tiles(o, given, result.solution, until, run, time_left)
        return placed if placed != OK else code

    def render(
        self, given: Given, result: Result[Any], report: PipelineReport, command: str, plain: bool
    ) -> str:
        """Return the page."""
        from nmsolve.kinds.pipeline.page import render_pipeline_html

        return render_pipeline_html(given, result, report, command, plain)

    def words(self, report: PipelineReport) -> Iterator[str]:
        """Yield stages, objective and checks."""
        from nmsolve.kinds.contributions import found_words
        from nmsolve.kinds.pipeline.words import cores_words, pipeline_words

        if report.stages:
            yield "\n" + _line(
                "stage", "cores", "layers", _figures(report, None), "storage/core", "first layer"
            )
        for k, s in enumerate(report.stages[:LISTED]):
            yield _line(k, cores_words(s), f"{s.layers:,}", _figures(report, s), number(s.storage), s.first)
        if len(report.stages) > LISTED:
            yield f"  ... and {len(report.stages) - LISTED} more stages"
        unit = f" {report.goal_unit}" if report.goal_unit else ""
        yield (
            f"\n{report.status}: {number(report.objective)}{unit}, bound {number(report.bound)}, gap {percent(report.gap)} "
            f"(stopped: {report.stop_reason}, {report.wall_seconds:.1f} s)"
        )
        yield from found_words(report)
        yield from pipeline_words(report)
        for check in report.checks:
            yield f"  {label(check):6} {check.name}: {check.text}"
        if report.not_checked:
            yield f"not done for lack of time: {', '.join(report.not_checked)}"

    def drawings(
        self, given: Given, solution: PipelinePlan, report: PipelineReport
    ) -> Mapping[str, tuple[Any, tuple[Any, ...]]]:
        """Return ``stages``, ``layers``, ``use``, ``timetable``."""
        from nmsolve.kinds.pipeline.page import plan_drawings

        return plan_drawings(given, solution, report)

    def answer_checks(
        self, given: Given, solution: PipelinePlan, objective: object, scores: Mapping[str, Any]
    ) -> tuple[list[CheckPart], dict[str, float]]:
        """Check the rules and by both evaluators."""
        from nmsolve.hw.pipeline.stages import all_objectives
        from nmsolve.kinds.pipeline.check import plan_checks
        from nmsolve.model.pipeline.check import plan_complaint

        checks = plan_checks(given.problem, solution, objective, ())
        legal = plan_complaint(given.problem, solution) is None
        return checks, dict(all_objectives(given.problem, solution)) if legal else {}

    def file_checks(
        self, path: Path, report: dict[str, Any], given: Given, inputs: PipelineInputs, o: VerifyOptions
    ) -> FileChecks:
        """Check the plan, stages, energy, placement and bounds."""
        from nmsolve.hw.pipeline.stages import objective
        from nmsolve.kinds import check_whole
        from nmsolve.kinds.pipeline.check import verify_plan

        checks, plan, bounds, legal = verify_plan(path, report, given, inputs.core_memory, o)
        return check_whole.FileChecks(
            checks, plan, {"": objective(given.problem, plan)} if legal else {}, bounds
        )

    def rewritten(
        self, report: Mapping[str, Any], given: Given, inputs: PipelineInputs, solution: PipelinePlan,
        values: Mapping[str, float], bounds: Sequence[Bound] | None,
    ) -> Again:  # fmt: skip
        """Return the report; ``values`` has its objective, by the name ""."""
        from nmsolve.kinds.check_fields import as_written, claimed_result, inputs_again
        from nmsolve.kinds.pipeline.report import BatchPart, build_pipeline_report
        from nmsolve.kinds.pipeline.statement import BATCHES

        part = report.get("batch")
        batches = BATCHES if part is None else msgspec.convert(part, BatchPart).batches
        result = claimed_result(report, solution, ("", values[""]), {}, bounds or ())
        stated = inputs_again(report, inputs)
        if BATCH not in (inputs.objective, *(held.objective for held in inputs.before)):
            stated |= {"batches": None} if "batches" in stated else {}
        again = build_pipeline_report(given, result, [], batches, stated)
        found = as_written(again, bounds, ("inputs.strict", *GONE_FIELDS))
        return found._replace(unread=found.unread - {"memory"})  # of a core: a part of the problem

    def front_inputs(
        self, path: Path, inputs: dict[str, Any], objectives: tuple[str, str]
    ) -> tuple[dict[str, Any], Sequence[str]]:
        """Return those that state the problem; options that are gone are not read."""
        found, options = super().front_inputs(path, inputs, objectives)
        return found, (*options, *GONE)

    def answer_of(self, path: Path, source: Path | None = None) -> Path | None:
        """Return plan.json; see :meth:`Kind.answer_of`."""
        if path.is_dir():
            return path / self.answer if self.is_run(path) else None
        return path if path.name == self.answer else None

    def inputs_for(self, path: Path, o: ScoreOptions | GapOptions) -> PipelineInputs:
        """Return those of the report beside it, but for ``--graph`` and ``--bind``."""
        inputs: PipelineInputs = self._moved(self.inputs_beside(path), o.graph)
        return inputs if o.bind is None else msgspec.structs.replace(inputs, bind=o.bind)

    def again(self, inputs: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Return sizes and times as text, and objectives in order."""
        names = ("core_memory", "offchip_bandwidth", "group_sync")
        named = [
            *(held["objective"] for held in inputs.get("before") or ()),
            inputs.get("objective") or PERIOD,
        ]
        return {name: None if inputs.get(name) is None else str(inputs[name]) for name in names} | {
            "objective": ",".join(named)
        }

    def explained(self, o: ExplainPipelineOptions) -> Explainable:
        """Return memory, cores and stages."""
        return explainable(state_problem(stated_inputs(o)).problem)


def explainable(problem: PipelineProblem) -> Explainable:
    """Return memory, cores and stages of a model, whether there is a plan or not."""
    from nmsolve.model.pipeline.files import write_plan
    from nmsolve.model.pipeline.goals import SLOWEST
    from nmsolve.model.pipeline.groups import ONE_GROUP
    from nmsolve.solvers.pipeline.limits import PipelineLimits

    alike = replace(problem, goal=SLOWEST, groups=ONE_GROUP)  # the same for any objective

    def write(path: Path, plan: PipelinePlan) -> None:
        write_plan(path, alike, plan)

    return Explainable(
        PipelineLimits(alike), {"model": problem.name}, problem.name, "split into stages", "plan",
        "program, which tries all plans,", lambda p: f"a plan of {counted(len(p.cores), 'stage')}", write,
    )  # fmt: skip


def _write_trace(path: Path, given: Given, plan: PipelinePlan, report: PipelineReport) -> None:
    from nmsolve.hw.pipeline.batches import pipeline_trace
    from nmsolve.kinds.pipeline.statement import BATCHES
    from nmsolve.model.files import write_atomic

    batches = BATCHES if report.batch is None else report.batch.batches
    text = pipeline_trace(given.problem, plan, batches, given.unit)
    if text is None:
        print("no trace.json: stages wait for each other in a circle", file=sys.stderr)
    else:
        write_atomic(path, text)


def _line(stage: object, cores: object, layers: str, figures: Sequence[str], storage: str, first: str) -> str:
    return (
        f"{stage:>5} {cores:>6} {layers:>6} "
        + " ".join(f"{x:>12}" for x in figures)
        + f" {storage:>13}  {first}"
    )


def _figures(report: PipelineReport, s: StagePart | None) -> list[str]:
    """Return the columns of a stage, or their heads; those of live ranges and off-chip memory only where they count."""
    from nmsolve.kinds.pipeline.words import size_words

    if s is None:
        out = ["load", "compute", "transfer"]
        out[1:2] = ["compute", "exchange"] if report.sync is not None else ["compute"]
        out += ["off chip", "moved"] if report.offchip else []
        return out + (["weights", "live"] if report.live else [])
    out = [number(s.load), number(s.compute - s.exchange)]
    out += [number(s.exchange)] if report.sync is not None else []
    out.append(number(s.transfer_in + s.transfer_out))
    out += [number(s.offchip), size_words(s.streamed)] if report.offchip else []
    return out + ([size_words(s.weights), size_words(s.live)] if report.live else [])


KIND = PipelineKind()
