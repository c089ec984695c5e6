"""Linear assignment by shortest augmenting paths (Jonker and Volgenant 1987), started from the last prices."""

from __future__ import annotations

import numpy as np

from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import FloatArray, IntArray


@kernel
def assign(cost: FloatArray, price: FloatArray) -> IntArray:
    """(k,) column of every row in an assignment of least cost; ``price`` (k,) becomes optimal column prices.

    Any finite prices may be passed; those of a similar problem save most of the work. ``cost`` (k, k) finite.
    """
    k = len(cost)
    row_of = np.full(k, -1, np.int64)
    column_of = np.full(k, -1, np.int64)
    bids = 4 * k
    for start in range(k):
        u = start
        while u >= 0 and bids > 0:
            u = _bid(cost, price, row_of, column_of, u)
            bids -= 1
    for u in range(k):
        if column_of[u] < 0:
            _augment(cost, price, row_of, column_of, u)
    return column_of


@plain
def _bid(cost: FloatArray, price: FloatArray, row_of: IntArray, column_of: IntArray, u: int) -> int:
    """Row u takes its best column and lowers its price to what the second best leaves; returns the row that lost it.

    Returns -1 if the column was free, or if u stays free because its two best columns are equal and the best is taken.
    """
    first, second, at = np.inf, np.inf, -1
    for p in range(len(price)):
        reduced = cost[u, p] - price[p]
        if reduced < second:
            if reduced < first:
                first, second, at = reduced, first, p
            else:
                second = reduced
    loser = row_of[at]
    if second == first and loser >= 0:
        return -1
    if second < np.inf:
        price[at] -= second - first
    row_of[at], column_of[u] = u, at
    if loser >= 0:
        column_of[loser] = -1
    return int(loser)


@kernel
def _augment(cost: FloatArray, price: FloatArray, row_of: IntArray, column_of: IntArray, free: int) -> None:
    """Give the free row a column along the shortest alternating path, and move prices so that they stay optimal."""
    k = len(cost)
    length = np.empty(k)
    before = np.empty(k, np.int64)
    done = np.zeros(k, np.bool_)
    order = np.empty(k, np.int64)
    for p in range(k):
        length[p] = cost[free, p] - price[p]
        before[p] = free
    count, end, reached = 0, -1, 0.0
    while end < 0:
        reached, at = np.inf, -1
        for p in range(k):
            if not done[p] and length[p] < reached:
                reached, at = length[p], p
        done[at] = True
        if row_of[at] < 0:
            end = at
            break
        order[count] = at
        count += 1
        u = row_of[at]
        offset = reached - (cost[u, at] - price[at])
        for p in range(k):
            if not done[p]:
                via = cost[u, p] - price[p] + offset
                if via < length[p]:
                    length[p], before[p] = via, u
    for i in range(count):
        price[order[i]] += length[order[i]] - reached
    while True:
        u = before[end]
        row_of[end] = u
        column_of[u], end = end, column_of[u]
        if u == free:
            return
