"""Rows: from one node to its k nearest, along a tree of shortest paths. What is violated most is looked for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.model.compiled import callee, kernel, plain_callee
from nmsolve.model.types import AnyArray, FloatArray, IntArray

#: Rows that hold within this part are not wanted.
HOLDS = 1e-3


class Rows(NamedTuple):
    """Rows as CSR: source, number of targets, pairs crossed and how many paths cross each, < 0 from the higher node on."""

    source: IntArray
    targets: IntArray
    indptr: IntArray
    edge: IntArray
    load: FloatArray

    @classmethod
    def none(cls) -> Rows:
        """No rows."""
        whole = np.zeros(0, np.int64)
        return cls(whole, whole, np.zeros(1, np.int64), whole, np.zeros(0))

    def chosen(self, kept: AnyArray) -> Rows:
        """Return the rows that a mask (rows,) keeps."""
        length = np.diff(self.indptr)
        entries = np.repeat(kept, length)
        indptr = np.concatenate([[0], np.cumsum(length[kept])])
        return Rows(self.source[kept], self.targets[kept], indptr, self.edge[entries], self.load[entries])

    def joined(self, other: Rows) -> Rows:
        """Return these rows, then the others."""
        parts = [np.concatenate(pair) for pair in zip(self, other, strict=True)]
        parts[2] = np.concatenate([self.indptr, self.indptr[-1] + other.indptr[1:]])
        return Rows(*parts)


@plain_callee
def _push(heap: FloatArray, item: IntArray, size: int, key: float, value: int) -> int:
    """Add to a binary heap; returns its size."""
    at = size
    while at > 0 and heap[(at - 1) // 2] > key:
        heap[at], item[at] = heap[(at - 1) // 2], item[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at], item[at] = key, value
    return size + 1


@plain_callee
def _pop(heap: FloatArray, item: IntArray, size: int) -> int:
    """Take the least off a binary heap; returns its size."""
    size -= 1
    key, value = heap[size], item[size]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= key:
            break
        heap[at], item[at] = heap[child], item[child]
        at = child
    heap[at], item[at] = key, value
    return size


@callee
def _grow(
    source: int,
    most: int,
    indptr: IntArray,
    node: IntArray,
    edge: IntArray,
    length: FloatArray,
    far: FloatArray,
    heap: FloatArray,
    item: IntArray,
    order: IntArray,
    up: IntArray,
    over: IntArray,
    place: IntArray,
) -> int:
    """Dijkstra from ``source`` until ``most`` other nodes are reached; how many are.

    Fills ``order`` (source first), ``up`` (the place in ``order`` of the node before) and ``over`` (the pair between) by place;
    ``far`` by node (inf before and after, but for what was reached) and ``place`` by node.
    """
    size = _push(heap, item, 0, 0.0, source)
    far[source], place[source] = 0.0, -1
    up[0], over[0] = -1, -1
    reached, touched = 0, 0
    parent, by = np.full(len(far), -1, np.int64), np.full(len(far), -1, np.int64)
    done = np.zeros(len(far), np.bool_)
    while size > 0 and reached <= most:
        key, u = heap[0], item[0]
        size = _pop(heap, item, size)
        if done[u] or key > far[u]:
            continue
        done[u] = True
        order[reached] = u
        place[u] = reached
        if reached > 0:
            up[reached], over[reached] = place[parent[u]], by[u]
        reached += 1
        for k in range(indptr[u], indptr[u + 1]):
            v = node[k]
            new = key + length[edge[k]]
            if not done[v] and new < far[v]:
                far[v], parent[v], by[v] = new, u, edge[k]
                size = _push(heap, item, size, new, v)
                touched += 1
    return reached - 1


@kernel
def find_rows(
    sources: IntArray,
    most: int,
    indptr: IntArray,
    node: IntArray,
    edge: IntArray,
    length: FloatArray,
    least: FloatArray,
    at: FloatArray,
) -> tuple[IntArray, IntArray, IntArray, IntArray, FloatArray, FloatArray]:
    """Rows that the lengths (M,) of pairs violate, at most two from each of ``sources``: of all k up to ``most``, and of few.

    Parameters
    ----------
    at : (n, G) where every node lies: shares of the groups whose sums ``least`` (G, n) are asked for

    Returns
    -------
    source, targets, indptr, edge, load as of :class:`Rows`, and (sources,) the least sum of lengths over the least of distances
    """
    n, groups = len(indptr) - 1, len(least)
    heap, item = np.empty(len(node) + 2), np.empty(len(node) + 2, np.int64)
    order, up, over = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    place, below = np.empty(n, np.int64), np.empty(n, np.int64)
    room = 2 * len(sources)
    who, many = np.empty(room, np.int64), np.empty(room, np.int64)
    starts = np.zeros(room + 1, np.int64)
    crossed, load = np.empty(room * most, np.int64), np.empty(room * most)
    worst = np.full(len(sources), np.inf)
    rows, filled = 0, 0
    far = np.empty(n)
    for s in range(len(sources)):
        u = sources[s]
        far[:] = np.inf
        reached = _grow(u, most, indptr, node, edge, length, far, heap, item, order, up, over, place)
        best, best_few, k_best, k_few, total = np.inf, np.inf, 0, 0, 0.0
        for k in range(1, reached + 1):
            total += far[order[k]]
            aim = 0.0
            for g in range(groups):
                aim += at[u, g] * least[g, k]
            if aim > 0.0:
                ratio = total / aim
                if ratio < best:
                    best, k_best = ratio, k
                if 4 * k <= most and ratio < best_few:
                    best_few, k_few = ratio, k
        worst[s] = best
        for which in range(2):
            k, ratio = (k_best, best) if which == 0 else (k_few, best_few)
            if k == 0 or ratio > 1.0 - HOLDS or (which == 1 and k_few == k_best):
                continue
            below[: k + 1] = 1
            for i in range(k, 0, -1):
                if up[i] > 0:
                    below[up[i]] += below[i]
                crossed[filled] = over[i]
                load[filled] = below[i] if order[up[i]] < order[i] else -below[i]
                filled += 1
            who[rows], many[rows] = u, k
            rows += 1
            starts[rows] = filled
    return who[:rows], many[:rows], starts[: rows + 1], crossed[:filled], load[:filled], worst
