"""The evaluator of schedules: when units are on (M4.6), and what every answer is worth, in all objectives.

Between two activities a unit is switched off exactly if the gap is at least :attr:`Units.break_even`: then it is long enough to
switch off and to wake, and idling would cost no less. Gaps do not touch each other, so this is optimal for energy (the proof
is in docs/schedule.md). A unit is off before its first activity and after its last; a unit without any is never on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule, on_units
from nmsolve.model.types import BoolArray, IntArray


class Gaps(NamedTuple):
    """Gaps between activities of units, by unit and time.

    Attributes
    ----------
    unit, begin, end : (G,) of gaps of at least one tick
    off : (G,) whether the unit is switched off in it
    first, last : (U,) when a unit's first activity begins and its last one ends; -1 for a unit that is never used
    """

    unit: IntArray
    begin: IntArray
    end: IntArray
    off: BoolArray
    first: IntArray
    last: IntArray


def gaps_of(problem: ScheduleProblem, answer: Schedule) -> Gaps:
    """Return the gaps of a legal schedule."""
    process, unit = on_units(problem, answer.mode)
    begin, end = answer.begin(problem)[process], answer.end(problem)[process]
    order = np.lexsort((begin, unit))
    unit, begin, end = unit[order], begin[order], end[order]
    inner = np.flatnonzero((unit[1:] == unit[:-1]) & (begin[1:] > end[:-1]))
    at, since, until = unit[inner], end[inner], begin[inner + 1]
    first, last = np.full(problem.units.count, -1, np.int64), np.full(problem.units.count, -1, np.int64)
    first[unit[::-1]] = begin[::-1]
    last[unit] = end
    return Gaps(at, since, until, until - since >= problem.units.break_even[at], first, last)


class Powered(NamedTuple):
    """Where ticks and energy of units go.

    Attributes
    ----------
    busy, idle : (U,) ticks at work, and on without work
    idle_energy, off_energy, switch_energy : (U,) in the time from 0 to the end of the schedule
    """

    busy: IntArray
    idle: IntArray
    idle_energy: IntArray
    off_energy: IntArray
    switch_energy: IntArray


def powered(problem: ScheduleProblem, answer: Schedule) -> Powered:
    """Return ticks and energies of every unit, with the best switching."""
    u, gaps = problem.units, gaps_of(problem, answer)
    makespan = int(answer.end(problem).max(initial=0))
    width = gaps.end - gaps.begin
    idle, dark, times = (np.zeros(u.count, np.int64) for _ in range(3))
    np.add.at(idle, gaps.unit[~gaps.off], width[~gaps.off])
    np.add.at(dark, gaps.unit[gaps.off], width[gaps.off])
    np.add.at(times, gaps.unit[gaps.off], 1)
    used = gaps.last >= 0
    dark += np.where(used, gaps.first + makespan - gaps.last, makespan)
    busy = makespan - idle - dark
    return Powered(busy, idle, idle * u.idle, dark * u.off, (times + used) * u.switch_energy)


#: Parts per million.
PPM = 10**6


def all_objectives(problem: ScheduleProblem, answer: Schedule) -> dict[str, int]:
    """Return every objective of a legal schedule by name; ``weighted`` only where the problem has weights."""
    found = _values(problem, answer)
    if problem.weights:
        found["weighted"] = sum(factor * found[name] for name, factor in problem.weights)
    return found


def objective(problem: ScheduleProblem, answer: Schedule) -> int:
    """Return the problem's own objective of a legal schedule."""
    if problem.objective == "makespan":
        return int(answer.end(problem).max(initial=0))
    return all_objectives(problem, answer)[problem.objective]


def energies(problem: ScheduleProblem, answer: Schedule) -> dict[str, int]:
    """Return the parts of the energy: running, loading, transfers, idling, off, switching."""
    return _energies(problem, answer, powered(problem, answer))


def _energies(problem: ScheduleProblem, answer: Schedule, power: Powered) -> dict[str, int]:
    item = problem.modes.item[answer.mode][answer.loaded]
    return {
        "run": int(problem.modes.energy[answer.mode].sum()),
        "load": int(problem.items.energy[item].sum()),
        "transfer": _byte_hops(problem, answer) * problem.network.hop_energy,
        "idle": int(power.idle_energy.sum()),
        "off": int(power.off_energy.sum()),
        "switch": int(power.switch_energy.sum()),
    }


def _values(problem: ScheduleProblem, answer: Schedule) -> dict[str, int]:
    end = answer.end(problem)
    power = powered(problem, answer)
    late = np.where(problem.weight > 0, np.maximum(0, end - problem.due), 0)
    idle, busy = int(power.idle.sum()), int(power.busy.sum())
    return {
        "makespan": int(end.max(initial=0)),
        "tardiness": int((problem.weight * late).sum()),
        "idle": idle,
        "energy": sum(_energies(problem, answer, power).values()),
        "waste": -(-PPM * idle // (idle + busy)) if idle else 0,
        "moved": _byte_hops(problem, answer) + _bytes_loaded(problem, answer),
    }


def _byte_hops(problem: ScheduleProblem, answer: Schedule) -> int:
    """Return Σ bytes · hops over the dependencies."""
    e = problem.edges
    return int((e.bytes * problem.hops_between(answer.mode[e.source], answer.mode[e.target])).sum())


def _bytes_loaded(problem: ScheduleProblem, answer: Schedule) -> int:
    """Return the bytes loaded, on all units together."""
    item = problem.modes.item[answer.mode][answer.loaded]
    size = np.diff(problem.sets.indptr)[problem.items.unit_set[item]]
    return int((problem.items.bytes[item] * size).sum())
