"""Rows: from one node to its k nearest, along a tree of shortest paths. What is violated most is looked for."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.common.heap import changed, push, remove
from nmsolve.model.compiled import embedded, kernel, plain
from nmsolve.model.types import AnyArray, FloatArray, Int32Array, IntArray
from nmsolve.solvers.mapping.bounds.spread.messages import pair_number

#: Rows that hold within this part are not wanted.
HOLDS = 1e-3


_NONE = np.zeros(0, np.int64)


class Network(NamedTuple):
    """Pairs with traffic as CSR over nodes, as in :class:`SpreadForm`, and the length (M,) of every pair.

    Of messages ``edge`` holds their numbers, ``place`` a node's place among the terminals of each, ``length`` is that of every
    message; ``start``, ``pin``, ``first`` are as of :class:`.messages.Messages`. Without messages these are empty.
    """

    indptr: IntArray
    node: IntArray
    edge: IntArray
    length: FloatArray
    place: IntArray = _NONE
    start: IntArray = _NONE
    pin: IntArray = _NONE
    first: IntArray = _NONE


class Rows(NamedTuple):
    """Rows as CSR: source, number of targets, pairs crossed and how many paths cross each, < 0 from the higher node on.

    There are millions of entries: pairs are int32, loads float32, in which whole numbers up to 2^24 are exact.
    """

    source: IntArray
    targets: IntArray
    indptr: IntArray
    edge: Int32Array
    load: AnyArray

    @classmethod
    def none(cls) -> Rows:
        """No rows."""
        whole = np.zeros(0, np.int64)
        return cls(whole, whole, np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))

    def chosen(self, kept: AnyArray) -> Rows:
        """Return the rows that a mask (rows,) keeps."""
        length = np.diff(self.indptr)
        entries = np.repeat(kept, length)
        indptr = np.concatenate([[0], np.cumsum(length[kept])])
        return Rows(self.source[kept], self.targets[kept], indptr, self.edge[entries], self.load[entries])

    def joined(self, other: Rows) -> Rows:
        """Return these rows, then the others."""
        parts: list[Any] = [np.concatenate(pair) for pair in zip(self, other, strict=True)]  # type: ignore[arg-type]
        parts[2] = np.concatenate([self.indptr, self.indptr[-1] + other.indptr[1:]])
        return Rows(*parts)


class _Tree(NamedTuple):
    """What Dijkstra's algorithm fills, by place in the order of reaching and by node, and its heap.

    Attributes
    ----------
    order : (n,) nodes as they are reached, the source first; ``up`` : (n,) the place in ``order`` of the node before;
        ``over`` : (n,) the pair between
    rank : (n,) place in ``order`` by node, -1 before it is reached; ``parent``, ``by`` : (n,) node and pair before
    heap, place, key, size : as of :mod:`nmsolve.heuristics.mapping.common.heap`; keys are distances below 0
    met : (M,) 1 where one of a message's terminals was reached; empty without messages
    """

    order: IntArray
    up: IntArray
    over: IntArray
    rank: IntArray
    parent: IntArray
    by: IntArray
    heap: Int32Array
    place: Int32Array
    key: FloatArray
    size: IntArray
    met: AnyArray


@kernel
def new_tree(n: int, messages: int) -> _Tree:
    """Return arrays for a network of n nodes and this many messages."""
    return _Tree(
        np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64),
        np.empty(n, np.int64), np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n), np.zeros(1, np.int64),
        np.zeros(messages, np.int8),
    )  # fmt: skip


@plain
def grow(source: int, most: int, net: Network, t: _Tree) -> int:
    """Dijkstra's algorithm from ``source`` until ``most`` other nodes are reached; how many are."""
    t.rank[:], t.place[:], t.size[0] = -1, -1, 0
    t.key[source], t.up[0], t.over[0] = 0.0, -1, -1
    push(t.heap, t.place, t.key, t.size, source)
    reached, met = 0, t.met
    met[:] = 0
    while t.size[0] > 0 and reached <= most:
        u = t.heap[0]
        remove(t.heap, t.place, t.key, t.size, u)
        t.order[reached], t.rank[u] = u, reached
        if reached > 0:
            t.up[reached], t.over[reached] = t.rank[t.parent[u]], t.by[u]
        reached += 1
        for k in range(net.indptr[u], net.indptr[u + 1]):
            e = net.edge[k]
            new = t.key[u] - net.length[e]
            if len(met) == 0:
                _reach(u, net.node[k], new, e, t)
            elif met[e] == 0:  # whoever comes to a message first is nearest to all its terminals
                met[e] = 1
                many = net.start[e + 1] - net.start[e]
                for j in range(many):
                    if j != net.place[k]:
                        pair = pair_number(net.first[e], many, net.place[k], j)
                        _reach(u, net.pin[net.start[e] + j], new, pair, t)
    return reached - 1


@embedded
def _reach(u: int, v: int, new: float, pair: int, t: _Tree) -> None:
    """From ``u`` node ``v`` is reached with this key, over this pair."""
    known = t.place[v] >= 0
    if t.rank[v] >= 0 or (known and new <= t.key[v]):
        return
    t.key[v], t.parent[v], t.by[v] = new, u, pair
    if known:
        changed(t.heap, t.place, t.key, t.size, v)
    else:
        push(t.heap, t.place, t.key, t.size, v)


@kernel
def find_rows(
    sources: IntArray, most: int, net: Network, least: FloatArray, at: FloatArray
) -> tuple[IntArray, IntArray, IntArray, Int32Array, AnyArray, FloatArray]:
    """Rows that the lengths of pairs violate, at most two from each of ``sources``: of all k up to ``most``, and of few.

    Parameters
    ----------
    at : (n, G) where every node lies: shares of the groups whose sums ``least`` (G, n) are asked for

    Returns
    -------
    source, targets, indptr, edge, load as of :class:`Rows`, and (sources,) the least sum of lengths over the least of distances
    """
    n, groups = len(net.indptr) - 1, len(least)
    t = new_tree(n, max(0, len(net.start) - 1))
    below = np.empty(n, np.int64)
    room = 2 * len(sources)
    who, many = np.empty(room, np.int64), np.empty(room, np.int64)
    starts = np.zeros(room + 1, np.int64)
    crossed, load = np.empty(room * most, np.int32), np.empty(room * most, np.float32)
    worst = np.full(len(sources), np.inf)
    rows, filled = 0, 0
    for s in range(len(sources)):
        u = sources[s]
        reached = grow(u, most, net, t)
        best, best_few, k_best, k_few, total = np.inf, np.inf, 0, 0, 0.0
        for k in range(1, reached + 1):
            total -= t.key[t.order[k]]
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
