"""``schedule.json``: when and where every process runs, the queue of every unit, and when the unit is on (M4.7)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.file_set import settle
from nmsolve.model.files import decode_json, read_limited, write_atomic
from nmsolve.model.identity import Identity
from nmsolve.model.schedule.build import MOST_BYTES, whole
from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.schedule.queues import Queues
from nmsolve.model.schedule.schedule import Schedule

Tick = Annotated[int, msgspec.Meta(ge=0, le=2**60)]
#: Times from when until when a unit is on, in order.
Intervals = Sequence[tuple[int, int]]


class UnitFile(msgspec.Struct):
    """The program of one unit.

    Attributes
    ----------
    unit : its name
    process : what it runs, in order
    off_after : for each of them, whether the unit is switched off when it has ended; after the last one it is in any case
    on : from when until when it is on; in between it is off, which includes switching off and waking
    """

    unit: str
    process: list[str]
    off_after: list[bool]
    on: list[tuple[Tick, Tick]]


class ScheduleFile(msgspec.Struct):
    """The content of ``schedule.json``, in columns.

    Attributes
    ----------
    problem : its name and content hash; an empty hash is not compared
    process : labels, every process once
    task : the network of each, both of an interaction joined by ``+``; for people
    units : names of the units that it runs on
    mode : number of its mode, from 0; left out: the first mode on these units that takes from ``start`` to ``end``
    begin : when its units begin to work for it: the start, or the load before it; for people
    start, end : ticks
    loaded : whether it loads its static data right before it starts, or finds it there; left out: all load
    queues : of every unit; left out in a file written by hand
    """

    problem: Identity
    process: list[str]
    start: list[Tick]
    end: list[Tick] = []
    units: list[list[str]] = []
    mode: list[Tick] = []
    loaded: list[bool] = []
    task: list[str] = []
    begin: list[Tick] = []
    queues: list[UnitFile] = []


class Written(NamedTuple):
    """What a file says: the schedule, and queues and on times (U,) if it has them, as they are written there."""

    schedule: Schedule
    queues: Queues | None
    on: tuple[tuple[tuple[int, int], ...], ...] | None


def write_schedule(
    path: str | Path, problem: ScheduleProblem, answer: Schedule, queues: Queues, on: Sequence[Intervals]
) -> None:
    """Write the file, whole or not at all.

    Parameters
    ----------
    on : (U,) from when until when every unit is on, in order
    """
    labels, names = problem.labels, problem.units.names
    chosen = problem.modes.unit_set[answer.mode].tolist()
    members = [[names[u] for u in problem.sets.of(k).tolist()] for k in range(problem.sets.count)]
    task = [
        "+".join(problem.tasks[t] for t in pair if t >= 0)
        for pair in zip(problem.task.tolist(), problem.partner.tolist(), strict=True)
    ]
    content = ScheduleFile(
        problem=Identity(problem.name, problem.content_hash),
        process=list(labels),
        task=task,
        units=[members[k] if k >= 0 else [] for k in chosen],
        mode=(answer.mode - problem.modes.first[:-1]).tolist(),
        begin=answer.begin(problem).tolist(),
        start=answer.start.tolist(),
        end=answer.end(problem).tolist(),
        loaded=answer.loaded.tolist(),
        queues=[
            UnitFile(
                unit=names[u],
                process=[labels[p] for p in queues.process[queues.indptr[u] : queues.indptr[u + 1]].tolist()],
                off_after=queues.off_after[queues.indptr[u] : queues.indptr[u + 1]].tolist(),
                on=[(int(a), int(b)) for a, b in on[u]],
            )
            for u in range(problem.units.count)
        ],
    )  # fmt: skip
    write_atomic(path, msgspec.json.encode(content) + b"\n")


def read_schedule(path: str | Path, problem: ScheduleProblem, other_rules: bool = False) -> Written:
    """Read the file; its shape is checked here, the rules by :mod:`nmsolve.model.schedule.check`.

    Parameters
    ----------
    other_rules : it may be of another problem with the same processes, modes and units: another objective, other limits

    Raises
    ------
    InputError : not of this shape, of another problem, unknown or repeated names, no such mode
    """
    settle(Path(path).parent)
    file = decode_json(read_limited(path, MOST_BYTES), ScheduleFile, path)
    if not other_rules and file.problem.hash not in ("", problem.content_hash):
        raise InputError(
            f"the schedule is for another problem, {file.problem.name!r} with hash {file.problem.hash[:16]}",
            f"{path}: $.problem",
            f"{problem.name!r} with hash {problem.content_hash[:16]}: the same input and options",
        )
    place = _places(file.process, problem, f"{path}: $.process")
    count = len(file.process)
    for name in ("start", "end", "units", "mode", "loaded"):
        column = getattr(file, name)
        if len(column) != count and (column or name == "start"):
            raise InputError(f"{len(column)} values", f"{path}: $.{name}", f"{count}, one per process")
    order = np.argsort(whole(place))
    start = whole(file.start)[order]
    loaded = np.array(file.loaded, bool)[order] if file.loaded else None
    mode = np.zeros(problem.count, np.int64)
    for k, p in enumerate(place):
        mode[p] = _mode(file, k, p, problem, path)
    if loaded is None:
        loaded = problem.modes.item[mode] >= 0
    return Written(Schedule(mode, start, loaded), *_queues(file, problem, path))


def _places(labels: Sequence[str], problem: ScheduleProblem, where: str) -> list[int]:
    """Return the number of every process of the file; all of the problem's must be there once."""
    number = {label: p for p, label in enumerate(problem.labels)}
    place, seen = [], set()
    for k, label in enumerate(labels):
        if label not in number or label in seen:
            what = f"process {label!r} twice" if label in seen else f"unknown process {label!r}"
            raise InputError(
                what, f"{where}[{k}]", f"the {problem.count} processes of {problem.name!r}, each once"
            )
        seen.add(label)
        place.append(number[label])
    if len(place) < problem.count:
        missing = next(label for label in problem.labels if label not in seen)
        raise InputError(
            f"process {missing!r} is missing", where, f"the {problem.count} processes of {problem.name!r}"
        )
    return place


