"""From wishes to a placement: one core for every node, conflicts by priority (M1.6)."""

from __future__ import annotations

import numpy as np

from nmsolve.model.compiled import kernel
from nmsolve.model.types import FloatArray, IntArray


def nearest_first(row: IntArray, col: IntArray, metric: str = "manhattan") -> IntArray:
    """Return (c, c) int64: for every core all cores from the nearest to the farthest, of equal ones the lower number first.

    Parameters
    ----------
    row, col : (c,) where the cores lie; metric : ``manhattan`` or ``euclidean``
    """
    down, across = np.abs(row[:, None] - row), np.abs(col[:, None] - col)
    # The squares of Euclidean distances have the same order and are whole.
    away = down + across if metric == "manhattan" else down**2 + across**2
    return np.argsort(away, axis=1, kind="stable")


def by_priority(weight: FloatArray) -> IntArray:
    """Return (k,) the nodes by falling priority, which is the interaction weight; of equal ones the lower number first."""
    return np.argsort(-weight, kind="stable")


@kernel
def allocate(wish: IntArray, order: IntArray, near: IntArray) -> IntArray:
    """Return (B, k) cores, no two nodes of one placement on the same core.

    Of the nodes that wish for a core the one of highest priority gets it. The others take by falling priority the free core
    nearest to the one that they wished for.

    Parameters
    ----------
    wish : (B, k) cores, below c; k <= c; order : (k,) nodes by falling priority; near : (c, c) of :func:`nearest_first`
    """
    out = np.full(wish.shape, -1, np.int64)
    for b in range(len(wish)):
        taken = np.zeros(len(near), np.bool_)
        for u in order:
            if not taken[wish[b, u]]:
                taken[wish[b, u]] = True
                out[b, u] = wish[b, u]
        for u in order:
            if out[b, u] < 0:
                k = 0
                while taken[near[wish[b, u], k]]:
                    k += 1
                out[b, u] = near[wish[b, u], k]
                taken[out[b, u]] = True
    return out
