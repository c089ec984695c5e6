"""The evaluator of schedules: when units are on (M4.6), and what every answer is worth, in all objectives.

Between two activities a unit is switched off exactly if the gap is at least :attr:`Units.break_even`: then it is long enough to
switch off and to wake, and idling would cost no less. Gaps do not touch each other, so this is optimal for energy (the proof
is in docs/schedule.md). A unit is off before its first activity and after its last; a unit without any is never on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule, on_units_in_turn
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
    process, unit = on_units_in_turn(problem, answer)
    begin, end = answer.begin(problem)[process], answer.end(problem)[process]
    inner = np.flatnonzero((unit[1:] == unit[:-1]) & (begin[1:] > end[:-1]))
    at, since, until = unit[inner], end[inner], begin[inner + 1]
    first, last = np.full(problem.units.count, -1, np.int64), np.full(problem.units.count, -1, np.int64)
    first[unit[::-1]] = begin[::-1]
    last[unit] = end
    return Gaps(at, since, until, until - since >= problem.units.break_even[at], first, last)


class Powered(NamedTuple):
    """Ticks of units: ``busy`` (U,) at work, ``idle`` (U,) on without work; ``switches`` (U,) times that they are woken."""

    busy: IntArray
    idle: IntArray
    switches: IntArray


def powered(problem: ScheduleProblem, answer: Schedule) -> Powered:
    """Return what units do with the best switching."""
    count, gaps = problem.units.count, gaps_of(problem, answer)
    width = gaps.end - gaps.begin
    idle, dark, times = (np.zeros(count, np.int64) for _ in range(3))
    np.add.at(idle, gaps.unit[~gaps.off], width[~gaps.off])
    np.add.at(dark, gaps.unit[gaps.off], width[gaps.off])
    np.add.at(times, gaps.unit[gaps.off], 1)
    used = gaps.last >= 0
    return Powered(np.where(used, gaps.last - gaps.first, 0) - idle - dark, idle, times + used)


#: Parts per million.
PPM = 10**6


def all_objectives(problem: ScheduleProblem, answer: Schedule) -> dict[str, int]:
    """Return every objective of a legal schedule by name; ``weighted`` only where the problem has weights."""
    _, found = worth(problem, answer, answer.end(problem), powered(problem, answer))
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
    return worth(problem, answer, answer.end(problem), powered(problem, answer))[0]


def worth(
    problem: ScheduleProblem, answer: Schedule, end: IntArray, power: Powered
) -> tuple[dict[str, int], dict[str, int]]:
    """Return the parts of the energy, and all objectives but ``weighted``, where processes end at ``end`` (P,) and units do what
    ``power`` says, from 0 to the last end."""
    u, e, items = problem.units, problem.edges, problem.items
    item = problem.modes.item[answer.mode][answer.loaded]
    size = np.diff(problem.sets.indptr)[items.unit_set[item]]
    byte_hops = int((e.bytes * problem.hops_between(answer.mode[e.source], answer.mode[e.target])).sum())
    makespan, idle, busy = int(end.max(initial=0)), int(power.idle.sum()), int(power.busy.sum())
    late = np.where(problem.weight > 0, np.maximum(0, end - problem.due), 0)
    energy = {
        "run": int(problem.modes.energy[answer.mode].sum()),
        "load": int(items.energy[item].sum()),
        "transfer": byte_hops * problem.network.hop_energy,
        "idle": int((power.idle * u.idle).sum()),
        "off": int(((makespan - power.busy - power.idle) * u.off).sum()),
        "switch": int((power.switches * u.switch_energy).sum()),
    }
    return energy, {
        "makespan": makespan,
        "tardiness": int((problem.weight * late).sum()),
        "idle": idle,
        "energy": sum(energy.values()),
        "waste": -(-PPM * idle // (idle + busy)) if idle else 0,
        "moved": byte_hops + int((items.bytes[item] * size).sum()),
    }