def _mode(file: ScheduleFile, k: int, p: int, problem: ScheduleProblem, path: str | Path) -> int:
    """Return the mode of process ``p``, row ``k`` of the file, and require that what the file says of it agrees."""
    m, label = problem.modes, problem.labels[p]
    modes = range(int(m.first[p]), int(m.first[p + 1]))
    if file.mode:
        if file.mode[k] >= len(modes):
            raise InputError(
                f"process {label!r} has no mode {file.mode[k]}",
                f"{path}: $.mode[{k}]",
                f"0..{len(modes) - 1}",
            )
        modes = range(modes[file.mode[k]], modes[file.mode[k]] + 1)
    if file.units:
        stated = set(file.units[k])
        modes_there = [i for i in modes if stated == _units(problem, i)]
        if not modes_there or len(stated) < len(file.units[k]):
            shown = ", ".join(file.units[k][:8]) or "no unit"
            raise InputError(
                f"process {label!r} does not run on {shown}", f"{path}: $.units[{k}]", _known(problem, modes)
            )
    else:
        modes_there = list(modes)
    if file.end:
        span = file.end[k] - file.start[k]
        fitting = [i for i in modes_there if m.span[i] == span]
        if not fitting:
            takes = " or ".join(sorted({f"{m.span[i]:,}" for i in modes_there[:8]}))
            raise InputError(
                f"process {label!r} runs from {file.start[k]:,} to {file.end[k]:,}",
                f"{path}: $.end[{k}]",
                f"{takes} ticks later",
            )
        modes_there = fitting
    return modes_there[0]


def _units(problem: ScheduleProblem, mode: int) -> set[str]:
    k = int(problem.modes.unit_set[mode])
    return set() if k < 0 else {problem.units.names[u] for u in problem.sets.of(k).tolist()}


def _known(problem: ScheduleProblem, modes: Sequence[int]) -> str:
    shown = ["{" + ", ".join(sorted(_units(problem, i))) + "}" for i in modes[:6]]
    return " or ".join(shown) + (" or others" if len(modes) > 6 else "")


def _queues(
    file: ScheduleFile, problem: ScheduleProblem, path: str | Path
) -> tuple[Queues | None, tuple[tuple[tuple[int, int], ...], ...] | None]:
    """Return queues and on times as written, unit by unit; nothing where the file has none."""
    if not file.queues:
        return None, None
    number = {label: p for p, label in enumerate(problem.labels)}
    names = [q.unit for q in file.queues]
    if names != list(problem.units.names):
        raise InputError(
            f"queues of {len(names)} units",
            f"{path}: $.queues",
            f"the {problem.units.count} units of {problem.name!r} in order",
        )
    indptr, process, off_after, on = [0], [], [], []
    for u, q in enumerate(file.queues):
        where = f"{path}: $.queues[{u}]"
        if len(q.off_after) != len(q.process):
            raise InputError(
                f"{len(q.off_after)} values", f"{where}.off_after", f"{len(q.process)}, one per process"
            )
        for k, label in enumerate(q.process):
            if label not in number:
                raise InputError(
                    f"unknown process {label!r}", f"{where}.process[{k}]", f"a process of {problem.name!r}"
                )
            process.append(number[label])
        times = [t for pair in q.on for t in pair]
        if any(a > b for a, b in pairwise(times)):
            raise InputError("times go back", f"{where}.on", "from, until; from, until; ... in order")
        off_after += q.off_after
        on.append(tuple(q.on))
        indptr.append(len(process))
    return Queues(whole(indptr), whole(process), np.array(off_after, bool)), tuple(on)
