"""Processes on one unit each, compiled: the graph of a schedule, its heads and tails, and first schedules."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.rng import below, shuffle, uniform
from nmsolve.model.compiled import embedded, plain
from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.types import AnyArray, IntArray, by_key


class Shop(NamedTuple):
    """The problem, for n processes in topological numbering and U units.

    Attributes
    ----------
    mode_at : (n + 1,) modes of every process
    unit, span : (M,) of every mode
    release : (n,) earliest start (nothing is loaded before it)
    before_at, before, before_edge : CSR of what a process needs, and the dependencies
    after_at, after, after_edge : CSR of what needs it
    convert, sent : (E,) ticks of every dependency: always, and between different units
    far : (U, U) ticks for the way, -1 where units share a router
    delays : (1,) whether any dependency takes time
    """

    mode_at: IntArray
    unit: IntArray
    span: IntArray
    release: IntArray
    before_at: IntArray
    before: IntArray
    before_edge: IntArray
    after_at: IntArray
    after: IntArray
    after_edge: IntArray
    convert: IntArray
    sent: IntArray
    far: IntArray
    delays: IntArray


class State(NamedTuple):
    """A schedule as queues of units, and what follows from them.

    Attributes
    ----------
    mode, unit, span : (n,) chosen
    queue : (U, n + 1) processes of every unit in order; length, load : (U,) their number, and their ticks
    prev, next : (n,) neighbours on the unit, -1 for none
    end : (n,) earliest ends
    tail : (n,) ticks from the start of a process to the end of everything, at least
    order : (n,) topological; place : (n,) its inverse
    waits : (n,) scratch
    """

    mode: IntArray
    unit: IntArray
    span: IntArray
    queue: IntArray
    length: IntArray
    load: IntArray
    prev: IntArray
    next: IntArray
    end: IntArray
    tail: IntArray
    order: IntArray
    place: IntArray
    waits: IntArray


def shop_of(problem: ScheduleProblem, order: IntArray) -> Shop:
    """Return the problem with number ``i`` for process ``order[i]``; modes keep the order that they have at each process."""
    n, m, e, net = problem.count, problem.modes, problem.edges, problem.network
    number = np.empty(n, np.int64)
    number[order] = np.arange(n)
    mode = modes_in(problem, order)
    sets = m.unit_set[mode]
    some = problem.sets.indptr[:-1][sets]
    unit = problem.sets.members[some]
    source, target = number[e.source], number[e.target]
    before_at, before, before_edge = _by_end(source, target, n)
    after_at, after, after_edge = _by_end(target, source, n)
    hops = problem.units.hops
    far = np.where(hops > 0, hops * net.hop_time, -1)
    np.fill_diagonal(far, -1)
    sent = np.where(e.bytes > 0, -(-e.bytes // net.bandwidth) if net.bandwidth else 0, -1)
    delays = bool(
        (e.convert > 0).any() or ((sent >= 0).any() and (far.max(initial=-1) + sent.max(initial=0) > 0))
    )
    count = np.diff(m.first)[order]
    return Shop(
        np.concatenate([[0], np.cumsum(count)]).astype(np.int64), unit, m.span[mode],
        np.maximum(problem.release, problem.earliest)[order],
        before_at, before, before_edge, after_at, after, after_edge,
        e.convert.astype(np.int64), sent.astype(np.int64), far.astype(np.int64), np.array([int(delays)]),
    )  # fmt: skip


def _by_end(one: IntArray, other: IntArray, n: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return the dependencies by their ``other`` end: CSR of the ends ``one``, and the numbers of the dependencies."""
    at, by = by_key(other, n)
    return at, one[by], by


def modes_in(problem: ScheduleProblem, order: IntArray) -> IntArray:
    """Return (M,) the modes, process by process in another order."""
    first = problem.modes.first
    return np.concatenate([np.arange(first[p], first[p + 1]) for p in order.tolist()])


