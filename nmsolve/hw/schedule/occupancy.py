"""What memories hold over time, and which data travel when, for pictures and traces."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.model.schedule.check import holds
from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule, on_units
from nmsolve.model.types import IntArray


class Steps(NamedTuple):
    """Bytes held by the units, as steps.

    Attributes
    ----------
    indptr : (U + 1,) steps of every unit
    time, held : (S,) from when on how many bytes
    """

    indptr: IntArray
    time: IntArray
    held: IntArray


def memory_steps(problem: ScheduleProblem, answer: Schedule) -> Steps:
    """Return what the memory of every unit holds in a legal schedule: static data, and working data of what runs."""
    begin, until, _ = holds(problem, answer)
    process, unit = on_units(problem, answer.mode)
    size, work = (values[answer.mode][process] for values in (problem.mode_bytes, problem.modes.working))
    start, end = answer.start[process], answer.end(problem)[process]
    place = np.tile(unit, 4)
    time = np.concatenate([begin[process], until[process], start, end])
    change = np.concatenate([size, -size, work, -work])
    order = np.lexsort((time, place))
    order = order[change[order] != 0]
    place, time, total = place[order], time[order], np.cumsum(change[order])
    # Of several changes at one tick the sum counts; every unit's changes add up to nothing.
    last = np.ones(len(time), bool)
    last[:-1] = (place[1:] != place[:-1]) | (time[1:] != time[:-1])
    place, time, held = place[last], time[last], total[last]
    new = np.ones(len(held), bool)
    new[1:] = (place[1:] != place[:-1]) | (held[1:] != held[:-1])
    place, time, held = place[new], time[new], held[new]
    return Steps(np.searchsorted(place, np.arange(problem.units.count + 1)), time, held)


class Transfers(NamedTuple):
    """Data that travel between units.

    Attributes
    ----------
    edge : (X,) dependency
    source, target : (X,) units that are nearest to each other, of the process that sends and of the one that takes
    begin, end : (X,) when the data leave and arrive, conversion included
    """

    edge: IntArray
    source: IntArray
    target: IntArray
    begin: IntArray
    end: IntArray


def transfers(problem: ScheduleProblem, answer: Schedule) -> Transfers:
    """Return all data that go from one unit to another, by when they leave."""
    e, sets = problem.edges, problem.sets
    one, other = answer.mode[e.source], answer.mode[e.target]
    moved = np.flatnonzero((problem.hops_between(one, other) > 0) & (e.bytes > 0))
    begin = answer.end(problem)[e.source[moved]]
    moved, begin = moved[order := np.argsort(begin, kind="stable")], begin[order]
    pairs = problem.modes.unit_set[np.stack([one[moved], other[moved]])]
    nearest: dict[tuple[int, int], tuple[int, int]] = {}
    ends = np.zeros((2, len(moved)), np.int64)
    for k, (a, b) in enumerate(pairs.T.tolist()):
        if (a, b) not in nearest:
            mine, its = sets.of(a), sets.of(b)
            i, j = np.divmod(int(np.argmin(problem.units.hops[np.ix_(mine, its)])), len(its))
            nearest[a, b] = int(mine[i]), int(its[j])
        ends[:, k] = nearest[a, b]
    return Transfers(moved, ends[0], ends[1], begin, begin + problem.delay(moved, one[moved], other[moved]))
