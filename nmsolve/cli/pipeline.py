"""``nmsolve pipeline``: a model or cost graph in, stages on groups of cores out, with a bound and a page."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from nmsolve.cli import options as opt
from nmsolve.cli.answer import (
    FEASIBLE,
    OK,
    exit_code,
    prepare_file,
    prepare_folder,
)
from nmsolve.cli.patience import CHECKS, Patience, search_time
from nmsolve.cli.pipeline_problem import Given, PipelineInputs, state_problem
from nmsolve.cli.progress import event_to_json, number, percent, watching
from nmsolve.model.errors import InputError
from nmsolve.model.file_set import file_set, new_run

if TYPE_CHECKING:
    from nmsolve.cli.pipeline_report import PipelineReport
    from nmsolve.model.bound import Result
    from nmsolve.model.pipeline.plan import PipelinePlan

#: Part of the time that ``--place`` keeps for the placement.
PLACE_PART = 0.5
PAGE = "pipeline.html"
#: Stages that are listed on the terminal; the page has all.
LISTED = 24


@dataclass(frozen=True)
class PipelineOptions:
    """The options of ``nmsolve pipeline``, as typed."""

    model: Path
    cores: int | None
    machine: str | None
    chips: str | None
    stages: int | None
    exact_stages: bool
    use_all: bool
    core_memory: str | None
    overlap: bool
    split: str | None
    bind: str | None
    strict: bool
    time_limit: str
    gap: str | None
    seed: int
    workers: int
    engines: str | None
    memory: str | None
    batches: int
    place: bool
    write_onnx: Path | None
    out: Path
    json: bool


def run_pipeline(o: PipelineOptions) -> int:
    """Run the command; returns the exit code.

    Raises
    ------
    InputError : anything wrong with the input, or counting shows that nothing fits; before any search
    """
    from nmsolve.cli.main import STARTED
    from nmsolve.solvers.pipeline.api import plan

    limit, wanted, memory = opt.seconds(o.time_limit), opt.fraction(o.gap), opt.size_in_bytes(o.memory)
    given = state_problem(_inputs(o))
    _require_options(o, given)
    for warning in () if given.graph is None else given.graph.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    prepare_folder(o.out)
    search = limit * (1 - PLACE_PART) if o.place else search_time(limit)
    run = new_run()
    with Patience(STARTED + limit) as patience:
        with watching(o.json) as observers:
            result = plan(
                given.problem, time_limit=search, started=STARTED, gap=wanted or 0.0, seed=o.seed, workers=o.workers,
                engines=opt.names(o.engines), memory=memory, observers=observers,
            )  # fmt: skip
        report = write_pipeline(o, given, result, patience, run)
        say_pipeline(o.out, report, o.json)
        code = exit_code(result, report, wanted)
        if o.place and result.solution is not None and code in (OK, FEASIBLE):
            from nmsolve.cli.pipeline_place import place_tiles

            if patience.asked:
                print("interrupted: no tiles are placed", file=sys.stderr)
                return code
            placed = place_tiles(
                o, given, result.solution, STARTED + search_time(limit), memory, run, patience
            )
            return placed if placed != OK else code
        return code


def _inputs(o: PipelineOptions) -> PipelineInputs:
    """The part of the options that states the problem."""
    machine = str(Path(o.machine).resolve()) if o.machine and Path(o.machine).is_file() else o.machine
    return PipelineInputs(
        model=str(o.model.resolve()), cores=o.cores, machine=machine, chips=o.chips, stages=o.stages,
        exact_stages=o.exact_stages, use_all=o.use_all, core_memory=opt.size_in_bytes(o.core_memory, "--core-memory"),
        overlap=o.overlap, split=o.split, bind=o.bind, strict=o.strict,
    )  # fmt: skip


def _require_options(o: PipelineOptions, given: Given) -> None:
    """What must not wait for the end of the search."""
    if o.place and given.machine is None:
        raise InputError("no machine to place on", "--place", "--machine PRESET, mesh:RxC or machine.toml")
    if o.write_onnx is not None:
        if given.graph is None:
            raise InputError("the input is no ONNX model", "--write-onnx", "a .onnx input")
        if o.write_onnx.resolve() == o.model.resolve():
            raise InputError("the copy would overwrite the model", "--write-onnx", "another file")
        prepare_file(o.write_onnx)


#: Names that files of a pipeline may have; a placement belongs to the plan before.
FILES = (
    "plan.json", "certificates.json", "events.jsonl", "pipeline-report.json", PAGE, "placement/*.json", "placement/*.jsonl",
    "placement/report.html",
)  # fmt: skip


def write_pipeline(
    o: PipelineOptions, given: Given, result: Result[PipelinePlan], patience: Patience, run: str
) -> PipelineReport:
    """Write plan.json, the certificate, events and report, checked from the plan's file alone; then the page.

    Whoever loses ``patience`` gets all of it but the page and the checks that were not done. The files are signed ``run``.
    """
    from nmsolve.cli.check_pipeline import CERTIFICATES, PLAN, REPORT, plan_certificates, plan_checks
    from nmsolve.cli.pipeline_page import render_pipeline_html
    from nmsolve.cli.pipeline_report import build_pipeline_report
    from nmsolve.model.files import write_atomic
    from nmsolve.model.pipeline.files import read_plan, write_plan

    inputs = msgspec.to_builtins(_inputs(o))
    with file_set(o.out, FILES, run) as folder:
        if result.solution is not None:
            write_plan(folder / PLAN, given.problem, result.solution)
        left = [] if result.solution is None else ["plan"]
        report = build_pipeline_report(given, result, [], o.batches, inputs, left)
        write_atomic(folder / CERTIFICATES, plan_certificates(given.problem, result.bounds))
        lines = "".join(json.dumps(event_to_json(e)) + "\n" for e in result.events)
        write_atomic(folder / "events.jsonl", lines)
        write_atomic(folder / REPORT, msgspec.json.format(msgspec.json.encode(report), indent=2))
    if (
        result.solution is not None
        and o.write_onnx is not None
        and given.graph is not None
        and given.layers is not None
    ):
        from nmsolve.model.formats.onnx_plan import write_onnx_plan

        write_onnx_plan(o.model, o.write_onnx, given.graph, given.layers.operators, result.solution)
    page = None
    try:
        with patience.optional(CHECKS):
            if result.solution is not None:
                plan = read_plan(o.out / PLAN, given.problem)
                checks = plan_checks(given.problem, plan, result.objective, result.bounds)
                report = msgspec.structs.replace(report, checks=checks, not_checked=[])
        with patience.optional():
            page = render_pipeline_html(given, result, report, f"nmsolve verify {o.out} --bound")
    except KeyboardInterrupt:
        print("no time was left for the page", file=sys.stderr)
    with file_set(o.out, (), run) as folder:
        write_atomic(folder / REPORT, msgspec.json.format(msgspec.json.encode(report), indent=2))
        if page is not None:
            write_atomic(folder / PAGE, page)
    return report


def say_pipeline(out: Path, report: PipelineReport, as_json: bool) -> None:
    """The last words: JSON result on stdout, or a summary for people."""
    from nmsolve.cli.check_pipeline import REPORT
    from nmsolve.cli.pipeline_report import pipeline_words
    from nmsolve.cli.verdict import label

    if as_json:
        print(json.dumps({"type": "result", **msgspec.to_builtins(report), "out": str(out)}), flush=True)
    stream = sys.stderr if as_json else sys.stdout
    if report.stages:
        heads = (f"{'stage':>5} {'cores':>6} {'layers':>6}", f"{'load':>12} {'compute':>12} {'transfer':>12}")
        print(f"\n{heads[0]} {heads[1]} {'storage/core':>13}  first layer", file=stream)
    for k, s in enumerate(report.stages[:LISTED]):
        print(
            f"{k:5} {s.cores or 'host':>6} {s.layers:6,} {number(s.load):>12} {number(s.compute):>12} "
            f"{number(s.transfer_in + s.transfer_out):>12} {number(s.storage):>13}  {s.first}",
            file=stream,
        )
    if len(report.stages) > LISTED:
        print(f"  ... and {len(report.stages) - LISTED} more stages", file=stream)
    unit = f" {report.unit}" if report.unit else ""
    print(
        f"\n{report.status}: {number(report.objective)}{unit}, bound {number(report.bound)}, gap {percent(report.gap)} "
        f"(stopped: {report.stop_reason}, {report.wall_seconds:.1f} s)",
        file=stream,
    )
    for line in pipeline_words(report):
        print(line, file=stream)
    for check in report.checks:
        print(f"  {label(check):6} {check.name}: {check.text}", file=stream)
    if report.not_checked:
        print(f"not done for lack of time: {', '.join(report.not_checked)}", file=stream)
    print(f"report: {out / PAGE if (out / PAGE).exists() else out / REPORT}", file=stream)
