"""``nmsolve assign``: a model and processors in; a processor for every operator, a proof, programs and a page out."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from nmsolve.kinds import clock
from nmsolve.kinds import values as opt
from nmsolve.kinds.answer import (
    BETTER,
    Answer,
    as_json,
    event_lines,
    explained,
    finish,
    prepare_folder,
    write_models,
)
from nmsolve.kinds.answer_files import ASSIGN_FILES, FRONT_FILES
from nmsolve.kinds.assignment.check import ANSWER, CERTIFICATES, REPORT, read_any_answer, write_answer
from nmsolve.kinds.assignment.programs import CasePart, ProgramsPart, RunPart, program_checks
from nmsolve.kinds.assignment.report import AssignReport, assign_words, build_assign_report
from nmsolve.kinds.assignment.statement import AssignInputs, Given, state_problem, stated_inputs
from nmsolve.kinds.patience import CHECKS, LONG_PAGE, Patience, search_time
from nmsolve.kinds.progress import watching
from nmsolve.kinds.verdict import label
from nmsolve.model.assignment.problem import OBJECTIVES
from nmsolve.model.errors import InputError
from nmsolve.model.file_set import new_run
from nmsolve.report.figures import amount, percent

if TYPE_CHECKING:
    from nmsolve.kinds.assignment.check import Problem
    from nmsolve.kinds.assignment.options import AssignOptions
    from nmsolve.kinds.earlier import Start
    from nmsolve.model.bound import Bound, Result, Stage

InputsT = TypeVar("InputsT", bound=AssignInputs | None)
PAGE, PROGRAMS, SCALARS = "report.html", "programs", "scalars.json"
#: Names of what is written beside the programs, and of these.
PARTS = (
    "[0-9][0-9][0-9][0-9][0-9]-*.onnx",
    "manifest.json",
    "marked.onnx",
    "onnxruntime.txt",
    "onnx-mlir.json",
    SCALARS,
)
#: Possible file names of an assignment; other files in its folders are never touched.
FILES = (*ASSIGN_FILES, *(f"{PROGRAMS}/{name}" for name in PARTS))
#: Re-checks that take a moment, which every run does; `nmsolve verify --bound` does all.
QUICK = ("min-cut",)


def run_assign(o: AssignOptions, start: Start | None = None) -> int:
    """Run the command, going on from an earlier run where there is a ``start``; returns the exit code.

    Raises
    ------
    InputError : anything wrong with the input; before any search
    """
    from nmsolve.solvers.multi_objective import objective_names

    limit, how = opt.seconds(o.time_limit), opt.search(o)
    names = objective_names(o.objective, OBJECTIVES)
    front = None if o.pareto is None else _front_names(o)
    inputs = stated_inputs(o, front or names)
    if start is not None and start.stays:
        names = names[-1:]
        inputs = msgspec.structs.replace(inputs, objective=names[0])
    with explained("assign"):
        given = state_problem(inputs)
    _require_options(o, given, front, names)
    first, known = _first(o, start, given)
    for warning in () if given.graph is None else given.graph.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    prepare_folder(o.out, (*FILES, *FRONT_FILES), o)
    if o.write_model is not None:
        from nmsolve.solvers.assignment.exact import models

        write_models("assign", lambda: models(given.operators), o.write_model)
    with Patience(clock.end(limit)) as patience:
        if front is not None:
            return _assign_front(o, front, given, inputs, first, patience)
        run = new_run()
        with watching(o.json, [OBJECTIVES[name] for name in names] if given.own else (), o.out) as observers:
            keep = partial(write_unchecked, o, given, inputs, run)  # of several objectives the first is kept
            told = {"observers": observers, "known": known, "keep": keep, **how}
            if len(names) > 1:
                given, inputs, result, earlier = run_stages(
                    given, inputs, names, first, _searching(limit), told
                )
                better = None
            else:
                earlier = ()
                stays = start is not None and start.stays
                result, better = _search(given.problem, first, stays, _searching(limit), told)
        report = write_assign(o, given, result, inputs, patience, run, earlier, better)
        if o.library is not None and result.solution is not None:
            _remember(o.library, given, result.solution)
        return finish(o, result, report, _words(report), (PAGE, REPORT), "assign", "assignment exists")


def _searching(limit: float) -> float:
    """Return seconds of a time limit that are for searching; the rest is for checks and for the page with its pictures."""
    return search_time(limit, LONG_PAGE)


def _remember(path: Path, given: Given, solution: Any) -> None:
    """Note in the library which processor every operation got, for the rules of later runs; a read-only file stays as it is."""
    from nmsolve.hw.assignment.library import Library

    if given.stated is None or not os.access(path, os.W_OK):
        return
    with Library(path, write=True) as library:
        given.stated.record(library, solution.unit)


def _front_names(o: AssignOptions) -> tuple[str, str]:
    """Return the two objectives of ``--pareto``."""
    from nmsolve.kinds.pareto import require_front
    from nmsolve.solvers.multi_objective import objective_names

    return require_front(o, objective_names(o.pareto or "", OBJECTIVES, "--pareto"))


def _require_options(
    o: AssignOptions, given: Given, front: Sequence[str] | None, names: Sequence[str]
) -> None:  # fmt: skip
    """Refuse early what must not wait for the end of the search."""
    if given.own is not None:
        if o.run:
            from nmsolve.hw.assignment.runtime import require_runtime

            require_runtime("--run")
        return
    asked = {
        "--run": o.run,
        "--write-model": o.write_model is not None,
        "--pareto": front is not None,
    }
    for option, value in {**asked, "--objective": len(names) > 1}.items():
        if value:
            raise InputError("a cost network has one objective and no programs", option, "a .onnx model")


def _first(o: AssignOptions, start: Start | None, given: Given) -> tuple[Any, list[Bound]]:
    """Return the answer to begin with, and what an earlier run proved of this problem."""
    path = o.warm_start if start is None else start.answer
    if path is None:
        return None, []
    first = read_any_answer(path / ANSWER if path.is_dir() else path, given)
    about = given.problem.content_hash
    known = [] if start is None else [b for _, b in start.known(CERTIFICATES, about)]
    return first, known


def _search(
    problem: Problem, first: Any, stays: bool, seconds: float, how: dict[str, Any]
) -> tuple[Result[Any], Any]:
    """Return the best answer, or with ``stays`` the first one with its bound and a better one met on the way."""
    from nmsolve.model.assignment.network import CostNetwork
    from nmsolve.solvers.assignment import api
    from nmsolve.solvers.run import Options

    network = isinstance(problem, CostNetwork)
    if not stays or first is None:
        solve: Any = api.solve_network if network else api.solve_assignment
        return solve(problem, time_limit=seconds, warm_start=first, **how), None
    bound: Any = api.bound_strategies if network else api.bound_assignment
    found = bound(problem, first, Options(time_limit=seconds, **how))
    return found.result, found.better


def run_stages(
    given: Given, inputs: InputsT, names: Sequence[str], first: Any, seconds: float, how: Mapping[str, Any],
    say: Callable[[str], None] | None = None,
) -> tuple[Given, InputsT, Result[Any], Sequence[Stage]]:  # fmt: skip
    """Minimise several objectives in order: problem, inputs and result are those of the last, with the stages before.

    ``say`` is told what each came to; standard error if not given.
    """
    from nmsolve.kinds.in_order import run_in_order, to_errors
    from nmsolve.solvers.assignment.multi_objective import AssignObjectives
    from nmsolve.solvers.run import Options

    options, known = {k: v for k, v in how.items() if k != "known"}, tuple(how.get("known", ()))
    objectives = AssignObjectives(given.operators, Options(**options), first, known)
    inputs, stage, result, earlier = run_in_order(
        objectives, inputs, names, seconds, OBJECTIVES, say or to_errors
    )
    own = replace(given.operators, objective=stage.objective, ceilings=stage.ceilings)
    # the checker takes the terms from the problem's objective, so that it needs the last stage's
    stated = None if given.stated is None else replace(given.stated, problem=own)
    return replace(given, own=own, stated=stated), inputs, result, earlier


def _assign_front(
    o: AssignOptions, names: tuple[str, str], given: Given, inputs: AssignInputs, first: Any, patience: Patience
) -> int:  # fmt: skip
    """Compute the front of two objectives; return the exit code."""
    from nmsolve.kinds.front_kinds import AssignFront
    from nmsolve.kinds.pareto import run_front
    from nmsolve.solvers.assignment.multi_objective import AssignObjectives
    from nmsolve.solvers.run import Options

    objectives = AssignObjectives(given.operators, Options(**opt.search(o)), first)
    kind = AssignFront(given.operators)
    limit = opt.seconds(o.time_limit)
    return run_front(o, kind, objectives, names, limit, patience, msgspec.to_builtins(inputs))


def write_assign(
    o: AssignOptions, given: Given, result: Result[Any], inputs: AssignInputs, patience: Patience, run: str,
    earlier: Sequence[Stage] = (), better: Any = None,
) -> AssignReport:  # fmt: skip
    """Write assignment.json, certificates, events and report, then the programs, checks and the page.

    Whoever loses ``patience`` gets all of it but the page and the checks that were not done. The files are signed ``run``.
    """
    from nmsolve.kinds.assignment.check import bound_checks, result_checks
    from nmsolve.kinds.assignment.page import render_assign_html

    problem, answer = given.problem, Answer(o.out, FILES, run, alone=True)
    solution = result.solution
    report = write_unchecked(o, given, inputs, run, result, earlier, better)
    with answer.added() as files:
        if solution is not None:
            report = msgspec.structs.replace(report, programs=_programs(o, given, solution))
        with patience.optional(CHECKS):
            if solution is not None:
                checks = [*result_checks(problem, solution, result), *program_checks(report.programs)]
                report = msgspec.structs.replace(report, checks=checks, not_checked=["bounds"])
                quick = [b for b in result.bounds if b.method in QUICK]
                checks = checks + bound_checks(problem, solution, result.scores, quick)
                left = [] if len(quick) == len(result.bounds) else ["other bounds"] if quick else ["bounds"]
                report = msgspec.structs.replace(report, checks=checks, not_checked=left)
        files[REPORT] = as_json(report)
        with patience.drawing():
            files[PAGE] = render_assign_html(
                given, result, report, f"nmsolve verify {o.out} --bound", o.plain
            )
    return report


def write_unchecked(
    o: AssignOptions, given: Given, inputs: AssignInputs, run: str, result: Result[Any], earlier: Sequence[Stage] = (),
    better: Any = None,
) -> AssignReport:  # fmt: skip
    """Write assignment.json, certificates, events and a report that says what is not checked yet."""
    from nmsolve.model.files import write_atomic
    from nmsolve.solvers.assignment.recheck import RECHECKS
    from nmsolve.solvers.mapping.certificates import certificates_text

    problem, solution = given.problem, result.solution
    with Answer(o.out, FILES, run, alone=True).found() as folder:
        if solution is not None:
            write_answer(folder / ANSWER, problem, solution)
        if better is not None:
            write_answer(folder / BETTER, problem, better)
        left = [] if solution is None else ["assignment", "bounds"]
        report = build_assign_report(given, result, msgspec.to_builtins(inputs), left)
        rows = (("", b) for b in result.bounds)
        proofs = certificates_text(problem.content_hash, rows, earlier, RECHECKS.keys())
        write_atomic(folder / CERTIFICATES, proofs)
        write_atomic(folder / "events.jsonl", event_lines(result.events))
        write_atomic(folder / REPORT, as_json(report))
    return report


def _programs(o: AssignOptions, given: Given, solution: Any) -> ProgramsPart | None:
    """Write the programs of the processors, and run them if asked for; return what the report says of them.

    Raises
    ------
    InputError : they were to be run, and cannot be written or run
    """
    from nmsolve.hw.assignment.programs.host_scalars import scalar_program, tiled_operators
    from nmsolve.hw.assignment.programs.of_answer import write_programs
    from nmsolve.hw.assignment.programs.reading import all_pieces
    from nmsolve.model.operators.scalars.files import write_scalars

    if given.stated is None or given.graph is None:
        return None
    folder = o.out / PROGRAMS
    try:
        graph = None if o.bind else given.graph  # programs keep the symbols, so that they run at any length
        manifest = write_programs(o.model, given.stated, solution, folder, graph=graph)
    except InputError as error:
        if o.run:
            raise
        return ProgramsPart(trouble=str(error))
    pieces = list(all_pieces(manifest.program))
    scalars = scalar_program(given.graph, given.stated, solution)
    write_scalars(folder / SCALARS, scalars)
    tiled = len(tiled_operators(given.stated, solution))
    part = ProgramsPart(
        PROGRAMS, len(pieces), {p.memory: p.bytes for p in manifest.peaks}, scalars=scalars.count, tiled=tiled
    )
    return msgspec.structs.replace(part, run=_run_programs(o, folder)) if o.run else part


def _run_programs(o: AssignOptions, folder: Path) -> RunPart:
    """Execute the programs in a folder on random inputs, and compare every output with the model's."""
    from nmsolve.hw.assignment.programs.run import run_programs
    from nmsolve.model.operators.binding import parse_bindings

    print("executing the programs", file=sys.stderr)
    ran = run_programs(folder, o.model, bindings=parse_bindings(o.bind), seed=o.seed)
    cases = [
        CasePart(dict(c.bindings), c.difference, c.seconds, c.whole_seconds, c.transfers, dict(c.pieces))
        for c in ran.cases
    ]
    return RunPart(ran.equal, ran.difference, ran.level, dict(ran.predicted_total), cases)


