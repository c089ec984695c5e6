"""Tabu search over queues of units, compiled: a critical process is taken out and put where the makespan becomes least.

Without the process its heads and tails are exact; so is the makespan after putting it in: the longest path through it, or the
longest one of all others. Mastrolilli and Gambardella (2000) show where on a unit the best places are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.rng import below
from nmsolve.heuristics.schedule.tabu_shop import Shop, State, delay, reevaluate
from nmsolve.model.compiled import plain
from nmsolve.model.types import AnyArray, IntArray

#: Processes of a critical path that are looked at in a move, times all processes: the others wait for another move.
LOOKS = 4_000_000
#: Numbers in ``TabuArrays.counts``: moves made, moves since the last gain, makespan, the least one of this search.
MOVES, IDLE, NOW, BEST = range(4)
#: Numbers in ``TabuArrays.pick``: process, mode and place in the queue of the best move; what it costs, and by ties; how many
#: there are like it.
WHO, HOW, WHERE, COST, TIE, LIKE = range(6)
#: Of equally good moves take that with the shortest path through the process, with the least sum of squared loads of units, or
#: with the shortest span. Where loads decide the makespan, paths lead nowhere.
BY_PATH, BY_LOAD, BY_SPAN = RULES = range(3)


class TabuArrays(NamedTuple):
    """Scratch of one search.

    Attributes
    ----------
    end, tail : (n,) as in a state, without the process in question
    path : (n,) a critical path
    line : (n + 1,) a queue without the process in question
    until : (M,) the move up to which a process may not be put there again
    pick, other : (6,) the best move, and the best of those that are tabu
    counts : (4,)
    rule : (1,) which of equally good moves is taken: BY_PATH, BY_LOAD, BY_SPAN
    """

    end: IntArray
    tail: IntArray
    path: IntArray
    line: IntArray
    until: IntArray
    pick: IntArray
    other: IntArray
    counts: IntArray
    rule: IntArray


def new_work(shop: Shop) -> TabuArrays:
    """Return scratch."""
    n = len(shop.release)
    sizes = (n, n, n, n + 1, len(shop.unit), 6, 6, 4, 1)
    end, tail, path, line, until, pick, other, counts, rule = (np.zeros(k, np.int64) for k in sizes)
    return TabuArrays(end, tail, path, line, until, pick, other, counts, rule)


@plain
def copy(a: State, b: State) -> None:
    """Make the queues of ``b`` those of ``a``."""
    for i in range(len(a.mode)):
        b.mode[i], b.unit[i], b.span[i] = a.mode[i], a.unit[i], a.span[i]
    for u in range(len(a.length)):
        b.length[u] = a.length[u]
        for k in range(a.length[u]):
            b.queue[u, k] = a.queue[u, k]


@plain
def _critical_path(s: Shop, a: State, w: TabuArrays, rng: AnyArray) -> int:
    """Write a random critical path to ``w.path``; return its length."""
    makespan, delays = w.counts[NOW], s.delays[0] > 0
    now, seen = -1, 0
    for i in range(len(a.mode)):
        if a.tail[i] == makespan - (a.end[i] - a.span[i]) and a.end[i] - a.span[i] == s.release[i]:
            seen += 1
            if below(rng, seen) == 0:
                now = i
    length = 0
    while now >= 0:
        w.path[length] = now
        length += 1
        rest, then, seen = a.tail[now] - a.span[now], -1, 0
        j = a.next[now]
        if j >= 0 and a.tail[j] == rest:
            then, seen = j, 1
        for e in range(s.after_at[now], s.after_at[now + 1]):
            j = s.after[e]
            further = a.tail[j]
            if delays:
                further += delay(s, s.after_edge[e], a.unit[now], a.unit[j])
            if further == rest and j != a.next[now]:
                seen += 1
                if below(rng, seen) == 0:
                    then = j
        now = then if rest > 0 else -1
    return length


@plain
def _without(s: Shop, a: State, w: TabuArrays, v: int) -> int:
    """Compute ends and tails as if ``v`` took no time and no unit; return the makespan."""
    n, delays, at = len(a.mode), s.delays[0] > 0, a.place[v]
    p, q = a.prev[v], a.next[v]
    if p >= 0:
        a.next[p] = q
    if q >= 0:
        a.prev[q] = p
    makespan = 0
    for k in range(at):
        i = a.order[k]
        w.end[i] = a.end[i]
        if a.end[i] > makespan:
            makespan = a.end[i]
    start = s.release[v]
    for e in range(s.before_at[v], s.before_at[v + 1]):
        if a.end[s.before[e]] > start:
            start = a.end[s.before[e]]
    w.end[v] = start
    for k in range(at + 1, n):
        i = a.order[k]
        start = s.release[i]
        j = a.prev[i]
        if j >= 0 and w.end[j] > start:
            start = w.end[j]
        for e in range(s.before_at[i], s.before_at[i + 1]):
            j = s.before[e]
            there = w.end[j]
            if delays and j != v:
                there += delay(s, s.before_edge[e], a.unit[j], a.unit[i])
            if there > start:
                start = there
        start += a.span[i]
        w.end[i] = start
        if start > makespan:
            makespan = start
        w.tail[i] = a.tail[i]
    rest = 0
    for e in range(s.after_at[v], s.after_at[v + 1]):
        if a.tail[s.after[e]] > rest:
            rest = a.tail[s.after[e]]
    w.tail[v] = rest
    for k in range(at - 1, -1, -1):
        i = a.order[k]
        rest = w.tail[a.next[i]] if a.next[i] >= 0 else 0
        for e in range(s.after_at[i], s.after_at[i + 1]):
            j = s.after[e]
            further = w.tail[j]
            if delays and j != v:
                further += delay(s, s.after_edge[e], a.unit[i], a.unit[j])
            if further > rest:
                rest = further
        w.tail[i] = rest + a.span[i]
    if p >= 0:
        a.next[p] = v
    if q >= 0:
        a.prev[q] = v
    return makespan


@plain
def _note(pick: IntArray, rng: AnyArray, v: int, m: int, at: int, cost: int, tie: int) -> None:
    """Keep the better of two moves; of equal ones any."""
    if cost > pick[COST] or (cost == pick[COST] and tie > pick[TIE]):
        return
    if cost == pick[COST] and tie == pick[TIE]:
        pick[LIKE] += 1
        if below(rng, pick[LIKE]) > 0:
            return
    else:
        pick[LIKE] = 1
    pick[WHO], pick[HOW], pick[WHERE], pick[COST], pick[TIE] = v, m, at, cost, tie


@plain
def _places(
    s: Shop, a: State, w: TabuArrays, rng: AnyArray, v: int, first: int, last: int, rest: int
) -> None:
    """Try all good places for ``v`` in modes ``first..last``; the makespan of all others is ``rest``."""
    delays = s.delays[0] > 0
    for m in range(first, last + 1):
        u, d = s.unit[m], s.span[m]
        start, after = s.release[v], 0
        for e in range(s.before_at[v], s.before_at[v + 1]):
            j = s.before[e]
            there = w.end[j]
            if delays:
                there += delay(s, s.before_edge[e], a.unit[j], u)
            if there > start:
                start = there
        for e in range(s.after_at[v], s.after_at[v + 1]):
            j = s.after[e]
            further = w.tail[j]
            if delays:
                further += delay(s, s.after_edge[e], u, a.unit[j])
            if further > after:
                after = further
        own, length, old = u == a.unit[v], 0, -1
        for k in range(a.length[u]):
            i = a.queue[u, k]
            if own and i == v:
                old = k
            else:
                w.line[length] = i
                length += 1
        # those that end after v could start: from ``low`` on; those that must not wait for v: up to ``high``
        low, top = 0, length
        while low < top:
            k = (low + top) >> 1
            if w.end[w.line[k]] > start:
                top = k
            else:
                low = k + 1
        high, top = 0, length
        while high < top:
            k = (high + top) >> 1
            if w.tail[w.line[k]] > after:
                high = k + 1
            else:
                top = k
        if m != a.mode[v]:
            old = -1
        tie = d - a.span[v]
        if w.rule[0] == BY_LOAD:
            was = a.load[a.unit[v]] - a.span[v]
            there = was if own else a.load[u]
            tie = d * (2 * there + d) - a.span[v] * (2 * was + a.span[v])
        pick = w.pick
        free = w.until[m] <= w.counts[MOVES]
        if high <= low:
            through = start + d + after
            at = high + below(rng, low - high + 1)
            if at == old:
                at = low if at < low else high
            if at != old:
                cost = max(rest, through)
                if not free and cost >= w.counts[BEST]:
                    pick = w.other
                _note(pick, rng, v, m, at, cost, through if w.rule[0] == BY_PATH else tie)
            continue
        for at in range(low, high + 1):
            if at == old:
                continue
            begin = start if at == 0 else max(start, w.end[w.line[at - 1]])
            through = begin + d + (after if at == length else max(after, w.tail[w.line[at]]))
            cost = max(rest, through)
            pick = w.pick if free or cost < w.counts[BEST] else w.other
            _note(pick, rng, v, m, at, cost, through if w.rule[0] == BY_PATH else tie)


@plain
def _move(s: Shop, a: State, v: int, m: int, at: int) -> int:
    """Put ``v`` in mode ``m`` at a place of the queue without it; return where it was."""
    u, old = a.unit[v], 0
    while a.queue[u, old] != v:
        old += 1
    for k in range(old, a.length[u] - 1):
        a.queue[u, k] = a.queue[u, k + 1]
    a.length[u] -= 1
    u = s.unit[m]
    for k in range(a.length[u], at, -1):
        a.queue[u, k] = a.queue[u, k - 1]
    a.queue[u, at] = v
    a.length[u] += 1
    a.mode[v], a.unit[v], a.span[v] = m, u, s.span[m]
    return old


@plain
def tabu(s: Shop, a: State, best: State, w: TabuArrays, rng: AnyArray, moves: int, patience: int) -> bool:
    """Make ``moves`` moves from a evaluated state; ``best`` takes the best one. False after ``patience`` moves without gain."""
    for _ in range(moves):
        if w.counts[IDLE] >= patience:
            return False
        w.counts[MOVES] += 1
        w.counts[IDLE] += 1
        length = _critical_path(s, a, w, rng)
        some = max(8, LOOKS // len(a.mode))
        for k in range(6):
            w.pick[k], w.other[k] = -1, -1
        w.pick[COST], w.other[COST] = 2**60, 2**60
        for k in range(length):
            v = w.path[k]
            if length > some and below(rng, length) >= some:
                continue
            alone = (k == 0 or a.prev[v] != w.path[k - 1]) and (k + 1 == length or a.next[v] != w.path[k + 1])
            if alone and s.mode_at[v + 1] - s.mode_at[v] == 1:
                continue
            rest = _without(s, a, w, v)
            if rest <= w.pick[COST]:
                _places(s, a, w, rng, v, s.mode_at[v], s.mode_at[v + 1] - 1, rest)
        pick = w.pick if w.pick[WHO] >= 0 else w.other
        v, m, at = pick[WHO], pick[HOW], pick[WHERE]
        if v < 0:
            return False
        was = a.mode[v]
        w.until[was] = w.counts[MOVES] + length + s.mode_at[v + 1] - s.mode_at[v] + below(rng, 5)
        old = _move(s, a, v, m, at)
        makespan = reevaluate(s, a)
        if makespan < 0:
            _move(s, a, v, was, old)
            makespan = reevaluate(s, a)
            w.until[m] = w.until[was]
        w.counts[NOW] = makespan
        if makespan < w.counts[BEST]:
            w.counts[BEST] = makespan
            w.counts[IDLE] = 0
            copy(a, best)
    return True


@plain
def shake(s: Shop, a: State, w: TabuArrays, rng: AnyArray, moves: int) -> int:
    """Put random processes on random good places, ``moves`` times; return the makespan."""
    for _ in range(moves):
        v = below(rng, len(a.mode))
        _without(s, a, w, v)
        m = s.mode_at[v] + below(rng, s.mode_at[v + 1] - s.mode_at[v])
        for k in range(6):
            w.pick[k], w.other[k] = -1, -1
        w.pick[COST], w.other[COST] = 2**60, 2**60
        _places(s, a, w, rng, v, m, m, 0)
        pick = w.pick if w.pick[WHO] >= 0 else w.other
        if pick[WHO] < 0:
            continue
        was = a.mode[v]
        old = _move(s, a, v, pick[HOW], pick[WHERE])
        if reevaluate(s, a) < 0:
            _move(s, a, v, was, old)
            reevaluate(s, a)
    return int(reevaluate(s, a))
