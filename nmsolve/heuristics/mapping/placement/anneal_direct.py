"""Kernels that price every move from its neighbours: any distance matrix, and boards too large for tables."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.placement.proposals import allowed, line_near, put
from nmsolve.heuristics.mapping.placement.tables import Grid, Seats
from nmsolve.model.compiled import kernel, plain_callee
from nmsolve.model.splitmix import STEP, mix
from nmsolve.model.types import FloatArray, Int32Array, IntArray


class Links(NamedTuple):
    """Neighbours and any distance for the kernels, all float64.

    ``weights`` (both directions) go with symmetric distances; ``out`` and ``back`` with asymmetric ones.
    ``matrix`` and its transpose ``across`` are (0, 0) where the distance is separable.
    """

    indptr: IntArray
    indices: Int32Array
    weights: FloatArray
    out: FloatArray
    back: FloatArray
    matrix: FloatArray
    across: FloatArray
    symmetric: bool


@plain_callee
def mesh_price(
    u: int,
    p: int,
    q: int,
    other: int,
    indptr: IntArray,
    indices: Int32Array,
    weights: FloatArray,
    dx: FloatArray,
    dy: FloatArray,
    cx: Int32Array,
    cy: Int32Array,
) -> float:
    """Change of cost if ``u`` went from core ``p`` to ``q``, the pair of ``u`` and ``other`` left out; separable."""
    cols = dx.shape[0]
    price = 0.0
    x0, y0, x1, y1 = p % cols, p // cols, q % cols, q // cols
    for k in range(indptr[u], indptr[u + 1]):
        v = indices[k]
        if v != other:
            x, y = cx[v], cy[v]
            price += weights[k] * (dx[x1, x] - dx[x0, x] + dy[y1, y] - dy[y0, y])
    return price


@plain_callee
def matrix_price(
    u: int,
    p: int,
    q: int,
    other: int,
    indptr: IntArray,
    indices: Int32Array,
    weights: FloatArray,
    matrix: FloatArray,
    cols: int,
    cx: Int32Array,
    cy: Int32Array,
) -> float:
    """The same on a distance matrix, for one direction of asymmetric traffic or distances."""
    price = 0.0
    for k in range(indptr[u], indptr[u + 1]):
        v = indices[k]
        if v != other:
            r = np.int64(cy[v]) * cols + np.int64(cx[v])
            price += weights[k] * (matrix[q, r] - matrix[p, r])
    return price


@kernel
def swap_price(u: int, v: int, p: int, q: int, links: Links, grid: Grid, seats: Seats) -> Any:
    """Change of cost if ``u`` goes from core ``p`` to ``q`` and ``v`` (< 0: nobody) from ``q`` to ``p``."""
    indptr, indices, weights, out, back, matrix, across, symmetric = links
    cx, cy, dx, dy = seats.cx, seats.cy, grid.dx, grid.dy
    cols = dx.shape[0]
    if matrix.shape[0] == 0:
        price = mesh_price(u, p, q, v, indptr, indices, weights, dx, dy, cx, cy)
        return price + mesh_price(v, q, p, u, indptr, indices, weights, dx, dy, cx, cy) if v >= 0 else price
    if symmetric:
        price = matrix_price(u, p, q, v, indptr, indices, weights, matrix, cols, cx, cy)
        if v >= 0:
            price += matrix_price(v, q, p, u, indptr, indices, weights, matrix, cols, cx, cy)
        return price
    price = matrix_price(u, p, q, v, indptr, indices, out, matrix, cols, cx, cy)
    price += matrix_price(u, p, q, v, indptr, indices, back, across, cols, cx, cy)
    if v >= 0:
        price += matrix_price(v, q, p, u, indptr, indices, out, matrix, cols, cx, cy)
        price += matrix_price(v, q, p, u, indptr, indices, back, across, cols, cx, cy)
        for k in range(indptr[u], indptr[u + 1]):
            if indices[k] == v:
                price += (out[k] - back[k]) * (matrix[q, p] - matrix[p, q])
    return price


@kernel
def anneal_direct(
    steps: int,
    temperature: float,
    reach: int,
    rng: IntArray,
    quantiles: FloatArray,
    links: Links,
    grid: Grid,
    seats: Seats,
    stats: FloatArray,
) -> None:
    """Like :func:`anneal_table`, O(degree) per proposal; ``stats[2]`` counts neighbour entries looked at."""
    n, cols, rows = seats.cx.shape[0], grid.dx.shape[0], grid.dy.shape[0]
    rx, ry = min(reach, cols - 1), min(reach, rows - 1)
    low16 = np.uint64(0xFFFF)
    accepted, entries, moved, gain, count = 0, 0, 0, 0.0, rng[0]
    for _ in range(steps):
        count += STEP
        bits = mix(count)
        count += STEP
        more = mix(count)
        u = np.int64(((bits >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))
        x0, y0 = np.int64(seats.cx[u]), np.int64(seats.cy[u])
        x1 = line_near(x0, rx, cols, grid.wrap_x, bits & low16)
        y1 = line_near(y0, ry, rows, grid.wrap_y, more & low16)
        p, q = y0 * cols + x0, y1 * cols + x1
        v = np.int64(seats.node[q])
        if v == u or v == -2 or not allowed(u, q, v, p, grid.domain, grid.domains):
            continue
        entries += links.indptr[u + 1] - links.indptr[u]
        if v >= 0:
            entries += links.indptr[v + 1] - links.indptr[v]
        price = swap_price(u, v, p, q, links, grid, seats)
        if price > temperature * quantiles[more >> np.uint64(52)]:
            continue
        accepted += 1
        gain += price
        moved += max(abs(x1 - x0), abs(y1 - y0))
        put(u, v, p, q, cols, seats)
    rng[0] = count
    stats[0] += steps
    stats[1] += accepted
    stats[2] += entries
    stats[3] += gain
    stats[4] += moved


@kernel
def descend_direct(
    first: int, end: int, reach: int, least: float, links: Links, grid: Grid, seats: Seats
) -> int:
    """Like :func:`descend_table`, with exact prices."""
    cols, rows = grid.dx.shape[0], grid.dy.shape[0]
    made = 0
    for u in range(first, end):
        x0, y0 = int(seats.cx[u]), int(seats.cy[u])
        p = y0 * cols + x0
        best, to = -least, -1
        left, right = max(0, x0 - reach), min(cols, x0 + reach + 1)
        for y1 in range(max(0, y0 - reach), min(rows, y0 + reach + 1)):
            for x1 in range(left, right):
                q = y1 * cols + x1
                v = np.int64(seats.node[q])
                if v == u or v == -2 or not allowed(u, q, v, p, grid.domain, grid.domains):
                    continue
                price = swap_price(u, v, p, q, links, grid, seats)
                if price < best:
                    best, to = price, q
        if to >= 0:
            put(u, np.int64(seats.node[to]), p, to, cols, seats)
            made += 1
    return made
