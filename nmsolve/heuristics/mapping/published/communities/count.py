"""M1.3: exactly as many communities as processors, none larger than the largest processor."""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np

from nmsolve.heuristics.mapping.published.communities.louvain import louvain
from nmsolve.heuristics.mapping.published.m2.bisection import bisection
from nmsolve.heuristics.mapping.published.m2.topology import Topology, induced
from nmsolve.model.types import AnyArray, BoolArray, FloatArray, Int32Array, IntArray


def communities(
    top: Topology, number: int, most: IntArray, rng: np.random.Generator, poll: Callable[[], None]
) -> Int32Array:
    """M1.3: Louvain communities, brought to exactly ``number`` (some empty if there are fewer vertices).

    The source only asks that the number be right. Here: while there are too many, the smallest community joins
    the one it is most connected with among those it fits together with, without any the next smallest; where
    that does not fit either, it is dissolved and its vertices go, largest first, where they are most connected
    and fit. While there are too few, the largest is halved by M2.3.

    Parameters
    ----------
    most : (R,) int64, the size limit of a community: what the largest processor has free

    Returns
    -------
    (n,) int32 community of every vertex, below ``number``.
    """
    group, found = louvain(top, most, rng, poll)
    group = _merge(top, group, found, number, most, poll)
    while True:
        poll()
        count = np.bincount(group, minlength=number)
        share = _share(top.sizes, group, number, most)
        largest = int(np.argmax(np.where(count > 1, share, -1.0)))
        empty = np.flatnonzero(count == 0)
        if len(empty) == 0 or count[largest] < 2:
            return group
        nodes = np.flatnonzero(group == largest)
        half, _ = bisection(induced(top, nodes), np.ones(len(nodes)), len(nodes) // 2, 8, rng, poll)
        group[nodes[half]] = empty[0]


def _share(sizes: IntArray, group: Int32Array, number: int, most: IntArray) -> FloatArray:
    """Return (number,) float64: size of every community as a share of ``most``, or of all vertices."""
    load = np.zeros((number, sizes.shape[1]), np.int64)
    np.add.at(load, group, sizes)
    count = np.bincount(group, minlength=number) / max(1, len(group))
    return np.asarray((load / np.maximum(most, 1)).max(axis=1, initial=0.0) + 1e-6 * count)


def _merge(
    top: Topology, group: Int32Array, found: int, number: int, most: IntArray, poll: Callable[[], None]
) -> Int32Array:
    """Merge or dissolve the smallest communities until there are at most ``number``."""
    small = top.contracted(group, found)
    links: list[dict[int, float]] = [{} for _ in range(found)]
    source = np.repeat(np.arange(found), np.diff(small.indptr))
    for a, b, w in zip(source.tolist(), small.indices.tolist(), small.weights.tolist(), strict=True):
        links[a][b] = w
    load = small.sizes.astype(np.int64)
    share = _share(top.sizes, group, found, most)
    into = np.arange(found)
    alive = np.ones(found, bool)
    queue = [(share[k], k) for k in range(found)]
    heapq.heapify(queue)
    dissolved, left = False, found
    while left > number:
        poll()
        a = _pop(queue, alive, share)
        fitting = [b for b in links[a] if bool((load[a] + load[b] <= most).all())]
        if fitting:
            b = max(fitting, key=lambda k: (links[a][k], -share[k], -k))
        else:
            b = _pop(queue, alive, share)
            heapq.heappush(queue, (share[b], b))
        alive[a] = False
        left -= 1
        for c in links[a]:
            del links[c][a]
        if not fitting and not bool((load[a] + load[b] <= most).all()):
            dissolved = True
            continue
        into[a] = b
        load[b] += load[a]
        share[b] += share[a]
        heapq.heappush(queue, (share[b], b))
        for c, w in links[a].items():
            if c != b:
                links[b][c] = links[c][b] = links[b].get(c, 0.0) + w
    for k in range(found):  # follow chains of mergers
        while into[into[k]] != into[k]:
            into[k] = into[into[k]]
    name = np.full(found, -1, np.int32)
    name[alive] = np.arange(left, dtype=np.int32)
    out = name[into[group]]
    if dissolved:
        seat_loose(top, out, load[alive], most, np.ones((top.n, left), bool))
    return out


def _pop(queue: list[tuple[float, int]], alive: BoolArray, share: FloatArray) -> int:
    """Take the smallest living community from a heap that also holds outdated entries."""
    while True:
        value, k = heapq.heappop(queue)
        if alive[k] and value == share[k]:
            return k


def seat_loose(top: Topology, group: AnyArray, load: IntArray, room: IntArray, allowed: BoolArray) -> None:
    """Give every vertex without a group (-1) to the one with room that it is most connected with.

    Parameters
    ----------
    group : (n,) changes, as does ``load`` (k, R), what all groups hold; ``room`` (k, R) or (R,), what they may hold
    allowed : (n, k) where every vertex may go, which counts most; those with few choices choose first
    """
    fullest = np.maximum(np.atleast_2d(room).max(axis=0, initial=1), 1)
    weight = (top.sizes / fullest).max(axis=1, initial=0.0)
    loose = np.flatnonzero(group < 0)
    for u in loose[np.lexsort((-weight[loose], allowed[loose].sum(axis=1)))].tolist():
        pull = np.zeros(len(load))
        edges = slice(top.indptr[u], top.indptr[u + 1])
        there = group[top.indices[edges]]
        np.add.at(pull, there[there >= 0], top.weights[edges][there >= 0])
        fits = (load + top.sizes[u] <= room).all(axis=1)
        filled = (load / np.maximum(room, 1)).max(axis=1, initial=0.0)
        best = int(np.lexsort((filled, -pull, ~fits, ~allowed[u]))[0])
        group[u] = best
        load[best] += top.sizes[u]
