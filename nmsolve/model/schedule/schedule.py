"""The answer to a scheduling problem: a mode and a start for every process, whether it loads its static data; queues of units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.model.decisions import Decisions
from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.types import BoolArray, IntArray, picked


@dataclass(frozen=True, eq=False)
class Schedule(Decisions):
    """Decisions, nothing else. What is switched off when follows from them (:mod:`nmsolve.hw.schedule.evaluate`).

    Attributes
    ----------
    mode : (P,) number among all modes
    start : (P,) ticks
    loaded : (P,) whether a process loads its item right before it starts; else the item is held since its last use
    """

    mode: IntArray
    start: IntArray
    loaded: BoolArray

    def packed(self) -> IntArray:
        """As engines offer it: modes (P,), starts (P,), loads (P,)."""
        return np.concatenate([self.mode, self.start, self.loaded.astype(np.int64)])

    @classmethod
    def unpacked(cls, solution: IntArray) -> Schedule:
        """Return the schedule of a ``solution`` (3 P,) as :meth:`packed` makes it."""
        mode, start, loaded = np.array(solution, np.int64).reshape(3, -1)
        return cls(mode, start, loaded > 0)

    def end(self, problem: ScheduleProblem) -> IntArray:
        """(P,) when every process ends."""
        ends: IntArray = self.start + problem.modes.span[self.mode]
        return ends

    def begin(self, problem: ScheduleProblem) -> IntArray:
        """(P,) when the units of every process begin to work for it: the start, or the load before it."""
        begins: IntArray = self.start - np.where(self.loaded, problem.mode_load[self.mode], 0)
        return begins


def on_units(problem: ScheduleProblem, mode: IntArray) -> tuple[IntArray, IntArray]:
    """Return process and unit of every pair of a process and one of its units, by process, for the modes (P,) chosen."""
    sets = problem.sets
    chosen = problem.modes.unit_set[mode]
    gangs = np.flatnonzero(chosen >= 0)
    ptr, members = picked(sets.indptr, chosen[gangs])
    return np.repeat(gangs, np.diff(ptr)), sets.members[members]


def on_units_in_turn(problem: ScheduleProblem, answer: Schedule) -> tuple[IntArray, IntArray]:
    """Return the same pairs by unit, and there by the begin of the processes."""
    process, unit = on_units(problem, answer.mode)
    order = np.lexsort((answer.begin(problem)[process], unit))
    return process[order], unit[order]


@dataclass(frozen=True, eq=False)
class Queues:
    """The program of a component of U units (M4.2, M4.7).

    Attributes
    ----------
    indptr, process : CSR (U + 1,), (Q,) of the processes of every unit, in the order in which it runs them
    off_after : (Q,) whether the unit is switched off when the process has ended, and woken in time for the next one; after its
        last process a unit is switched off in any case
    """

    indptr: IntArray
    process: IntArray
    off_after: BoolArray