def new_state(shop: Shop) -> State:
    """Return an empty schedule."""
    n, u = len(shop.release), len(shop.far)
    mode, unit, span, prev, after, end, tail, order, place, waits = (np.zeros(n, np.int64) for _ in range(10))
    return State(
        mode, unit, span, np.zeros((u, n + 1), np.int64), np.zeros(u, np.int64), np.zeros(u, np.int64),
        prev, after, end, tail, order, place, waits
    )  # fmt: skip


@embedded
def delay(s: Shop, edge: int, one: int, other: int) -> int:
    """Return the ticks of a dependency between two units."""
    ticks: int = s.convert[edge]
    if s.sent[edge] >= 0 and s.far[one, other] >= 0:
        ticks += s.far[one, other] + s.sent[edge]
    return ticks


@plain
def reevaluate(s: Shop, a: State) -> int:
    """Compute neighbours, order, ends and tails from modes and queues; return the makespan, -1 if queues make a circle."""
    n, delays = len(a.mode), s.delays[0] > 0
    for u in range(len(a.length)):
        last, load = -1, 0
        for k in range(a.length[u]):
            i = a.queue[u, k]
            load += a.span[i]
            a.prev[i] = last
            if last >= 0:
                a.next[last] = i
            last = i
        if last >= 0:
            a.next[last] = -1
        a.load[u] = load
    ready = 0
    for i in range(n):
        a.waits[i] = s.before_at[i + 1] - s.before_at[i] + (a.prev[i] >= 0)
        if a.waits[i] == 0:
            a.order[ready] = i
            ready += 1
    done, makespan = 0, 0
    while done < ready:
        i = a.order[done]
        a.place[i] = done
        done += 1
        start = s.release[i]
        if a.prev[i] >= 0 and a.end[a.prev[i]] > start:
            start = a.end[a.prev[i]]
        for e in range(s.before_at[i], s.before_at[i + 1]):
            j = s.before[e]
            there = a.end[j]
            if delays:
                there += delay(s, s.before_edge[e], a.unit[j], a.unit[i])
            if there > start:
                start = there
        a.end[i] = start + a.span[i]
        if a.end[i] > makespan:
            makespan = a.end[i]
        j = a.next[i]
        if j >= 0:
            a.waits[j] -= 1
            if a.waits[j] == 0:
                a.order[ready] = j
                ready += 1
        for e in range(s.after_at[i], s.after_at[i + 1]):
            j = s.after[e]
            a.waits[j] -= 1
            if a.waits[j] == 0:
                a.order[ready] = j
                ready += 1
    if ready < n:
        return -1
    for k in range(n - 1, -1, -1):
        i = a.order[k]
        rest = a.tail[a.next[i]] if a.next[i] >= 0 else 0
        for e in range(s.after_at[i], s.after_at[i + 1]):
            j = s.after[e]
            further = a.tail[j]
            if delays:
                further += delay(s, s.after_edge[e], a.unit[i], a.unit[j])
            if further > rest:
                rest = further
        a.tail[i] = rest + a.span[i]
    return makespan


@plain
def _power(load: float, squares: int) -> float:
    """Return ``load`` squared this many times."""
    for _ in range(squares):
        load *= load
    return load


@plain
def _descend(s: Shop, a: State, rng: AnyArray, squares: int) -> None:
    """Change modes one after the other until the sum of powers of loads is locally least."""
    changed = True
    while changed:
        changed = False
        shuffle(rng, a.order)
        for i in a.order:
            best, least = a.mode[i], np.inf
            a.load[s.unit[best]] -= s.span[best]
            for m in range(s.mode_at[i], s.mode_at[i + 1]):
                load = float(a.load[s.unit[m]])
                worth = _power(load + s.span[m], squares) - _power(load, squares)
                if worth < least or (worth == least and m == a.mode[i]):
                    best, least = m, worth
            changed = changed or best != a.mode[i]
            a.mode[i] = best
            a.load[s.unit[best]] += s.span[best]


