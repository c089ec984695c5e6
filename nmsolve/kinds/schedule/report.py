"""report.json of a schedule: what a run claims, in one documented object (docs/files.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from nmsolve.kinds.parts import among, by_word, proved_words, rule_words
from nmsolve.kinds.schedule.options import MOST_RUNS
from nmsolve.kinds.schedule.statement import COMMAND
from nmsolve.kinds.whole_report import WholeReport, whole_parts
from nmsolve.model.errors import InputError
from nmsolve.model.quantities import counted
from nmsolve.model.schedule.problem import NEVER, OBJECTIVES
from nmsolve.report.figures import number, percent

if TYPE_CHECKING:
    from nmsolve.check.schedule.reevaluate import Reevaluation
    from nmsolve.kinds.schedule.statement import Given
    from nmsolve.model.bound import Result
    from nmsolve.model.schedule.problem import ScheduleProblem
    from nmsolve.model.schedule.schedule import Schedule


class NetworksPart(msgspec.Struct, frozen=True):
    """Which networks: ``nodes`` are processes, ``edges`` dependencies, ``form`` the kind of file.

    ``problem`` is the hash of all that decides what the problem is, ``hash`` that of processes and units alone.
    """

    name: str
    hash: str
    problem: str
    nodes: int
    edges: int
    form: str


class UnitsPart(msgspec.Struct, frozen=True):
    """Which units: the ``name`` is that of the machine, "" for the file's own; ``tick``, ``joule``: seconds of a tick and joules
    of a unit of energy, null if unknown."""

    name: str
    hash: str
    units: int
    tick: float | None
    joule: float | None


class UnitPart(msgspec.Struct, frozen=True):
    """What one unit does: ticks at work (of them loading), on without work, and off, until the makespan; how often it is woken;
    energy of idling, of being off and of switching; most bytes held and their limit; ``utilisation``: work per tick on."""

    name: str
    processes: int
    busy: int
    loading: int
    idle: int
    off: int
    switches: int
    energy: int
    peak: int
    memory: int | None
    utilisation: float


class TaskPart(msgspec.Struct, frozen=True):
    """One network: when it begins and ends, the energy of its runs, ticks that its last deadline is away (null: no deadline),
    and weighted ticks that it is late."""

    name: str
    processes: int
    begin: int
    end: int
    run_energy: int
    slack: int | None
    tardiness: int


class BudgetPart(msgspec.Struct, frozen=True):
    """What all modes together use of one nonrenewable resource, and what there is."""

    name: str
    used: int
    amount: int


class NoisePart(msgspec.Struct, frozen=True):
    """What ``runs`` with durations that differ by up to ``noise`` came to: least, median and largest makespan, median energy,
    part of the runs in which every deadline was met, mean ticks by which processes start later than planned."""

    noise: float
    runs: int
    makespan: tuple[int, int, int]
    energy: int
    in_time: float
    delay: float


class ReschedulePart(msgspec.Struct, frozen=True):
    """What was planned anew: from which tick on, without which units, how many processes were history, how many had run for
    nothing, and how many moved to other units; the energy of runs and loads for nothing, which is no part of the objective."""

    at: int
    dead: list[str]
    history: int
    lost: int
    moved: int
    lost_energy: int = 0


class ScheduleReport(WholeReport, frozen=True, kw_only=True):
    """The object in report.json: the keys that ``map`` has, and what is said of schedules.

    ``unit``: of objective and bound; ``inputs`` holds what ``verify`` needs to state the problem again; ``energy``: its parts;
    ``noise``, ``reschedule``: null where they were not asked for.
    """

    command: str = COMMAND
    graph: NetworksPart
    machine: UnitsPart
    units: list[UnitPart]
    tasks: list[TaskPart]
    budgets: list[BudgetPart] = msgspec.field(default_factory=list)
    energy: dict[str, int]
    noise: NoisePart | None = None
    reschedule: ReschedulePart | None = None


def build_schedule_report(
    given: Given, result: Result[Any], inputs: Mapping[str, Any], seen: Reevaluation | None, not_checked: Sequence[str] = ()
) -> ScheduleReport:  # fmt: skip
    """Return the report of a run without checks; all figures are recomputed from the answer, as it was ``seen``."""
    from nmsolve.solvers.schedule.registry import RULES

    problem = given.problem
    parts: dict[str, Any] = {"units": [], "tasks": [], "energy": {}}
    if result.solution is not None and seen is not None:
        parts = {
            "units": _units(problem, result.solution, seen),
            "tasks": _tasks(problem, result.solution),
            "energy": seen.energy,
            "budgets": _budgets(problem, seen),
            "reschedule": _rescheduled(given, inputs, result.solution),
        }
    common = whole_parts(result, problem.unit, RULES, inputs, not_checked)
    return ScheduleReport(graph=_networks(given), machine=_machine(given), **common, **parts)


def _rescheduled(given: Given, inputs: Mapping[str, Any], answer: Schedule) -> ReschedulePart | None:
    """Return what was planned anew, and how many processes moved."""
    if given.left is None:
        return None
    before, left = given.left
    moved = ~left.history & (given.problem.modes.unit_set[answer.mode] != before)
    said = inputs["again"]
    return ReschedulePart(
        said["at"],
        list(said["dead"]),
        int(left.history.sum()),
        int(left.lost.sum()),
        int(moved.sum()),
        left.lost_energy,
    )


def _networks(given: Given) -> NetworksPart:
    from nmsolve.model.schedule.schedule_file import tasks_hash

    p = given.problem
    return NetworksPart(
        p.name, tasks_hash(p), p.content_hash, p.count, p.edges.count, given.stated.form
    )  # fmt: skip


def _machine(given: Given) -> UnitsPart:
    u = given.problem.units
    text = sha256(repr(u.names).encode())
    for array in (u.memory, u.hops, u.idle, u.off, u.off_time, u.wake_time, u.switch_energy):
        text.update(np.ascontiguousarray(array, np.int64).tobytes())
    stated = given.stated
    return UnitsPart(given.machine, text.hexdigest(), u.count, stated.tick or None, stated.joule or None)


def _units(problem: ScheduleProblem, answer: Schedule, seen: Reevaluation) -> list[UnitPart]:
    """Return what every unit does, from the re-evaluation."""
    u, finish = problem.units, seen.objectives["makespan"]
    out = []
    for k, name in enumerate(u.names):
        busy = sum(end - begin for begin, _, end, _ in seen.work[k])
        loading = sum(start - begin for begin, start, _, _ in seen.work[k])
        on = sum(b - a for a, b in seen.on[k])
        intervals = len(seen.on[k])
        idle, off = on - busy, finish - on
        energy = idle * int(u.idle[k]) + off * int(u.off[k]) + intervals * int(u.switch_energy[k])
        memory = int(u.memory[k])
        out.append(
            UnitPart(
                name, len(seen.work[k]), busy, loading, idle, off, intervals, energy, seen.peak[k],
                None if memory >= NEVER else memory, busy / on if on else 0.0,
            )
        )  # fmt: skip
    return out


def _tasks(problem: ScheduleProblem, answer: Schedule) -> list[TaskPart]:
    """Return when every network begins and ends; an interaction counts for its first network."""
    begin, end = answer.begin(problem), answer.end(problem)
    run = problem.modes.energy[answer.mode]
    late = np.where(problem.weight > 0, problem.weight * np.maximum(0, end - problem.due), 0)
    out = []
    for k, name in enumerate(problem.tasks):
        own = np.flatnonzero(problem.task == k)
        if not len(own):
            continue
        slack = int((problem.deadline[own] - end[own]).min())
        out.append(
            TaskPart(
                name, len(own), int(begin[own].min()), int(end[own].max()), int(run[own].sum()),
                slack if slack < NEVER // 2 else None, int(late[own].sum()),
            )
        )  # fmt: skip
    return out


def _budgets(problem: ScheduleProblem, seen: Reevaluation) -> list[BudgetPart]:
    """Return what is used of every nonrenewable resource, from the re-evaluation."""
    b = problem.budgets
    rows = zip(b.names, seen.spent, b.amount.tolist(), strict=True)
    return [BudgetPart(name, used, amount) for name, used, amount in rows]


def noise_part(problem: ScheduleProblem, answer: Schedule, noise: float, runs: int, seed: int) -> NoisePart:
    """Run the queues ``runs`` times with durations that differ by up to ``noise``.

    Raises
    ------
    InputError : the noise is no part of 1, or no such number of runs
    """
    from nmsolve.hw.schedule.simulator import noisy_runs, queues_of

    if not 1 <= runs <= MOST_RUNS or seed < 0:
        raise InputError(
            f"{runs} noisy runs with seed {seed}", "--runs", f"1 to {MOST_RUNS}, and a seed >= 0"
        )
    seen = noisy_runs(problem, answer, queues_of(problem, answer), noise, runs, seed)
    ends = sorted(seen.makespan.tolist())
    return NoisePart(
        noise, runs, (ends[0], ends[len(ends) // 2], ends[-1]), sorted(seen.energy.tolist())[len(ends) // 2],
        float((seen.late == 0).mean()), float(seen.delay.mean()),
    )  # fmt: skip


def figure(value: float | None, unit: str) -> str:
    """Return a figure for people, with its unit."""
    return number(value) if value is None or not unit else f"{number(value)} {unit}"


def schedule_words(report: ScheduleReport) -> list[str]:
    """Describe in sentences what is proved, where the energy goes, and what rules lose."""
    from nmsolve.check.schedule.recheck import RECHECKS

    name, unit = report.objective_name, report.unit
    within = among("schedules", report.inputs, "at_most", lambda k, v: figure(v, OBJECTIVES[k]))
    about = f"{within}The {name} is"
    words = [proved_words(report, "schedule", about, lambda v: figure(v, unit), by_word(report, RECHECKS))]
    if report.objective is None:
        return words
    total = sum(report.energy.values())
    if total:
        parts = ", ".join(f"{k} {percent(v / total)}" for k, v in report.energy.items() if v)
        words.append(f"Of {figure(total, 'units')} of energy: {parts}.")
    if report.units:
        used = [u for u in report.units if u.processes]
        on = sum(u.busy + u.idle for u in used)
        busy = sum(u.busy for u in used)
        share = f", at work {percent(busy / on)} of the time that they are on" if on else ""
        words.append(f"{len(used):,} of {len(report.units):,} units are used{share}.")
    if report.budgets:
        rows = [f"{b.name} {b.used:,} of {b.amount:,}" for b in report.budgets]
        words.append(f"Used of nonrenewable resources: {_few(rows)}.")
    words += rule_words(report.rules, lambda v: figure(v, unit))
    if report.noise is not None:
        n = report.noise
        words.append(
            f"With durations that differ by up to {percent(n.noise)}, the makespan is {number(n.makespan[0])} to "
            f"{number(n.makespan[2])}, mostly {number(n.makespan[1])} ({counted(n.runs, 'run')}); {percent(n.in_time)} of them "
            "keep every deadline."
        )
    if report.reschedule is not None:
        r = report.reschedule
        words.append(
            f"Planned anew from {number(r.at)} on without {', '.join(r.dead)}. Processes that stay as they ran: {r.history:,}; "
            f"that had begun for nothing: {r.lost:,}; that run on other units than before: {r.moved:,}."
            + (
                f" What was for nothing had taken {figure(r.lost_energy, 'units')} of energy, which is not in the sum."
                if r.lost_energy
                else ""
            )
        )
    return words


def _few(rows: list[str], most: int = 12) -> str:
    more = f" and {len(rows) - most:,} more" if len(rows) > most else ""
    return ", ".join(rows[:most]) + more
