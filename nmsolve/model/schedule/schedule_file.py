"""``schedule.json``: which process runs when on which units, the queues of the units, and when they are on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.file_set import settle
from nmsolve.model.files import decode_json, read_limited, write_atomic
from nmsolve.model.identity import Identity
from nmsolve.model.schedule.build import MOST_BYTES
from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.schedule.schedule import Queues, Schedule
from nmsolve.model.unknown_members import name_unknown_members

Tick = Annotated[int, msgspec.Meta(ge=-(2**60), le=2**60)]
Number = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
#: When a unit is on: intervals from a tick to a tick.
PowerOnIntervals = list[tuple[Tick, Tick]]


class ProcessRow(msgspec.Struct):
    """One process of the problem, in its order.

    ``mode`` : its number among those that the file has for the process, from 0, null to take the one with these ``units``;
    ``load`` : when loading of its static data begins, null if it loads nothing; ``interaction`` : the second network of an
    interaction
    """

    process: str
    start: Tick
    end: Tick | None = None
    units: list[str] = []
    mode: Number | None = None
    load: Tick | None = None
    task: str = ""
    interaction: str = ""


class Entry(msgspec.Struct):
    """One entry of a queue; ``off``: the unit is switched off after it, and woken in time for the next one."""

    process: str
    off: bool = False


class UnitRow(msgspec.Struct):
    """What the controller of one unit holds, and when the unit is on, switching not counted."""

    unit: str
    queue: list[Entry]
    on: PowerOnIntervals


class ScheduleContent(msgspec.Struct):
    """The file. ``problem``: name and hash; ``tasks``: hash whatever objective and ceilings; an empty hash is not compared."""

    processes: list[ProcessRow]
    problem: Identity = msgspec.field(default_factory=lambda: Identity("", ""))
    tasks: str = ""
    units: list[UnitRow] | None = None
    format: str = "nmsolve-schedule-1"


@dataclass(frozen=True, eq=False)
class ScheduleFile:
    """What a file says.

    Attributes
    ----------
    answer : the decisions
    queues, on : of the units, None where the file is by hand and has none, and for a problem with other rules
    wrong : where a row disagrees with itself, e.g. its end with start and span; "" if none does
    """

    answer: Schedule
    queues: Queues | None
    on: tuple[tuple[tuple[int, int], ...], ...] | None
    wrong: str = ""


def tasks_hash(problem: ScheduleProblem) -> str:
    """Return the hash of processes and units, whatever is minimised and limited."""
    return replace(problem, objective="makespan", weights=(), ceilings=()).content_hash


def write_schedule(
    path: str | Path, problem: ScheduleProblem, answer: Schedule, queues: Queues, on: Sequence[Sequence[tuple[int, int]]]
) -> None:  # fmt: skip
    """Write the file, whole or not at all; ``on``: by unit the intervals in which it is on."""
    names, labels, sets = problem.units.names, problem.labels, problem.sets
    members = [[names[u] for u in sets.of(k)] for k in range(sets.count)]
    tasks = ("", *problem.tasks)
    chosen = problem.modes.unit_set[answer.mode].tolist()
    own = problem.modes.numbers[answer.mode].tolist()
    starts, ends, begins = (a.tolist() for a in (answer.start, answer.end(problem), answer.begin(problem)))
    processes = [
        ProcessRow(
            labels[p], starts[p], ends[p], members[chosen[p]] if chosen[p] >= 0 else [], own[p],
            begins[p] if answer.loaded[p] else None, tasks[int(problem.task[p]) + 1], tasks[int(problem.partner[p]) + 1],
        )
        for p in range(problem.count)
    ]  # fmt: skip
    rows = []
    for u, name in enumerate(names):
        own_part = slice(int(queues.indptr[u]), int(queues.indptr[u + 1]))
        pairs = zip(queues.process[own_part].tolist(), queues.off_after[own_part].tolist(), strict=True)
        rows.append(UnitRow(name, [Entry(labels[p], off) for p, off in pairs], [(a, b) for a, b in on[u]]))
    content = ScheduleContent(
        processes, Identity(problem.name, problem.content_hash), tasks_hash(problem), rows
    )
    write_atomic(path, msgspec.json.encode(content) + b"\n")


def read_schedule(path: str | Path, problem: ScheduleProblem, other_rules: bool = False) -> ScheduleFile:
    """Read the file; its shape is checked here, the rules by :mod:`nmsolve.model.schedule.check`.

    Parameters
    ----------
    other_rules : it may be of a problem with other objectives, limits, spans or units

    Raises
    ------
    InputError : not of this shape, of other networks, or a process, mode or unit that does not exist
    """
    settle(Path(path).parent)
    data = read_limited(path, MOST_BYTES)
    file = decode_json(data, ScheduleContent, path)
    name_unknown_members(data, ScheduleContent, path, {ScheduleContent: ("run",)})
    if not other_rules:
        of, networks = file.problem, Identity(problem.name, tasks_hash(problem))
        what = "the schedule is for other networks or units"
        Identity(of.name, file.tasks).require(networks, what, f"{path}: $.tasks")
        same = Identity(problem.name, problem.content_hash)
        more = ": the same input and options"
        of.require(same, "the schedule is for another problem", f"{path}: $.problem", more)
    rows = _by_label(file.processes, problem, path)
    answer, wrong = _answer(rows, problem, path)
    if file.units is None or other_rules:
        return ScheduleFile(answer, None, None, wrong)
    return ScheduleFile(answer, *_programs(file.units, problem, path), wrong)


def _by_label(rows: Sequence[ProcessRow], problem: ScheduleProblem, path: str | Path) -> list[ProcessRow]:
    """Return the rows in the problem's order."""
    found: dict[str, ProcessRow] = {}
    for k, row in enumerate(rows):
        if row.process in found:
            raise InputError(f"process {row.process!r} twice", f"{path}: $.processes[{k}].process", "once")
        found[row.process] = row
    missing = next((label for label in problem.labels if label not in found), None)
    if missing is not None or len(found) > problem.count:
        known = set(problem.labels)
        what = f"no process {missing!r}" if missing is not None else (
            f"an unknown process {next(k for k in found if k not in known)!r}"
        )  # fmt: skip
        raise InputError(what, f"{path}: $.processes", f"the {problem.count:,} of {problem.name!r}")
    return [found[label] for label in problem.labels]


