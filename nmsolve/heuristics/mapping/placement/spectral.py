"""Spectral starts: the two smoothest ways to lay the nodes out, made into columns and rows of the board.

The second and third eigenvector of the normalised traffic matrix place nodes with much traffic near each other (Hall 1970).
Ranked they give x and y; sorting by x cuts the nodes into columns as full as the board's, sorting by
y orders each column. That is a poor placement but a good overall arrangement, which annealing from a moderate temperature
keeps and from a high one often misses.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nmsolve.heuristics.mapping.placement.data import PlacementData
from nmsolve.model.types import FloatArray, IntArray

#: Fewest nodes, rows and columns for which directions mean anything.
LEAST_NODES, LEAST_LINES = 30, 3
#: Accuracy of the eigenvectors; only ranks are taken from them.
TOLERANCE = 1e-3


def spectral_axes(data: PlacementData) -> FloatArray | None:
    """Return (2, n) float64 ranks of the nodes along two smooth axes, or None where there is no such start.

    None with side constraints, without a board, on small problems, and if the eigenvectors are not found.
    """
    lines = min(data.rows, data.cols)
    if not data.separable or len(data.domains) > 1 or data.n < LEAST_NODES or lines < LEAST_LINES:
        return None
    from scipy.sparse import csr_array, diags_array

    traffic = csr_array((data.weights, data.indices, data.indptr), shape=(data.n, data.n))
    load = np.maximum(traffic.sum(axis=1), 1e-12 * float(data.weights.sum()) + 1e-300)
    scale = diags_array(1 / np.sqrt(load))
    vectors = smoothest(scale @ traffic @ scale, 2)
    if vectors is None:
        return None
    axes = (vectors / np.sqrt(load)[:, None]).T
    return np.argsort(np.argsort(axes, axis=1, kind="stable"), axis=1, kind="stable").astype(np.float64)


def smoothest(normal: Any, count: int, dense: int = 0) -> FloatArray | None:
    """Return (n, count) eigenvectors of a symmetric sparse matrix (n, n): of the largest eigenvalues but the very largest one.

    Fewer where the matrix is smaller; None if they are not found. ``dense``: up to this many rows the whole matrix is taken.
    """
    from scipy.sparse.linalg import ArpackError, eigsh

    n = normal.shape[0]
    if n <= dense:
        values, vectors = np.linalg.eigh(normal.toarray())
    else:
        begin = np.random.default_rng(0).random(n) + 0.5
        try:
            values, vectors = eigsh(normal, k=count + 1, which="LA", v0=begin, tol=TOLERANCE)
        except ArpackError:
            return None
    return np.asarray(vectors[:, np.argsort(-values, kind="stable")[1 : count + 1]])


def spectral_start(data: PlacementData, axes: FloatArray) -> IntArray:
    """Return (n,) int64 cores: the layout ``axes`` cut into columns and rows.

    Columns get nodes in proportion to their usable cores, and nodes are spread evenly over a column's cores.
    """
    x, y = axes
    free = np.zeros(data.cores, bool)
    free[data.free] = True
    usable = free.reshape(data.rows, data.cols)
    room = np.cumsum(usable.sum(axis=0))
    order = np.argsort(x, kind="stable")
    # Node number i of n in this order is at i / n of all usable cores: no column gets more than it holds.
    column = np.searchsorted(room, (np.arange(data.n) + 0.5) / data.n * room[-1], side="right")
    core = np.zeros(data.n, np.int64)
    for c in range(data.cols):
        here = order[column == c]
        here = here[np.argsort(y[here], kind="stable")]
        rows = np.flatnonzero(usable[:, c])
        at = ((np.arange(len(here)) + 0.5) / max(1, len(here)) * len(rows)).astype(np.int64)
        core[here] = rows[at] * data.cols + c
    return core
