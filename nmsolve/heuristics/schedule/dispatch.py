"""What is ready is given units that are free, compiled: M4.5 as published, each choice by criteria in order."""

from __future__ import annotations

from nmsolve.heuristics.schedule.decode import DecoderArrays, Ground, begin_decode, end_decode, put, seat
from nmsolve.model.compiled import embedded, plain
from nmsolve.model.types import FloatArray, IntArray

#: Places of the criteria: idle ticks, utilisation, what must be loaded, what is exchanged.
IDLE_TICKS, UTILISATION, REUSE, EXCHANGE = range(4)


@plain
def dispatch(
    g: Ground,
    w: DecoderArrays,
    criteria: IntArray,
    heap: IntArray,
    waits: IntArray,
    busy: IntArray,
    mark: FloatArray,
) -> None:
    """Write a schedule: again and again the process that finds free units first is started.

    Of its unit sets that are free by then, that is taken whose units add least idle time, have worked most, hold what the
    process needs, exchange least, in the order of ``criteria``; then what ends first.

    Parameters
    ----------
    criteria : places of criteria, the first decides first
    heap : (P, 2), waits : (P,), busy : (U,), mark : (2, criteria + 1) are overwritten; ``waits`` is at first how many sources a
        process waits for
    """
    begin_decode(g, w)
    busy[:] = 0
    size = 0
    for p in range(len(w.start)):
        if waits[p] == 0:
            size = _push(heap, size, _soonest(g, w, p), p)
    while size > 0:
        p = heap[0, 1]
        time = _soonest(g, w, p)
        size = _pop(heap, size)
        if size > 0 and (time > heap[0, 0] or (time == heap[0, 0] and p > heap[0, 1])):
            size = _push(heap, size, time, p)
            continue
        m = _choice(g, w, p, time, criteria, busy, mark)
        start, loaded, moved, why = seat(g, w, p, m, 0)
        put(g, w, p, m, start, loaded, moved)
        w.why[p] = why
        k = g.unit_set[m]
        if k >= 0:
            length = g.span[m] + (g.load[g.item[m]] if loaded == 1 else 0)
            for j in range(g.members_at[k], g.members_at[k + 1]):
                busy[g.members[j]] += length
        for j in range(g.out_at[p], g.out_at[p + 1]):
            q = g.target[g.out[j]]
            waits[q] -= 1
            if waits[q] == 0:
                size = _push(heap, size, _soonest(g, w, q), q)
    end_decode(g, w)


@plain
def _soonest(g: Ground, w: DecoderArrays, p: int) -> int:
    """Return when what a process needs has been made and the units of one of its modes are free."""
    ready, first = g.release[p], -1
    for j in range(g.into_at[p], g.into_at[p + 1]):
        q = g.source[g.into[j]]
        ready = max(ready, w.start[q] + g.span[w.mode[q]])
    for m in range(g.first[p], g.first[p + 1]):
        time = _free(g, w, m, ready)
        if first < 0 or time < first:
            first = time
    return int(first)


@embedded
def _free(g: Ground, w: DecoderArrays, m: int, ready: int) -> int:
    """Return from when on, not before ``ready``, the units of a mode are free."""
    k = g.unit_set[m]
    if k >= 0:
        for j in range(g.members_at[k], g.members_at[k + 1]):
            ready = max(ready, w.free[g.members[j]])
    return int(ready)


@plain
def _choice(
    g: Ground, w: DecoderArrays, p: int, time: int, criteria: IntArray, busy: IntArray, mark: FloatArray
) -> int:
    """Return the best of the modes whose units are free by ``time``."""
    best = -1
    for m in range(g.first[p], g.first[p + 1]):
        if _free(g, w, m, time) > time:
            continue
        start, loaded, moved, _ = seat(g, w, p, m, 0)
        k, d = g.unit_set[m], g.item[m]
        end, begin, fetched = start + g.span[m], start, 0
        if loaded == 1:
            begin -= g.load[d]
            fetched = g.whole[d]
        idle, worked, size = 0, 0, 0
        if k >= 0:
            for j in range(g.members_at[k], g.members_at[k + 1]):
                u = g.members[j]
                gap = begin - w.free[u]
                if w.tail[u] >= 0 and gap < g.break_even[u]:
                    idle += gap
                worked += busy[u] + end - begin
                size += 1
        for c in range(len(criteria)):
            if criteria[c] == IDLE_TICKS:
                mark[1, c] = idle
            elif criteria[c] == UTILISATION:
                mark[1, c] = -worked / (size * end) if size > 0 else 0.0
            elif criteria[c] == REUSE:
                mark[1, c] = fetched
            else:
                mark[1, c] = moved
        mark[1, len(criteria)] = end
        if best < 0 or _less(mark):
            best = m
            for c in range(mark.shape[1]):
                mark[0, c] = mark[1, c]
    return int(best)


@embedded
def _less(mark: FloatArray) -> bool:
    """Return whether the second row comes before the first."""
    for c in range(mark.shape[1]):
        if mark[1, c] != mark[0, c]:
            return bool(mark[1, c] < mark[0, c])
    return False


@plain
def _push(heap: IntArray, size: int, time: int, p: int) -> int:
    """Add a process to the heap by time, then number; return its size."""
    i = size
    while i > 0:
        up = (i - 1) // 2
        if heap[up, 0] < time or (heap[up, 0] == time and heap[up, 1] < p):
            break
        heap[i, 0], heap[i, 1] = heap[up, 0], heap[up, 1]
        i = up
    heap[i, 0], heap[i, 1] = time, p
    return size + 1


@plain
def _pop(heap: IntArray, size: int) -> int:
    """Remove the first of the heap; return its size."""
    size -= 1
    time, p = heap[size, 0], heap[size, 1]
    i = 0
    while 2 * i + 1 < size:
        down = 2 * i + 1
        if down + 1 < size and (
            heap[down + 1, 0] < heap[down, 0]
            or (heap[down + 1, 0] == heap[down, 0] and heap[down + 1, 1] < heap[down, 1])
        ):
            down += 1
        if time < heap[down, 0] or (time == heap[down, 0] and p < heap[down, 1]):
            break
        heap[i, 0], heap[i, 1] = heap[down, 0], heap[down, 1]
        i = down
    heap[i, 0], heap[i, 1] = time, p
    return size
