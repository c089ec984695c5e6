"""A scheduling problem as its file states it: the problem itself, and what reports say of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from nmsolve.model.schedule.problem import NEVER, ScheduleProblem
from nmsolve.model.types import IntArray


class Row(NamedTuple):
    """One process in a table.

    Attributes
    ----------
    label : unique name in the problem
    task, partner : its network, and the second one of an interaction; "" for none
    process : name within the network
    frame : number of the frame of a periodic network, from 0
    modes : ways to run it
    span : least and most ticks of a run
    release, deadline, due : ticks, None where there is none
    """

    label: str
    task: str
    partner: str
    process: str
    frame: int
    modes: int
    span: tuple[int, int]
    release: int
    deadline: int | None
    due: int | None


@dataclass(frozen=True, eq=False)
class Stated:
    """What a file states.

    Attributes
    ----------
    problem : for the engines
    form : kind of file: ``tasks``, ``PSPLIB``, ``Patterson``, ``MPLIB``, ``flexible job shop``, ``WfFormat``
    tick, joule : seconds of a tick and joules of a unit of energy, 0 if the file does not say
    process, frame : (P,) names within the networks, and numbers of frames
    periods : of the networks, 0 for none
    """

    problem: ScheduleProblem
    form: str
    tick: float = 0.0
    joule: float = 0.0
    process: tuple[str, ...] = ()
    frame: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    periods: tuple[int, ...] = ()

    def table(self) -> list[Row]:
        """Return a row for every process, in the problem's order."""
        p = self.problem
        first = p.modes.first[:-1]
        least = np.minimum.reduceat(p.modes.span, first).tolist()
        most = np.maximum.reduceat(p.modes.span, first).tolist()
        count = np.diff(p.modes.first).tolist()
        names = self.process or p.labels
        frame = self.frame.tolist() or [0] * p.count
        task = [p.tasks[k] if k >= 0 else "" for k in p.task.tolist()]
        partner = [p.tasks[k] if k >= 0 else "" for k in p.partner.tolist()]
        deadline = [None if t >= NEVER else t for t in p.deadline.tolist()]
        due = [None if t >= NEVER else t for t in p.due.tolist()]
        columns = (
            p.labels, task, partner, names, frame, count, zip(least, most, strict=True), p.release.tolist(), deadline, due,
        )  # fmt: skip
        return [Row(*row) for row in zip(*columns, strict=True)]
