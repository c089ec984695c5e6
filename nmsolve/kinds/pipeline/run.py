"""``nmsolve pipeline``: a model or cost graph in, stages on groups of cores out, with a bound and a page."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from nmsolve.kinds import clock
from nmsolve.kinds import values as opt
from nmsolve.kinds.answer import (
    BETTER,
    FEASIBLE,
    OK,
    Answer,
    as_json,
    event_lines,
    explained,
    finish,
    prepare_file,
    prepare_folder,
    write_models,
)
from nmsolve.kinds.answer_files import FRONT_FILES, PIPELINE_FILES
from nmsolve.kinds.patience import CHECKS, Patience, search_time
from nmsolve.kinds.pipeline.check import CERTIFICATES, PLAN, REPORT
from nmsolve.kinds.pipeline.report import PipelineReport, StagePart, build_pipeline_report
from nmsolve.kinds.pipeline.statement import Given, PipelineInputs, batches_matter, state_problem
from nmsolve.kinds.pipeline.words import cores_words, pipeline_words, size_words
from nmsolve.kinds.progress import watching
from nmsolve.kinds.verdict import label
from nmsolve.model.errors import InputError
from nmsolve.model.file_set import new_run
from nmsolve.report.figures import number, percent

if TYPE_CHECKING:
    from pathlib import Path

    from nmsolve.kinds.earlier import Start
    from nmsolve.kinds.pipeline.options import PipelineOptions, PipelineProblemOptions
    from nmsolve.model.bound import Bound, Result
    from nmsolve.model.pipeline.plan import PipelinePlan
    from nmsolve.model.pipeline.problem import PipelineProblem

#: Part of the time that ``--place`` keeps for the placement.
PLACE_PART = 0.5
PAGE, TRACE = "pipeline.html", "trace.json"
#: Stages that are listed on the terminal; the page has all.
LISTED = 24


def run_pipeline(o: PipelineOptions, start: Start | None = None) -> int:
    """Run the command, going on from an earlier run where there is a ``start``; returns the exit code.

    Raises
    ------
    InputError : anything wrong with the input, or counting shows that nothing fits; before any search
    """
    limit, how = opt.seconds(o.time_limit), opt.search(o)
    given = state_problem(stated_inputs(o))
    _require_options(o, given)
    first, known = _first(o, start, given.problem)
    for warning in () if given.graph is None else given.graph.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    with explained("pipeline"):
        names = None if o.pareto is None else _front_names(o, given.problem)
    prepare_folder(o.out, (*FILES, *FRONT_FILES), o)
    if o.write_model is not None:
        from nmsolve.solvers.pipeline.exact import models

        with explained("pipeline"):
            write_models("pipeline", lambda: models(given.problem), o.write_model)
    if names is not None:
        return _pipeline_front(o, names, given.problem, first)
    search = limit * (1 - PLACE_PART) if o.place else search_time(limit)
    run = new_run()
    with Patience(clock.end(limit)) as patience:
        with watching(o.json, out=o.out) as observers:
            keep = partial(write_unchecked, o, given, run)
            told = {"observers": observers, "known": known, "keep": keep, **how}
            with explained("pipeline"):
                result, better = _search(
                    given.problem, first, start is not None and start.stays, search, told
                )
        if o.place and better is None and not patience.asked:
            result = _for_links(o, given, result, clock.end(search_time(limit)))
        report = write_pipeline(o, given, result, patience, run, better)
        code = finish(o, result, report, _words(report), (PAGE, REPORT), "pipeline", "plan exists")
        if o.place and result.solution is not None and code in (OK, FEASIBLE):
            from nmsolve.kinds.pipeline.place import place_tiles

            if patience.asked:
                print("interrupted: no tiles are placed", file=sys.stderr)
                return code
            placed = place_tiles(o, given, result.solution, clock.end(search_time(limit)), run, patience)
            return placed if placed != OK else code
        return code


def _front_names(o: PipelineOptions, problem: PipelineProblem) -> tuple[str, str]:
    """Return the two objectives of ``--pareto``. InputError for others, or where a rule fixes one, or nothing fits."""
    from nmsolve.kinds.pareto import require_front
    from nmsolve.model.pipeline.objectives import PIPELINE_OBJECTIVES, require_free
    from nmsolve.solvers.multi_objective import objective_names
    from nmsolve.solvers.pipeline.fit import require_fit

    names = require_front(o, objective_names(o.pareto or "", PIPELINE_OBJECTIVES, "--pareto"))
    require_free(problem, names)
    require_fit(problem)
    return names


def _pipeline_front(
    o: PipelineOptions, names: tuple[str, str], problem: PipelineProblem, first: PipelinePlan | None
) -> int:
    """Compute the front of two objectives; return the exit code."""
    from nmsolve.kinds.front_kinds import PlanFront
    from nmsolve.kinds.pareto import run_front
    from nmsolve.solvers.pipeline.multi_objective import PlanObjectives
    from nmsolve.solvers.run import Options

    limit = opt.seconds(o.time_limit)
    with Patience(clock.end(limit)) as patience:
        objectives = PlanObjectives(problem, Options(**opt.search(o)), first)
        inputs = msgspec.to_builtins(stated_inputs(o))
        return run_front(o, PlanFront(problem), objectives, names, limit, patience, inputs)


def _first(
    o: PipelineOptions, start: Start | None, problem: PipelineProblem
) -> tuple[PipelinePlan | None, list[Bound]]:
    """Return the plan to begin with, and what an earlier run proved of this problem."""
    from nmsolve.model.pipeline.files import read_plan

    path = o.warm_start if start is None else start.answer
    if path is None:
        return None, []
    first = read_plan(path / PLAN if path.is_dir() else path, problem, other_rules=True)
    known = [] if start is None else [b for _, b in start.known(CERTIFICATES, problem.content_hash)]
    return first, known


def _search(
    problem: PipelineProblem, first: PipelinePlan | None, stays: bool, seconds: float, how: dict[str, Any]
) -> tuple[Result[PipelinePlan], PipelinePlan | None]:
    """Return the best plan, or with ``stays`` the first one with its bound and a better one met on the way."""
    from nmsolve.solvers.pipeline.api import bound_plan, plan
    from nmsolve.solvers.run import Options

    if not stays or first is None:
        return plan(problem, time_limit=seconds, warm_start=first, **how), None
    found = bound_plan(problem, first, Options(time_limit=seconds, **how))
    return found.result, found.better


def _for_links(
    o: PipelineOptions, given: Given, result: Result[PipelinePlan], until: float
) -> Result[PipelinePlan]:
    """Return the result with a cut that the links of the board can bear."""
    from nmsolve.kinds.pipeline.check_floorplan import board_of
    from nmsolve.kinds.pipeline.links import cut_for_links

    memory = opt.size_in_bytes(o.memory)
    board = board_of(given, opt.size_in_bytes(o.core_memory, "--core-memory"))
    how = {"seed": o.seed, "workers": o.workers, "cluster": o.cluster, "memory": memory}
    return cut_for_links(given, stated_inputs(o), board, result, until, how)


def stated_inputs(o: PipelineProblemOptions) -> PipelineInputs:
    """Return the part of the options that states the problem."""
    from nmsolve.model.pipeline.objectives import BATCH, PERIOD

    front = getattr(o, "pareto", None) is not None
    objective = o.objective or (PERIOD if o.training is None or front else BATCH)
    return PipelineInputs(
        model=str(o.model.resolve()), cores=o.cores, machine=opt.machine(o.machine), chips=o.chips, stages=o.stages,
        exact_stages=o.exact_stages, use_all=o.use_all, core_memory=opt.size_in_bytes(o.core_memory, "--core-memory"),
        overlap=o.overlap, split=o.split, bind=o.bind, branch=o.branch, strict=o.strict,
        offchip_bandwidth=opt.bandwidth(o.offchip_bandwidth, "--offchip-bandwidth"),
        group_sync=opt.nanoseconds(o.group_sync, "--group-sync"), objective=objective,
        training=o.training, batches=o.batches if batches_matter(objective, o.training) else None,
        recompute=o.recompute, weight_copies=o.weight_copies, replicas=o.replicas, group_border=o.group_border,
    )  # fmt: skip


def _require_options(o: PipelineOptions, given: Given) -> None:
    """Refuse early what must not wait for the end of the search."""
    if o.place and given.machine is None:
        raise InputError("no machine to place on", "--place", "--machine PRESET, mesh:RxC or machine.toml")
    if o.place and given.problem.replicas > 1:
        raise InputError("replicas of stages are not placed", "--place", "--replicas 1")
    if o.trace and o.pareto is not None:
        raise InputError("a front has several timetables", "--trace", "no --pareto")
    if o.write_onnx is not None:
        if given.graph is None:
            raise InputError("the input is not an ONNX model", "--write-onnx", "a .onnx input")
        if o.write_onnx.resolve().parent != o.out.resolve():  # which is made later
            prepare_file(o.write_onnx, o)
        if o.write_onnx.resolve() in (o.model.resolve(), o.out.resolve()):
            raise InputError("it is the model or the output folder", str(o.write_onnx), "another file")


#: Possible file names of a pipeline; an older placement belongs to the older plan.
FILES = (*PIPELINE_FILES, "placement/*.json", "placement/*.jsonl", "placement/report.html")


def write_pipeline(
    o: PipelineOptions, given: Given, result: Result[PipelinePlan], patience: Patience, run: str,
    better: PipelinePlan | None = None,
) -> PipelineReport:  # fmt: skip
    """Write plan.json, the certificate, events and report, checked from the plan's file alone; then the page.

    Whoever loses ``patience`` gets all of it but the page and the checks that were not done. The files are signed ``run``.
    """
    from nmsolve.kinds.pipeline.check import plan_checks
    from nmsolve.kinds.pipeline.page import render_pipeline_html
    from nmsolve.model.pipeline.files import read_plan

    answer = Answer(o.out, FILES, run, alone=True)
    report = write_unchecked(o, given, run, result, better)
    if result.solution is not None and o.write_onnx is not None and given.graph and given.layers:
        from nmsolve.model.formats.onnx_plan import write_onnx_plan

        nesting = given.layers.nesting
        unfolded = None if nesting is None else nesting.unfolded
        found, backward = result.solution, given.layers.backward
        write_onnx_plan(o.model, o.write_onnx, given.graph, given.layers.operators, found, unfolded, backward)
    with answer.added() as files:
        with patience.optional(CHECKS):
            if result.solution is not None:
                plan = read_plan(o.out / PLAN, given.problem)
                checks = plan_checks(given.problem, plan, result.objective, result.bounds)
                report = msgspec.structs.replace(report, checks=checks, not_checked=[])
        files[REPORT] = as_json(report)
        with patience.drawing():
            command = f"nmsolve verify {o.out} --bound"
            files[PAGE] = render_pipeline_html(given, result, report, command, o.plain)
    return report


def write_unchecked(
    o: PipelineOptions,
    given: Given,
    run: str,
    result: Result[PipelinePlan],
    better: PipelinePlan | None = None,
) -> PipelineReport:
    """Write plan.json, the certificate, events and a report that says what is not checked yet."""
    from nmsolve.kinds.pipeline.check import plan_certificates
    from nmsolve.model.files import write_atomic
    from nmsolve.model.pipeline.files import write_plan

    with Answer(o.out, FILES, run, alone=True).found() as folder:
        if result.solution is not None:
            write_plan(folder / PLAN, given.problem, result.solution)
        if better is not None:
            write_plan(folder / BETTER, given.problem, better)
        left = [] if result.solution is None else ["plan"]
        inputs = msgspec.to_builtins(stated_inputs(o))
        report = build_pipeline_report(given, result, [], o.batches, inputs, left)
        if result.solution is not None and o.trace:
            _write_trace(folder / TRACE, given, result.solution, report)
        write_atomic(folder / CERTIFICATES, plan_certificates(given.problem, result.bounds))
        write_atomic(folder / "events.jsonl", event_lines(result.events))
        write_atomic(folder / REPORT, as_json(report))
    return report


def _write_trace(path: Path, given: Given, plan: PipelinePlan, report: PipelineReport) -> None:
    from nmsolve.hw.pipeline.trace import pipeline_trace
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
    if s is None:
        out = ["load", "compute", "transfer"]
        out[1:2] = ["compute", "exchange"] if report.sync is not None else ["compute"]
        out += ["off chip", "moved"] if report.offchip else []
        out += ["run again", "kept"] if report.training else []
        return out + (["weights", "live"] if report.live else [])
    out = [number(s.load), number(s.compute - s.exchange)]
    out += [number(s.exchange)] if report.sync is not None else []
    out.append(number(s.transfer_in + s.transfer_out))
    out += [number(s.offchip), size_words(s.streamed)] if report.offchip else []
    out += [number(s.again), size_words(s.kept * s.flights)] if report.training else []
    return out + ([size_words(s.weights), size_words(s.live)] if report.live else [])


def _words(report: PipelineReport) -> Iterator[str]:
    """Yield what the report says, for people."""
    if report.stages:
        yield "\n" + _line("stage", "cores", "layers", _figures(report, None), "storage/core", "first layer")
    for k, s in enumerate(report.stages[:LISTED]):
        yield _line(k, cores_words(s), f"{s.layers:,}", _figures(report, s), number(s.storage), s.first)
    if len(report.stages) > LISTED:
        yield f"  ... and {len(report.stages) - LISTED} more stages"
    unit = f" {report.goal_unit}" if report.goal_unit else ""
    yield (
        f"\n{report.status}: {number(report.objective)}{unit}, bound {number(report.bound)}, gap {percent(report.gap)} "
        f"(stopped: {report.stop_reason}, {report.wall_seconds:.1f} s)"
    )
    yield from pipeline_words(report)
    for check in report.checks:
        yield f"  {label(check):6} {check.name}: {check.text}"
    if report.not_checked:
        yield f"not done for lack of time: {', '.join(report.not_checked)}"
