"""``nmsolve schedule``: networks and units in; a schedule, a proof, executed queues and a page out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
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
from nmsolve.kinds.answer_files import FRONT_FILES, SCHEDULE_FILES
from nmsolve.kinds.patience import CHECKS, LONG_PAGE, Patience, search_time
from nmsolve.kinds.progress import watching
from nmsolve.kinds.schedule.again import EARLIER
from nmsolve.kinds.schedule.check import ANSWER, CERTIFICATES, REPORT, read_any_answer, write_answer
from nmsolve.kinds.schedule.report import (
    ScheduleReport,
    build_schedule_report,
    figure,
    noise_part,
    schedule_words,
)
from nmsolve.kinds.schedule.statement import Given, ScheduleInputs, asked_inputs, state_problem
from nmsolve.kinds.verdict import label
from nmsolve.model.errors import InputError
from nmsolve.model.file_set import new_run
from nmsolve.model.schedule.problem import OBJECTIVES
from nmsolve.report.figures import number, percent

if TYPE_CHECKING:
    from pathlib import Path

    from nmsolve.hw.schedule.walk import Walk
    from nmsolve.kinds.earlier import Start
    from nmsolve.kinds.schedule.options import ScheduleOptions
    from nmsolve.model.bound import Bound, Result, Stage
    from nmsolve.model.schedule.problem import ScheduleProblem
    from nmsolve.model.schedule.schedule import Schedule

InputsT = TypeVar("InputsT", bound=ScheduleInputs | None)
PAGE, TRACE, TABLE = "report.html", "trace.json", "schedule.csv"
#: Most processes of a run that re-checks its bounds itself; `nmsolve verify --bound` always does.
QUICK = 2000
#: Units that are listed on the terminal.
LISTED = 24


def run_schedule(o: ScheduleOptions, start: Start | None = None) -> int:
    """Run the command, going on from an earlier run where there is a ``start``; returns the exit code.

    Raises
    ------
    InputError : anything wrong with the input; before any search
    """
    limit, how = opt.seconds(o.time_limit), opt.search(o)
    front = None if o.pareto is None else _front_names(o)
    names: Sequence[str] = () if o.objective is None else objectives_in_order(o.objective, "--objective")
    if start is not None and start.stays:
        names = names[-1:]
    noise = opt.fraction(o.noise, "--noise")
    if noise is not None and noise >= 1:
        raise InputError(f"noise of {o.noise}", "--noise", "less than 100%")
    if o.from_:
        from nmsolve.kinds.schedule.from_plans import with_tasks

        o = with_tasks(o)
    elif o.frames is not None:
        raise InputError("there are no plans", "--frames", "--from DIR")
    inputs = asked_inputs(o, front or names)
    with explained("schedule"):
        given = state_problem(inputs)
    if inputs.again is not None:
        kept = msgspec.structs.replace(inputs.again, run=str((o.out / EARLIER).resolve()))
        inputs = msgspec.structs.replace(inputs, again=kept)
    names = names or (given.problem.objective,)
    first, known = _first(o, start, given)
    prepare_folder(o.out, (*SCHEDULE_FILES, *FRONT_FILES), o)
    if o.write_model is not None:
        from nmsolve.solvers.schedule.exact import models

        write_models("schedule", lambda: models(given.problem), o.write_model)
    with Patience(clock.end(limit)) as patience:
        if front is not None:
            return _front(o, front, given, inputs, first, patience)
        run = new_run()
        seconds = search_time(limit, LONG_PAGE)
        earlier: Sequence[Stage] = ()
        better = None
        with watching(o.json, out=o.out) as observers:
            keep = partial(write_unchecked, o, given, inputs, run)  # of several objectives the first is kept
            told = {"observers": observers, "known": known, "keep": keep, **how}
            if len(names) > 1:
                given, inputs, result, earlier = run_stages(given, inputs, names, first, seconds, told)
            else:
                stays = start is not None and start.stays
                result, better = _search(given.problem, first, stays, seconds, told)
        report = write_run(o, given, result, inputs, patience, run, earlier, better)
        return finish(o, result, report, _words(report), (PAGE, REPORT), "schedule", "schedule exists")


def objectives_in_order(text: str, option: str) -> tuple[str, ...]:
    """Return objectives in order; ``weighted`` stands alone, as its worth is no limit that a file could state."""
    from nmsolve.solvers.multi_objective import objective_names

    names = objective_names(text, OBJECTIVES, option)
    if len(names) > 1 and "weighted" in names:
        raise InputError("weighted is one of several objectives", option, "weighted alone, or others")
    return names


def _front_names(o: ScheduleOptions) -> tuple[str, str]:
    """Return the two objectives of ``--pareto``."""
    from nmsolve.kinds.pareto import require_front

    return require_front(o, objectives_in_order(o.pareto or "", "--pareto"))


def _first(o: ScheduleOptions, start: Start | None, given: Given) -> tuple[Schedule | None, list[Bound]]:
    """Return the schedule to begin with, and what an earlier run proved of this problem."""
    path = o.warm_start if start is None else start.answer
    if path is None:
        return None, []
    first = read_any_answer(path / ANSWER if path.is_dir() else path, given.problem)
    about = given.problem.content_hash
    return first, [] if start is None else [b for _, b in start.known(CERTIFICATES, about)]


def _search(
    problem: ScheduleProblem, first: Schedule | None, stays: bool, seconds: float, how: dict[str, Any]
) -> tuple[Result[Schedule], Schedule | None]:
    """Return the best answer, or with ``stays`` the first one with its bound and a better one met on the way."""
    from nmsolve.solvers.run import Options
    from nmsolve.solvers.schedule.api import bound_schedule, solve_schedule

    if not stays or first is None:
        return solve_schedule(problem, time_limit=seconds, warm_start=first, **how), None
    found = bound_schedule(problem, first, Options(time_limit=seconds, **how))
    return found.result, found.better


def run_stages(
    given: Given, inputs: InputsT, names: Sequence[str], first: Schedule | None, seconds: float, how: Mapping[str, Any],
    say: Callable[[str], None] | None = None,
) -> tuple[Given, InputsT, Result[Schedule], Sequence[Stage]]:  # fmt: skip
    """Minimise several objectives in order: problem, inputs and result are those of the last, with the stages before.

    ``say`` is told what each came to; standard error if not given.
    """
    from nmsolve.kinds.in_order import run_in_order, to_errors
    from nmsolve.solvers.run import Options
    from nmsolve.solvers.schedule.multi_objective import ScheduleObjectives

    options, known = {k: v for k, v in how.items() if k != "known"}, tuple(how.get("known", ()))
    objectives = ScheduleObjectives(given.problem, Options(**options), first, known)
    inputs, stage, result, earlier = run_in_order(
        objectives, inputs, names, seconds, OBJECTIVES, say or to_errors
    )
    last = replace(given.problem, objective=stage.objective, ceilings=stage.ceilings)
    return given.restated(last), inputs, result, earlier


def _front(
    o: ScheduleOptions, names: tuple[str, str], given: Given, inputs: ScheduleInputs, first: Schedule | None, patience: Patience
) -> int:  # fmt: skip
    """Compute the front of two objectives; return the exit code."""
    from nmsolve.kinds.front_kinds import ScheduleFront
    from nmsolve.kinds.pareto import run_front
    from nmsolve.solvers.run import Options
    from nmsolve.solvers.schedule.multi_objective import ScheduleObjectives

    objectives = ScheduleObjectives(given.problem, Options(**opt.search(o)), first)
    limit, kind = opt.seconds(o.time_limit), ScheduleFront(given.problem, given.earlier)
    return run_front(o, kind, objectives, names, limit, patience, msgspec.to_builtins(inputs))


def _alone(o: ScheduleOptions) -> bool:
    """Return False if a plan that this schedule comes from lies in the output folder."""
    return all(folder.resolve() != o.out.resolve() for folder in o.from_ or ())


def write_run(
    o: ScheduleOptions, given: Given, result: Result[Schedule], inputs: ScheduleInputs, patience: Patience, run: str,
    earlier: Sequence[Stage] = (), better: Schedule | None = None,
) -> ScheduleReport:  # fmt: skip
    """Write schedule.json, certificates, events and report, then checks and the page.

    Whoever loses ``patience`` gets all of it but the page and the checks that were not done. The files are signed ``run``.
    """
    from nmsolve.kinds.schedule.check import bound_checks, result_checks
    from nmsolve.kinds.schedule.page import render_schedule_html

    problem, answer, solution = (
        given.problem,
        Answer(o.out, SCHEDULE_FILES, run, alone=_alone(o)),
        result.solution,
    )
    report = write_unchecked(o, given, inputs, run, result, earlier, better)
    with answer.added() as files:
        with patience.optional(CHECKS):
            if solution is not None:
                checks = result_checks(problem, solution, result)
                report = msgspec.structs.replace(report, checks=checks, not_checked=["bounds"])
                if problem.count <= QUICK:
                    checks = checks + bound_checks(problem, solution, result.scores, result.bounds)
                    report = msgspec.structs.replace(report, checks=checks, not_checked=[])
        with patience.optional():
            if solution is not None and o.noise is not None:
                noise = opt.fraction(o.noise, "--noise") or 0.0
                part = noise_part(problem, solution, noise, o.runs, o.seed)
                report = msgspec.structs.replace(report, noise=part)
        files[REPORT] = as_json(report)
        with patience.drawing():
            files[PAGE] = render_schedule_html(
                given, result, report, f"nmsolve verify {o.out} --bound", o.plain
            )
    return report


def write_unchecked(
    o: ScheduleOptions, given: Given, inputs: ScheduleInputs, run: str, result: Result[Schedule], earlier: Sequence[Stage] = (),
    better: Schedule | None = None,
) -> ScheduleReport:  # fmt: skip
    """Write schedule.json, certificates, events and a report that says what is not checked yet."""
    from nmsolve.hw.schedule.walk import walked
    from nmsolve.model.files import write_atomic
    from nmsolve.solvers.mapping.certificates import certificates_text
    from nmsolve.solvers.schedule.recheck import FREE

    problem, solution = given.problem, result.solution
    seen = None if solution is None else walked(problem, solution)
    with Answer(o.out, SCHEDULE_FILES, run, alone=_alone(o)).found() as folder:
        if solution is not None:
            write_answer(folder / ANSWER, problem, solution)
            _export(o, folder, given, solution, seen)
        if given.earlier:
            write_atomic(folder / EARLIER, given.earlier)
        if better is not None:
            write_answer(folder / BETTER, problem, better)
        left = [] if solution is None else ["schedule", "bounds"]
        report = build_schedule_report(given, result, msgspec.to_builtins(inputs), seen, left)
        proofs = certificates_text(problem.content_hash, (("", b) for b in result.bounds), earlier, FREE)
        write_atomic(folder / CERTIFICATES, proofs)
        write_atomic(folder / "events.jsonl", event_lines(result.events))
        write_atomic(folder / REPORT, as_json(report))
    return report


def _export(o: ScheduleOptions, folder: Path, given: Given, answer: Schedule, seen: Walk | None) -> None:
    """Write the schedule for other tools, as far as it was asked for."""
    from nmsolve.hw.schedule.trace import schedule_csv, trace_json
    from nmsolve.model.files import write_atomic

    if o.trace and seen is not None:
        write_atomic(folder / TRACE, trace_json(given.problem, answer, seen, given.stated.tick))
    if o.csv:
        write_atomic(folder / TABLE, schedule_csv(given.problem, answer))


def _words(report: ScheduleReport) -> Iterator[str]:
    """Yield what the report says, for people."""
    if report.units:
        heads = " ".join(f"{name:>12}" for name in ("busy", "loading", "idle", "off", "energy", "peak bytes"))
        yield f"\n{'unit':16} {'processes':>9} {heads}  at work"
    for u in report.units[:LISTED]:
        figures = " ".join(f"{v:12,}" for v in (u.busy, u.loading, u.idle, u.off, u.energy, u.peak))
        yield f"{u.name:16} {u.processes:9,} {figures} {percent(u.utilisation):>8}"
    if len(report.units) > LISTED:
        yield f"... and {len(report.units) - LISTED:,} more units (report.json has all)"
    yield (
        f"\n{report.status}: {report.objective_name} {figure(report.objective, report.unit)}, "
        f"bound {figure(report.bound, report.unit)}, gap {percent(report.gap)} "
        f"(stopped: {report.stop_reason}, {report.wall_seconds:.1f} s)"
    )
    yield from schedule_words(report)
    others = {k: v for k, v in report.scores.items() if k != report.objective_name}
    if others:
        yield "also: " + ", ".join(f"{k} {number(v)}" for k, v in others.items())
    for check in report.checks:
        yield f"  {label(check):6} {check.name}: {check.text}"
    if report.not_checked:
        yield f"not checked here (nmsolve verify --bound does): {', '.join(report.not_checked)}"