def _answer(rows: Sequence[ProcessRow], problem: ScheduleProblem, path: str | Path) -> tuple[Schedule, str]:
    """Return the decisions, and the first row that disagrees with them."""
    m, names = problem.modes, problem.units.names
    first = m.first.tolist()
    members = [tuple(names[u] for u in problem.sets.of(k)) for k in range(problem.sets.count)]
    numbers = m.numbers.tolist()
    mode = np.zeros(problem.count, np.int64)
    wrong = ""
    for p, row in enumerate(rows):
        own = range(first[p], first[p + 1])
        units = [() if m.unit_set[k] < 0 else members[int(m.unit_set[k])] for k in own]
        k = _mode_of(row, units, [int(m.span[j]) for j in own], numbers[first[p] : first[p + 1]], path)
        mode[p] = own[k]
        if set(row.units) != set(units[k]) or len(row.units) != len(units[k]):
            wrong = (
                wrong
                or f"process {row.process!r} is said to run on {row.units}, its mode on {list(units[k])}"
            )
        end = row.start + int(m.span[own[k]])
        if row.end is not None and row.end != end:
            wrong = wrong or f"process {row.process!r} is said to end at {row.end:,}, it ends at {end:,}"
    start = np.array([row.start for row in rows], np.int64)
    loaded = np.array([row.load is not None for row in rows], bool)
    answer = Schedule(mode, start, loaded)
    for row, begin in zip(rows, answer.begin(problem).tolist(), strict=True):
        if row.load is not None and row.load != begin:
            wrong = (
                wrong or f"process {row.process!r} is said to load from {row.load:,}, it must from {begin:,}"
            )
    return answer, wrong


def _mode_of(
    row: ProcessRow, units: Sequence[tuple[str, ...]], span: Sequence[int], numbers: Sequence[int], path: str | Path
) -> int:  # fmt: skip
    """Return the place of a row's mode among those of its process: with its number, else the one with its units and span."""
    where = f"{path}: $.processes"
    if row.mode is not None:
        if row.mode not in numbers:
            known = ", ".join(map(str, numbers[:20]))
            raise InputError(f"process {row.process!r} has no mode {row.mode}", where, f"one of {known}")
        return numbers.index(row.mode)
    fits = [k for k, own in enumerate(units) if set(own) == set(row.units)]
    exact = [k for k in fits if row.end is None or row.start + span[k] == row.end]
    if not fits:
        raise InputError(f"process {row.process!r} cannot run on {row.units}", where, "one of its unit sets")
    return (exact or fits)[0]


def _programs(
    rows: Sequence[UnitRow], problem: ScheduleProblem, path: str | Path
) -> tuple[Queues, tuple[tuple[tuple[int, int], ...], ...]]:
    """Return the queues of all units, and when they are on."""
    if tuple(row.unit for row in rows) != problem.units.names:
        raise InputError("other units", f"{path}: $.units", f"the {problem.units.count} of {problem.name!r}")
    at = {label: p for p, label in enumerate(problem.labels)}
    process: list[int] = []
    for u, row in enumerate(rows):
        for k, entry in enumerate(row.queue):
            if entry.process not in at:
                where = f"{path}: $.units[{u}].queue[{k}].process"
                raise InputError(f"an unknown process {entry.process!r}", where, "a process of the problem")
            process.append(at[entry.process])
    indptr = np.cumsum([0, *(len(row.queue) for row in rows)]).astype(np.int64)
    off = np.array([entry.off for row in rows for entry in row.queue], bool)
    on = tuple(tuple((a, b) for a, b in row.on) for row in rows)
    return Queues(indptr, np.array(process, np.int64), off), on
