"""How HEFT and PEFT build schedules, compiled: which process comes first, by the lengths of the ways to the end, and the
first gap that holds it, in the mode that ends first.

Every process loads its item here, as if loading were part of its span: so a gap is long enough whatever else uses the item.
The decoder then decodes the queues, and items stay in memory where they fit.
"""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.schedule.decode import DecoderArrays, Ground, begin_decode, delay_of
from nmsolve.model.compiled import embedded, plain
from nmsolve.model.ordering import topological
from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.types import AnyArray, FloatArray, IntArray


@embedded
def _length(g: Ground, m: int) -> int:
    """Return the ticks of a mode with its load."""
    d = g.item[m]
    return int(g.span[m] + (g.load[d] if d >= 0 else 0))


@plain
def upward(g: Ground, order: IntArray, rank: FloatArray) -> None:
    """Write to ``rank`` (P,) the mean length of the longest way from each start to an end (HEFT); ``order`` sorts by edges."""
    for i in range(len(order) - 1, -1, -1):
        p = order[i]
        rank[p] = 0.0
        for j in range(g.out_at[p], g.out_at[p + 1]):
            e = g.out[j]
            q = g.target[e]
            total, pairs = 0, (g.first[p + 1] - g.first[p]) * (g.first[q + 1] - g.first[q])
            for m in range(g.first[p], g.first[p + 1]):
                for n in range(g.first[q], g.first[q + 1]):
                    delay, _ = delay_of(g, e, m, n)
                    total += delay
            rank[p] = max(rank[p], total / pairs + rank[q])
        total = 0
        for m in range(g.first[p], g.first[p + 1]):
            total += _length(g, m)
        rank[p] += total / (g.first[p + 1] - g.first[p])


@plain
def optimistic(g: Ground, order: IntArray, table: FloatArray) -> None:
    """Write to ``table`` (M,) what at least follows after each mode of a process, all units free (PEFT)."""
    for i in range(len(order) - 1, -1, -1):
        p = order[i]
        for m in range(g.first[p], g.first[p + 1]):
            table[m] = 0.0
            for j in range(g.out_at[p], g.out_at[p + 1]):
                e = g.out[j]
                q = g.target[e]
                least = np.inf
                for n in range(g.first[q], g.first[q + 1]):
                    delay, _ = delay_of(g, e, m, n)
                    least = min(least, delay + _length(g, n) + table[n])
                table[m] = max(table[m], least)


def by_priority(problem: ScheduleProblem, priority: AnyArray) -> IntArray:
    """Return the processes by falling ``priority`` (P,), each behind those that it needs; ties by number."""
    return np.array(topological(problem.sources, (-np.asarray(priority)).tolist()), np.int64)


@plain
def insert_all(
    g: Ground, order: IntArray, ahead: FloatArray, begins: IntArray, ends: IntArray, w: DecoderArrays
) -> None:
    """Write ``w.mode`` and ``w.start``; needs a problem without resources.

    Parameters
    ----------
    order : (P,) processes in the order in which they are put
    ahead : (M,) what follows at least after each mode: that with the least end and this together is taken
    begins, ends : (lanes,) overwritten
    """
    begin_decode(g, w)
    for i in range(len(order)):
        p = order[i]
        best, least, at = g.first[p], np.inf, 0
        for m in range(g.first[p], g.first[p + 1]):
            start = _first_gap(g, w, p, m, begins, ends)
            if start + g.span[m] + ahead[m] < least:
                best, least, at = m, start + g.span[m] + ahead[m], start
        w.mode[p], w.start[p] = best, at
        k, d = g.unit_set[best], g.item[best]
        if k >= 0:
            for j in range(g.members_at[k], g.members_at[k + 1]):
                u = g.members[j]
                x = g.lane[u] + w.used[u]
                while x > g.lane[u] and begins[x - 1] > at:
                    begins[x], ends[x] = begins[x - 1], ends[x - 1]
                    x -= 1
                begins[x], ends[x] = at - (g.load[d] if d >= 0 else 0), at + g.span[best]
                w.used[u] += 1


@embedded
def _first_gap(g: Ground, w: DecoderArrays, p: int, m: int, begins: IntArray, ends: IntArray) -> int:
    """Return the earliest start with all units of the mode free from the load to the end."""
    k, d = g.unit_set[m], g.item[m]
    load = g.load[d] if d >= 0 else 0
    start = max(g.release[p], g.earliest[p] + load)
    for j in range(g.into_at[p], g.into_at[p + 1]):
        e = g.into[j]
        q = g.source[e]
        delay, _ = delay_of(g, e, w.mode[q], m)
        start = max(start, w.start[q] + g.span[w.mode[q]] + delay)
    if k < 0:
        return int(start)
    size = g.members_at[k + 1] - g.members_at[k]
    fits, j = 0, 0
    while fits < size:
        u = g.members[g.members_at[k] + j]
        low, high = g.lane[u], g.lane[u] + w.used[u]
        while low < high:
            middle = (low + high) // 2
            if ends[middle] <= start - load:
                low = middle + 1
            else:
                high = middle
        moved, x = False, low
        while x < g.lane[u] + w.used[u] and begins[x] < start + g.span[m]:
            start, moved = ends[x] + load, True
            x += 1
        fits = 1 if moved else fits + 1
        j = (j + 1) % size
    return int(start)
