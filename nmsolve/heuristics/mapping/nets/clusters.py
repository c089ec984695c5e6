"""Clusters for coarse levels of net objectives: every vertex joins where the messages that reach it come from.

Label propagation under a size limit (Raghavan, Albert, Kumara 2007, with the size limit of Meyerhenke, Sanders,
Schulz 2014): threads judge a batch of vertices from frozen labels, one accepts them in order, so that the answer does
not depend on how many threads work.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.nets.incidence import Incidence, Piece, at_once, unpack
from nmsolve.heuristics.mapping.nets.state import Vertices
from nmsolve.model.compiled import plain
from nmsolve.model.types import AnyArray, FloatArray, Int32Array, IntArray

#: Passes over all vertices, and batches per pass.
PASSES, BATCHES = 4, 50


class Groups(NamedTuple):
    """``label`` (n,) the cluster of every vertex, and what may be together.

    ``size`` (n, R) what each cluster holds, at most ``limit`` (R,); ``sizes`` (n, R) of the vertices, ``kind`` (n,) equal
    where two may share a cluster, ``alone`` (n,) 1 where a vertex stays by itself.
    """

    sizes: IntArray
    kind: IntArray
    alone: AnyArray
    limit: IntArray
    label: Int32Array
    size: IntArray


def clusters(
    vertices: Vertices,
    lists: Incidence,
    source: Int32Array,
    rate: FloatArray,
    limit: IntArray,
    seed: int,
    workers: int,
    should_stop: Callable[[], bool] = lambda: False,
    core: AnyArray | None = None,
) -> tuple[Int32Array, int]:
    """(n,) cluster of every vertex, numbered in random order, and how many there are.

    Parameters
    ----------
    source, rate : (rows,) vertex that each message starts from, and how often it is sent
    limit : (resources,) most that a cluster may hold
    core : (n,) core of every vertex, if clusters are to stay within cores
    """
    n = vertices.n
    label = np.arange(n, dtype=np.int32)
    alone = (np.diff(vertices.apart_ptr) > 0).astype(np.uint8)
    wish = np.zeros(n, np.int32)
    kind = vertices.domain_of.astype(np.int64)
    if len(vertices.kind_of):
        kind = kind * (int(vertices.kind_of.max()) + 1) + vertices.kind_of
    if core is not None:
        kind += (int(kind.max()) + 1) * core.astype(np.int64)
    s = Groups(vertices.sizes, kind, alone, limit, label, vertices.sizes.copy())
    longest = int(np.diff(lists.at).max(initial=0)) + 1
    rows = [np.zeros(longest, np.int32) for _ in range(workers)]
    scores = [np.zeros(n) for _ in range(workers)]

    def wishes(piece: Piece, k: int, begin: int, end: int) -> None:
        _wishes(piece, begin, end, source, rate, s, rows[k], scores[k], wish)

    with ThreadPoolExecutor(workers) as pool:
        for _ in range(PASSES):
            for first, last in lists.pieces():
                piece = lists.read(first, last)
                step = max(1, min(last - first, -(-n // BATCHES)))
                for begin in range(first, last, step):
                    if should_stop():
                        return _renumber(label, seed)
                    end = min(last, begin + step)
                    at_once(pool, workers, begin, end, partial(wishes, piece))
                    _join(begin, end, wish, s)
    return _renumber(label, seed)


def _renumber(label: Int32Array, seed: int) -> tuple[Int32Array, int]:
    """Numbers 0 to k - 1 in random order for the labels that are in use."""
    used, dense = np.unique(label, return_inverse=True)
    order = np.random.default_rng([seed & (2**63 - 1), len(used)]).permutation(len(used)).astype(np.int32)
    return order[dense], len(used)


@plain
def _wishes(
    piece: Piece,
    begin: int,
    end: int,
    source: Int32Array,
    rate: FloatArray,
    s: Groups,
    rows: Int32Array,
    score: FloatArray,
    wish: Int32Array,
) -> None:
    """The cluster from which each vertex hears most, of those with room; ``score`` (n,) is 0 between calls."""
    data, base, at = piece.data, piece.base, piece.at
    sizes, kind, alone = s.sizes, s.kind, s.alone
    limit, label, size = s.limit, s.label, s.size
    for v in range(begin, end):
        wish[v] = label[v]
        many = unpack(data, at[v] - base, at[v + 1] - base, rows)
        if alone[v]:
            continue
        for row in rows[:many]:
            score[label[source[row]]] += rate[row]
        best = score[label[v]]
        for row in rows[:many]:
            other = label[source[row]]
            heard = score[other]
            score[other] = 0.0
            if heard <= best or other == label[v] or alone[source[row]] or kind[source[row]] != kind[v]:
                continue
            room = True
            for r in range(len(limit)):
                room = room and size[other, r] + sizes[v, r] <= limit[r]
            if room:
                best, wish[v] = heard, other
        score[label[v]] = 0.0


@plain
def _join(begin: int, end: int, wish: Int32Array, s: Groups) -> None:
    """Let vertices join the clusters they wish while these have room."""
    sizes, limit, label = s.sizes, s.limit, s.label
    size = s.size
    for v in range(begin, end):
        old, new = label[v], wish[v]
        room = old != new
        for r in range(len(limit)):
            room = room and size[new, r] + sizes[v, r] <= limit[r]
        if room:
            for r in range(len(limit)):
                size[old, r] -= sizes[v, r]
                size[new, r] += sizes[v, r]
            label[v] = new
