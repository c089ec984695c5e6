"""The linear assignment problem with its duals, as a kernel for whole numbers and for floats."""

from __future__ import annotations

from nmsolve.model.compiled import plain
from nmsolve.model.types import AnyArray, IntArray

#: Beyond every cost. One for each type of cost: a float here would make whole numbers inexact.
FAR, FAR_FLOAT = 2**62, 1e300


@plain
def assign(
    cost: AnyArray,
    rows: int,
    cols: int,
    far: float,
    row_dual: AnyArray,
    col_dual: AnyArray,
    slack: AnyArray,
    row_of: IntArray,
    before: IntArray,
    done: IntArray,
) -> float:
    """Least cost of giving each of ``rows`` rows its own of ``cols >= rows`` columns (shortest augmenting paths).

    Parameters
    ----------
    cost : (>= rows, >= cols) int64 or float64
    far : more than any sum of costs: :data:`FAR` for whole numbers, :data:`FAR_FLOAT` for floats
    row_dual, col_dual : (>= rows + 1,), (>= cols + 1,) of the type of costs, output, entry 0 unused otherwise:
        ``cost[i, j] - row_dual[i + 1] - col_dual[j + 1] >= 0`` is the reduced cost; fixing a cell costs that much more
    slack : (>= cols + 1,) of the type of costs, work space
    row_of, before, done : (>= cols + 1,) int64 work space; ``row_of[j + 1] - 1`` is the row of column j
    """
    _cheapest(cost, rows, cols, row_dual, col_dual, row_of)
    for i in range(1, rows + 1):
        matched = False
        for j in range(1, cols + 1):
            matched |= row_of[j] == i
        if matched:
            continue
        row_of[0] = i
        at = 0
        for j in range(cols + 1):
            slack[j] = far
            done[j] = 0
        while row_of[at] != 0:
            done[at] = 1
            row, least, nearest = row_of[at], far, 0
            for j in range(1, cols + 1):
                if done[j] == 0:
                    reduced = cost[row - 1, j - 1] - row_dual[row] - col_dual[j]
                    if reduced < slack[j]:
                        slack[j] = reduced
                        before[j] = at
                    if slack[j] < least:
                        least = slack[j]
                        nearest = j
            for j in range(cols + 1):
                if done[j] == 1:
                    row_dual[row_of[j]] += least
                    col_dual[j] -= least
                else:
                    slack[j] -= least
            at = nearest
        while at != 0:
            row_of[at] = row_of[before[at]]
            at = before[at]
    total = 0
    for j in range(1, cols + 1):
        if row_of[j] != 0:
            total += cost[row_of[j] - 1, j - 1]
    return total


@plain
def _cheapest(
    cost: AnyArray, rows: int, cols: int, row_dual: AnyArray, col_dual: AnyArray, row_of: IntArray
) -> None:
    """Every row takes its cheapest column if that is free; the others have to look for a path."""
    row_dual[0] = 0
    for j in range(cols + 1):
        col_dual[j] = 0
        row_of[j] = 0
    for i in range(1, rows + 1):
        line, nearest = cost[i - 1], 0
        for j in range(1, cols):
            if line[j] < line[nearest]:
                nearest = j
        row_dual[i] = line[nearest]
        if row_of[nearest + 1] == 0:
            row_of[nearest + 1] = i
