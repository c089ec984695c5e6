"""M2.4: uncoarsening with refinement of the cut under the capacity."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nmsolve.heuristics.mapping.published.m2.bisection import SLICE
from nmsolve.heuristics.mapping.published.m2.topology import Level, Piece
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import Int32Array, IntArray


def uncoarsening(
    levels: list[tuple[Level, Int32Array]],
    part: Int32Array,
    parts: int,
    capacity: IntArray,
    rng: np.random.Generator,
    poll: Callable[[], None],
) -> Int32Array:
    """M2.4: refine at every level, undo one contraction, down to the original topology.

    One pass per level visits the vertices in random order. Moving a vertex to part k costs ``w_own - w_k``
    (weights of its connections into its own part and into k); it goes to the part of least negative cost
    that keeps ``capacity``, else to the next best.

    Parameters
    ----------
    levels : what :func:`coarsening` returned
    part : (vertices of the coarsest level,) int32 part numbers below ``parts``
    capacity : (R,) int64 per part

    Returns
    -------
    (n,) int32 part of every original vertex.

    Notes
    -----
    Deviation: where parts exceed the capacity (only after :func:`split_into`), vertices first leave them
    for the part with room that costs least.
    """
    for depth in range(len(levels) - 1, -1, -1):
        top, coarse = levels[depth]
        if depth < len(levels) - 1:
            part = part[coarse]
        else:
            part = part.copy()
        load = np.zeros((parts, top.sizes.shape[1]), np.int64)
        np.add.at(load, part, top.sizes)
        for relieve in (True, False):
            if relieve and bool((load <= capacity).all()):
                continue
            for piece in top.pieces(rng):
                order, at = rng.permutation(len(piece.indptr) - 1), 0
                while at < len(order):
                    at = _refine(piece, top.sizes, capacity, load, part, order, at, relieve, SLICE)
                    poll()
    return part


@plain
def _fits(size: IntArray, load: IntArray, capacity: IntArray) -> bool:
    fits = True
    for r in range(len(capacity)):
        fits = fits and load[r] + size[r] <= capacity[r]
    return fits


@kernel
def _refine(
    piece: Piece,
    sizes: IntArray,
    capacity: IntArray,
    load: IntArray,
    part: Int32Array,
    order: IntArray,
    at: int,
    relieve: bool,
    budget: int,
) -> int:
    """Visit ``order[at:]``, counted from the first vertex of ``piece`` on, until ``budget`` is used; returns where to continue.

    With ``relieve`` only vertices of overfull parts are visited, and they leave even at a positive cost.
    """
    first, indptr, indices, weights = piece
    parts = load.shape[0]
    pull = np.zeros(parts)
    touched = np.empty(parts, np.int64)
    nothing = np.zeros(len(capacity), np.int64)
    while at < len(order) and budget > 0:
        i = order[at]
        u = first + i
        at += 1
        own = part[u]
        budget -= 1
        if relieve and _fits(nothing, load[own], capacity):
            continue
        used = 0
        for e in range(indptr[i], indptr[i + 1]):
            k = part[indices[e]]
            if pull[k] == 0.0 and weights[e] > 0.0:
                touched[used] = k
                used += 1
            pull[k] += weights[e]
        budget -= indptr[i + 1] - indptr[i]
        best = -1
        least = -1.0 if relieve else pull[own]
        for j in range(used):
            k = touched[j]
            if k != own and pull[k] > least and _fits(sizes[u], load[k], capacity):
                best, least = k, pull[k]
        if relieve and best < 0:
            for k in range(parts):
                if k != own and _fits(sizes[u], load[k], capacity):
                    best = k
                    break
            budget -= parts
        for j in range(used):
            pull[touched[j]] = 0.0
        if best >= 0:
            for r in range(len(capacity)):
                load[own, r] -= sizes[u, r]
                load[best, r] += sizes[u, r]
            part[u] = best
    return at