@plain
def balance(s: Shop, a: State, rng: AnyArray, squares: int, kicks: int, size: int) -> None:
    """Choose modes for even loads of units: for a small sum of their powers, with exponent 2, 4, 8 for ``squares`` 1, 2, 3.

    Descend from random modes; then change ``size`` of them at random and descend again, ``kicks`` times.
    """
    n, best = len(a.mode), np.inf
    for i in range(n):
        a.mode[i], a.order[i] = s.mode_at[i] + below(rng, s.mode_at[i + 1] - s.mode_at[i]), i
    for kick in range(kicks + 1):
        if kick > 0:
            for _ in range(size):
                i = below(rng, n)
                a.mode[i] = s.mode_at[i] + below(rng, s.mode_at[i + 1] - s.mode_at[i])
        for u in range(len(a.load)):
            a.load[u] = 0
        for i in range(n):
            a.load[s.unit[a.mode[i]]] += s.span[a.mode[i]]
        _descend(s, a, rng, squares)
        value = 0.0
        for u in range(len(a.load)):
            value += _power(float(a.load[u]), squares)
        better = value <= best
        best = min(best, value)
        for i in range(n):
            if better:
                a.waits[i] = a.mode[i]
            else:
                a.mode[i] = a.waits[i]
    for u in range(len(a.load)):
        a.load[u] = 0
    for i in range(n):
        a.load[s.unit[a.mode[i]]] += s.span[a.mode[i]]


@plain
def construct(s: Shop, a: State, rng: AnyArray, noise: float, chosen: bool) -> int:
    """Build a schedule: what much must follow first, on the unit where it ends first; return the makespan.

    Parameters
    ----------
    noise : how far random factors of both criteria reach
    chosen : whether the modes are those in ``a``
    """
    n, delays = len(a.mode), s.delays[0] > 0
    for i in range(n - 1, -1, -1):
        rest = 0
        for e in range(s.after_at[i], s.after_at[i + 1]):
            rest = max(rest, a.tail[s.after[e]])
        least = s.span[s.mode_at[i]]
        for m in range(s.mode_at[i], s.mode_at[i + 1]):
            least = min(least, s.span[m])
        a.tail[i] = rest + least
    ready = 0
    for i in range(n):
        a.waits[i] = s.before_at[i + 1] - s.before_at[i]
        if a.waits[i] == 0:
            a.order[ready] = i
            ready += 1
    for u in range(len(a.length)):
        a.length[u] = 0
    while ready > 0:
        take, worth = 0, -1.0
        for r in range(ready):
            w = a.tail[a.order[r]] * (1.0 + noise * uniform(rng))
            if w > worth:
                take, worth = r, w
        i = a.order[take]
        ready -= 1
        a.order[take] = a.order[ready]
        best = np.inf
        first, last = s.mode_at[i], s.mode_at[i + 1] - 1
        if chosen:
            first, last = a.mode[i], a.mode[i]
        for m in range(first, last + 1):
            u = s.unit[m]
            start = s.release[i]
            if a.length[u] > 0:
                start = max(start, a.end[a.queue[u, a.length[u] - 1]])
            for e in range(s.before_at[i], s.before_at[i + 1]):
                j = s.before[e]
                there = a.end[j]
                if delays:
                    there += delay(s, s.before_edge[e], a.unit[j], u)
                start = max(start, there)
            w = start + s.span[m] * (1.0 + noise * uniform(rng))
            if w < best:
                best = w
                a.mode[i], a.unit[i], a.span[i], a.end[i] = m, u, s.span[m], start + s.span[m]
        u = a.unit[i]
        a.queue[u, a.length[u]] = i
        a.length[u] += 1
        for e in range(s.after_at[i], s.after_at[i + 1]):
            j = s.after[e]
            a.waits[j] -= 1
            if a.waits[j] == 0:
                a.order[ready] = j
                ready += 1
    return int(reevaluate(s, a))
