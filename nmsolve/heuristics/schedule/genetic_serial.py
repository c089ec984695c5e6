"""Serial generation of schedules for processes that share resources, compiled: one after the other, each as early as it can.

What is free is kept tick by tick. All resources of a tick stand in one word or a few: a field for each, with a guard bit above
it. A process fits into a tick if subtracting its needs borrows from no guard bit. That is one subtraction for all resources.

The same code serves both directions. Backwards the dependencies are turned round, and times are counted from the end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.model.compiled import plain
from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.types import AnyArray, IntArray, by_key

#: Bits of a word that may be used: words are signed.
WORD = 62
#: Later than any end.
LATE = 2**60


class Project(NamedTuple):
    """Processes in topological numbering, for one direction of time.

    Attributes
    ----------
    span : (n,) ticks
    need : (W, n) what a process takes of the resources, packed into W words
    room : (W,) what there is, with guard bits
    guard : (W,) guard bits
    before_at, before, lag : CSR of what must have ended before, and for how long
    release : (n,) earliest start (nothing is loaded before it)
    tail : (n,) least ticks from the start to the end of everything
    """

    span: IntArray
    need: IntArray
    room: IntArray
    guard: IntArray
    before_at: IntArray
    before: IntArray
    lag: IntArray
    release: IntArray
    tail: IntArray


def packed_needs(demand: IntArray, capacity: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return (W, n) needs, (W,) room and (W,) guard bits for demands (n, R) of resources (R,)."""
    used = np.flatnonzero((demand > 0).any(axis=0))
    most = np.minimum(capacity[used], demand[:, used].sum(axis=0))
    words: list[list[tuple[int, int]]] = [[]]
    at = 0
    for r, top in zip(used.tolist(), most.tolist(), strict=True):
        width = int(top).bit_length() + 1
        if at + width > WORD:
            words.append([])
            at = 0
        words[-1].append((r, at))
        at += width
    need, room, guard = (np.zeros((len(words), k), np.int64) for k in (len(demand), 1, 1))
    for w, fields in enumerate(words):
        for r, shift in fields:
            top = int(min(capacity[r], demand[:, r].sum()))
            high = 1 << (shift + top.bit_length())
            need[w] += demand[:, r] << shift
            room[w] += (top << shift) + high
            guard[w] += high
    return need, room[:, 0], guard[:, 0]


def projects_of(problem: ScheduleProblem, order: IntArray) -> tuple[Project, Project]:
    """Return the processes forwards and backwards, number ``i`` for process ``order[i]``; backwards has no releases yet."""
    n, m, e = problem.count, problem.modes, problem.edges
    number = np.empty(n, np.int64)
    number[order] = np.arange(n)
    mode = m.first[:-1][order]
    span = m.span[mode]
    needs = packed_needs(m.demand[mode] * (span > 0)[:, None], problem.capacity)
    delay = problem.delay(np.arange(e.count), m.first[e.source], m.first[e.target])
    source, target = number[e.source], number[e.target]
    release = np.maximum(problem.release, problem.earliest)[order]
    made = []
    for a, b in ((source, target), (target, source)):
        at, by = by_key(b, n)
        made.append((at, a[by], delay[by]))
    tail, head = span.copy(), span.copy()
    for i in range(n - 1, -1, -1):
        at, after, lag = made[1]
        some = slice(at[i], at[i + 1])
        tail[i] += (tail[after[some]] + lag[some]).max(initial=0)
    for i in range(n):
        at, before, lag = made[0]
        some = slice(at[i], at[i + 1])
        head[i] += (head[before[some]] + lag[some]).max(initial=0)
    forward = Project(span, *needs, *made[0], release, tail)
    return forward, Project(span, *needs, *made[1], np.zeros(n, np.int64), head)


@plain
def serial(p: Project, order: AnyArray, end: AnyArray, free: AnyArray, limit: int) -> int:
    """Schedule processes in the given order (topological); return when the last one ends, or LATE if after ``limit``.

    Parameters
    ----------
    end : (n,) overwritten with the ends
    free : (W, more than ``limit``) what is free, all of it at the beginning, and again at the end
    """
    last, found = 0, 0
    words = len(p.room)
    row, need, guard = free[0], p.need[0], p.guard[0]
    for i in order:
        t, d = p.release[i], p.span[i]
        for e in range(p.before_at[i], p.before_at[i + 1]):
            ready = end[p.before[e]] + p.lag[e]
            if ready > t:
                t = ready
        if d > 0:
            done = t
            while True:
                top = t + d
                k = (top if top < last else last) - 1
                if words == 1:
                    while k >= done and (row[k] - need[i]) & guard == guard:
                        k -= 1
                else:
                    while k >= done and _fits(p, free, i, k):
                        k -= 1
                if k < done:
                    break
                t, done = k + 1, top
        if t + p.tail[i] > limit:
            found = LATE
            break
        for k in range(t, t + d):
            row[k] -= need[i]
        if words > 1:
            for w in range(1, words):
                for k in range(t, t + d):
                    free[w, k] -= p.need[w, i]
        end[i] = t + d
        if t + d > last:
            last = t + d
    for w in range(words):
        for k in range(last):
            free[w, k] = p.room[w]
    return max(last, found)


@plain
def _fits(p: Project, free: AnyArray, i: int, k: int) -> bool:
    """Return whether process ``i`` fits into tick ``k``."""
    lacks = False
    for w in range(len(p.room)):
        lacks = lacks or (free[w, k] - p.need[w, i]) & p.guard[w] != p.guard[w]
    return not lacks
