"""Periodic networks over their hyperperiod: every process once per frame; times from the begin of the frame."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.schedule.build import MOST_MODES, whole
from nmsolve.model.schedule.problem import MOST_TICKS, NEVER, Edges, Modes
from nmsolve.model.schedule.tasks_file import Interaction, Process, TaskEntry, TasksFile, require_count
from nmsolve.model.types import IntArray, by_key, picked


@dataclass(frozen=True, eq=False)
class Frames:
    """The processes of all frames, network by network, frame by frame.

    Attributes
    ----------
    process : (P,) the process of one frame that each of them is
    frame : (P,) its frame
    period : (N,) of the processes of one frame, 0 for none
    numbered : (N,) whether its frames have numbers in labels
    at : (N,) number of each process in frame 0; stride : (N,) from a frame to the next
    """

    process: IntArray
    frame: IntArray
    period: IntArray
    at: IntArray
    stride: IntArray

    def each(self, values: IntArray) -> IntArray:
        """Return ``values`` (N,) of every frame (P,)."""
        return values[self.process]

    def times(self, values: IntArray) -> IntArray:
        """Return ticks (P,) of all frames from those of one (N,); what is never stays never."""
        found = values[self.process]
        moved: IntArray = np.where(found >= NEVER, NEVER, found + self.frame * self.period[self.process])
        return moved

    def labels(self, names: Sequence[str]) -> list[str]:
        """Return unique names: with the frame's number where the network has a period."""
        numbered = (self.period > 0).tolist()
        pairs = zip(self.process.tolist(), self.frame.tolist(), strict=True)
        return [f"{names[p]}@{k}" if numbered[p] else names[p] for p, k in pairs]

    def modes(self, one: Modes) -> tuple[Modes, IntArray]:
        """Return the modes of all frames, and (M,) the mode of one frame that each is."""
        first, taken = picked(one.first, self.process)
        return replace(
            one, first=first, span=one.span[taken], unit_set=one.unit_set[taken], demand=one.demand[taken],
            energy=one.energy[taken], item=one.item[taken], working=one.working[taken],
        ), taken  # fmt: skip

    def edges(self, one: Edges) -> Edges:
        """Return the dependencies of all frames; both ends are in the same frame."""
        indptr, into = by_key(one.target, len(self.at))
        count, taken = np.diff(indptr)[self.process], into[picked(indptr, self.process)[1]]
        frame = np.repeat(self.frame, count)
        source = one.source[taken]
        return Edges(
            self.at[source] + frame * self.stride[source], np.repeat(np.arange(len(self.process)), count), one.bytes[taken],
            one.convert[taken],
        )  # fmt: skip


