"""Schedules: networks and units in; a schedule, a proof, executed queues and a page out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from nmsolve.kinds import values as opt
from nmsolve.kinds.kind import OF_GRAPHS, Explainable
from nmsolve.kinds.run import Asked, Keep
from nmsolve.kinds.schedule.again import EARLIER
from nmsolve.kinds.schedule.options import ScheduleOptions
from nmsolve.kinds.schedule.statement import (
    Given,
    ScheduleInputs,
    asked_inputs,
    located,
    options_of,
    read_inputs,
    state_problem,
    stated_inputs,
)
from nmsolve.kinds.whole import WholeKind
from nmsolve.kinds.whole_report import closing_words
from nmsolve.model.errors import InputError
from nmsolve.model.file_set import require_one_run
from nmsolve.model.schedule.problem import OBJECTIVES
from nmsolve.report.figures import number, percent

if TYPE_CHECKING:
    from nmsolve.kinds.check_fields import Again
    from nmsolve.kinds.check_whole import FileChecks
    from nmsolve.kinds.front import FrontKind
    from nmsolve.kinds.parts import CheckPart
    from nmsolve.kinds.schedule.options import ExplainScheduleOptions
    from nmsolve.kinds.schedule.report import ScheduleReport
    from nmsolve.kinds.time_left import TimeLeft
    from nmsolve.kinds.verbs import GapOptions, ScoreOptions, VerifyOptions
    from nmsolve.model.bound import Bound, Result, Stage
    from nmsolve.model.schedule.problem import ScheduleProblem
    from nmsolve.model.schedule.schedule import Schedule
    from nmsolve.solvers.bounding import Bounded
    from nmsolve.solvers.multi_objective import Objectives
    from nmsolve.solvers.run import Options

TRACE, TABLE = "trace.json", "schedule.csv"
#: Most processes of a run that re-checks its bounds itself; `nmsolve verify --bound` always does.
QUICK = 2000
#: Units that are listed on the terminal.
LISTED = 24


class ScheduleKind(WholeKind):
    """Processes on units over time."""

    name, noun, source = "schedule", "schedule", "tasks"
    method_tables = ("check.schedule.recheck:RECHECKS", "check.schedule.recheck:WORDS")
    answer = "schedule.json"
    files = (
        "schedule.json", "certificates.json", "events.jsonl", "report.json", "report.html", "better.json", TRACE, TABLE, EARLIER,
    )  # fmt: skip
    options, inputs, units = ScheduleOptions, ScheduleInputs, OBJECTIVES
    reports = "kinds.schedule.report:ScheduleReport"
    unchecked = ("schedule", "bounds")
    both = "makespan,energy"
    no_score = ("chips", "placement", "memory", "bind", "library", *OF_GRAPHS)
    no_gap = ("chips", "placement", "balance", "constraints", "bind", "library", *OF_GRAPHS)

    @property
    def free(self) -> Collection[str]:
        """Windows; paths and prices use a ceiling on the makespan."""
        from nmsolve.check.schedule.recheck import FREE

        return FREE

    def asked(self, o: ScheduleOptions, stays: bool) -> Asked:
        """Return objectives, front and networks: of a file, of plans or of what is left of an earlier run."""
        names = () if o.objective is None else self.objectives_in(o.objective)
        front = None if o.pareto is None else self.front_names(o)
        _noise(o)
        if o.from_:
            from nmsolve.kinds.schedule.from_plans import with_tasks

            o = with_tasks(o)
        elif o.frames is not None:
            raise InputError("there are no plans", "--frames", "--from DIR")
        names = names[-1:] if stays else names
        return Asked(asked_inputs(o, front or names), names, front)

    def objectives_in(self, text: str, option: str = "--objective") -> tuple[str, ...]:
        """Return them; ``weighted`` stands alone, as its worth is no limit that a file could state."""
        names = super().objectives_in(text, option)
        if len(names) > 1 and "weighted" in names:
            raise InputError("weighted is one of several objectives", option, "weighted alone, or others")
        return names

    def on_front(
        self, given: Given, inputs: ScheduleInputs | None, names: tuple[str, str]
    ) -> tuple[Given, ScheduleInputs | None]:
        """Return them without weights."""
        problem = replace(given.problem, objective=names[0], weights=())
        return given.restated(problem), inputs and msgspec.structs.replace(
            inputs, objective=names[0], weights={}
        )

    def state(self, inputs: ScheduleInputs) -> Given:
        """Load networks and machine."""
        return state_problem(inputs)

    def is_source(self, path: Path) -> bool:
        """Return whether it holds networks."""
        from nmsolve.model.schedule.files import is_schedule_file

        return path.is_file() and is_schedule_file(path)

    def read(self, path: Path, given: Given) -> Schedule:
        """Read schedule.json. InputError also for a row that disagrees with itself."""
        from nmsolve.model.schedule.schedule_file import read_schedule

        file = read_schedule(path, given.problem, other_rules=True)
        if file.wrong:
            raise InputError(file.wrong, str(path), "the spans and units of this problem")
        return file.answer

    def write_solution(self, path: Path, given: Given, solution: Schedule) -> None:
        """Write schedule.json with queues and intervals."""
        from nmsolve.kinds.schedule.check import write_answer

        write_answer(path, given.problem, solution)

    def models(self, given: Given) -> tuple[Any, Any]:
        """Return CP-SAT's and the MIP's."""
        from nmsolve.solvers.schedule.exact import models

        return models(given.problem)

    def solve(self, problem: ScheduleProblem, **how: Any) -> Result[Schedule]:
        """Search."""
        from nmsolve.solvers.schedule.api import solve_schedule

        return solve_schedule(problem, **how)

    def bound(self, problem: ScheduleProblem, solution: Schedule, **how: Any) -> Bounded[Schedule]:
        """Raise the bound."""
        from nmsolve.solvers.run import Options
        from nmsolve.solvers.schedule.api import bound_schedule

        return bound_schedule(problem, solution, Options(**how))

    def objectives(
        self, given: Given, options: Options, first: Schedule | None, known: tuple[Bound, ...] = ()
    ) -> Objectives[Schedule]:
        """Return all of them."""
        from nmsolve.solvers.schedule.api import schedule_objectives

        return schedule_objectives(given.problem, options, first, known)

    def restated(self, given: Given, stage: Stage) -> Given:
        """Return the same processes."""
        return given.restated(replace(given.problem, objective=stage.objective, ceilings=stage.ceilings))

    def front(self, given: Given) -> FrontKind:
        """Return schedule.json per point."""
        from nmsolve.kinds.schedule.front import ScheduleFront

        return ScheduleFront(given.problem, given.earlier)

    def recorded(self, o: ScheduleOptions, given: Given, inputs: ScheduleInputs) -> ScheduleInputs:
        """Return them with the earlier schedule where this run keeps it."""
        if inputs.again is None:
            return inputs
        kept = msgspec.structs.replace(inputs.again, run=str((o.out / EARLIER).resolve()))
        return msgspec.structs.replace(inputs, again=kept)

    def alone(self, o: ScheduleOptions) -> bool:
        """Return False if a plan that this schedule comes from lies in the output folder."""
        return all(folder.resolve() != o.out.resolve() for folder in o.from_ or ())

    def build_report(
        self,
        o: ScheduleOptions,
        given: Given,
        result: Result[Any],
        inputs: dict[str, Any],
        left: Sequence[str],
    ) -> ScheduleReport:
        """Return units, tasks and parts of the energy."""
        from nmsolve.check.schedule.reevaluate import reevaluate
        from nmsolve.kinds.schedule.report import build_schedule_report

        seen = None if result.solution is None else reevaluate(given.problem, result.solution)
        return build_schedule_report(given, result, inputs, seen, left)

    def beside(
        self, o: ScheduleOptions, folder: Path, given: Given, result: Result[Any], report: ScheduleReport
    ) -> None:
        """Write the schedule that ran before, trace.json and schedule.csv."""
        from nmsolve.check.schedule.reevaluate import reevaluate
        from nmsolve.kinds.schedule.trace import schedule_csv, trace_json
        from nmsolve.model.files import write_atomic

        if given.earlier:
            write_atomic(folder / EARLIER, given.earlier)
        problem, answer = given.problem, result.solution
        if answer is not None and o.trace:
            write_atomic(
                folder / TRACE, trace_json(problem, answer, reevaluate(problem, answer), given.stated.tick)
            )
        if answer is not None and o.csv:
            write_atomic(folder / TABLE, schedule_csv(problem, answer))

    def complete(
        self, o: ScheduleOptions, given: Given, result: Result[Any], report: ScheduleReport, time_left: TimeLeft, keep: Keep
    ) -> None:  # fmt: skip
        """Check the schedule, the bounds of small ones, and run the queues with noise."""
        from nmsolve.kinds.check_whole import bound_checks
        from nmsolve.kinds.schedule.check import ScheduleBounds, result_checks
        from nmsolve.kinds.schedule.report import noise_part

        problem, solution = given.problem, result.solution
        if solution is None:
            return keep(report)

        def checks() -> Iterator[list[CheckPart]]:
            yield result_checks(problem, solution, result)
            if problem.count <= QUICK:
                yield bound_checks(ScheduleBounds(problem), solution, result.scores, result.bounds)

        report = self.keep_checks(report, time_left, keep, checks, (["bounds"], []))
        if o.noise is not None:
            noise = _noise(o) or 0.0
            part = time_left.optional(lambda: noise_part(problem, solution, noise, o.runs, o.seed))
            keep(msgspec.structs.replace(report, noise=part))

    def render(
        self, given: Given, result: Result[Any], report: ScheduleReport, command: str, plain: bool
    ) -> str:
        """Return the page."""
        from nmsolve.kinds.schedule.page import render_schedule_html

        return render_schedule_html(given, result, report, command, plain)

    def words(self, report: ScheduleReport) -> Iterator[str]:
        """Yield units, objective and checks."""
        from nmsolve.kinds.schedule.report import figure, schedule_words

        if report.units:
            heads = " ".join(
                f"{name:>12}" for name in ("busy", "loading", "idle", "off", "energy", "peak bytes")
            )
            yield f"\n{'unit':16} {'processes':>9} {heads}  at work"
        for u in report.units[:LISTED]:
            figures = " ".join(f"{v:12,}" for v in (u.busy, u.loading, u.idle, u.off, u.energy, u.peak))
            yield f"{u.name:16} {u.processes:9,} {figures} {percent(u.utilisation):>8}"
        if len(report.units) > LISTED:
            yield f"... and {len(report.units) - LISTED:,} more units (report.json has all)"
        name, unit = report.objective_name, report.unit
        yield from closing_words(
            report, schedule_words(report), lambda k, v: figure(v, unit) if k == name else number(v)
        )

    def drawings(
        self, given: Given, solution: Schedule, report: ScheduleReport
    ) -> Mapping[str, tuple[Any, tuple[Any, ...]]]:
        """Return ``schedule``, ``use``, ``peaks``, ``resources``, ``energy``, those that there are."""
        from nmsolve.kinds.schedule.pictures import schedule_drawings

        return schedule_drawings(given.problem, solution, report)

    def answer_checks(
        self, given: Given, solution: Schedule, objective: object, scores: Mapping[str, Any]
    ) -> tuple[list[CheckPart], dict[str, float]]:
        """Check by two programs."""
        from nmsolve.kinds.schedule.check import answer_checks

        return answer_checks(given.problem, solution, objective, scores)

    def file_checks(
        self, path: Path, report: dict[str, Any], given: Given, inputs: ScheduleInputs, o: VerifyOptions
    ) -> FileChecks:
        """Check the schedule by two programs, its queues and its bounds."""
        from nmsolve.kinds.check_whole import said_values, whole_file_checks
        from nmsolve.kinds.loading import read_object
        from nmsolve.kinds.schedule.check import ScheduleBounds, earlier_check, program_checks
        from nmsolve.model.schedule.schedule_file import read_schedule

        file = read_schedule(path, given.problem)
        checks, values = self.answer_checks(given, file.answer, *said_values(report))
        checks += program_checks(given.problem, file) if values else []
        found = whole_file_checks(
            report, inputs.before, self.a, "problem: file, machine and options", path.parent / self.proofs,
            ScheduleBounds(given.problem), (file.answer, checks, values), o,
        )  # fmt: skip
        earlier = path.parent / EARLIER
        if inputs.again is None or not earlier.exists():
            return found
        require_one_run(path.parent, [path.name, EARLIER])
        whole = state_problem(msgspec.structs.replace(inputs, again=None)).problem
        return found._replace(
            checks=[*found.checks, earlier_check(earlier, whole)],
            unread=((earlier.name, read_object(earlier), {"problem"}),),  # it had an objective of its own
        )

    def rewritten(
        self, report: Mapping[str, Any], given: Given, inputs: ScheduleInputs, solution: Schedule,
        values: Mapping[str, float], bounds: Sequence[Bound] | None,
    ) -> Again:  # fmt: skip
        """Return the report; its noisy runs are run again."""
        from nmsolve.check.schedule.reevaluate import reevaluate
        from nmsolve.kinds.check_fields import as_written, claimed_result, inputs_again
        from nmsolve.kinds.schedule.report import NoisePart, build_schedule_report, noise_part

        objective, seen = given.problem.objective, reevaluate(given.problem, solution)
        result = claimed_result(report, solution, (objective, values[objective]), values, bounds or ())
        again = build_schedule_report(given, result, inputs_again(report, inputs), seen)
        if (said := report.get("noise")) is not None:
            part = msgspec.convert(said, NoisePart)
            noise = noise_part(given.problem, solution, part.noise, part.runs, result.seed)
            again = msgspec.structs.replace(again, noise=noise)
        return as_written(
            again, bounds, ("inputs.again.run",)
        )  # where the folder was, which may have been moved

    def read_inputs(self, report: Path) -> tuple[dict[str, Any], ScheduleInputs]:
        """Return them, with the schedule that ran from there if it is not where it was."""
        return read_inputs(report)

    def inputs_for(self, path: Path, o: ScoreOptions | GapOptions) -> ScheduleInputs:
        """Return those of the report beside it, but for what ``--graph``, ``--machine`` and ``--objective`` say."""
        named: dict[str, Any] = {
            "tasks": opt.whole(o.graph), "machine": opt.text_or_file(o.machine), "objective": getattr(o, "objective", None),
        }  # fmt: skip
        found: ScheduleInputs = self.inputs_with(path, named, "networks", "tasks.json")[0]
        return found

    def again(self, inputs: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Return tasks, objectives, weights and limits as options have them."""
        return options_of(located(msgspec.convert(inputs, ScheduleInputs), folder))

    def explained(self, o: ExplainScheduleOptions) -> Explainable:
        """Return deadlines and limits."""
        return explainable(state_problem(stated_inputs(o), checked=False))


def explainable(given: Given) -> Explainable:
    """Return the deadlines and limits of networks, whether they can be kept or not."""
    from nmsolve.kinds.schedule.check import write_answer
    from nmsolve.solvers.schedule.limits import ScheduleLimits

    limits, name = ScheduleLimits(given.problem), given.problem.name

    def found(answer: Schedule) -> str:
        ends = answer.end(limits.problem).max()
        return f"a schedule of {len(answer.start):,} processes that ends at {ends:,}"

    def write(path: Path, answer: Schedule) -> None:
        write_answer(path, limits.restricted(limits.every), answer)

    return Explainable(
        limits, {"tasks": name, "machine": given.machine}, name, "scheduled", "schedule",
        "program, which counts paths and work,", found, write,
    )  # fmt: skip


def _noise(o: ScheduleOptions) -> float | None:
    """Return ``--noise``."""
    noise = opt.fraction(o.noise, "--noise")
    if noise is not None and noise >= 1:
        raise InputError(f"noise of {o.noise}", "--noise", "less than 100%")
    return noise


KIND = ScheduleKind()