def _words(report: AssignReport) -> Iterator[str]:
    """Yield what the report says, for people."""
    if report.units:
        heads = " ".join(
            f"{name:>12}" for name in ("run", "launches", "interrupts", "transfer", "load", "energy")
        )
        yield f"\n{'unit':16} {'operators':>9} {heads}"
    for u in report.units:
        times = " ".join(
            f"{amount(v, 'ps'):>12}" for v in (u.run, u.launches, u.interrupts, u.transfer, u.work)
        )
        yield f"{u.name:16} {u.operators:9,} {times} {amount(u.energy, 'pJ'):>12}"
    for m in report.memories:
        if m.limit is not None:
            yield f"memory {m.name}: at most {m.peak:,} of {m.limit:,.0f} bytes, at {m.at}"
    yield (
        f"\n{report.status}: {report.objective_name} {amount(report.objective, report.unit)}, "
        f"bound {amount(report.bound, report.unit)}, gap {percent(report.gap)} "
        f"(stopped: {report.stop_reason}, {report.wall_seconds:.1f} s)"
    )
    yield from assign_words(report)
    others = {k: v for k, v in report.scores.items() if k != report.objective_name}
    if others:
        yield "also: " + ", ".join(f"{k} {amount(v, OBJECTIVES.get(k, ''))}" for k, v in others.items())
    for check in report.checks:
        yield f"  {label(check):6} {check.name}: {check.text}"
    if report.not_checked:
        yield f"not checked here (nmsolve verify --bound does): {', '.join(report.not_checked)}"
