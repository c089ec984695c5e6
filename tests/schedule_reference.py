"""The best schedule of a tiny problem by trying everything: all modes, all loads, all starts, by what the problem's text says.

Shares nothing with the package but the record of a problem. Time goes tick by tick, for all vectors of starts at once.
"""

from __future__ import annotations

import itertools

import numpy as np

#: Vectors of starts that are looked at together.
AT_ONCE = 200_000


def optimum(problem, ticks):
    """Return the least value of the objective over all legal schedules that start within ``ticks``, inf if there is none."""
    best = float("inf")
    modes = [range(problem.modes.first[p], problem.modes.first[p + 1]) for p in range(problem.count)]
    for mode in itertools.product(*modes):
        loads = [(False, True) if problem.modes.item[m] >= 0 else (False,) for m in mode]
        for loaded in itertools.product(*loads):
            for start in _starts(problem, mode, loaded, ticks):
                best = min(best, _least(problem, mode, loaded, start))
    return best


def _load(problem, m, loaded):
    return int(problem.items.load[problem.modes.item[m]]) if loaded else 0


def _starts(problem, mode, loaded, ticks):
    """Yield arrays (N, P) of starts that keep releases, deadlines and dependencies; one process after the other is added."""
    found = np.zeros((1, 0), np.int64)
    span = [int(problem.modes.span[m]) for m in mode]
    for p, m in enumerate(mode):
        ready = 0 if problem.ready is None else int(problem.ready[p])
        low = max(int(problem.release[p]), ready + _load(problem, m, loaded[p]))
        high = min(ticks, int(problem.deadline[p]) - span[p])
        new = np.arange(low, high + 1)
        if len(found) * len(new) > 4_000_000:
            raise ValueError("too many starts to try")
        found = np.column_stack([np.repeat(found, len(new), axis=0), np.tile(new, len(found))])
        for e in range(problem.edges.count):
            a, b = int(problem.edges.source[e]), int(problem.edges.target[e])
            if max(a, b) == p:
                wait = span[a] + _delay(problem, e, mode[a], mode[b])
                found = found[found[:, b] >= found[:, a] + wait]
        for q in range(p):
            if set(_units(problem, mode[q])) & set(_units(problem, m)):
                begin = [found[:, k] - _load(problem, mode[k], loaded[k]) for k in (p, q)]
                end = [found[:, k] + span[k] for k in (p, q)]
                found = found[(end[0] <= begin[1]) | (end[1] <= begin[0])]
    for first in range(0, len(found), AT_ONCE):
        yield found[first : first + AT_ONCE]


def _units(problem, m):
    k = int(problem.modes.unit_set[m])
    return (
        problem.sets.members[problem.sets.indptr[k] : problem.sets.indptr[k + 1]].tolist() if k >= 0 else []
    )


def _hops(problem, one, other):
    a, b = _units(problem, one), _units(problem, other)
    if not a or not b or set(a) & set(b):
        return 0
    return min(int(problem.units.hops[u, v]) for u in a for v in b)


def _delay(problem, e, one, other):
    hops, bytes_, net = _hops(problem, one, other), int(problem.edges.bytes[e]), problem.network
    if not hops or not bytes_:
        return int(problem.edges.convert[e])
    sent = (bytes_ + net.bandwidth - 1) // net.bandwidth if net.bandwidth else 0
    return int(problem.edges.convert[e]) + hops * net.hop_time + sent


