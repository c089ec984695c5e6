"""Kernels on signed sets: how rows of the split bound enter the cost, and what they are worth.

A row is a set of nodes with signs b and an orientation o: ``sum_{i<j} o b_i b_j d_ij >= rhs``. All signs + with
o = 1: a clique row. Signs that sum to 1 with o = -1: a hypermetric row; with three nodes the triangle inequality.
Rows are stored flat: ``start`` (r+1,), ``member`` and ``sign`` (start[-1],), ``orient`` (r,).
"""

from __future__ import annotations

import numpy as np

from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import FloatArray, IntArray


@plain
def subtract_rows(
    cost: FloatArray, start: IntArray, member: IntArray, sign: FloatArray, orient: FloatArray, tau: FloatArray
) -> None:
    """``cost -= sum_k tau_k A_k``, A_k symmetric with half of each coefficient at (i, j) and at (j, i)."""
    for r in range(len(tau)):
        if tau[r] == 0.0:
            continue
        half = 0.5 * tau[r] * orient[r]
        for e in range(start[r], start[r + 1]):
            i = member[e]
            for f in range(e + 1, start[r + 1]):
                j = member[f]
                t = half * sign[e] * sign[f]
                cost[i, j] -= t
                cost[j, i] -= t


@kernel
def row_values(
    distance: FloatArray, start: IntArray, member: IntArray, sign: FloatArray, orient: FloatArray
) -> FloatArray:
    """(r,) ``sum_{i<j} o b_i b_j (d_ij + d_ji) / 2`` of every row at a matrix that need not be symmetric."""
    out = np.empty(len(orient))
    for r in range(len(orient)):
        total = 0.0
        for e in range(start[r], start[r + 1]):
            i = member[e]
            for f in range(e + 1, start[r + 1]):
                j = member[f]
                total += sign[e] * sign[f] * (distance[i, j] + distance[j, i])
        out[r] = 0.5 * orient[r] * total
    return out


@plain
def place(order: IntArray, falling: FloatArray, column: IntArray, out: FloatArray) -> None:
    """``out[u, order[u, j]] = falling[column[u], j]``: the distances that Gilmore-Lawler gives every pair."""
    k, width = falling.shape
    for u in range(k):
        for j in range(width):
            out[u, order[u, j]] = falling[column[u], j]
        out[u, u] = 0.0


@plain
def turn(
    direction: FloatArray,
    spectral: FloatArray,
    lawler: FloatArray,
    momentum: float,
    mean: FloatArray,
    keep: float,
) -> float:
    """One pass over the pairs: new direction, running mean of ``lawler``; returns the direction's squared norm.

    ``direction = spectral - lawler + momentum * direction``; ``mean = keep * mean + (1 - keep) * lawler``.
    """
    k = len(direction)
    total = 0.0
    for u in range(k):
        for v in range(k):
            d = spectral[u, v] - lawler[u, v] + momentum * direction[u, v]
            direction[u, v] = d
            total += d * d
            mean[u, v] = keep * mean[u, v] + (1.0 - keep) * lawler[u, v]
    return total
