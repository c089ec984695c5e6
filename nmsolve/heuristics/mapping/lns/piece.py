"""A piece of a placement: some cores, who sits on them, and what every other seat on them would cost.

A piece is a small quadratic assignment problem of its own: with everything else fixed, putting its node i on its core
k costs ``unary[i, k]``, and a pair (i, j) on (k, l) costs ``pair[i, j] * dist[k, l] (+ reverse[i, j] * dist[l, k])``.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from nmsolve.heuristics.mapping.placement.anneal_direct import Links
from nmsolve.heuristics.mapping.placement.tables import Grid, Seats
from nmsolve.model.types import FloatArray, IntArray

#: Unary cost of a seat that a side constraint forbids.
NEVER = 1e300


@nb.njit(cache=True, nogil=True)
def distance(p: int, q: int, links: Links, grid: Grid) -> Any:
    """Distance from core ``p`` to core ``q``."""
    if links.matrix.shape[0] > 0:
        return np.float64(links.matrix[p, q])
    cols = grid.dx.shape[0]
    return np.float64(grid.dx[p % cols, q % cols]) + np.float64(grid.dy[p // cols, q // cols])


@nb.njit(cache=True, nogil=True)
def fill_unary(
    nodes: IntArray,
    cores: IntArray,
    local: IntArray,
    links: Links,
    grid: Grid,
    seats: Seats,
    unary: FloatArray,
) -> int:
    """Write ``unary[i, k]`` for node ``nodes[i]`` on ``cores[k]``: its traffic with nodes outside the piece.

    ``local`` (n,) is the number of a node inside the piece, -1 outside. Returns the neighbour entries looked at.
    """
    entries, size = 0, len(cores)
    # Fields are read into locals before the loops: reading them inside would count references every time.
    dx, dy, domain, domains, cx, cy = grid.dx, grid.dy, grid.domain, grid.domains, seats.cx, seats.cy
    indptr, indices, weights, out, back, matrix, across, symmetric = links
    cols = dx.shape[0]
    column, line = np.empty(size, np.int64), np.empty(size, np.int64)
    for k in range(size):
        column[k], line[k] = cores[k] % cols, cores[k] // cols
    for i in range(len(nodes)):
        u, row = nodes[i], unary[i]
        row[:] = 0.0
        for e in range(indptr[u], indptr[u + 1]):
            v = np.int64(indices[e])
            if local[v] >= 0:
                continue
            x, y = np.int64(cx[v]), np.int64(cy[v])
            w = weights[e]
            if matrix.shape[0] == 0:
                to_x, to_y = dx[x], dy[y]  # symmetric, so rows stand for columns
                for k in range(size):
                    row[k] += w * np.float64(to_x[column[k]] + to_y[line[k]])
                continue
            r = y * cols + x
            if symmetric:
                for k in range(size):
                    row[k] += w * matrix[r, cores[k]]
            else:
                for k in range(size):
                    row[k] += out[e] * across[r, cores[k]] + back[e] * matrix[r, cores[k]]
        for k in range(size):
            if not domains[domain[u], cores[k]]:
                row[k] = NEVER
        entries += (indptr[u + 1] - indptr[u]) * size
    return entries


@nb.njit(cache=True, nogil=True)
def fill_pairs(nodes: IntArray, local: IntArray, links: Links, pair: FloatArray, reverse: FloatArray) -> None:
    """Write the traffic inside the piece: ``pair[i, j]`` from i to j (both ways if symmetric), ``reverse`` back."""
    indptr, indices, weights, out, back, _, _, symmetric = links
    for i in range(len(nodes)):
        for j in range(len(nodes)):
            pair[i, j] = reverse[i, j] = 0.0
        u = nodes[i]
        for e in range(indptr[u], indptr[u + 1]):
            j = local[indices[e]]
            if j >= 0 and j != i:
                pair[i, j] = weights[e] if symmetric else out[e]
                reverse[i, j] = 0.0 if symmetric else back[e]


@nb.njit(cache=True, nogil=True)
def value(
    seat: IntArray,
    unary: FloatArray,
    pair: FloatArray,
    reverse: FloatArray,
    dist: FloatArray,
) -> Any:
    """Cost of the piece with node i on its core ``seat[i]``."""
    total = 0.0
    for i in range(len(seat)):
        total += unary[i, seat[i]]
        for j in range(i):
            total += pair[i, j] * dist[seat[i], seat[j]] + reverse[i, j] * dist[seat[j], seat[i]]
    return total
