"""Schedules from an order of the processes, compiled: each in turn behind what its units already do, as early as it can.

What an order and the modes mean: every unit works in this order; a process finds its item in the memory if that can have stayed
there since the last use, beside all that stays already, and loads it otherwise. Which items stay is decided when they are used
again, so none is held in vain, and the earliest next use comes first. What cannot stay is loaded: every answer is legal, but for
deadlines and ceilings. Resources are taken where there is room, which may be before processes that come earlier in the order.

Every schedule without needless waiting has an order that gives it, or a better one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nmsolve.heuristics.schedule.budgets import excess, spend
from nmsolve.model.compiled import embedded, plain
from nmsolve.model.schedule.problem import NEVER, OBJECTIVES, ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule
from nmsolve.model.types import AnyArray, FloatArray, IntArray, by_key

#: Places of the objectives in arrays of values.
MAKESPAN, TARDINESS, IDLE, ENERGY, WASTE, MOVED, WEIGHTED = range(len(OBJECTIVES))
#: Places behind them: ticks at work, ticks beyond deadlines, millionths of budgets that modes take beyond these.
BUSY, LATE, OVER = range(len(OBJECTIVES), len(OBJECTIVES) + 3)
#: What a choice among modes may cost: per tick of the end, of all its units, of idling, per unit of energy, per byte moved.
END, AREA, IDLING, SPENT, SENT = range(5)
#: A mode that is left to the decoder.
FREE = -1


class Ground(NamedTuple):
    """A problem in flat arrays, all its own; names as in :mod:`nmsolve.model.schedule.problem`.

    ``into``, ``out`` (by process) hold edges and are CSR, as are ``members`` (by set) and ``users`` (modes, by item); their
    starts end in ``_at``; ``sent`` (E,): ticks that the bytes take beside the hops; ``whole`` (D,): bytes of an item on all units
    together; ``tight`` (U,): whether a unit can hold too much; ``lane`` (U + 1,): where its activities are in arrays of all;
    ``saved`` (U,): idle less off; ``use`` (M, B), ``budget`` (B,): of nonrenewable resources;
    ``limit``: ceilings, :data:`NEVER` without; ``factor`` (6,): of the weighted sum.
    """

    first: IntArray
    process: IntArray
    span: IntArray
    unit_set: IntArray
    demand: IntArray
    energy: IntArray
    item: IntArray
    working: IntArray
    members_at: IntArray
    members: IntArray
    hops: IntArray
    bytes: IntArray
    load: IntArray
    load_energy: IntArray
    whole: IntArray
    users_at: IntArray
    users: IntArray
    into_at: IntArray
    into: IntArray
    out_at: IntArray
    out: IntArray
    source: IntArray
    target: IntArray
    amount: IntArray
    convert: IntArray
    sent: IntArray
    release: IntArray
    earliest: IntArray
    deadline: IntArray
    due: IntArray
    weight: IntArray
    memory: IntArray
    tight: IntArray
    lane: IntArray
    saved: IntArray
    off: IntArray
    switch: IntArray
    break_even: IntArray
    capacity: IntArray
    use: IntArray
    budget: IntArray
    limit: IntArray
    factor: IntArray
    hop_time: int
    hop_energy: int
    goal: int


class State(NamedTuple):
    """What is searched: ``order`` (P,) so that sources come before targets, ``rank`` (P,) its inverse, ``mode`` (P,) or
    :data:`FREE`, ``fresh`` (P,) 1 if the item is loaded in any case."""

    order: IntArray
    rank: IntArray
    mode: IntArray
    fresh: IntArray


class DecoderArrays(NamedTuple):
    """What :func:`decode` writes: ``mode``, ``start``, ``loaded`` (P,); ``why`` (P,) the process that it waited for last, -1 for
    none; ``before``, ``behind``, ``place`` (P, G) by units of its set: the processes before and behind it there, -1 for none, and
    its place in the lane; ``free``, ``tail``, ``used`` (U,) end, last process and number of the activities so far; ``peak``
    (lanes,) bytes; ``user`` (D,) last user; ``time``, ``taken`` steps of what resources have taken, ``steps`` (1,) how many;
    ``value`` what comes out: all objectives, :data:`BUSY`, :data:`LATE`, :data:`OVER`; ``next`` (U,) for passes over a schedule;
    ``spent`` (B,) of nonrenewable resources."""

    mode: IntArray
    start: IntArray
    loaded: IntArray
    why: IntArray
    before: IntArray
    behind: IntArray
    place: IntArray
    free: IntArray
    tail: IntArray
    used: IntArray
    peak: IntArray
    user: IntArray
    time: IntArray
    taken: IntArray
    steps: IntArray
    value: IntArray
    next: IntArray
    spent: IntArray


def ground_of(problem: ScheduleProblem) -> Ground:
    """Return the arrays of a problem."""
    u, s, m, d, e, n = (
        problem.units, problem.sets, problem.modes, problem.items, problem.edges, problem.network,
    )  # fmt: skip
    size = np.diff(s.indptr)
    uses = np.zeros((problem.count, u.count), bool)
    holds, most = np.zeros(u.count, np.int64), np.zeros(u.count, np.int64)
    for k in range(s.count):
        members = s.of(k)
        uses[np.ix_(m.process[m.unit_set == k], members)] = True
        holds[members] += int(d.bytes[d.unit_set == k].sum())
        most[members] = np.maximum(most[members], m.working[m.unit_set == k].max(initial=0))
    held = np.flatnonzero(m.item >= 0)
    users_at, by = by_key(m.item[held], d.count)
    users = held[by]
    lane = np.concatenate([[0], np.cumsum(uses.sum(axis=0))])
    limit = np.full(len(OBJECTIVES), NEVER, np.int64)
    for name, ceiling in problem.ceilings:
        k = list(OBJECTIVES).index(name)
        limit[k] = min(int(limit[k]), int(min(ceiling, float(NEVER))))
    factor = np.zeros(len(OBJECTIVES) - 1, np.int64)
    for name, weight in problem.weights:
        factor[list(OBJECTIVES).index(name)] = weight
    arrays = (
        m.first, m.process, m.span, m.unit_set, m.demand, m.energy, m.item, m.working, s.indptr, s.members, s.hops, d.bytes,
        d.load, d.energy, d.bytes * size[d.unit_set], users_at, users, *problem.before, *problem.after, e.source, e.target,
        e.bytes, e.convert, -(-e.bytes // n.bandwidth) if n.bandwidth else np.zeros(e.count), problem.release, problem.earliest,
        problem.deadline, problem.due, problem.weight, u.memory, holds + most > u.memory, lane, u.idle - u.off,
        u.off, u.switch_energy, u.break_even, problem.capacity, problem.budgets.use, problem.budgets.amount, limit, factor,
    )  # fmt: skip
    own: list[Any] = [np.array(array, np.int64, order="C") for array in arrays]
    return Ground._make([*own, n.hop_time, n.hop_energy, list(OBJECTIVES).index(problem.objective)])


def work_of(g: Ground) -> DecoderArrays:
    """Return the arrays that are written."""
    count, units, resources = len(g.release), len(g.memory), len(g.capacity)
    gang = int(np.diff(g.members_at).max(initial=0))

    def zeros(*shape: int) -> IntArray:
        return np.zeros(shape, np.int64)

    steps = 2 * count + 2 if resources else 1
    return DecoderArrays(
        zeros(count), zeros(count), zeros(count), zeros(count), zeros(count, gang), zeros(count, gang), zeros(count, gang),
        zeros(units), zeros(units), zeros(units), zeros(int(g.lane[-1])), zeros(len(g.bytes)), zeros(steps),
        zeros(steps, resources), zeros(1), zeros(OVER + 1), zeros(units), zeros(len(g.budget)),
    )  # fmt: skip


def state_of(order: AnyArray, mode: AnyArray) -> State:
    """Return a state of its own arrays, without needless loads."""
    count = len(order)
    rank = np.zeros(count, np.int64)
    rank[order] = np.arange(count)
    none = np.zeros(count, np.int64)
    return State(np.array(order, np.int64), rank, np.array(mode, np.int64), none)


def state_from(problem: ScheduleProblem, answer: Schedule) -> State:
    """Return the state that gives a legal schedule again, or a better one."""
    state = state_of(np.lexsort((_depth(problem), answer.start)), answer.mode)
    state.fresh[:] = answer.loaded
    return state


def _depth(problem: ScheduleProblem) -> IntArray:
    """(P,) places in an order in which sources come before targets: for processes that take no time."""
    depth = np.zeros(problem.count, np.int64)
    depth[problem.order] = np.arange(problem.count)
    return depth


def schedule_of(w: DecoderArrays) -> Schedule:
    """Return what was written last."""
    return Schedule(w.mode.copy(), w.start.copy(), w.loaded > 0)


#: No preferences among modes: what ends first.
EARLIEST = np.array([1.0, 0.0, 0.0, 0.0, 0.0])


@plain
def decode(g: Ground, s: State, w: DecoderArrays, price: FloatArray, taste: FloatArray) -> None:
    """Write the schedule of a state and all its values.

    Parameters
    ----------
    price : (5,) what modes that are :data:`FREE` cost: per tick of the end, and of :data:`AREA` and so on
    taste : (M,) what a mode costs besides; (0,) for nothing
    """
    begin_decode(g, w)
    decode_part(g, s, w, 0, len(s.order), price, taste)
    end_decode(g, w)


@plain
def decode_part(
    g: Ground, s: State, w: DecoderArrays, low: int, high: int, price: FloatArray, taste: FloatArray
) -> None:
    """Decode the processes at places ``low`` to ``high - 1`` of the order."""
    for i in range(low, high):
        p = s.order[i]
        m = s.mode[p]
        if m < 0:
            m = cheapest(g, w, p, s.fresh[p], price, taste)
        start, loaded, moved, why = seat(g, w, p, m, s.fresh[p])
        put(g, w, p, m, start, loaded, moved)
        w.why[p] = why


@plain
def begin_decode(g: Ground, w: DecoderArrays) -> None:
    """Reset all arrays."""
    w.free[:] = 0
    w.tail[:] = -1
    w.used[:] = 0
    w.user[:] = -1
    w.value[:] = 0
    w.time[0] = 0
    w.steps[0] = 1
    w.taken[0] = 0


@plain
def end_decode(g: Ground, w: DecoderArrays) -> None:
    """Complete the values."""
    dark = 0
    for u in range(len(w.free)):
        dark += g.off[u]
    w.value[ENERGY] += dark * w.value[MAKESPAN] + g.hop_energy * w.value[MOVED]
    for p in range(len(w.start)):
        m = w.mode[p]
        w.value[ENERGY] += g.energy[m]
        d = g.item[m]
        if d >= 0 and w.loaded[p] == 1:
            w.value[ENERGY] += g.load_energy[d]
            w.value[MOVED] += g.whole[d]
    spend(g.use, w.mode, w.spent)
    w.value[OVER] = int(np.ceil(1e6 * excess(g.budget, w.spent)))
    sum_up(g, w)


@plain
def sum_up(g: Ground, w: DecoderArrays) -> None:
    """Write the values that follow from others."""
    idle = w.value[IDLE]
    w.value[WASTE] = 0
    if idle > 0:
        w.value[WASTE] = -((-1000000 * idle) // (idle + w.value[BUSY]))
    w.value[WEIGHTED] = 0
    for k in range(len(g.factor)):
        w.value[WEIGHTED] += g.factor[k] * w.value[k]


@embedded
def cheapest(g: Ground, w: DecoderArrays, p: int, fresh: int, price: FloatArray, taste: FloatArray) -> int:
    """Return the mode of least cost behind what is there already."""
    best, least = g.first[p], np.inf
    for m in range(g.first[p], g.first[p + 1]):
        start, loaded, moved, _ = seat(g, w, p, m, fresh)
        cost = price[END] * (start + g.span[m])
        if len(taste) > 0:
            cost += taste[m]
        k, d = g.unit_set[m], g.item[m]
        begin, energy = start, g.energy[m] + g.hop_energy * moved
        if d >= 0 and loaded == 1:
            begin -= g.load[d]
            energy += g.load_energy[d]
            moved += g.whole[d]
        if k >= 0:
            for j in range(g.members_at[k], g.members_at[k + 1]):
                u = g.members[j]
                length = start + g.span[m] - begin
                cost += price[AREA] * length
                energy -= g.off[u] * length
                if w.tail[u] < 0:
                    energy += g.switch[u]
                else:
                    gap = begin - w.free[u]
                    energy += gap_energy(g, u, gap)
                    if gap < g.break_even[u]:
                        cost += price[IDLING] * gap
        cost += price[SPENT] * energy + price[SENT] * moved
        if cost < least:
            best, least = m, cost
    return int(best)


@embedded
def gap_energy(g: Ground, u: int, gap: int) -> int:
    """Return what a gap between two activities costs, less darkness."""
    if gap <= 0:
        return 0
    return int(g.switch[u] if gap >= g.break_even[u] else g.saved[u] * gap)


@embedded
def delay_of(g: Ground, e: int, one: int, other: int) -> tuple[int, int]:
    """Return ticks and byte-hops of an edge between two modes."""
    a, b = g.unit_set[one], g.unit_set[other]
    if a < 0 or b < 0 or a == b or g.amount[e] == 0:
        return g.convert[e], 0
    hops = g.hops[a, b]
    if hops == 0:
        return g.convert[e], 0
    return g.convert[e] + hops * g.hop_time + g.sent[e], g.amount[e] * hops


@embedded
def seat(g: Ground, w: DecoderArrays, p: int, m: int, fresh: int) -> tuple[int, int, int, int]:
    """Return start, whether it loads, byte-hops of what it needs, and the process that it waits for (-1), in a mode."""
    start, moved, why = g.release[p], 0, -1
    for j in range(g.into_at[p], g.into_at[p + 1]):
        e = g.into[j]
        q = g.source[e]
        delay, far = delay_of(g, e, w.mode[q], m)
        moved += far
        ready = w.start[q] + g.span[w.mode[q]] + delay
        if ready > start:
            start, why = ready, q
    k, d = g.unit_set[m], g.item[m]
    loaded, load = 0, 0
    if d >= 0 and (fresh == 1 or w.user[d] < 0 or not _stays(g, w, d, m)):
        loaded, load = 1, g.load[d]
    if g.earliest[p] + load > start:
        start, why = g.earliest[p] + load, -1
    if k >= 0:
        for j in range(g.members_at[k], g.members_at[k + 1]):
            u = g.members[j]
            if w.free[u] + load > start:
                start, why = w.free[u] + load, w.tail[u]
    if len(g.capacity) > 0:
        start = _room(g, w, m, start)
    return start, loaded, moved, why


@embedded
def _stays(g: Ground, w: DecoderArrays, d: int, m: int) -> bool:
    """Return whether an item can have stayed since its last use, beside all that does."""
    k, p = g.unit_set[m], w.user[d]
    begin = g.members_at[k]
    for j in range(begin, g.members_at[k + 1]):
        u = g.members[j]
        if g.tight[u] == 1:
            for i in range(w.place[p, j - begin] + 1, g.lane[u] + w.used[u]):
                if w.peak[i] + g.bytes[d] > g.memory[u]:
                    return False
    return True


@embedded
def put(g: Ground, w: DecoderArrays, p: int, m: int, start: int, loaded: int, moved: int) -> None:
    """Write a process down."""
    k, d = g.unit_set[m], g.item[m]
    w.mode[p], w.start[p], w.loaded[p] = m, start, loaded
    end, begin, own = start + g.span[m], start, g.working[m]
    if d >= 0:
        own += g.bytes[d]
        if loaded == 1:
            begin -= g.load[d]
    if k >= 0:
        at = g.members_at[k]
        for j in range(at, g.members_at[k + 1]):
            u = g.members[j]
            if g.tight[u] == 1 and d >= 0 and loaded == 0:
                for i in range(w.place[w.user[d], j - at] + 1, g.lane[u] + w.used[u]):
                    w.peak[i] += g.bytes[d]
            w.place[p, j - at] = g.lane[u] + w.used[u]
            w.peak[g.lane[u] + w.used[u]] = own
            w.used[u] += 1
            before = w.tail[u]
            w.before[p, j - at], w.behind[p, j - at], w.tail[u] = before, -1, p
            if before < 0:
                w.value[ENERGY] += g.switch[u]
            else:
                gap = begin - w.free[u]
                w.value[ENERGY] += gap_energy(g, u, gap)
                if gap < g.break_even[u]:
                    w.value[IDLE] += gap
                _link(g, w, before, u, p)
            w.value[ENERGY] -= g.off[u] * (end - begin)
            w.value[BUSY] += end - begin
            w.free[u] = end
    if d >= 0:
        w.user[d] = p
    if len(g.capacity) > 0:
        _take(g, w, m, start, end)
    w.value[MOVED] += moved
    w.value[MAKESPAN] = max(w.value[MAKESPAN], end)
    if g.weight[p] > 0 and end > g.due[p]:
        w.value[TARDINESS] += g.weight[p] * (end - g.due[p])
    if end > g.deadline[p]:
        w.value[LATE] += end - g.deadline[p]


@embedded
def _link(g: Ground, w: DecoderArrays, before: int, u: int, p: int) -> None:
    """Note that ``p`` comes behind another process on a unit."""
    k = g.unit_set[w.mode[before]]
    at = g.members_at[k]
    for j in range(at, g.members_at[k + 1]):
        if g.members[j] == u:
            w.behind[before, j - at] = p


@plain
def _room(g: Ground, w: DecoderArrays, m: int, start: int) -> int:
    """Return the earliest start from ``start`` on with room for what a mode demands while it runs."""
    span, wants = g.span[m], False
    for r in range(len(g.capacity)):
        wants = wants or g.demand[m, r] > 0
    if span == 0 or not wants:
        return start
    last = w.steps[0]
    i = _step(w, start)
    while True:
        full = -1
        j = i
        while j < last and (j == i or w.time[j] < start + span):
            for r in range(len(g.capacity)):
                if g.demand[m, r] > 0 and w.taken[j, r] + g.demand[m, r] > g.capacity[r]:
                    full = j
            j += 1
        if full < 0:
            return int(start)
        i = full + 1
        start = w.time[i]


@plain
def _step(w: DecoderArrays, time: int) -> int:
    """Return the last step that begins by ``time``."""
    low, high = 0, w.steps[0] - 1
    while low < high:
        middle = (low + high + 1) // 2
        if w.time[middle] <= time:
            low = middle
        else:
            high = middle - 1
    return int(low)


@plain
def _split(w: DecoderArrays, time: int) -> int:
    """Return the step that begins at ``time``, made if there is none."""
    i = _step(w, time)
    if w.time[i] == time:
        return int(i)
    for j in range(w.steps[0], i + 1, -1):
        w.time[j] = w.time[j - 1]
        for r in range(w.taken.shape[1]):
            w.taken[j, r] = w.taken[j - 1, r]
    w.time[i + 1] = time
    for r in range(w.taken.shape[1]):
        w.taken[i + 1, r] = w.taken[i, r]
    w.steps[0] += 1
    return int(i + 1)


@plain
def _take(g: Ground, w: DecoderArrays, m: int, start: int, end: int) -> None:
    """Take from the resources."""
    if end <= start:
        return
    i, j = _split(w, start), _split(w, end)
    for step in range(i, j):
        for r in range(len(g.capacity)):
            w.taken[step, r] += g.demand[m, r]