def frames_of(file: TasksFile, path: str, tasks: Sequence[tuple[int, ...]], edges: Edges) -> Frames:
    """Return the frames of a file's networks over the least common multiple of all periods.

    Parameters
    ----------
    tasks : (N,) the network of every process, both of an interaction; networks in order, interactions last
    edges : dependencies within one frame

    Raises
    ------
    InputError : frames without a period, too long a hyperperiod or too many processes, an interaction or a dependency of networks
        with different frames
    """
    hyper = 1
    for k, t in enumerate(file.tasks):
        if t.period is None and t.frames is not None:
            raise InputError(
                f"network {t.name!r} has frames, but no period", f"{path}: $.tasks[{k}]", "a period"
            )
        if hyper < MOST_TICKS:
            hyper = math.lcm(hyper, t.period or 1)
        if hyper >= MOST_TICKS and any(one.frames is None and one.period for one in file.tasks):
            raise InputError(
                "the periods have no common multiple below 2^40 ticks", f"{path}: $.tasks[{k}].period",
                "periods that divide one another, or a number of frames",
            )  # fmt: skip
    frames = [t.frames or (hyper // t.period if t.period else 1) for t in file.tasks]
    rhythm = [(t.period or 0, n) for t, n in zip(file.tasks, frames, strict=True)]
    joined = [
        *tasks,
        *(
            (tasks[a][0], tasks[b][0])
            for a, b in zip(edges.source.tolist(), edges.target.tolist(), strict=True)
        ),
    ]
    for one in joined:
        if len(one) > 1 and len({rhythm[t] for t in one}) > 1:
            names = " and ".join(repr(file.tasks[t].name) for t in one)
            raise InputError(
                f"{names} are joined, but have different frames", path, "equal periods and frames"
            )
    number = np.array([one[0] for one in tasks], np.int64)
    sizes = np.array(frames, np.int64)
    within = f" in a hyperperiod of {hyper:,} ticks" if hyper < MOST_TICKS else ""
    require_count(sum(frames[t] for t in number.tolist()), f"{path}: $.tasks", within)
    return _laid_out(number, np.array([len(one) > 1 for one in tasks]), sizes, file)


def _laid_out(number: IntArray, shared: IntArray, sizes: IntArray, file: TasksFile) -> Frames:
    """Return processes by network and frame; those that two networks share come last, by pair of networks."""
    repeat = sizes[number]
    process = np.repeat(np.arange(len(number)), repeat)
    frame = np.arange(len(process)) - np.repeat(np.cumsum(repeat) - repeat, repeat)
    order = np.lexsort((process, frame, number[process], shared[process]))
    process, frame = process[order], frame[order]
    at = np.zeros(len(number), np.int64)
    begins = np.flatnonzero(frame == 0)
    at[process[begins]] = begins
    group = shared * (len(sizes) + 1) + number
    stride = np.bincount(group, minlength=2 * len(sizes) + 2)[group].astype(np.int64)
    period = np.array([t.period or 0 for t in file.tasks], np.int64)[number]
    return Frames(process, frame, period, at, stride)


def require_modes(frames: Frames, first: Sequence[int], path: str) -> None:
    """Refuse more modes than tables are made for; ``first`` (N + 1,) are those of one frame."""
    total = int(np.diff(first)[frames.process].sum())
    if total > MOST_MODES:
        raise InputError(f"{total:,} modes in all frames", f"{path}: $.tasks", f"at most {MOST_MODES:,}")


class Times(NamedTuple):
    """(N,) ticks from the begin of the frame, :data:`NEVER` for none; weight is the cost of a tick after ``due``."""

    release: IntArray
    deadline: IntArray
    due: IntArray
    weight: IntArray


def times_of(
    file: TasksFile, stated: Sequence[Process | Interaction], tasks: Sequence[tuple[int, ...]], edges: Edges
) -> Times:
    """Return what processes and their networks say; a network's due time is that of its last processes."""
    goes_on = _goes_on(tasks, edges)
    release, deadline, due, weight = [], [], [], []
    for p, step in enumerate(stated):
        own = [file.tasks[t] for t in tasks[p]]
        release.append(max([step.release, *(t.release for t in own)]))
        deadline.append(_least([step.deadline, *map(_deadline, own)]))
        last = [t.due for t, number in zip(own, tasks[p], strict=True) if (p, number) not in goes_on]
        when = _least(last) if step.due is None else step.due
        due.append(when)
        priority = (
            step.priority if step.priority is not None else max((t.priority or 0 for t in own), default=0)
        )
        said = step.priority is not None or any(t.priority is not None for t in own)
        weight.append((priority if said else 1) if when < NEVER else 0)
    return Times(whole(release), whole(deadline), whole(due), whole(weight))


def _goes_on(tasks: Sequence[tuple[int, ...]], edges: Edges) -> set[tuple[int, int]]:
    """Return pairs of a process and a network of it that has another process after it."""
    pairs = zip(edges.source.tolist(), edges.target.tolist(), strict=True)
    return {(a, t) for a, b in pairs for t in tasks[a] if t in tasks[b]}


def _deadline(task: TaskEntry) -> int | None:
    if task.deadline is not None or task.period is None:
        return task.deadline
    return task.release + task.period


def _least(times: Sequence[int | None]) -> int:
    return min((t for t in times if t is not None), default=NEVER)
