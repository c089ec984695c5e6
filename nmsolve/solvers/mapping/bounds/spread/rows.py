"""Rows: from one node to its k nearest, along a tree of shortest paths. What is violated most is looked for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.model.compiled import kernel, plain_callee
from nmsolve.model.types import AnyArray, FloatArray, IntArray

#: Rows that hold within this part are not wanted.
HOLDS = 1e-3


class Network(NamedTuple):
    """Pairs with traffic as CSR over nodes, as in :class:`SpreadForm`, and the length (M,) of every pair."""

    indptr: IntArray
    node: IntArray
    edge: IntArray
    length: FloatArray


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


class _Tree(NamedTuple):
    """What Dijkstra's algorithm fills: by place in the order of reaching, by node, and its heap.

    Attributes
    ----------
    order : (n,) nodes as they are reached, the source first; ``up`` : (n,) the place in ``order`` of the node before;
        ``over`` : (n,) the pair between
    far : (n,) distance by node; ``place`` : (n,) place in ``order`` by node; ``parent``, ``by`` : (n,) node and pair before
    key, item : the heap
    """

    order: IntArray
    up: IntArray
    over: IntArray
    far: FloatArray
    place: IntArray
    parent: IntArray
    by: IntArray
    key: FloatArray
    item: IntArray


@plain_callee
def _grow(source: int, most: int, net: Network, t: _Tree) -> int:
    """Dijkstra's algorithm from ``source`` until ``most`` other nodes are reached; how many are."""
    t.far[:] = np.inf
    t.place[:] = -1
    size = _push(t.key, t.item, 0, 0.0, source)
    t.far[source] = 0.0
    t.up[0], t.over[0] = -1, -1
    reached = 0
    while size > 0 and reached <= most:
        key, u = t.key[0], t.item[0]
        size = _pop(t.key, t.item, size)
        if t.place[u] >= 0:
            continue
        t.order[reached], t.place[u] = u, reached
        if reached > 0:
            t.up[reached], t.over[reached] = t.place[t.parent[u]], t.by[u]
        reached += 1
        for k in range(net.indptr[u], net.indptr[u + 1]):
            v = net.node[k]
            new = key + net.length[net.edge[k]]
            if t.place[v] < 0 and new < t.far[v]:
                t.far[v], t.parent[v], t.by[v] = new, u, net.edge[k]
                size = _push(t.key, t.item, size, new, v)
    return reached - 1


@kernel
def find_rows(
    sources: IntArray, most: int, net: Network, least: FloatArray, at: FloatArray
) -> tuple[IntArray, IntArray, IntArray, IntArray, FloatArray, FloatArray]:
    """Rows that the lengths of pairs violate, at most two from each of ``sources``: of all k up to ``most``, and of few.

    Parameters
    ----------
    at : (n, G) where every node lies: shares of the groups whose sums ``least`` (G, n) are asked for

    Returns
    -------
    source, targets, indptr, edge, load as of :class:`Rows`, and (sources,) the least sum of lengths over the least of distances
    """
    n, groups = len(net.indptr) - 1, len(least)
    t = _Tree(
        np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n), np.empty(n, np.int64),
        np.empty(n, np.int64), np.empty(n, np.int64), np.empty(len(net.node) + 2), np.empty(len(net.node) + 2, np.int64),
    )  # fmt: skip
    below = np.empty(n, np.int64)
    room = 2 * len(sources)
    who, many = np.empty(room, np.int64), np.empty(room, np.int64)
    starts = np.zeros(room + 1, np.int64)
    crossed, load = np.empty(room * most, np.int64), np.empty(room * most)
    worst = np.full(len(sources), np.inf)
    rows, filled = 0, 0
    for s in range(len(sources)):
        u = sources[s]
        reached = _grow(u, most, net, t)
        best, best_few, k_best, k_few, total = np.inf, np.inf, 0, 0, 0.0
        for k in range(1, reached + 1):
            total += t.far[t.order[k]]
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
                if t.up[i] > 0:
                    below[t.up[i]] += below[i]
                crossed[filled] = t.over[i]
                load[filled] = below[i] if t.order[t.up[i]] < t.order[i] else -below[i]
                filled += 1
            who[rows], many[rows] = u, k
            rows += 1
            starts[rows] = filled
    return who[:rows], many[:rows], starts[: rows + 1], crossed[:filled], load[:filled], worst
