"""Linear assignment by shortest augmenting paths (Jonker and Volgenant 1987), compiled."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from nmsolve.model.types import FloatArray, IntArray


@nb.njit(cache=True, nogil=True)
def assign(cost: FloatArray, column: IntArray) -> Any:
    """Give every row of ``cost`` (m, size >= m) a column of its own, least total cost; the total.

    ``column`` (m,) is written. The total is infinite or above 1e299 if forbidden places cannot be avoided.
    """
    m, size = cost.shape
    row_of = np.full(size, -1, np.int64)
    price = np.zeros(size)  # dual of the columns
    worth = np.zeros(m)  # dual of the rows
    for first in range(m):
        reach = np.full(size, np.inf)
        before = np.full(size, -1, np.int64)
        done = np.zeros(size, np.bool_)
        row, length, last = first, 0.0, -1
        while row >= 0:
            nearest, to = np.inf, -1
            for k in range(size):
                if done[k]:
                    continue
                through = length + cost[row, k] - worth[row] - price[k]
                if through < reach[k]:
                    reach[k], before[k] = through, row
                if reach[k] < nearest or to < 0:
                    nearest, to = reach[k], k
            length, last = nearest, to
            done[to] = True
            row = row_of[to]
        worth[first] += length
        for k in range(size):
            if done[k] and k != last:
                price[k] += reach[k] - length
                worth[row_of[k]] += length - reach[k]
        while last >= 0:  # turn the path round
            row = before[last]
            row_of[last] = row
            last, column[row] = column[row], last
            if row == first:
                break
    total = 0.0
    for i in range(m):
        total += cost[i, column[i]]
    return total
