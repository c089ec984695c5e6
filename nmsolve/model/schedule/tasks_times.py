"""Release times, deadlines, due times and priorities of the processes of one frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nmsolve.model.schedule.build import whole
from nmsolve.model.schedule.problem import NEVER, Edges
from nmsolve.model.schedule.tasks_file import Interaction, Process, TaskEntry, TasksFile
from nmsolve.model.types import IntArray


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
