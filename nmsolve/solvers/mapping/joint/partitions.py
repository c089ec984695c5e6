"""All partitions that could still beat a known answer, by reduced cost, and the best placement of each.

With the prices pi of the core-traffic bound (docs/bounds.md) every set S of nodes has a reduced cost
r(S) = traffic(S) - pi(S) - p >= 0, p the cheapest. A mapping whose cores hold S_1, S_2, ... costs at least
``unit * (root + sum r(S_i))``, so only partitions with ``sum r(S_i) <= budget`` are worth placing, and where the bound is good
these are few. Sets are bit sets of nodes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import BoolArray, FloatArray, IntArray
from nmsolve.solvers.mapping.bounds.core_traffic_kernel import TrafficNets, with_node, without_node
from nmsolve.solvers.mapping.joint.anneal import TreeState

#: Entries of ``counter``: depth, steps, partitions placed, better mappings found, parts of the partition that is being placed
#: (0: none is), how many of them are on a core.
DEPTH, STEPS, PLACED, FOUND, PARTS, LEVEL = range(6)


class Walk(NamedTuple):
    """The search between two slices.

    ``sets``, ``spare`` (K,): bit sets and reduced costs, by lowest node and then cost; ``first`` (n + 2,) where each lowest
    node begins. By depth: ``at`` position in the sets, ``used`` nodes, ``spent`` reduced cost, ``low`` lowest open node.
    ``limits`` [budget, cost to beat, unit, root, gain]: ``gain`` is the least step to a better value. ``best`` (n,).

    A placement can be left and taken up again, too. By part: its nodes ``chosen``, position ``where`` in the cores (-1: on none),
    ``fits`` (P, P) cores that can hold it, ``inside`` (P, M) messages with a node in it; ``reached`` (P + 1, M) by number of
    parts placed, the cores of every message.
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
    chosen: IntArray
    where: IntArray
    fits: BoolArray
    inside: BoolArray
    reached: IntArray


def new_walk(
    n: int,
    messages: int,
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
    parts = len(cores)
    depth = parts + 1
    walk = Walk(
        sets[order], spare[order], first, np.zeros(depth, np.int64), np.zeros(depth, np.int64), np.zeros(depth),
        np.zeros(depth, np.int64), np.array([budget_of(limit, unit, root, gain), limit, unit, root, gain]),
        np.full(n, -1, np.int64), cores, np.zeros(6, np.int64), np.zeros(parts, np.int64), np.full(parts, -1, np.int64),
        np.zeros((parts, parts), bool), np.zeros((parts, messages), bool), np.zeros((depth, messages), np.int64),
    )  # fmt: skip
    walk.at[0] = first[0]
    return walk


@plain
def budget_of(limit: float, unit: float, root: float, gain: float) -> float:
    """Most reduced cost of a partition that can cost ``limit - gain`` or less; with a margin for rounding."""
    return (limit - gain) / unit - root + 1e-6 * (1.0 + abs(limit / unit))


@kernel
def cheap_sets(
    c: TrafficNets, price: FloatArray, cheapest: float, budget: float, sizes: IntArray, most: IntArray, enemies: IntArray,
    sets: IntArray, spare: FloatArray,
) -> int:  # fmt: skip
    """All sets of nodes of a core within ``budget``, into ``sets`` and ``spare``; their number, also beyond the room there.

    ``most`` (R,): what the largest core holds; ``enemies`` (n,): bit sets of nodes that each must stay apart from.
    """
    n, count = len(price), 0
    member, size, u, cost = np.zeros(c.room, np.int64), 0, 0, 0.0
    touch = np.zeros(len(c.rate), np.int64)
    while True:
        if size < c.room and u < n:
            member[size] = u
            size += 1
            cost = with_node(c, u, cost, price, touch)
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
        cost = without_node(c, u, cost, price, touch)
        u += 1


@plain
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


@plain
def walk_on(w: Walk, s: TreeState, steps: int) -> bool:
    """``steps`` more steps of the depth-first search over partitions and over their placements; True once all are seen."""
    n, parts = len(w.best), len(w.cores)
    everything = (np.int64(1) << n) - 1
    for _ in range(steps):
        if w.counter[PARTS] > 0:
            _place_on(w, s)
            continue
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
            _begin_placing(w, s, d + 1)
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


@plain
def _begin_placing(w: Walk, s: TreeState, parts: int) -> None:
    """Make the sets chosen at the first ``parts`` depths the partition that is placed next."""
    for k in range(parts):
        w.chosen[k] = w.sets[w.at[k] - 1]
        w.where[k] = -1
        for m in range(len(s.rate)):
            w.inside[k, m] = False
            for i in range(s.pin_ptr[m], s.pin_ptr[m + 1]):
                if w.chosen[k] >> s.pins[i] & 1:
                    w.inside[k, m] = True
    _fits(w, s, parts)
    w.counter[PLACED] += 1
    w.counter[PARTS], w.counter[LEVEL] = parts, 0


@plain
def _place_on(w: Walk, s: TreeState) -> None:
    """Put one part on its next core; a whole placement below the limit is kept. Ends the placement after the last core."""
    n, many, cores = len(w.best), len(s.rate), len(w.cores)
    parts, k = w.counter[PARTS], w.counter[LEVEL]
    w.where[k] += 1
    while w.where[k] < cores and not _is_open(w, k):
        w.where[k] += 1
    if w.where[k] == cores:
        w.where[k] = -1
        w.counter[LEVEL] = k - 1
        if k == 0:
            w.counter[PARTS] = 0
        return
    bit, cost = np.int64(1) << w.cores[w.where[k]], 0.0
    for m in range(many):
        w.reached[k + 1, m] = w.reached[k, m] | (bit if w.inside[k, m] else 0)
        cost += s.rate[m] * s.cost[w.reached[k + 1, m], 0]
    if cost >= w.limits[1] - 1e-9 * abs(w.limits[1]):
        return
    if k + 1 < parts:
        w.counter[LEVEL] = k + 1
        return
    w.limits[1] = cost
    w.limits[0] = budget_of(cost, w.limits[2], w.limits[3], w.limits[4])
    w.counter[FOUND] += 1
    for u in range(n):
        for j in range(parts):
            if w.chosen[j] >> u & 1:
                w.best[u] = w.cores[w.where[j]]


@plain
def _is_open(w: Walk, k: int) -> bool:
    """True if the core of part ``k`` can hold it and no part before it is there."""
    for j in range(k):
        if w.where[j] == w.where[k]:
            return False
    return bool(w.fits[k, w.where[k]])


@plain
def _fits(w: Walk, s: TreeState, parts: int) -> None:
    """Set ``fits`` where every node of a part is allowed on the core and all together fit."""
    w.fits[:parts] = True
    for k in range(parts):
        for c in range(len(w.cores)):
            p = w.cores[c]
            for r in range(s.room.sizes.shape[1]):
                total = 0
                for u in range(len(w.best)):
                    if w.chosen[k] >> u & 1:
                        total += s.room.sizes[u, r]
                if total > s.room.capacity[p, r]:
                    w.fits[k, c] = False
            for u in range(len(w.best)):
                if w.chosen[k] >> u & 1 and not s.room.domains[s.room.domain_of[u], p]:
                    w.fits[k, c] = False
