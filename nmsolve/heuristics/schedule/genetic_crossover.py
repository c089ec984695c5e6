"""Crossover of activity lists, compiled: a child is crossed, shifted, decoded and justified to both sides."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.rng import below, uniform
from nmsolve.heuristics.schedule.genetic_serial import LATE, Project, serial
from nmsolve.model.compiled import plain
from nmsolve.model.splitmix import mix
from nmsolve.model.types import AnyArray, IntArray

#: Shifts of a child, at most.
SHIFTS = 6
#: Largest candidate set when the next activity is drawn.
LOOKS = 64
#: Numbers in ``GeneticArrays.counts``: children made, children kept, children since the last gain.
CHILDREN, KEPT, IDLE = range(3)


class Population(NamedTuple):
    """Lists, and what their schedules are worth.

    Attributes
    ----------
    lists : (N, n) processes by start
    cost : (N,) ends, LATE for an empty place
    print : (N,) fingerprints of the schedules
    """

    lists: AnyArray
    cost: IntArray
    print: IntArray


class GeneticArrays(NamedTuple):
    """Scratch of one search.

    Attributes
    ----------
    free : (W, T) what is free in every tick, all of it between calls
    order, other : (n,) lists
    key, end : (n,) times
    buckets : (K,) to sort by time
    mark : (n,) stamps; stamp : (1,) the last one
    best : (n,) ends of the best schedule; top : (2,) when that ends, and the best of this population
    counts : counters
    """

    free: IntArray
    order: IntArray
    other: IntArray
    key: IntArray
    end: IntArray
    buckets: IntArray
    mark: IntArray
    stamp: IntArray
    best: IntArray
    top: IntArray
    counts: IntArray


def new_work(project: Project, ticks: int) -> GeneticArrays:
    """Return scratch for schedules of less than ``ticks`` ticks."""
    n = len(project.span)
    order, other, key, end, mark, best = (np.zeros(n, np.int64) for _ in range(6))
    free = np.repeat(project.room[:, None], ticks, axis=1).copy()
    return GeneticArrays(
        free, order, other, key, end, np.zeros(2 * n + 64, np.int64), mark, np.zeros(1, np.int64), best,
        np.full(2, LATE), np.zeros(3, np.int64),
    )  # fmt: skip


@plain
def _by_time(w: GeneticArrays, order: AnyArray, key: AnyArray, last: int, out: AnyArray) -> None:
    """Write ``order`` to ``out`` sorted by ``key`` (0..last), stable."""
    shift, size = 0, len(w.buckets)
    while (last >> shift) + 2 > size:
        shift += 1
    used = (last >> shift) + 2
    for k in range(used):
        w.buckets[k] = 0
    for i in order:
        w.buckets[(key[i] >> shift) + 1] += 1
    for k in range(1, used):
        w.buckets[k] += w.buckets[k - 1]
    for i in order:
        k = key[i] >> shift
        out[w.buckets[k]] = i
        w.buckets[k] += 1
    if shift > 0:
        for a in range(1, len(out)):
            i, b = out[a], a
            while b > 0 and key[out[b - 1]] > key[i]:
                out[b] = out[b - 1]
                b -= 1
            out[b] = i


@plain
def improve(f: Project, b: Project, w: GeneticArrays, limit: int) -> int:
    """Schedule ``w.order``, then justify to the right and to the left; return the end, or LATE if there is no such schedule.

    ``w.order`` becomes the list by starts, ``w.end`` the ends. A schedule that ends after ``limit`` before it is
    justified is given up.
    """
    n = len(w.order)
    most = w.free.shape[1] - 1
    now: int = serial(f, w.order, w.end, w.free, min(most, limit))
    if now == LATE:
        return LATE
    while True:
        before = now
        _by_time(w, w.order, w.end, now, w.other)
        for k in range(n // 2):
            w.other[k], w.other[n - 1 - k] = w.other[n - 1 - k], w.other[k]
        last = serial(b, w.other, w.key, w.free, most)
        if last == LATE:
            return LATE
        for i in range(n):
            w.key[i] = last - w.key[i]
        for k in range(n // 2):
            w.other[k], w.other[n - 1 - k] = w.other[n - 1 - k], w.other[k]
        _by_time(w, w.other, w.key, last, w.order)
        now = serial(f, w.order, w.end, w.free, most)
        if now >= before:
            break
    for i in range(n):
        w.key[i] = w.end[i] - f.span[i]
    _by_time(w, w.order, w.key, now, w.other)
    for k in range(n):
        w.order[k] = w.other[k]
    return now


@plain
def _fingerprint(w: GeneticArrays) -> int:
    """Return a number of the schedule in ``w.end``."""
    h = np.uint64(0)
    for i in range(len(w.end)):
        h = h * np.uint64(0x9E3779B97F4A7C15) + np.uint64(w.end[i])
    return int(np.int64(mix(h) >> np.uint64(1)))


@plain
def insert(g: Population, w: GeneticArrays, now: int, place: int) -> bool:
    """Put the schedule of ``w`` into the population, unless it is there; return whether it was put there."""
    if now < w.top[1]:
        w.top[1] = now
        w.counts[IDLE] = 0
    if now < w.top[0]:
        w.top[0] = now
        for i in range(len(w.end)):
            w.best[i] = w.end[i]
    h = _fingerprint(w)
    for k in range(len(g.cost)):
        if g.print[k] == h and g.cost[k] == now:
            return False
    for k in range(len(w.order)):
        g.lists[place, k] = w.order[k]
    g.cost[place], g.print[place] = now, h
    return True


@plain
def sample(
    f: Project, b: Project, g: Population, w: GeneticArrays, rng: AnyArray, place: int, regret: float
) -> int:
    """Fill a place with a random list, biased by latest ends; return what its schedule costs."""
    n, ready = len(w.order), 0
    for i in range(n):
        w.mark[i] = f.before_at[i + 1] - f.before_at[i]
        if w.mark[i] == 0:
            w.other[ready] = i
            ready += 1
    w.stamp[0] = n + 1
    for k in range(n):
        some, most = min(ready, LOOKS), 0
        for r in range(some):
            if some < ready:
                other = r + below(rng, ready - r)
                w.other[r], w.other[other] = w.other[other], w.other[r]
            most = max(most, f.tail[w.other[r]])
        # the longer what must follow, the likelier
        take, best = 0, -1.0
        for r in range(some):
            worth = uniform(rng) ** (1.0 + regret * (most - f.tail[w.other[r]]))
            if worth > best:
                take, best = r, worth
        i = w.other[take]
        ready -= 1
        w.other[take] = w.other[ready]
        w.order[k] = i
        for e in range(b.before_at[i], b.before_at[i + 1]):
            j = b.before[e]
            w.mark[j] -= 1
            if w.mark[j] == 0:
                w.other[ready] = j
                ready += 1
    for i in range(n):
        w.mark[i] = 0
    w.stamp[0] = 0
    now: int = improve(f, b, w, LATE)
    if now != LATE:
        insert(g, w, now, place)
    return now


@plain
def _cross(g: Population, w: GeneticArrays, rng: AnyArray, one: int, two: int) -> None:
    """Write a child of two lists: the beginning and what is left at the end by the first, the middle by the second."""
    n = len(w.order)
    a, c = below(rng, n), below(rng, n)
    if a > c:
        a, c = c, a
    w.stamp[0] += 1
    s = w.stamp[0]
    for k in range(a):
        i = g.lists[one, k]
        w.order[k] = i
        w.mark[i] = s
    at = a
    for k in range(n):
        if at > c:
            break
        i = g.lists[two, k]
        if w.mark[i] != s:
            w.order[at] = i
            w.mark[i] = s
            at += 1
    for k in range(a, n):
        i = g.lists[one, k]
        if w.mark[i] != s:
            w.order[at] = i
            at += 1


@plain
def _shift(f: Project, b: Project, w: GeneticArrays, rng: AnyArray) -> None:
    """Move one process of the list to another place between what it needs and what needs it."""
    n = len(w.order)
    at = below(rng, n)
    i = w.order[at]
    w.stamp[0] += 1
    s = w.stamp[0]
    for e in range(f.before_at[i], f.before_at[i + 1]):
        w.mark[f.before[e]] = s
    for e in range(b.before_at[i], b.before_at[i + 1]):
        w.mark[b.before[e]] = s
    low, high = at, at
    while low > 0 and w.mark[w.order[low - 1]] != s:
        low -= 1
    while high < n - 1 and w.mark[w.order[high + 1]] != s:
        high += 1
    to = low + below(rng, high - low + 1)
    while at < to:
        w.order[at] = w.order[at + 1]
        at += 1
    while at > to:
        w.order[at] = w.order[at - 1]
        at -= 1
    w.order[to] = i


@plain
def make_children(
    f: Project, b: Project, g: Population, w: GeneticArrays, rng: AnyArray, children: int, stall: int
) -> bool:
    """Make children by crossover; each replaces a worse list. False after ``stall`` children in a row without gain."""
    size = len(g.cost)
    for _ in range(children):
        if w.counts[IDLE] >= stall:
            return False
        w.counts[CHILDREN] += 1
        w.counts[IDLE] += 1
        one, two = below(rng, size), below(rng, size)
        other = below(rng, size)
        if g.cost[other] < g.cost[one]:
            one = other
        other = below(rng, size)
        if g.cost[other] < g.cost[two]:
            two = other
        _cross(g, w, rng, one, two)
        for _ in range(below(rng, SHIFTS + 1)):
            _shift(f, b, w, rng)
        place = below(rng, size)
        for _ in range(3):
            other = below(rng, size)
            if g.cost[other] > g.cost[place]:
                place = other
        now = improve(f, b, w, LATE)
        if now <= g.cost[place] and insert(g, w, now, place):
            w.counts[KEPT] += 1
    return True
