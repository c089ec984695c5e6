"""Value and supergradient of the split bound at given multipliers (uncertified; for steering).

Assignments are by shortest augmenting paths (Jonker and Volgenant 1987), started from the last prices.
"""

from __future__ import annotations

import numpy as np

from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.mapping.bounds.projection import Spectrum
from nmsolve.solvers.mapping.bounds.split.form import SplitForm
from nmsolve.solvers.mapping.bounds.split.rows import Rows


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


class Evaluator:
    """Evaluates ``F(M, tau) = PB(sym M) + GLB(W - M - sum tau A) + sum tau rhs`` for one form (doubled cost, no step).

    S = (M + M')/2 goes to the projection bound, M with all of its skew part to Gilmore-Lawler. The linear part of the
    projection bound is paid in the same assignment as the Gilmore-Lawler costs, which is never worse than on its own.
    """

    def __init__(self, form: SplitForm) -> None:
        self.form = form
        self.price = np.zeros(form.k)
        self.spectrum = Spectrum(form.mu, form.k)
        #: (k, k) distances from the spectral part and from Gilmore-Lawler at the last point: ``spectral - lawler``
        #: is the supergradient in M.
        self.spectral = np.zeros((form.k, form.k))
        self.lawler = np.zeros((form.k, form.k))

    def value(self, m: FloatArray, rows: Rows) -> float:
        """Return F at the multipliers ``m`` (k, k); set ``spectral`` and ``lawler``."""
        form, k = self.form, self.form.k
        shift = (m + m.T) / 2
        load = shift.sum(axis=1)
        quadratic, factor = self.spectrum.paired(shift)
        order, cost = lawler_costs(form, m, rows)
        cost += np.outer(load, (2 / k) * form.reach)
        column = assign(cost, self.price)
        total = float(form.reach.sum())
        value = quadratic + float(cost[np.arange(k), column].sum()) - float(load.sum()) * total / k**2
        place(order, form.falling, column, self.lawler)
        side = form.reach[column] / k - total / (2 * k**2)
        weight, vectors = factor
        np.matmul(vectors * weight, vectors.T, out=self.spectral)
        self.spectral += side[:, None]
        self.spectral += side
        return value + rows.paid()


def lawler_costs(form: SplitForm, m: FloatArray, rows: Rows) -> tuple[np.ndarray, FloatArray]:
    """Return (k, k-1) partners of every node in rising order of cost, and (k, k) least scalar products by node and core."""
    left = form.traffic - m
    rows.subtract(left)
    np.fill_diagonal(left, np.inf)
    order = np.argsort(left, axis=1)[:, :-1]
    rising = np.take_along_axis(left, order, axis=1)
    cost: FloatArray = rising @ form.falling.T
    if len(form.forbidden):
        cost[form.forbidden] = barrier(cost)
    return order, cost


def barrier(cost: FloatArray) -> float:
    """Return a finite cost that no least-cost assignment in ``cost`` (k, k) pays if it can be avoided."""
    spread = float(cost.max() - cost.min())
    return float(cost.max()) + 2 * len(cost) * spread + 1.0


@plain
def place(order: IntArray, falling: FloatArray, column: IntArray, out: FloatArray) -> None:
    """``out[u, order[u, j]] = falling[column[u], j]``: the distances that Gilmore-Lawler gives every pair."""
    k, width = falling.shape
    for u in range(k):
        for j in range(width):
            out[u, order[u, j]] = falling[column[u], j]
        out[u, u] = 0.0
