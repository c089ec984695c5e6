"""Which process comes first: lengths of the ways to the end, as HEFT and PEFT measure them, compiled."""

from __future__ import annotations

import heapq

import numpy as np

from nmsolve.heuristics.schedule.decode import Ground, delay_of
from nmsolve.model.compiled import embedded, plain
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
    waits = np.bincount(problem.edges.target, minlength=problem.count).tolist()
    indptr, out = problem.after
    starts, target = indptr.tolist(), problem.edges.target[out].tolist()
    key = (-np.asarray(priority)).tolist()
    ready = [(key[p], p) for p, n in enumerate(waits) if n == 0]
    heapq.heapify(ready)
    found = []
    while ready:
        _, p = heapq.heappop(ready)
        found.append(p)
        for q in target[starts[p] : starts[p + 1]]:
            waits[q] -= 1
            if waits[q] == 0:
                heapq.heappush(ready, (key[q], q))
    return np.array(found, np.int64)
