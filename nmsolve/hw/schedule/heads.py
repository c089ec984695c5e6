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
    head : (M,) earliest start of every mode, :data:`NEVER` or more where it can end in time in no schedule
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


@plain
def _longest(
    value: IntArray, order: IntArray, indptr: IntArray, edges: IntArray, other: IntArray, first: IntArray, span: IntArray,
    unit_set: IntArray, hops: IntArray, moved: IntArray, sent: IntArray, convert: IntArray, hop_time: int,
) -> None:  # fmt: skip
    """Raise ``value`` (M,) along the edges: of a mode to the least value, span and delay of a mode of every neighbour."""
    for i in range(len(order)):
        p = order[i]
        for k in range(indptr[p], indptr[p + 1]):
            e = edges[k]
            q = other[e]
            for m in range(first[p], first[p + 1]):
                least = NEVER
                for n in range(first[q], first[q + 1]):
                    delay = convert[e]
                    if moved[e] > 0 and unit_set[m] >= 0 and unit_set[n] >= 0:
                        far = hops[unit_set[m], unit_set[n]]
                        if far > 0:
                            delay += far * hop_time + sent[e]
                    least = min(least, value[n] + span[n] + delay)
                value[m] = max(value[m], least)


def windows(problem: ScheduleProblem) -> Windows:
    """Return heads and tails, with the least delays that the modes of neighbours allow.

    A mode that needs static data starts no earlier than these can be loaded: someone has loaded them before.
    """
    m, e, n = problem.modes, problem.edges, problem.network
    load = np.where(m.item >= 0, np.append(problem.items.load, 0)[m.item], 0)
    head = np.maximum(np.maximum(problem.release, problem.earliest)[m.process], load)
    tail = np.zeros(m.count, np.int64)
    sent = -(-e.bytes // n.bandwidth) if n.bandwidth else np.zeros(e.count, np.int64)
    hops = problem.sets.hops if problem.sets.count else np.zeros((1, 1), np.int64)
    order = problem.order
    rest = (m.first, m.span, m.unit_set, hops, e.bytes, sent, e.convert, n.hop_time)
    for value, turn, (indptr, edges), other in (
        (head, order, problem.before, e.source),
        (tail, order[::-1].copy(), problem.after, e.target),
    ):
        _longest(value, turn, indptr, edges, other, *rest)
    head[head + m.span > problem.deadline[m.process]] = NEVER
    return Windows(head, tail)
