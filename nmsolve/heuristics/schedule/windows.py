"""Decoding of one window of an order, with the rest of the order fixed. Compiled.

The schedule before the window is fixed. For the time after it there are lower bounds: the longest paths to the end from each unit
and each process. So a change in a window of a long order costs no more than decoding the window.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.schedule.decode import (
    BUSY,
    ENERGY,
    IDLE,
    LATE,
    MAKESPAN,
    MOVED,
    OVER,
    TARDINESS,
    WASTE,
    WEIGHTED,
    DecoderArrays,
    Ground,
    State,
    begin_decode,
    decode_part,
    delay_of,
    end_decode,
    gap_energy,
)
from nmsolve.model.compiled import plain
from nmsolve.model.types import FloatArray, IntArray

#: What counts as the end of the schedule: the average of the ways to the end, the longer the more, by this part of the longest.
BLUR = 0.003
#: What a tick beyond the end so far costs besides.
ABOVE = 10.0


class Window(NamedTuple):
    """State before a window of an order, and longest paths after it.

    ``free``, ``tail``, ``used`` (U,), ``user`` (D,), ``peak`` (lanes,), ``value``: of :class:`DecoderArrays` before it; ``ahead``
    (U,) ticks from when a unit is free to the end, ``next`` (U,) when it begins to work after the window, -1 if it does not;
    ``length`` (P,) ticks from the start of a process to the end; ``crest`` (1,) the end.
    """

    free: IntArray
    tail: IntArray
    used: IntArray
    user: IntArray
    peak: IntArray
    value: IntArray
    ahead: IntArray
    next: IntArray
    length: IntArray
    crest: IntArray


def window_of(g: Ground) -> Window:
    """Return the arrays of a window."""
    units, items, lanes, count = len(g.memory), len(g.bytes), int(g.lane[-1]), len(g.release)
    sizes = (units, units, units, items, lanes, OVER + 1, units, units, count, 1)
    return Window(*(np.zeros(size, np.int64) for size in sizes))


@plain
def open_window(
    g: Ground,
    s: State,
    w: DecoderArrays,
    v: Window,
    low: int,
    high: int,
    price: FloatArray,
    taste: FloatArray,
) -> None:
    """Decode a whole state; write the window of its places ``low`` to ``high - 1``."""
    begin_decode(g, w)
    decode_part(g, s, w, 0, low, price, taste)
    _keep(w.free, v.free)
    _keep(w.tail, v.tail)
    _keep(w.used, v.used)
    _keep(w.user, v.user)
    _keep(w.peak, v.peak)
    _keep(w.value, v.value)
    decode_part(g, s, w, low, len(s.order), price, taste)
    end_decode(g, w)
    _keep(v.user, w.user)
    _keep(v.peak, w.peak)
    v.crest[0] = w.value[MAKESPAN]
    v.ahead[:] = 0
    v.next[:] = -1
    for i in range(len(s.order) - 1, -1, -1):
        _measure(g, s, w, v, s.order[i], high)


@plain
def _keep(a: IntArray, b: IntArray) -> None:
    """Copy an array."""
    for i in range(len(a)):
        b[i] = a[i]


@plain
def _measure(g: Ground, s: State, w: DecoderArrays, v: Window, p: int, high: int) -> None:
    """Write the length of the way from a process to the end; it is the next one of its units so far."""
    m = w.mode[p]
    k, d, longest = g.unit_set[m], g.item[m], 0
    for j in range(g.out_at[p], g.out_at[p + 1]):
        e = g.out[j]
        delay, _ = delay_of(g, e, m, w.mode[g.target[e]])
        longest = max(longest, delay + v.length[g.target[e]])
    load = g.load[d] if d >= 0 and w.loaded[p] == 1 else 0
    if k >= 0:
        at = g.members_at[k]
        for j in range(at, g.members_at[k + 1]):
            q = w.behind[p, j - at]
            if q >= 0:
                item = g.item[w.mode[q]]
                wait = g.load[item] if item >= 0 and w.loaded[q] == 1 else 0
                longest = max(longest, wait + v.length[q])
    v.length[p] = g.span[m] + longest
    if k >= 0 and s.rank[p] >= high:
        for j in range(g.members_at[k], g.members_at[k + 1]):
            v.ahead[g.members[j]] = load + v.length[p]
            v.next[g.members[j]] = w.start[p] - load


@plain
def decode_window(
    g: Ground,
    s: State,
    w: DecoderArrays,
    v: Window,
    low: int,
    high: int,
    price: FloatArray,
    taste: FloatArray,
) -> None:
    """Decode the window again."""
    for i in range(low, high):
        p = s.order[i]
        d = g.item[w.mode[p]]
        if d >= 0:
            q = v.user[d]
            if q >= 0 and w.loaded[p] == 0:
                k = g.unit_set[w.mode[p]]
                at = g.members_at[k]
                for j in range(at, g.members_at[k + 1]):
                    u = g.members[j]
                    if g.tight[u] == 1:
                        for x in range(w.place[q, j - at] + 1, g.lane[u] + v.used[u]):
                            w.peak[x] = v.peak[x]
            w.user[d] = q
    _keep(v.free, w.free)
    _keep(v.tail, w.tail)
    _keep(v.used, w.used)
    _keep(v.value, w.value)
    decode_part(g, s, w, low, high, price, taste)


@plain
def cost_between(
    g: Ground, s: State, w: DecoderArrays, v: Window, low: int, high: int, worth: float
) -> float:
    """Return the cost of the window decoded last, with its effect on the end of the schedule."""
    crest, blur = float(v.crest[0]), max(1.0, BLUR * v.crest[0])
    total, most, energy, idle, moved = 0.0, 0, w.value[ENERGY], w.value[IDLE], w.value[MOVED]
    for u in range(len(w.free)):
        end = w.free[u] + v.ahead[u]
        most = max(most, end)
        total += np.exp((end - crest) / blur)
        if v.next[u] >= 0 and w.tail[u] >= 0:
            gap = max(0, v.next[u] - w.free[u])
            energy += gap_energy(g, u, gap)
            if gap < g.break_even[u]:
                idle += gap
    for i in range(low, high):
        p = s.order[i]
        m, d, longest = w.mode[p], g.item[w.mode[p]], 0
        energy += g.energy[m]
        if d >= 0 and w.loaded[p] == 1:
            energy += g.load_energy[d]
            moved += g.whole[d]
            energy -= g.hop_energy * g.whole[d]
        for j in range(g.out_at[p], g.out_at[p + 1]):
            e = g.out[j]
            q = g.target[e]
            if s.rank[q] >= high:
                delay, far = delay_of(g, e, m, w.mode[q])
                moved += far
                longest = max(longest, delay + v.length[q])
        if longest > 0:
            end = w.start[p] + g.span[m] + longest
            most = max(most, end)
            total += np.exp((end - crest) / blur)
    energy += g.hop_energy * moved
    span = (
        crest
        + blur * np.log(total)
        + ABOVE * max(0.0, most - crest)
        + 0.05 * w.value[BUSY] / max(1, len(w.free))
    )
    cost = 0.0
    if g.goal == MAKESPAN:
        cost = span
    elif g.goal == ENERGY:
        cost = float(energy)
    elif g.goal == TARDINESS:
        cost = float(w.value[TARDINESS])
    elif g.goal == MOVED:
        cost = float(moved)
    elif g.goal == WEIGHTED:
        cost = (
            g.factor[MAKESPAN] * span + g.factor[ENERGY] * energy + g.factor[TARDINESS] * w.value[TARDINESS]
        )
        cost += g.factor[IDLE] * idle + g.factor[MOVED] * moved
        cost += g.factor[WASTE] * 1e6 * idle / (1 + idle + w.value[BUSY])
    else:
        cost = float(idle)
    excess = 0.0
    if w.value[LATE] > 0:
        excess += 0.01 + w.value[LATE] / (1.0 + crest)
    if most > g.limit[MAKESPAN]:
        excess += 0.01 + (most - g.limit[MAKESPAN]) / (1.0 + g.limit[MAKESPAN])
    return cost + 4.0 * worth * excess
