"""What a node would cost on every core of the board, in one pass over its messages."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.common.counts import slot
from nmsolve.heuristics.mapping.nets.model import NetState
from nmsolve.model.bits import highest, lowest
from nmsolve.model.compiled import plain
from nmsolve.model.types import FloatArray, Int32Array


class Ramps(NamedTuple):
    """Sums of functions of a line that are 0 between two lines and grow with the distance outside.

    Such a function with weight w adds w to ``low`` at its first line and to ``high`` at its last. ``row_*``
    (rows,) hold for all columns, ``cell_*`` (cols, rows) are corrections for one column, ``col_*`` (cols,)
    are functions of the column; ``line`` (cols,) is scratch. All are 0 between calls.
    """

    row_low: FloatArray
    row_high: FloatArray
    cell_low: FloatArray
    cell_high: FloatArray
    col_low: FloatArray
    col_high: FloatArray
    line: FloatArray


def new_ramps(s: NetState) -> Ramps:
    """Scratch space for :func:`all_changes`."""
    rows, cols = len(s.y), len(s.x)
    row, cell, col = (rows,), (cols, rows), (cols,)
    return Ramps(*(np.zeros(shape) for shape in (row, row, cell, cell, col, col, col)))


@plain
def all_changes(s: NetState, ramps: Ramps, u: int, out: FloatArray) -> int:
    """Change of the objective for moving node ``u`` to each core, into ``out`` (P,); returns the work done.

    Adding a destination at (row, column) to a tree lengthens its horizontal part if the column is outside the
    columns reached, and the vertical part of its column if the row is outside the rows reached there (the
    source's row always counts). Both are ramps, so the sum over all messages and cores takes one entry per
    message and column reached, and then one prefix sum per column.
    """
    cols = len(s.x)
    out[:] = 0.0
    work: int = max(1, len(out) // 4)  # a visit is never free, or a slice would not end
    work += _as_destination(s.in_net[s.in_ptr[u] : s.in_ptr[u + 1]], s.room.core[u], s, cols, ramps, out)
    work += _as_source(s.out_net[s.out_ptr[u] : s.out_ptr[u + 1]], s, cols, ramps, out)
    if s.tall:
        _spread(s, ramps, out)
    here = out[s.room.core[u]]
    for q in range(len(out)):
        out[q] -= here
    return work


@plain
def _as_destination(nets: Int32Array, p: int, s: NetState, cols: int, ramps: Ramps, out: FloatArray) -> int:
    """Enter the nets that end on a node of core ``p``, as if the node were gone from them."""
    rate, step, tall = s.rate, s.step, s.tall
    origin, base, keys = s.origin, s.base, s.keys
    count, row_bits, col_bits = s.hits, s.row_bits, s.col_bits
    row_low, row_high, cell_low = ramps.row_low, ramps.row_high, ramps.cell_low
    cell_high, col_low, col_high = ramps.cell_high, ramps.col_low, ramps.col_high
    one = np.uint64(1)
    work = 0
    row_words, col_words = row_bits.shape[2], col_bits.shape[1]
    for e in nets:
        w = rate[e]
        charge = step * w
        o = origin[e]
        own_row, own_col = o // cols, o % cols
        last = count[slot(keys, base, e, p, len(out))] == 1
        first, final = own_col, own_col
        local = False
        for k in range(col_words):
            columns = col_bits[e, k]
            while columns != np.uint64(0):
                c = 64 * k + lowest(columns)
                columns &= columns - one
                low, high = -1, -1
                for j in range(row_words):
                    lines = row_bits[e, c, j]
                    if last and c == p % cols and j == (p // cols) >> 6:
                        lines &= ~(one << np.uint64((p // cols) & 63))
                    if lines == np.uint64(0):
                        continue
                    if low < 0:
                        low = 64 * j + lowest(lines)
                    high = 64 * j + highest(lines)
                    while charge > 0.0 and lines != np.uint64(0):
                        q = (64 * j + lowest(lines)) * cols + c
                        lines &= lines - one
                        out[q] -= charge
                        local = local or q == o
                        work += 1
                work += 1
                if low >= 0:
                    first, final = min(first, c), max(final, c)
                    if tall:
                        cell_low[c, min(low, own_row)] += w
                        cell_high[c, max(high, own_row)] += w
                        cell_low[c, own_row] -= w
                        cell_high[c, own_row] -= w
        if tall:
            row_low[own_row] += w
            row_high[own_row] += w
            col_low[first] += w
            col_high[final] += w
        if not local:
            out[o] -= charge
    return work + 2 * len(nets)


@plain
def _as_source(nets: Int32Array, s: NetState, cols: int, ramps: Ramps, out: FloatArray) -> int:
    """Enter the nets that start from a node: only the cores and lines their destinations reach matter."""
    rate, step, tall = s.rate, s.step, s.tall
    row_bits, col_bits, row_low = s.row_bits, s.col_bits, ramps.row_low
    row_high, col_low, col_high = ramps.row_high, ramps.col_low, ramps.col_high
    one = np.uint64(1)
    work = 0
    for e in nets:
        w = rate[e]
        charge = step * w
        first, final = -1, -1
        for k in range(col_bits.shape[1]):
            columns = col_bits[e, k]
            while columns != np.uint64(0):
                c = 64 * k + lowest(columns)
                columns &= columns - one
                first, final = (c if first < 0 else first), c
                low, high = -1, -1
                for j in range(row_bits.shape[2]):
                    lines = row_bits[e, c, j]
                    if lines == np.uint64(0):
                        continue
                    if low < 0:
                        low = 64 * j + lowest(lines)
                    high = 64 * j + highest(lines)
                    while charge > 0.0 and lines != np.uint64(0):
                        out[(64 * j + lowest(lines)) * cols + c] -= charge
                        lines &= lines - one
                        work += 1
                work += 1
                if tall:
                    row_low[low] += w
                    row_high[high] += w
        if tall:
            col_low[first] += w
            col_high[final] += w
    return work + 2 * len(nets)


@plain
def _spread(s: NetState, ramps: Ramps, out: FloatArray) -> None:
    """Add the values of all ramps to ``out`` and clear them."""
    x, y, row_low = s.x, s.y, ramps.row_low
    row_high, cell_low, cell_high = ramps.row_high, ramps.cell_low, ramps.cell_high
    col_low, col_high, line = ramps.col_low, ramps.col_high, ramps.line
    cols = len(x)
    _add_ramps(col_low, col_high, x, line, 0, 1)
    for c in range(cols):
        for r in range(len(y)):
            cell_low[c, r] += row_low[r]
            cell_high[c, r] += row_high[r]
            out[r * cols + c] += line[c]
        _add_ramps(cell_low[c], cell_high[c], y, out, c, cols)
    row_low[:], row_high[:], col_low[:], col_high[:], line[:] = 0.0, 0.0, 0.0, 0.0, 0.0
    cell_low[:, :], cell_high[:, :] = 0.0, 0.0


@plain
def _add_ramps(
    low: FloatArray, high: FloatArray, line: FloatArray, out: FloatArray, at: int, stride: int
) -> None:
    """Add the value of all ramps at every line to ``out[at + stride * line]``."""
    slope, lift = 0.0, 0.0
    for i in range(len(line)):
        out[at + i * stride] += slope * line[i] - lift
        slope += high[i]
        lift += high[i] * line[i]
    slope, lift = 0.0, 0.0
    for i in range(len(line) - 1, -1, -1):
        out[at + i * stride] += lift - slope * line[i]
        slope += low[i]
        lift += low[i] * line[i]