def _least(problem, mode, loaded, start):
    """Return the least objective of schedules (N, P), inf where none keeps memory, resources and ceilings."""
    if not len(start):
        return float("inf")
    m, count = problem.modes, len(start)
    end = start + [int(m.span[k]) for k in mode]
    begin = start - [_load(problem, k, on) for k, on in zip(mode, loaded, strict=True)]
    until, fine = end.copy(), np.ones(count, bool)
    for p, k in enumerate(mode):
        if m.item[k] >= 0 and not loaded[p]:
            since, last = np.full(count, -1), np.full(count, -1)
            for q, n in enumerate(mode):
                later = (
                    (start[:, q] < start[:, p]) & (start[:, q] > since)
                    if m.item[n] == m.item[k]
                    else np.zeros(count, bool)
                )
                since, last = np.where(later, start[:, q], since), np.where(later, q, last)
            fine &= last >= 0
            rows = np.flatnonzero(last >= 0)
            until[rows, last[rows]] = start[rows, p]
    final = int(end.max())
    idle, dark, switched = (np.zeros((count, problem.units.count), np.int64) for _ in range(3))
    state = [None] * problem.units.count
    for t in range(final + 1):
        runs = (start <= t) & (t < end)
        for r in range(len(problem.resources)):
            fine &= runs @ np.array([int(m.demand[k, r]) for k in mode]) <= problem.capacity[r]
        works, held = (begin <= t) & (t < end), (begin <= t) & (t < until)
        for u in range(problem.units.count):
            here = [p for p, k in enumerate(mode) if u in _units(problem, k)]
            sizes = [int(problem.items.bytes[m.item[mode[p]]]) if m.item[mode[p]] >= 0 else 0 for p in here]
            bytes_ = held[:, here] @ np.array(sizes, np.int64) + runs[:, here] @ np.array(
                [int(m.working[mode[p]]) for p in here], np.int64
            )
            fine &= bytes_ <= problem.units.memory[u]
            busy = works[:, here].any(axis=1)
            state[u] = _tick(problem, u, state[u], busy, t < end.max(axis=1), idle, dark, switched)
    for u in range(
        problem.units.count
    ):  # the gap behind the last activity is off, to the end of the schedule
        dark[:, u] += state[u][1]
    objectives = _objectives(problem, mode, loaded, end, idle, dark, switched)
    for name, most in problem.ceilings:
        fine &= objectives[name] <= most
    return int(objectives[problem.objective][fine].min()) if fine.any() else float("inf")


def _tick(problem, u, state, busy, counts, idle, dark, switched):
    """Book one tick of a unit. The state: whether it has worked, ticks without work since."""
    if state is None:
        state = (np.zeros(len(busy), bool), np.zeros(len(busy), np.int64))
    worked, empty = state
    units = problem.units
    wakes = busy & worked & (empty > 0)
    saved = int(units.idle[u] - units.off[u])
    fits = empty >= int(units.off_time[u] + units.wake_time[u])
    off = wakes & fits & (saved > 0) & (saved * empty >= int(units.switch_energy[u]))
    idle[:, u] += np.where(wakes & ~off, empty, 0)
    dark[:, u] += np.where(off | (busy & ~worked), empty, 0)
    switched[:, u] += off.astype(int) + (busy & ~worked)
    return worked | busy, np.where(busy, 0, empty + counts)


def _objectives(problem, mode, loaded, end, idle, dark, switched):
    m, items, units = problem.modes, problem.items, problem.units
    late = np.maximum(0, end - np.where(problem.weight > 0, problem.due, end.max()))
    spans = sum(
        len(_units(problem, k)) * (int(m.span[k]) + _load(problem, k, on))
        for k, on in zip(mode, loaded, strict=True)
    )
    moves = sum(
        int(problem.edges.bytes[e])
        * _hops(problem, mode[problem.edges.source[e]], mode[problem.edges.target[e]])
        for e in range(problem.edges.count)
    )
    held = [int(m.item[k]) for k, on in zip(mode, loaded, strict=True) if on]
    fetched = sum(int(items.bytes[d]) * len(_units(problem, k)) for k, on in zip(mode, loaded, strict=True) if on
                  for d in [int(m.item[k])])  # fmt: skip
    energy = sum(int(m.energy[k]) for k in mode) + sum(int(items.energy[d]) for d in held)
    energy = energy + moves * problem.network.hop_energy
    energy = energy + idle @ units.idle + dark @ units.off + switched @ units.switch_energy
    total = idle.sum(axis=1)
    found = {
        "makespan": end.max(axis=1),
        "tardiness": late @ problem.weight,
        "idle": total,
        "energy": energy,
        "waste": np.where(total > 0, -(-(10**6) * total // np.maximum(1, total + spans)), 0),
        "moved": np.full(len(end), moves + fetched),
    }
    if problem.weights:
        found["weighted"] = sum(k * found[name] for name, k in problem.weights)
    return found
