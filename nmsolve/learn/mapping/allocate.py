"""From wishes to a placement: one core for every node, conflicts by priority (M1.6)."""

from __future__ import annotations

import numpy as np

from nmsolve.model.compiled import kernel
from nmsolve.model.types import BoolArray, FloatArray, IntArray


def by_priority(weight: FloatArray) -> IntArray:
    """Return (n,) the nodes by falling priority, which is the interaction weight; of equal ones the lower number first."""
    return np.argsort(-weight, kind="stable")


@kernel
def allocate(
    wish: IntArray, toward: FloatArray, order: IntArray, cols: int, euclidean: bool,
    may: BoolArray, kind: IntArray, size: IntArray, capacity: IntArray,
) -> IntArray:  # fmt: skip
    """Return (B, n) cores within what cores hold.

    Nodes get the core that they wish for by falling priority, as long as it has room: with one node per core, of those that
    wish for it the one of highest priority. The others take by falling priority the nearest core with room; of equally near
    ones that nearest to a point of their own, then the lower number. Nodes for which no core has room keep their
    wish.

    Parameters
    ----------
    wish : (B, n) cores; toward : (n, 2) row and column of the point; order : (n,) nodes by falling priority
    euclidean : measure "nearest" so, not in rows and columns added up (Manhattan)
    may, kind, size, capacity : of :class:`.board.Board`
    """
    rows = len(capacity) // cols
    out = np.full(wish.shape, -1, np.int64)
    left = np.empty_like(capacity)
    for b in range(len(wish)):
        left[:] = capacity
        for turn in range(2):
            for u in order:
                if out[b, u] >= 0:
                    continue
                p, best = wish[b, u], -1
                if turn == 0:
                    if may[kind[u], p] and (left[p] >= size[u]).all():
                        best = p
                else:
                    nearest, finest = np.inf, np.inf
                    row, col = p // cols, p % cols
                    for reach in range(rows + cols):
                        # No core further out than this ring can be nearer.
                        if best >= 0 and (reach > nearest if not euclidean else reach * reach > 2 * nearest):
                            break
                        for down in range(-reach, reach + 1):
                            for side in range(-1, 2, 2):
                                r, c = row + down, col + side * (reach - abs(down))
                                if (
                                    (reach == abs(down) and side > 0)
                                    or r < 0
                                    or r >= rows
                                    or c < 0
                                    or c >= cols
                                ):
                                    continue
                                q = r * cols + c
                                if not may[kind[u], q] or not (left[q] >= size[u]).all():
                                    continue
                                away = (r - row) ** 2 + (c - col) ** 2 if euclidean else reach
                                fine = (r - toward[u, 0]) ** 2 + (c - toward[u, 1]) ** 2
                                if away < nearest or (
                                    away == nearest
                                    and (fine < finest - 1e-9 or (fine < finest + 1e-9 and q < best))
                                ):
                                    nearest, finest, best = float(away), fine, q
                if best >= 0:
                    out[b, u] = best
                    left[best] -= size[u]
        for u in order:
            if out[b, u] < 0:
                out[b, u] = wish[b, u]
    return out
