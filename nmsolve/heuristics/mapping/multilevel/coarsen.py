"""Smaller graphs in place of a graph: coarser levels, and samples of the connections where there are many.

Coarsening is by locally heaviest edges, where nodes propose to each other, and two that chose each other become one; or, before
annealing, by label propagation to clusters of several nodes.

Where a node has hundreds of neighbours, a sample of them pulls it the same way. A connection of weight w is kept with the
probability min(1, w / T), and then weighs max(w, T): every mapping has the same expected cost as on the whole network, and the
variances of the weights add up to the least for that expected number of them (threshold sampling: Duffield, Lund and Thorup, IEEE
Trans. Inf. Theory 51(5), 2005). It is searched in a fraction of the time; a descent on the whole has to follow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nmsolve.heuristics.mapping.common.labels import members, number_labels
from nmsolve.heuristics.mapping.common.nodes import merged_nodes
from nmsolve.heuristics.mapping.multilevel.graph import Graph, alike
from nmsolve.heuristics.mapping.multilevel.threads import ALONE, GRAIN, Threads
from nmsolve.heuristics.rng import next_bits, shuffle, uniform
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.splitmix import mix
from nmsolve.model.types import AnyArray, FloatArray, Int32Array, IntArray

#: Rounds of proposals at most; the next is not begun once one matched less than this part of the nodes.
ROUNDS, FEW = 5, 0.02
#: Rounds of label propagation.
PROPAGATIONS = 3
#: The mean number of neighbours in a sample. Networks with fewer than twice as many stay whole.
NEIGHBOURS = 64
#: The threshold is found on this many connections.
LOOKED_AT = 100_000


@plain
def _propose(
    begin: int,
    end: int,
    g: Graph,
    mate: Int32Array,
    choice: Int32Array,
    most: float,
    seed: int,
    inside: Int32Array,
) -> None:
    """Let every free node choose the free neighbour with the most traffic for their volumes; ties by a hash of the edge."""
    for v in range(begin, end):
        choice[v] = -1
        if mate[v] >= 0:
            continue
        best, rating, tie = -1, -1.0, np.uint64(0)
        for e in range(g.ptr[v], g.ptr[v + 1]):
            u = g.neighbour[e]
            if mate[u] >= 0 or g.volume[u] + g.volume[v] > most or not alike(g, u, v):
                continue
            if len(inside) > 0 and inside[u] != inside[v]:
                continue
            w = float(g.weight[e])
            r = w * w / (g.volume[u] * g.volume[v])
            if r < rating:
                continue
            low, high = min(u, v), max(u, v)
            h = mix(np.uint64(low) * np.uint64(4294967291) + np.uint64(high) + np.uint64(seed))
            if r > rating or h > tie:
                best, rating, tie = u, r, h
        choice[v] = best


@plain
def _match(begin: int, end: int, mate: Int32Array, choice: Int32Array) -> int:
    """Join those that chose each other; return how many nodes."""
    count = 0
    for v in range(begin, end):
        u = choice[v]
        if u >= 0 and choice[u] == v:
            mate[v] = u
            count += 1
    return count


@kernel
def _join_rest(g: Graph, mate: Int32Array, most: float, inside: Int32Array) -> Int32Array:
    """Return the first node of every node's pair (n,); a single node joins the pair it talks to most for their volumes, or
    another single one with the same heaviest neighbour."""
    n = len(mate)
    lead, volume, waiting = np.empty(n, np.int32), np.empty(n), np.empty(n, np.int32)
    for v in range(n):
        waiting[v] = -1
        u = mate[v]
        lead[v] = v if u < 0 or v < u else u
        volume[v] = g.volume[v] + (g.volume[u] if u > v else 0.0)
    for v in range(n):
        if mate[v] >= 0 or lead[v] != v or volume[v] != g.volume[v]:
            continue
        best, rating, hub, heaviest = -1, 0.0, -1, 0.0
        for e in range(g.ptr[v], g.ptr[v + 1]):
            u = g.neighbour[e]
            if not alike(g, u, v) or (len(inside) > 0 and inside[u] != inside[v]):
                continue
            c, w = lead[u], float(g.weight[e])
            if c == v or mate[c] == c:
                continue
            if w > heaviest:
                hub, heaviest = c, w
            r = w * w / (volume[c] * g.volume[v])
            if r > rating and volume[c] + g.volume[v] <= most:
                best, rating = c, r
        if best < 0 and hub >= 0:
            other = waiting[hub]
            waiting[hub] = v
            if other >= 0 and lead[other] == other and volume[other] + g.volume[v] <= most:
                best, waiting[hub] = other, -1
        if best >= 0:
            lead[v] = best
            volume[best] += g.volume[v]
    return lead


@plain
def _pair(mate: Int32Array, lead: Int32Array) -> None:
    """Write the first node of every pair to ``lead``; single nodes stay alone."""
    for v in range(len(mate)):
        lead[v] = v if mate[v] < 0 or v < mate[v] else mate[v]


@kernel
def _merged(
    begin: int, end: int, g: Graph, label: Int32Array, start: IntArray, member: Int32Array, degree: IntArray
) -> tuple[Int32Array, AnyArray]:
    """Return neighbours and weights of the clusters ``begin`` to ``end``, and write how many each has to ``degree``."""
    entries = 0
    for i in range(start[begin], start[end]):
        entries += g.ptr[member[i] + 1] - g.ptr[member[i]]
    neighbour, weight = np.empty(entries, np.int32), np.empty(entries, np.float32)
    at = np.full(len(start) - 1, -1, np.int64)
    k = 0
    for c in range(begin, end):
        first = k
        for i in range(start[c], start[c + 1]):
            v = member[i]
            for e in range(g.ptr[v], g.ptr[v + 1]):
                d = label[g.neighbour[e]]
                if d == c:
                    continue
                p = at[d]
                if p >= first:
                    weight[p] += g.weight[e]
                else:
                    at[d] = k
                    neighbour[k] = d
                    weight[k] = g.weight[e]
                    k += 1
        degree[c] = k - first
    return neighbour[:k], weight[:k]


def coarser(
    g: Graph, most: float, seed: int, join: bool, inside: Int32Array, threads: Threads
) -> tuple[Graph, Int32Array]:
    """Return a coarser graph and the cluster of every node (n,) int32. Nodes that are to be apart from others stay alone.

    Parameters
    ----------
    most : volume of a cluster
    join : whether single nodes join pairs, so that clusters may have three nodes and more
    inside : (n,) int32, clusters have members with equal numbers only; or (0,)
    """
    n = len(g.volume)
    mate, choice = np.full(n, -1, np.int32), np.empty(n, np.int32)
    alone = np.flatnonzero(np.diff(g.apart_ptr)).astype(np.int32)
    mate[alone] = alone
    for number in range(ROUNDS):
        threads.over(_propose, n, g, mate, choice, most, seed * ROUNDS + number, inside)
        if sum(threads.over(_match, n, mate, choice)) < FEW * n:
            break
    if join:
        label = _join_rest(g, mate, most, inside)
    else:
        label = np.empty(n, np.int32)
        _pair(mate, label)
    return contracted(g, label, threads), label


def contracted(g: Graph, label: Int32Array, threads: Threads) -> Graph:
    """Return the graph of clusters; ``label`` (n,) calls each by any number in range, and then by 0, 1, ..."""
    k = number_labels(label)
    start, member = members(label, k)
    degree = np.empty(k, np.int64)
    parts = threads.over(_merged, k, g, label, start, member, degree, grain=2 * GRAIN)
    ptr = np.zeros(k + 1, np.int64)
    np.cumsum(degree, out=ptr[1:])
    kind = np.zeros(k if len(g.kind) else 0, np.int32)
    if len(kind):
        kind[label] = g.kind
    neighbour = np.concatenate([one for one, _ in parts])
    weight = np.concatenate([one for _, one in parts])
    return Graph(ptr, neighbour, weight, *merged_nodes(g[3:8], label, k), kind)


@kernel
def _propagate(
    g: Graph,
    label: Int32Array,
    filled: FloatArray,
    inside: Int32Array,
    most: float,
    order: Int32Array,
    rng: AnyArray,
) -> int:
    """Let each node of ``order`` join the cluster with room that it talks to most, ties by chance; return how many moved."""
    n, moves = len(label), 0
    heard, touched = np.zeros(n, np.float32), np.empty(n, np.int32)
    for u in order:
        if g.apart_ptr[u + 1] > g.apart_ptr[u]:
            continue
        own, k = label[u], 0
        for e in range(g.ptr[u], g.ptr[u + 1]):
            c = label[g.neighbour[e]]
            if heard[c] == 0.0:
                touched[k] = c
                k += 1
            heard[c] += g.weight[e]
        best, loudest = own, heard[own]
        for i in range(k):
            c = touched[i]
            if c == own or heard[c] < loudest or not alike(g, c, u):
                continue
            if filled[c] + g.volume[u] > most or g.apart_ptr[c + 1] > g.apart_ptr[c]:
                continue
            if len(inside) > 0 and inside[c] != inside[u]:
                continue
            if heard[c] > loudest or uniform(rng) < 0.5:
                best, loudest = c, heard[c]
        for i in range(k):
            heard[touched[i]] = 0.0
        if best != own:
            filled[own] -= g.volume[u]
            filled[best] += g.volume[u]
            label[u] = best
            moves += 1
    return moves


def clustered(g: Graph, most: float, inside: Int32Array, rng: AnyArray) -> tuple[Graph, Int32Array]:
    """Return a graph of clusters of several nodes, and the cluster of every node (n,) int32: label propagation.

    Where neighbours have neighbours in common it finds who belongs together better than pairs do (by 4 % on a ring of 30,000
    nodes in which a tenth of the edges lead anywhere). Rows are in order; parameters as of :func:`coarser`.
    """
    n = len(g.volume)
    label, filled, order = np.arange(n, dtype=np.int32), g.volume.copy(), np.arange(n, dtype=np.int32)
    for _ in range(PROPAGATIONS):
        shuffle(rng, order)
        if _propagate(g, label, filled, inside, most, order, rng) < n // 100:
            break
    return in_rows(contracted(g, label, ALONE)), label


@kernel
def _transpose(indptr: IntArray, indices: Int32Array, weights: AnyArray) -> tuple[Int32Array, AnyArray]:
    """Indices and weights of the transpose of a symmetric CSR: the same matrix with sorted rows."""
    fill = indptr[:-1].copy()
    idx, w = np.empty_like(indices), np.empty_like(weights)
    for c in range(len(indptr) - 1):
        for e in range(indptr[c], indptr[c + 1]):
            d = indices[e]
            idx[fill[d]] = c
            w[fill[d]] = weights[e]
            fill[d] += 1
    return idx, w


@kernel
def _permute_rows(
    indptr: IntArray, indices: Int32Array, weights: AnyArray, order: Int32Array, name: Int32Array
) -> tuple[IntArray, Int32Array, AnyArray]:
    """Rows in the given order, with columns renamed; rows unsorted."""
    ptr = np.zeros_like(indptr)
    idx, w = np.empty_like(indices), np.empty_like(weights)
    for i in range(len(order)):
        u, end = order[i], ptr[i]
        for e in range(indptr[u], indptr[u + 1]):
            idx[end] = name[indices[e]]
            w[end] = weights[e]
            end += 1
        ptr[i + 1] = end
    return ptr, idx, w


def renumber(g: Graph, order: Int32Array) -> Graph:
    """The same graph with node ``order[i]`` as node ``i`` (neighbours in memory are then neighbours on the board)."""
    name = np.empty_like(order)
    name[order] = np.arange(len(order), dtype=order.dtype)
    ptr, neighbour, weight = _permute_rows(g.ptr, g.neighbour, g.weight, order, name)
    apart_ptr, apart = g.apart_ptr, g.apart
    if len(apart):
        apart_ptr, apart, _ = _permute_rows(
            g.apart_ptr, g.apart, np.zeros(len(g.apart), np.float32), order, name
        )
    kind = g.kind[order] if len(g.kind) else g.kind
    return in_rows(
        Graph(
            ptr, neighbour, weight, g.sizes[order], g.volume[order], g.domain[order], apart_ptr, apart, kind
        )
    )


def in_rows(g: Graph) -> Graph:
    """Return the same graph with the neighbours of every node in rising order."""
    neighbour, weight = _transpose(g.ptr, g.neighbour, g.weight)
    return g._replace(neighbour=neighbour, weight=weight)


def is_dense(g: Graph) -> bool:
    """Return whether the network is searched by samples."""
    return len(g.neighbour) >= 2 * NEIGHBOURS * len(g.volume)


def thinned(g: Graph, rng: AnyArray) -> Graph:
    """The network with about :data:`NEIGHBOURS` neighbours per node, or ``g`` itself if it has few enough."""
    if not is_dense(g):
        return g
    most = NEIGHBOURS * len(g.volume)
    some = g.weight[:: max(1, len(g.neighbour) // LOOKED_AT)].astype(np.float64)
    least = threshold(some, most / len(g.neighbour))
    ptr, neighbour, weight = _sample(g.ptr, g.neighbour, g.weight, least, rng)
    return g._replace(ptr=ptr, neighbour=neighbour, weight=weight)


def threshold(weights: FloatArray, share: float) -> float:
    """The T for which min(1, w / T) has the mean ``share`` (0 to 1) over ``weights`` (k,), which are not negative."""
    rising = np.sort(weights[weights > 0])
    sums, left = np.cumsum(rising), np.arange(len(rising) - 1, -1, -1)
    kept = share * len(weights)
    # those up to T: with T = rising[i] this sum is kept
    k = int(np.count_nonzero(sums / rising + left >= kept))
    return float(sums[k - 1] / (kept - (len(rising) - k))) if k else 0.0


@kernel
def _sample(
    indptr: IntArray, indices: Int32Array, weights: AnyArray, least: float, rng: AnyArray
) -> tuple[IntArray, Int32Array, AnyArray]:
    """CSR of the connections that are kept; both directions draw the same number."""
    n, key = len(indptr) - 1, next_bits(rng)
    ptr = np.zeros(n + 1, np.int64)
    for u in range(n):
        count = 0
        for e in range(indptr[u], indptr[u + 1]):
            if _kept(u, indices[e], weights[e], least, key):
                count += 1
        ptr[u + 1] = ptr[u] + count
    idx, w = np.empty(ptr[n], np.int32), np.empty(ptr[n], np.float32)
    end = 0
    for u in range(n):
        for e in range(indptr[u], indptr[u + 1]):
            if _kept(u, indices[e], weights[e], least, key):
                idx[end] = indices[e]
                w[end] = max(weights[e], np.float32(least))
                end += 1
    return ptr, idx, w


@plain
def _kept(u: int, v: int, weight: float, least: float, key: Any) -> bool:
    """Whether the connection between two nodes is in the sample of this key."""
    if weight >= least:
        return True
    pair = (np.uint64(min(u, v)) << np.uint64(32)) | np.uint64(max(u, v))
    return float(mix(key ^ mix(pair)) >> np.uint64(11)) * (least / 9007199254740992.0) < weight
