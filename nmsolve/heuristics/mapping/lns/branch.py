"""Branch and bound for pieces of at most 12 cores: the best reassignment of a few nodes, proved or cut short.

Nodes are placed one after the other, those with most traffic first, on the cheapest core first. ``toll[d, i, k]`` is what
node i would pay on core k beside everything outside and the first d placed nodes. Below a partial placement nothing can cost
less than the placed part, plus the least toll of every other node on the free cores, plus the traffic among the others times
the least distance in the piece.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from nmsolve.model.types import BoolArray, FloatArray, IntArray

#: Most cores of a piece.
LARGEST = 12


class Scratch(NamedTuple):
    """Memory of a search: tolls by depth, branches in order and how many, where the search is, what is free."""

    toll: FloatArray
    ranked: IntArray
    branches: IntArray
    position: IntArray
    cost: FloatArray
    free: BoolArray
    order: IntArray
    rest: FloatArray


def new_scratch() -> Scratch:
    """Memory for one search at a time."""
    n = LARGEST
    return Scratch(
        np.zeros((n + 1, n, n)),
        np.zeros((n, n), np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n + 1),
        np.zeros(n, np.bool_),
        np.zeros(n, np.int64),
        np.zeros(n + 1),
    )


@nb.njit(cache=True, nogil=True)
def _prepare(unary: FloatArray, pair: FloatArray, reverse: FloatArray, dist: FloatArray, s: Scratch) -> None:
    """Order the nodes by traffic inside the piece; the least that the pairs among the last ones cost."""
    order, rest, toll, free, cost = s.order, s.rest, s.toll, s.free, s.cost
    m, size = unary.shape[0], unary.shape[1]
    load = np.zeros(m)
    for i in range(m):
        order[i] = i
        for j in range(m):
            load[i] += pair[i, j] + reverse[i, j]
    for i in range(1, m):
        u, j = order[i], i
        while j > 0 and load[order[j - 1]] < load[u]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = u
    least = np.inf
    for k in range(size):
        for h in range(size):
            if k != h:
                least = min(least, dist[k, h])
    rest[m] = 0.0
    for d in range(m - 1, -1, -1):
        rest[d] = rest[d + 1]
        for e in range(d + 1, m):
            i, j = order[d], order[e]
            rest[d] += (pair[i, j] + reverse[i, j]) * least
    for i in range(m):
        for k in range(size):
            toll[0, i, k] = unary[i, k]
    free[:size] = True
    cost[0] = 0.0


@nb.njit(cache=True, nogil=True)
def _rank(line: FloatArray, free: BoolArray, room: float, size: int, ranked: IntArray) -> Any:
    """Write the free cores that cost less than ``room`` in ``line`` to ``ranked``, cheapest first; how many."""
    count = 0
    for k in range(size):
        if not free[k] or line[k] >= room:
            continue
        j = count
        while j > 0 and line[ranked[j - 1]] > line[k]:
            ranked[j] = ranked[j - 1]
            j -= 1
        ranked[j] = k
        count += 1
    return count


@nb.njit(cache=True, nogil=True)
def _place(
    depth: int,
    k: int,
    m: int,
    size: int,
    pair: FloatArray,
    reverse: FloatArray,
    dist: FloatArray,
    order: IntArray,
    free: BoolArray,
    toll: FloatArray,
    room: float,
) -> Any:
    """Tolls after the node of this depth went to core ``k``; the least sum of the others' tolls, as far as ``room``."""
    i, total = order[depth], 0.0
    before, after = toll[depth], toll[depth + 1]
    for e in range(depth + 1, m):
        j = order[e]
        w, back, least = pair[j, i], reverse[j, i], np.inf
        for h in range(size):
            after[j, h] = before[j, h] + w * dist[h, k] + back * dist[k, h]
            if free[h] and after[j, h] < least:
                least = after[j, h]
        total += least
        if total >= room:
            break
    return total


@nb.njit(cache=True, nogil=True)
def best_seats(
    unary: FloatArray,
    pair: FloatArray,
    reverse: FloatArray,
    dist: FloatArray,
    limit: float,
    most: int,
    seat: IntArray,
    s: Scratch,
) -> Any:
    """Find the cheapest assignment of m nodes to ``size >= m`` cores that costs less than ``limit``.

    Returns ``(cost, search nodes)``; ``seat`` (m,) holds the assignment if the cost is below ``limit``, and is
    unchanged otherwise. The answer is exact if fewer than ``most`` search nodes were visited.
    """
    m, size = unary.shape[0], unary.shape[1]
    _prepare(unary, pair, reverse, dist, s)
    toll, ranked, branches, position, cost, free, order, rest = s
    depth, visited = 0, 0
    branches[0], position[0] = _rank(toll[0, order[0]], free, limit - rest[0], size, ranked[0]), 0
    while depth >= 0:
        if position[depth] > 0:
            free[ranked[depth, position[depth] - 1]] = True
        if position[depth] == branches[depth] or visited >= most:
            depth -= 1
            continue
        k = ranked[depth, position[depth]]
        position[depth] += 1
        free[k] = False
        visited += 1
        cost[depth + 1] = cost[depth] + toll[depth, order[depth], k]
        room = limit - cost[depth + 1] - rest[depth + 1]
        if room <= 0 or _place(depth, k, m, size, pair, reverse, dist, order, free, toll, room) >= room:
            continue
        if depth == m - 1:
            limit = float(cost[m])
            for d in range(m):
                seat[order[d]] = ranked[d, position[d] - 1]
            continue
        depth += 1
        room = limit - cost[depth] - rest[depth]
        branches[depth], position[depth] = (
            _rank(toll[depth, order[depth]], free, room, size, ranked[depth]),
            0,
        )
    return limit, visited
