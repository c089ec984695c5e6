"""Coarsening by locally heaviest edges: nodes propose to each other, and two that chose each other become one."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.common.labels import members, number_labels
from nmsolve.heuristics.mapping.deep.graph import Graph
from nmsolve.heuristics.mapping.deep.threads import GRAIN, Threads
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.splitmix import mix
from nmsolve.model.types import AnyArray, FloatArray, Int32Array, IntArray

#: Rounds of proposals at most; the next is not begun once one matched less than this part of the nodes.
ROUNDS, FEW = 5, 0.02


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
            if mate[u] >= 0 or g.volume[u] + g.volume[v] > most or g.domain[u] != g.domain[v]:
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
            if g.domain[u] != g.domain[v] or (len(inside) > 0 and inside[u] != inside[v]):
                continue
            c, w = lead[u], float(g.weight[e])
            if c == v:
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


@plain
def _sum_up(g: Graph, label: Int32Array, sizes: IntArray, volume: FloatArray, domain: Int32Array) -> None:
    """Add up what the members of every cluster take."""
    for v in range(len(label)):
        c = label[v]
        for r in range(sizes.shape[1]):
            sizes[c, r] += g.sizes[v, r]
        volume[c] += g.volume[v]
        domain[c] = g.domain[v]


def coarser(
    g: Graph, most: float, seed: int, join: bool, inside: Int32Array, threads: Threads
) -> tuple[Graph, Int32Array]:
    """Return a coarser graph and the cluster of every node (n,) int32.

    Parameters
    ----------
    most : volume of a cluster
    join : whether single nodes join pairs, so that clusters may have three nodes and more
    inside : (n,) int32, clusters have members with equal numbers only; or (0,)
    """
    n = len(g.volume)
    mate, choice = np.full(n, -1, np.int32), np.empty(n, np.int32)
    for number in range(ROUNDS):
        threads.over(_propose, n, g, mate, choice, most, seed * ROUNDS + number, inside)
        if sum(threads.over(_match, n, mate, choice)) < FEW * n:
            break
    if join:
        label = _join_rest(g, mate, most, inside)
    else:
        label = np.empty(n, np.int32)
        _pair(mate, label)
    k = number_labels(label)
    start, member = members(label, k)
    degree = np.empty(k, np.int64)
    parts = threads.over(_merged, k, g, label, start, member, degree, grain=2 * GRAIN)
    ptr = np.zeros(k + 1, np.int64)
    np.cumsum(degree, out=ptr[1:])
    sizes, volume, domain = np.zeros((k, g.sizes.shape[1]), np.int64), np.zeros(k), np.empty(k, np.int32)
    _sum_up(g, label, sizes, volume, domain)
    neighbour = np.concatenate([one for one, _ in parts])
    weight = np.concatenate([one for _, one in parts])
    return Graph(ptr, neighbour, weight, sizes, volume, domain), label
