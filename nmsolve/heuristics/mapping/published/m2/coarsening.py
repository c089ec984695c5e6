"""M2.2: coarsening by pairing vertices over their heaviest connection."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nmsolve.heuristics.mapping.published.m2.topology import Level, Piece
from nmsolve.model.compiled import plain
from nmsolve.model.types import Int32Array, IntArray

#: A merged vertex may take at most this fraction of a core (steps S2 of the source).
FRACTION = 15
#: Coarsening ends with the first level that removes less than this share of the vertices.
LEAST_SHRINK = 0.20


def coarsening(
    top: Level, capacity: IntArray, tries: int, rng: np.random.Generator, poll: Callable[[], None]
) -> list[tuple[Level, Int32Array]]:
    """M2.2: contract heaviest-edge pairs level by level.

    Vertices are visited in random order; one is paired with the neighbour over its heaviest connection if
    neither is paired and the merged size is <= ``capacity / 15``. The pass is repeated ``tries`` (4 to 8)
    times with other orders and the one that removes the most edge weight is kept. Levels follow until one
    shrinks the vertex count by less than 20 % (that level is kept if it merged anything).

    Parameters
    ----------
    capacity : (R,) int64, what one core holds

    Returns
    -------
    One entry per level: the finer topology and the (n,) int32 coarse vertex of each of its vertices; the
    last entry is the coarsest topology with an empty map.

    Notes
    -----
    Deviations: the size rule holds for every resource; of several equally heavy connections one that allows
    a pair is taken (the source says nothing about ties; unit weights would otherwise not coarsen at all);
    see also :func:`nmsolve.heuristics.mapping.published.m2.topology.kinds`.
    """
    levels: list[tuple[Level, Int32Array]] = []
    while True:
        poll()
        best, best_removed, best_pairs = np.arange(top.n, dtype=np.int32), -1.0, 0
        for _ in range(tries):
            mate = np.full(top.n, -1, np.int32)
            removed, pairs = 0.0, 0
            for piece in top.pieces(rng):
                order = rng.permutation(len(piece.indptr) - 1)
                more, found = _pair(piece, top.sizes, top.kind, capacity, order, mate)
                removed, pairs = removed + more, pairs + found
                poll()
            if removed > best_removed:
                best, best_removed, best_pairs = mate, removed, pairs
        if best_pairs == 0:
            break
        coarse = np.empty(top.n, np.int32)
        _number(best, coarse)
        levels.append((top, coarse))
        before, top = top.n, top.contracted(coarse, top.n - best_pairs)
        if best_pairs < LEAST_SHRINK * before:
            break
    levels.append((top, np.empty(0, np.int32)))
    return levels


@plain
def _pair(
    piece: Piece, sizes: IntArray, kind: Int32Array, capacity: IntArray, order: IntArray, mate: Int32Array
) -> tuple[float, int]:
    """One pass over the vertices of ``piece``, of which ``order`` counts; fills ``mate`` (-1: alone) and returns the weight
    removed and the number of pairs."""
    first, indptr, indices, weights = piece
    removed, pairs = 0.0, 0
    for i in order:
        u = first + i
        if mate[u] >= 0 or kind[u] < 0:
            continue
        heaviest = -1.0
        for e in range(indptr[i], indptr[i + 1]):
            heaviest = max(heaviest, weights[e])
        for e in range(indptr[i], indptr[i + 1]):
            v = indices[e]
            if weights[e] < heaviest or mate[v] >= 0 or kind[v] != kind[u]:
                continue
            fits = True
            for r in range(len(capacity)):
                fits = fits and FRACTION * (sizes[u, r] + sizes[v, r]) <= capacity[r]
            if fits:
                mate[u], mate[v] = v, u
                removed += weights[e]
                pairs += 1
                break
    return removed, pairs


@plain
def _number(mate: Int32Array, coarse: Int32Array) -> None:
    """Coarse vertex numbers in order of the first vertex of each pair."""
    used = 0
    for u in range(len(mate)):
        if mate[u] < 0 or mate[u] > u:
            coarse[u] = used
            used += 1
        else:
            coarse[u] = coarse[mate[u]]
