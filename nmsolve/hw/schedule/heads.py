"""The earliest start of every mode, and the least time from its end to the end of everything: longest paths."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.model.compiled import plain
from nmsolve.model.schedule.problem import NEVER, ScheduleProblem
from nmsolve.model.types import IntArray


class Windows(NamedTuple):
    """What no schedule can go below.

    Attributes
    ----------
    head : (M,) earliest start of every mode, :data:`NEVER` or more where it can end in time in no schedule, or takes so much of a
        nonrenewable resource that too little is left for the other processes
    tail : (M,) ticks between its end and the makespan
    """

    head: IntArray
    tail: IntArray

    def ends(self, problem: ScheduleProblem) -> IntArray:
        """(P,) the earliest end of every process; :data:`NEVER` or more where it has no mode left."""
        found: IntArray = np.minimum.reduceat(self.head + problem.modes.span, problem.modes.first[:-1])
        return found

    def makespan(self, problem: ScheduleProblem) -> int:
        """Return a lower bound on the makespan: the longest path."""
        through = self.head + problem.modes.span + self.tail
        return int(np.minimum.reduceat(through, problem.modes.first[:-1]).max())


class _Ways(NamedTuple):
    """Modes and dependencies: a mode's ``span`` and ``unit_set``, ``hops`` of sets, an edge's ``moved`` bytes, ticks ``sent``
    once they travel, and ``convert``."""

    first: IntArray
    span: IntArray
    unit_set: IntArray
    hops: IntArray
    moved: IntArray
    sent: IntArray
    convert: IntArray
    hop_time: int


@plain
def _longest(
    ways: _Ways, value: IntArray, order: IntArray, indptr: IntArray, edges: IntArray, other: IntArray
) -> None:
    """Raise ``value`` (M,) along the edges: of a mode to the least value, span and delay of a mode of every neighbour.

    ``order``, ``indptr``, ``edges`` : processes after their neighbours, and the edges to these; ``other`` (E,) the neighbour.
    """
    for i in range(len(order)):
        p = order[i]
        for k in range(indptr[p], indptr[p + 1]):
            e = edges[k]
            q = other[e]
            for m in range(ways.first[p], ways.first[p + 1]):
                least = NEVER
                for n in range(ways.first[q], ways.first[q + 1]):
                    delay = ways.convert[e]
                    if ways.moved[e] > 0 and ways.unit_set[m] >= 0 and ways.unit_set[n] >= 0:
                        far = ways.hops[ways.unit_set[m], ways.unit_set[n]]
                        if far > 0:
                            delay += far * ways.hop_time + ways.sent[e]
                    least = min(least, value[n] + ways.span[n] + delay)
                value[m] = max(value[m], least)


def windows(problem: ScheduleProblem) -> Windows:
    """Return heads and tails, with the least delays that the modes of neighbours allow.

    A mode that needs static data starts no earlier than these can be loaded: someone has loaded them before.
    """
    m, e, n = problem.modes, problem.edges, problem.network
    head = np.maximum(np.maximum(problem.release, problem.earliest)[m.process], problem.mode_load)
    dear = ~problem.budgets.affordable(m.first)
    head[dear] = NEVER
    tail = np.where(dear, NEVER, 0)
    sent = -(-e.bytes // n.bandwidth) if n.bandwidth else np.zeros(e.count, np.int64)
    hops = problem.sets.hops if problem.sets.count else np.zeros((1, 1), np.int64)
    order = problem.order
    ways = _Ways(m.first, m.span, m.unit_set, hops, e.bytes, sent, e.convert, n.hop_time)
    for value, turn, (indptr, edges), other in (
        (head, order, problem.before, e.source),
        (tail, order[::-1].copy(), problem.after, e.target),
    ):
        _longest(ways, value, turn, indptr, edges, other)
    head[head + m.span > problem.deadline[m.process]] = NEVER
    return Windows(head, tail)
