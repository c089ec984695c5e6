"""Value and supergradient of the split bound at given multipliers (uncertified; for steering)."""

from __future__ import annotations

import numpy as np

from nmsolve.model.compiled import plain
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.mapping.bounds.projection import Spectrum
from nmsolve.solvers.mapping.bounds.split.assign import assign
from nmsolve.solvers.mapping.bounds.split.form import SplitForm
from nmsolve.solvers.mapping.bounds.split.rows import Rows


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
