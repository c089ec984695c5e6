"""All partitions that could still beat a known answer, by reduced cost, and the best placement of each.

With the prices pi of the covering bound (docs/bounds.md) every set S of nodes has a reduced cost
r(S) = cover(S) - pi(S) - p >= 0, p the cheapest. A mapping whose cores hold S_1, S_2, ... costs at least
``unit * (root + sum r(S_i))``, so only partitions with ``sum r(S_i) <= budget`` are worth placing, and where the bound is good
these are few. Sets are bit sets of nodes.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from nmsolve.model.types import BoolArray, FloatArray, IntArray
from nmsolve.solvers.mapping.joint.anneal import TreeState

#: Entries of ``counter``: depth, steps, partitions placed, better mappings found.
DEPTH, STEPS, PLACED, FOUND = range(4)


class Walk(NamedTuple):
    """The search between two slices.

    ``sets``, ``spare`` (K,): bit sets and reduced costs, by lowest node and then cost; ``first`` (n + 2,) where each lowest
    node begins. By depth: ``at`` position in the sets, ``used`` nodes, ``spent`` reduced cost, ``low`` lowest open node.
    ``limits`` [budget, cost to beat, unit, root, gain]: ``gain`` is the least step to a better value. ``best`` (n,).
    """

    sets: IntArray
    spare: FloatArray
    first: IntArray
    at: IntArray
    used: IntArray
    spent: FloatArray
    low: IntArray
    limits: FloatArray
    best: IntArray
    cores: IntArray
    counter: IntArray


def new_walk(
    n: int,
    cores: IntArray,
    sets: IntArray,
    spare: FloatArray,
    unit: float,
    root: float,
    limit: float,
    gain: float,
) -> Walk:
    """A walk over partitions into at most ``len(cores)`` of the ``sets`` that cost less than ``limit``."""
    lowest = np.array([(int(s) & -int(s)).bit_length() - 1 for s in sets], np.int64)
    order = np.lexsort((spare, lowest))
    first = np.searchsorted(lowest[order], np.arange(n + 2)).astype(np.int64)
    depth = len(cores) + 1
    walk = Walk(
        sets[order], spare[order], first, np.zeros(depth, np.int64), np.zeros(depth, np.int64), np.zeros(depth),
        np.zeros(depth, np.int64), np.array([budget_of(limit, unit, root, gain), limit, unit, root, gain]),
        np.full(n, -1, np.int64), cores, np.zeros(4, np.int64),
    )  # fmt: skip
    walk.at[0] = first[0]
    return walk


@nb.njit(cache=True, nogil=True)
def budget_of(limit: float, unit: float, root: float, gain: float) -> float:
    """Most reduced cost of a partition that can cost ``limit - gain`` or less; with a margin for rounding."""
    return (limit - gain) / unit - root + 1e-6 * (1.0 + abs(limit / unit))


@nb.njit(cache=True, nogil=True)
def cheap_sets(
    room: int, net_ptr: IntArray, nets: IntArray, rate: FloatArray, price: FloatArray, cheapest: float, budget: float,
    sizes: IntArray, most: IntArray, enemies: IntArray, sets: IntArray, spare: FloatArray,
) -> int:  # fmt: skip
    """All sets of up to ``room`` nodes within ``budget``, into ``sets`` and ``spare``; their number, also beyond the room there.

    ``most`` (R,): what the largest core holds; ``enemies`` (n,): bit sets of nodes that each must stay apart from.
    """
    n, count = len(price), 0
    member, size, u, cost = np.zeros(room, np.int64), 0, 0, 0.0
    touch = np.zeros(len(rate), np.int64)
    while True:
        if size < room and u < n:
            member[size] = u
            size += 1
            cost -= price[u]
            for j in range(net_ptr[u], net_ptr[u + 1]):
                if touch[nets[j]] == 0:
                    cost += rate[nets[j]]
                touch[nets[j]] += 1
            if cost - cheapest <= budget and _allowed(member, size, sizes, most, enemies):
                if count < len(sets):
                    bits = np.int64(0)
                    for i in range(size):
                        bits |= np.int64(1) << member[i]
                    sets[count], spare[count] = bits, max(0.0, cost - cheapest)
                count += 1
            u += 1
            continue
        if size == 0:
            return count
        size -= 1
        u = member[size]
        cost += price[u]
        for j in range(net_ptr[u], net_ptr[u + 1]):
            touch[nets[j]] -= 1
            if touch[nets[j]] == 0:
                cost -= rate[nets[j]]
        u += 1


@nb.njit(cache=True, nogil=True)
def _allowed(member: IntArray, size: int, sizes: IntArray, most: IntArray, enemies: IntArray) -> bool:
    bits = np.int64(0)
    for i in range(size):
        if enemies[member[i]] & bits:
            return False
        bits |= np.int64(1) << member[i]
    for r in range(sizes.shape[1]):
        total = 0
        for i in range(size):
            total += sizes[member[i], r]
        if total > most[r]:
            return False
    return True


@nb.njit(cache=True, nogil=True)
def walk_on(w: Walk, s: TreeState, steps: int) -> bool:
    """``steps`` more steps of the depth-first search over partitions; True once all are seen."""
    n, parts = len(w.best), len(w.cores)
    everything = (np.int64(1) << n) - 1
    until = w.counter[STEPS] + steps
    chosen = np.zeros(parts, np.int64)
    while w.counter[STEPS] < until:
        w.counter[STEPS] += 1
        d = w.counter[DEPTH]
        i = w.at[d]
        if i >= w.first[w.low[d] + 1] or w.spent[d] + w.spare[i] > w.limits[0]:
            if d == 0:
                return True
            w.counter[DEPTH] = d - 1
            continue
        w.at[d] += 1
        if w.sets[i] & w.used[d]:
            continue
        used = w.used[d] | w.sets[i]
        if used == everything:
            for k in range(d + 1):
                chosen[k] = w.sets[w.at[k] - 1]
            w.counter[PLACED] += 1
            _place_parts(w, s, chosen, d + 1)
            continue
        if d + 1 >= parts:
            continue
        low = w.low[d] + 1
        while used >> low & 1:
            low += 1
        d += 1
        w.used[d], w.spent[d], w.low[d], w.at[d] = used, w.spent[d - 1] + w.spare[i], low, w.first[low]
        w.counter[DEPTH] = d
    return False


@nb.njit(cache=True, nogil=True)
def _place_parts(w: Walk, s: TreeState, chosen: IntArray, parts: int) -> None:
    """The cheapest placement of the parts, by trying cores part after part; keeps it if it beats the limit."""
    n, many, cores = len(w.best), len(s.rate), len(w.cores)
    fits = _fits(w, s, chosen, parts)
    inside = np.zeros((parts, many), np.bool_)
    for k in range(parts):
        for m in range(many):
            for i in range(s.pin_ptr[m], s.pin_ptr[m + 1]):
                if chosen[k] >> s.pins[i] & 1:
                    inside[k, m] = True
    reached = np.zeros((parts + 1, many), np.int64)
    where, taken = np.full(parts, -1, np.int64), np.zeros(cores, np.bool_)
    k = 0
    while k >= 0:
        if where[k] >= 0:
            taken[where[k]] = False
        where[k] += 1
        while where[k] < cores and (taken[where[k]] or not fits[k, where[k]]):
            where[k] += 1
        if where[k] == cores:
            where[k] = -1
            k -= 1
            continue
        taken[where[k]] = True
        bit, cost = np.int64(1) << w.cores[where[k]], 0.0
        for m in range(many):
            reached[k + 1, m] = reached[k, m] | (bit if inside[k, m] else 0)
            cost += s.rate[m] * s.cost[reached[k + 1, m]]
        if cost >= w.limits[1] - 1e-9 * abs(w.limits[1]):
            continue
        if k + 1 < parts:
            k += 1
            continue
        w.limits[1] = cost
        w.limits[0] = budget_of(cost, w.limits[2], w.limits[3], w.limits[4])
        w.counter[FOUND] += 1
        for u in range(n):
            for j in range(parts):
                if chosen[j] >> u & 1:
                    w.best[u] = w.cores[where[j]]


@nb.njit(cache=True, nogil=True)
def _fits(w: Walk, s: TreeState, chosen: IntArray, parts: int) -> BoolArray:
    """(parts, cores) True where every node of a part is allowed on the core and all together fit."""
    out = np.ones((parts, len(w.cores)), np.bool_)
    for k in range(parts):
        for c in range(len(w.cores)):
            p = w.cores[c]
            for r in range(s.sizes.shape[1]):
                total = 0
                for u in range(len(w.best)):
                    if chosen[k] >> u & 1:
                        total += s.sizes[u, r]
                if total > s.capacity[p, r]:
                    out[k, c] = False
            for u in range(len(w.best)):
                if chosen[k] >> u & 1 and not s.domains[s.domain_of[u], p]:
                    out[k, c] = False
    return out
