"""The options of ``nmsolve schedule`` and ``nmsolve explain schedule`` (:mod:`nmsolve.cli.commands` has the others)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated as A

from nmsolve.kinds.options import ConflictOptions, Json, Out, Points, SearchOptions, Strict, published
from nmsolve.kinds.parameters import Argument, Option

#: Most noisy runs of a schedule.
MOST_RUNS = 100_000
# One option, one line:
# fmt: off

TASKS = ("Networks (tasks.json), or an instance of the field: PSPLIB (.sm, .mm, .rcp), several projects (.rcmp), job shop (.jsp, "
         ".fjs), workflow in WfFormat (.json).")


@dataclass(frozen=True)
class ScheduleProblemOptions:
    """Networks, the units they share, and what is required of the schedule."""

    tasks: A[Path, Argument(help=TASKS)]
    machine: A[str | None, Option("--machine", "-m", help="Units are the cores of this machine: a preset (`nmsolve hw list`), "
                                  "mesh:RxC or a machine.toml. [default: the units of the file]")] = None
    at_most: A[str | None, Option(help="Limits on other objectives, e.g. energy=50000,tardiness=0.")] = None
    strict: Strict = False


@dataclass(frozen=True)
class ScheduleOptions(SearchOptions, ScheduleProblemOptions):
    """Pack several networks onto execution units over time, with a bound; then run the queues on a simulated component."""

    tasks: A[Path | None, Argument(help=TASKS)] = None  # type: ignore[assignment]
    objective: A[str | None, Option(help="makespan, tardiness, idle, energy, waste, moved or weighted; or several in order of "
                                    "priority: makespan,energy. [default: the file's, else makespan]")] = None
    weights: A[str | None, Option(help="Factors of --objective weighted: energy=3,makespan=10. [default: the file's]")] = None
    method: A[str | None, published(m4="units over time")] = None
    warm_start: A[Path | None, Option(help="Start from this schedule (schedule.json, or its folder).")] = None
    noise: A[str | None, Option(help="Also run the queues with durations that differ by up to so much, e.g. 10%.")] = None
    runs: A[int, Option(min=1, max=MOST_RUNS, help="Number of noisy runs.")] = 100
    reschedule: A[str | None, Option(help="Plan anew what is left of --from-run when units die: at=TICK,dead=UNIT (dead= "
                                     "repeats; stay=yes keeps others on their units).")] = None
    from_run: A[Path | None, Option(help="Output folder of the schedule that --reschedule changes.")] = None
    from_: A[list[Path] | None, Option("--from", help="Output folder of `nmsolve pipeline`: its stages are processes "
                                       "(repeatable); the networks are written to OUT/tasks.json.")] = None
    frames: A[int | None, Option(min=1, max=4096, help="How often each network of --from runs, in the rhythm of its slowest "
                                 "stage. [default: once]")] = None
    pareto: A[str | None, Option(help="Compute the front of two objectives, e.g. makespan,energy, instead of one "
                                 "schedule.")] = None
    points: Points = 8
    trace: A[bool, Option("--trace", help="Also write trace.json, which Perfetto and chrome://tracing open.")] = False
    csv: A[bool, Option("--csv", help="Also write schedule.csv, a line per process and unit.")] = False
    out: Out = Path("nmsolve-schedule")
    json: Json = False


@dataclass(frozen=True)
class ExplainScheduleOptions(ConflictOptions, ScheduleProblemOptions):
    """Find out whether networks can be scheduled at all; if not, show a smallest set of deadlines and limits that conflict."""


#: Of the command, and of ``nmsolve explain``.
OPTIONS, EXPLAIN = ScheduleOptions, ExplainScheduleOptions
#: Where the names of its objectives are.
OBJECTIVE_TABLE = "model.schedule.problem:OBJECTIVES"
#: What folders of instances hold, for ``nmsolve bench``.
BENCHED = ".rcp, .sm, ..."
