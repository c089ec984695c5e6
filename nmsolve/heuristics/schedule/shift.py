"""Starts shifted right, then left, with orders and modes fixed, so that units idle less and are switched less often. Compiled.

The longer a gap between two activities, the less it costs per tick; a closed gap costs nothing. So the best start of a process is
at an end of its time window, next to a neighbour, or where a gap becomes long enough to switch the unit off.
"""

from __future__ import annotations

from nmsolve.heuristics.schedule.decode import (
    ENERGY,
    IDLE,
    MAKESPAN,
    WASTE,
    WEIGHTED,
    DecoderArrays,
    Ground,
    delay_of,
    gap_energy,
    sum_up,
)
from nmsolve.model.compiled import embedded, plain
from nmsolve.model.schedule.problem import NEVER
from nmsolve.model.types import IntArray


@plain
def shift_starts(g: Ground, order: IntArray, w: DecoderArrays, rounds: int) -> None:
    """Shift the processes of the schedule in ``w`` right, then left, as long as that lowers the cost of gaps: idle ticks if these
    are the objective, else energy.

    Makespan, lateness, modes, loads and queues stay as they are. ``order`` (P,) is the order that gave the schedule.
    """
    if len(g.capacity) > 0:
        return
    for _ in range(rounds):
        before = w.value[ENERGY] + w.value[IDLE]
        for i in range(len(order) - 1, -1, -1):
            _later(g, w, order[i])
        for i in range(len(order)):
            _earlier(g, w, order[i])
        if w.value[ENERGY] + w.value[IDLE] == before:
            break
    sum_up(g, w)


@embedded
def _begin(g: Ground, w: DecoderArrays, p: int) -> int:
    """Return when the units begin to work for a process."""
    d = g.item[w.mode[p]]
    return int(w.start[p] - g.load[d] if d >= 0 and w.loaded[p] == 1 else w.start[p])


@embedded
def _end(g: Ground, w: DecoderArrays, p: int) -> int:
    """Return when a process ends."""
    return int(w.start[p] + g.span[w.mode[p]])


@embedded
def _later(g: Ground, w: DecoderArrays, p: int) -> None:
    """Move a process later if that pays."""
    m = w.mode[p]
    k = g.unit_set[m]
    if k < 0:
        return
    end = _end(g, w, p)
    last = min(w.value[MAKESPAN], max(end, g.deadline[p]))
    if g.weight[p] > 0:
        last = min(last, max(end, g.due[p]))
    for j in range(g.out_at[p], g.out_at[p + 1]):
        e = g.out[j]
        q = g.target[e]
        delay, _ = delay_of(g, e, m, w.mode[q])
        last = min(last, w.start[q] - delay)
    at = g.members_at[k]
    for j in range(at, g.members_at[k + 1]):
        q = w.behind[p, j - at]
        if q >= 0:
            last = min(last, _begin(g, w, q))
    if last > end:
        _shift(g, w, p, last - end, 1)


@embedded
def _earlier(g: Ground, w: DecoderArrays, p: int) -> None:
    """Move a process earlier if that pays."""
    m = w.mode[p]
    k = g.unit_set[m]
    if k < 0:
        return
    begin = _begin(g, w, p)
    first = g.release[p]
    for j in range(g.into_at[p], g.into_at[p + 1]):
        e = g.into[j]
        q = g.source[e]
        delay, _ = delay_of(g, e, w.mode[q], m)
        first = max(first, _end(g, w, q) + delay)
    first = max(first - (w.start[p] - begin), g.earliest[p])
    at = g.members_at[k]
    for j in range(at, g.members_at[k + 1]):
        q = w.before[p, j - at]
        if q >= 0:
            first = max(first, _end(g, w, q))
    if first < begin:
        _shift(g, w, p, begin - first, -1)


@embedded
def _shift(g: Ground, w: DecoderArrays, p: int, most: int, sign: int) -> None:
    """Move a process by what gains most of: all there is room for, up to each neighbour, until a gap can be dark."""
    k = g.unit_set[w.mode[p]]
    at = g.members_at[k]
    begin, end = _begin(g, w, p), _end(g, w, p)
    was, was_idle = _gaps(g, w, p, begin, end)
    best, gain, gain_idle, most_won, most_else = 0, 0, 0, 0, 0
    for j in range(2 * at, 2 * g.members_at[k + 1] + 1):
        by = most
        if j < 2 * g.members_at[k + 1]:
            u = g.members[j // 2]
            ahead, back = w.behind[p, j // 2 - at], w.before[p, j // 2 - at]
            if sign < 0:
                ahead, back = back, ahead
            by = NEVER
            if j % 2 == 0 and ahead >= 0:
                by = _begin(g, w, ahead) - end if sign > 0 else begin - _end(g, w, ahead)
            elif j % 2 == 1 and back >= 0 and g.break_even[u] < NEVER:
                by = g.break_even[u] - (begin - _end(g, w, back) if sign > 0 else _begin(g, w, back) - end)
        if by <= 0 or by > most:
            continue
        now, now_idle = _gaps(g, w, p, begin + sign * by, end + sign * by)
        won, other = was - now, was_idle - now_idle
        if g.goal == IDLE or g.goal == WASTE:
            won, other = other, won
        elif g.goal == WEIGHTED:
            won = g.factor[ENERGY] * won + (g.factor[IDLE] + g.factor[WASTE]) * other
        if won > most_won or (won == most_won and other > most_else):
            best, gain, gain_idle, most_won, most_else = by, was - now, was_idle - now_idle, won, other
    if best > 0:
        w.start[p] += sign * best
        w.value[ENERGY] -= gain
        w.value[IDLE] -= gain_idle


@embedded
def _gaps(g: Ground, w: DecoderArrays, p: int, begin: int, end: int) -> tuple[int, int]:
    """Return energy and idle ticks of the gaps around a process, if its units worked for it from ``begin`` to ``end``."""
    k = g.unit_set[w.mode[p]]
    at = g.members_at[k]
    energy, idle = 0, 0
    for j in range(at, g.members_at[k + 1]):
        u = g.members[j]
        if w.before[p, j - at] >= 0:
            gap = begin - _end(g, w, w.before[p, j - at])
            energy += gap_energy(g, u, gap)
            idle += gap if gap < g.break_even[u] else 0
        if w.behind[p, j - at] >= 0:
            gap = _begin(g, w, w.behind[p, j - at]) - end
            energy += gap_energy(g, u, gap)
            idle += gap if gap < g.break_even[u] else 0
    return energy, idle
