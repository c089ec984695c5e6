"""Position tables: what every node would pay in every column and every row.

``lines[u, c]`` for ``c < cols`` is the sum over neighbours v of ``w_uv * dx[c, col v]``, ``lines[u, cols + r]``
the same for rows. The price of a move is then two differences of look-ups and that of a swap four, whatever the degree;
only a move that is made pays, with O(degree * (rows + cols)) contiguous additions in float32.

The price of ``u`` going from (x0, y0) to (x1, y1) is ``lines[u, x1] - lines[u, x0] + lines[u, cols + y1] -
lines[u, cols + y0]``. In a swap both nodes are charged as if the other stayed; for neighbours twice their own traffic times
their distance, which does not change, has to be added.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nmsolve.model.compiled import embedded, kernel
from nmsolve.model.types import BoolArray, FloatArray, Int32Array, IntArray


class Net(NamedTuple):
    """Symmetric traffic for the kernels: CSR with float32 weights."""

    indptr: IntArray
    indices: Int32Array
    weights: FloatArray


class Grid(NamedTuple):
    """The board for the kernels: line distances (float32), torus flags, allowed cores by domain."""

    dx: FloatArray
    dy: FloatArray
    wrap_x: bool
    wrap_y: bool
    domain: Int32Array
    domains: BoolArray


class Seats(NamedTuple):
    """Who sits where: ``node[core]`` (-1 empty, -2 unusable), column ``cx[u]`` and row ``cy[u]``; int32."""

    node: Int32Array
    cx: Int32Array
    cy: Int32Array


class Tables(NamedTuple):
    """``lines`` (n, cols + rows) float32, ``joined`` (n, words) int64 bits "is a neighbour", ``change`` scratch."""

    lines: FloatArray
    joined: IntArray
    change: FloatArray


class Tabled(NamedTuple):
    """A placement whose moves are priced by tables."""

    net: Net
    grid: Grid
    seats: Seats
    tables: Tables


@kernel
def build_tables(s: Tabled) -> None:
    """Fill ``tables.lines`` from scratch (also clears the rounding of earlier additions)."""
    net, grid, seats, tables = s
    cols, rows = grid.dx.shape[0], grid.dy.shape[0]
    there = np.zeros(cols + rows, np.float32)
    for u in range(len(seats.cx)):
        there[:] = np.float32(0)
        for k in range(net.indptr[u], net.indptr[u + 1]):
            v = net.indices[k]
            there[seats.cx[v]] += net.weights[k]
            there[cols + seats.cy[v]] += net.weights[k]
        line = tables.lines[u]
        line[:] = np.float32(0)
        for c in range(cols):
            if there[c] > 0:
                for j in range(cols):
                    line[j] += there[c] * grid.dx[c, j]
        for r in range(rows):
            if there[cols + r] > 0:
                for j in range(rows):
                    line[cols + j] += there[cols + r] * grid.dy[r, j]


@embedded
def pair_weight(u: int, v: int, indptr: IntArray, indices: Int32Array, weights: FloatArray) -> Any:
    """Traffic between ``u`` and ``v`` by binary search in the sorted row of ``u``; 0 if none."""
    lo, end = indptr[u], indptr[u + 1]
    hi = end
    while lo < hi:
        mid = (lo + hi) >> 1
        if indices[mid] < v:
            lo = mid + 1
        else:
            hi = mid
    if lo < end and indices[lo] == v:
        return weights[lo]
    return np.float32(0)


@embedded
def neighbours(u: int, v: int, joined: IntArray) -> bool:
    """True if ``u`` and ``v`` exchange traffic; False for ``v < 0``."""
    return v >= 0 and ((joined[u, v >> 6] >> (v & 63)) & 1) == 1


@embedded
def shift_lines(u: int, net: Net, lines: FloatArray, change: FloatArray) -> None:
    """Add ``w_uv * change`` to the lines of every neighbour v of ``u``."""
    indptr, indices, weights = net
    length = change.shape[0]
    for k in range(indptr[u], indptr[u + 1]):
        line = lines[indices[k]]
        w = weights[k]
        for j in range(length):
            line[j] += w * change[j]


@embedded
def table_price(
    s: Tabled, u: int, v: int, x0: int, y0: int, x1: int, y1: int, limit: float
) -> tuple[float, int]:
    """Change of cost if ``u`` goes from (x0, y0) to (x1, y1) and ``v`` (< 0: none) the other way, or some number above
    ``limit`` if it is; and the neighbour entries looked at."""
    lines, cols = s.tables.lines, s.grid.dx.shape[0]
    price = lines[u, x1] - lines[u, x0] + lines[u, cols + y1] - lines[u, cols + y0]
    if v >= 0:
        price += lines[v, x0] - lines[v, x1] + lines[v, cols + y0] - lines[v, cols + y1]
    if price <= limit and neighbours(u, v, s.tables.joined):
        away = s.grid.dx[x0, x1] + s.grid.dy[y0, y1]
        price += np.float32(2) * pair_weight(u, v, s.net.indptr, s.net.indices, s.net.weights) * away
    return price, 0


@embedded
def make_swap(s: Tabled, u: int, v: int, x1: int, y1: int) -> int:
    """Move ``u`` to (x1, y1) and its occupant ``v`` (< 0: none) to where ``u`` was; neighbour entries touched."""
    node, cx, cy = s.seats
    indptr, change, dx, dy = s.net.indptr, s.tables.change, s.grid.dx, s.grid.dy
    cols, rows = dx.shape[0], dy.shape[0]
    x0, y0 = np.int64(cx[u]), np.int64(cy[u])
    for j in range(cols):
        change[j] = dx[x1, j] - dx[x0, j]
    for j in range(rows):
        change[cols + j] = dy[y1, j] - dy[y0, j]
    shift_lines(u, s.net, s.tables.lines, change)
    entries = indptr[u + 1] - indptr[u]
    cx[u], cy[u] = x1, y1
    node[y1 * cols + x1] = u
    node[y0 * cols + x0] = v
    if v >= 0:
        for j in range(cols + rows):
            change[j] = -change[j]
        shift_lines(v, s.net, s.tables.lines, change)
        entries += indptr[v + 1] - indptr[v]
        cx[v], cy[v] = x0, y0
    return entries  # type: ignore[no-any-return]
