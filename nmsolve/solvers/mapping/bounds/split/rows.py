"""The active rows of the split bound with their multipliers.

A row is a set of nodes with signs b and an orientation o: ``sum_{i<j} o b_i b_j d_ij >= rhs``. All signs + with
o = 1: a clique row. Signs that sum to 1 with o = -1: a hypermetric row; with three nodes the triangle inequality.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import FloatArray, Int32Array, IntArray
from nmsolve.solvers.mapping.bounds.split.form import SplitForm
from nmsolve.solvers.mapping.bounds.split.separate import WIDTH, best_thirds, clique_rows, hypermetric_rows

#: A row leaves after this many steps with multiplier 0.
IDLE = 30
#: Violation, over the root of the number of pairs, from which a row is added.
LEAST = 0.03
#: Pairs from which rows are grown, at least.
SEEDS = 12_000
#: Triangles this far from being violated are still grown to larger hypermetric rows.
SLACK = 0.5


@dataclass
class Rows:
    """Signed sets of nodes with multipliers.

    Attributes
    ----------
    table : (r, WIDTH) nodes plus 1, rising, negative for sign -, filled up with 0
    tau, speed, idle : (r,) multipliers >= 0, their search direction, steps since the multiplier was above 0
    start, member, sign, orient, rhs, pairs : the same rows flat
    """

    table: Int32Array
    tau: FloatArray
    speed: FloatArray
    idle: IntArray
    start: IntArray
    member: IntArray
    sign: FloatArray
    orient: FloatArray
    rhs: FloatArray
    pairs: FloatArray

    @staticmethod
    def none(form: SplitForm) -> Rows:
        """No rows."""
        return Rows.of(np.zeros((0, WIDTH), np.int32), np.zeros(0), form)

    @staticmethod
    def of(table: Int32Array, tau: FloatArray, form: SplitForm) -> Rows:
        """Return the rows of ``table`` (r, WIDTH) at rest, with multipliers ``tau`` (r,)."""
        used = table != 0
        size = used.sum(axis=1)
        flat = table[used]
        clique = (table >= 0).all(axis=1)
        start = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
        return Rows(
            table,
            tau,
            np.zeros(len(table)),
            np.zeros(len(table), np.int64),
            start,
            (np.abs(flat) - 1).astype(np.int64),
            np.sign(flat).astype(np.float64),
            np.where(clique, 1.0, -1.0),
            np.where(clique, form.clique[size], np.where(size == 3, form.detour, 0.0)),
            size * (size - 1) / 2.0,
        )

    def subtract(self, cost: FloatArray) -> None:
        """Subtract ``sum tau_k A_k`` from ``cost`` (k, k) in place."""
        subtract_rows(cost, self.start, self.member, self.sign, self.orient, self.tau)

    def missing(self, distance: FloatArray) -> FloatArray:
        """Return (r,) right-hand side less the row's value at a matrix of distances: the supergradient in tau."""
        out: FloatArray = self.rhs - row_values(distance, self.start, self.member, self.sign, self.orient)
        return out

    def renewed(self, form: SplitForm, mean: FloatArray, most_new: int, most: int) -> Rows:
        """Return the rows without those that idled too long, with the most violated new ones at distances ``mean`` (k, k)."""
        keep = self.idle < IDLE
        found, gain = _violated(form, mean)
        new = _unknown(self.table[keep], found)
        found, gain = found[new], gain[new]
        room = max(0, min(most_new, most - int(keep.sum())))
        if len(found) > room:
            found = found[np.argpartition(-gain, room)[:room]]
        table = np.concatenate([self.table[keep], found])
        out = Rows.of(table, np.concatenate([self.tau[keep], np.zeros(len(found))]), form)
        out.speed[: keep.sum()] = self.speed[keep]
        out.idle[: keep.sum()] = self.idle[keep]
        return out

    def joined(self, more: Int32Array, form: SplitForm) -> Rows:
        """Return the rows at rest, with those of the table ``more`` (s, WIDTH) that are new, multiplier 0."""
        more = more[_unknown(self.table, more)]
        tau = np.concatenate([self.tau, np.zeros(len(more))])
        return Rows.of(np.concatenate([self.table, more]), tau, form)

    def paid(self) -> float:
        """Return ``sum tau_k rhs_k``."""
        return float(self.tau @ self.rhs)


def _violated(form: SplitForm, mean: FloatArray) -> tuple[Int32Array, FloatArray]:
    """Return rows of all valid kinds that ``mean`` violates, with their scaled violations."""
    tables, gains = [np.zeros((0, WIDTH), np.int32)], [np.zeros(0)]
    if form.detour > -form.distance.mean():
        first, second = _seeds(mean, form)
        found = hypermetric_rows(mean, first, second, form.detour, 7 if form.embeddable else 3, LEAST)
        tables.append(found[0])
        gains.append(found[1])
    if form.clique[3] > 0:
        found = clique_rows(mean, form.clique, LEAST, 100 * form.k)
        tables.append(found[0])
        gains.append(found[1])
    return np.concatenate(tables), np.concatenate(gains)


def _seeds(mean: FloatArray, form: SplitForm) -> tuple[IntArray, IntArray]:
    """Return pairs (a < b) farthest above, or nearest below, what a detour over a third node allows."""
    open_diagonal = mean.copy()
    np.fill_diagonal(open_diagonal, np.inf)
    worth = np.full((form.k, form.k), -np.inf)
    best_thirds(open_diagonal, worth)
    flat = worth.ravel()
    most = max(SEEDS, 12 * form.k)
    if most < len(flat):
        which = np.argpartition(-flat, most)[:most]
    else:
        which = np.arange(len(flat))
    which = which[flat[which] + form.detour > -SLACK]
    return which // form.k, which % form.k


def _unknown(known: Int32Array, found: Int32Array) -> IntArray:
    """Return which rows of ``found`` are not in ``known``, each once."""
    _, first = np.unique(np.concatenate([known, found]), axis=0, return_index=True)
    out: IntArray = first[first >= len(known)] - len(known)
    return out


@plain
def subtract_rows(
    cost: FloatArray, start: IntArray, member: IntArray, sign: FloatArray, orient: FloatArray, tau: FloatArray
) -> None:
    """``cost -= sum_k tau_k A_k``, A_k symmetric with half of each coefficient at (i, j) and at (j, i)."""
    for r in range(len(tau)):
        if tau[r] == 0.0:
            continue
        half = 0.5 * tau[r] * orient[r]
        for e in range(start[r], start[r + 1]):
            i = member[e]
            for f in range(e + 1, start[r + 1]):
                j = member[f]
                t = half * sign[e] * sign[f]
                cost[i, j] -= t
                cost[j, i] -= t


@kernel
def row_values(
    distance: FloatArray, start: IntArray, member: IntArray, sign: FloatArray, orient: FloatArray
) -> FloatArray:
    """(r,) ``sum_{i<j} o b_i b_j (d_ij + d_ji) / 2`` of every row at a matrix that need not be symmetric."""
    out = np.empty(len(orient))
    for r in range(len(orient)):
        total = 0.0
        for e in range(start[r], start[r + 1]):
            i = member[e]
            for f in range(e + 1, start[r + 1]):
                j = member[f]
                total += sign[e] * sign[f] * (distance[i, j] + distance[j, i])
        out[r] = 0.5 * orient[r] * total
    return out
