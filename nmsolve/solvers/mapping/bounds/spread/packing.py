"""How much of every row: a first-order method on the packing problem and the positions of its sources.

    min sum_e w_e d_e    so that    sum_e load_re d_e >= sum_g z_ug least_g(k_r)  for every row r = (u, k_r)
    d >= 0, every z_u in the simplex, sum_u z_ug <= count_g

Its multipliers, y of rows and v of groups, are the bound. Chambolle and Pock's method with diagonal steps (Pock and
Chambolle 2011), in x = w d and rows over their own right side, restarted at the mean of every stretch (Applegate et al. 2021).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import AnyArray, FloatArray, Int32Array, IntArray
from nmsolve.solvers.mapping.bounds.spread.form import SpreadForm
from nmsolve.solvers.mapping.bounds.spread.messages import carried
from nmsolve.solvers.mapping.bounds.spread.rows import Rows
from nmsolve.solvers.mapping.bounds.spread.sets import Sets

#: A row that had no share for this many stretches is dropped.
IDLE = 3
#: The weight of steps of y and v against those of x and z.
PULL = 2.0
#: How much positions count beside pairs in the steps of rows.
SCALE = 1.0
#: What is left of the length of a pair after a step if no row crosses it: some will look for short ways.
FADE = 0.995


@dataclass
class Packing:
    """The pool of rows and the point that was reached.

    Attributes
    ----------
    x : (M,) traffic times length of every pair; ``z`` : (n, G) where every node lies
    y : (rows,) shares of rows times their right sides; ``v`` : (G,) prices of groups of cores
    bears : (M,) the traffic of every pair; what every message may carry, at least its rate
    """

    form: SpreadForm
    x: FloatArray
    z: FloatArray
    v: FloatArray
    bears: FloatArray
    rows: Rows = field(default_factory=Rows.none)
    sets: Sets = field(default_factory=Sets.none)
    y: FloatArray = field(default_factory=lambda: np.zeros(0))
    idle: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))

    @classmethod
    def start(cls, form: SpreadForm, length: FloatArray) -> Packing:
        """No rows; pairs have these lengths (M,), and every node lies anywhere."""
        z = np.tile(form.count / form.count.sum(), (form.n, 1))
        return cls(form, form.weight * length, z, np.zeros(len(form.count)), form.weight)

    def add(self, rows: Rows, sets: Sets) -> None:
        """Add rows without a share; ``sets`` are those of the rows that belong to one, in their order."""
        self.rows, self.sets = self.rows.joined(rows), self.sets.joined(sets)
        more = len(rows.source)
        self.y = np.concatenate([self.y, np.zeros(more)])
        self.idle = np.concatenate([self.idle, np.zeros(more, np.int64)])

    @property
    def entries(self) -> int:
        """Return how many entries all rows have."""
        return int(self.rows.indptr[-1])

    def drop(self, small: float, patience: int = IDLE) -> None:
        """Drop what had no more than this part of the mean share in the last ``patience`` stretches."""
        if len(self.y) == 0:
            return
        self.idle = np.where(self.y > small * self.y.mean(), 0, self.idle + 1)
        self._keep(self.idle < patience)

    def shrink(self, most: int) -> None:
        """Keep rows of the largest shares, with at most this many entries together."""
        order = np.argsort(-self.y, kind="stable")
        kept = np.empty(len(order), bool)
        kept[order] = np.cumsum(np.diff(self.rows.indptr)[order]) <= most
        self._keep(kept)

    def _keep(self, kept: AnyArray) -> None:
        if not kept.all():
            self.sets = self.sets.chosen(kept[self.rows.source < 0])
            self.rows, self.y, self.idle = self.rows.chosen(kept), self.y[kept], self.idle[kept]

    def shares(self) -> FloatArray:
        """Return (rows,) how much of every row counts."""
        return np.asarray(self.y / np.maximum(self.right(), 1e-300))

    def led(self, share: FloatArray) -> FloatArray:
        """Return (M,) the most that shares (rows,) lead from any side of a message to the other, by way of messages alone."""
        form, rows = self.form, self.rows
        assert form.messages is not None
        m = form.messages
        times = np.repeat(share, np.diff(rows.indptr))
        flow = np.bincount(rows.edge, times * np.abs(rows.load), int(m.first[-1]))
        return np.asarray(carried(m.start, m.first, flow, m.widest))

    def loosen(self) -> None:
        """Let every message carry what it could if it were crossed as it is now: more than its rate, if not always the same way.

        Half of the way (in logarithms), since crossings change with it; lengths stay.
        """
        form, rows = self.form, self.rows
        if form.messages is None or form.messages.widest < 3 or len(self.y) == 0:
            return
        share = self.shares()
        parted = self.led(share)
        times = np.repeat(share, np.diff(rows.indptr))
        whole = np.bincount(form.bearers(rows.edge), times * np.abs(rows.load), len(form.weight))
        more = np.where(parted > 0, whole / np.maximum(parted, 1e-300), 1.0)
        bears = np.sqrt(self.bears * form.weight * np.clip(more, 1.0, 2.0))
        self.x = self.x * (bears / self.bears)
        self.bears = bears

    def right(self) -> FloatArray:
        """Return (rows,) what every row is measured by: the mean over groups of the least sum of distances, or a set's worth."""
        out: FloatArray = self.form.least[:, self.rows.targets].mean(axis=0)
        out[self.rows.source < 0] = self.sets.worth
        return out

    def advance(self, steps: int) -> None:
        """Some steps, then on from their mean."""
        form, rows = self.form, self.rows
        if len(rows.source) == 0:
            return
        right = self.right()
        part = form.least[:, rows.targets].T / right[:, None]
        pool = _Pool(
            rows.source, rows.indptr, form.bearers(rows.edge), rows.load, 1.0 / right, 1.0 / self.bears, part, form.count
        )  # fmt: skip
        take_steps(pool, self.x, self.z, self.y, self.v, PULL, steps)


class _Pool(NamedTuple):
    """Rows over the mean of their right sides: the coefficient of x at an entry is |load| * over[row] * per[edge].

    Attributes
    ----------
    source, indptr, edge, load : as of :class:`Rows`; ``over`` : (rows,) one over the right sides
    per : (M,) one over the traffic of every pair
    part : (rows, G) right sides by group; ``places`` : (G,) nodes that a group can hold
    """

    source: IntArray
    indptr: IntArray
    edge: Int32Array
    load: AnyArray
    over: FloatArray
    per: FloatArray
    part: FloatArray
    places: FloatArray


@kernel
def take_steps(
    pool: _Pool, x: FloatArray, z: FloatArray, y: FloatArray, v: FloatArray, pull: float, steps: int
) -> None:
    """Steps from (x, z, y, v), which become the mean of what they pass; ``pull`` : weight of steps of y and v."""
    source, indptr, edge, load, over, per, part, count = pool
    rows, groups, n = len(source), len(count), len(z)
    sum_x, most, sum_y, s = _sums(pool, n)
    mean_x, mean_y = np.zeros(len(x)), np.zeros(rows)
    mean_z, mean_v = np.zeros(z.shape), np.zeros(groups)
    grad_x, grad_z = np.empty(len(x)), np.empty(z.shape)
    new_z, held = np.empty(groups), np.empty(groups)
    for _ in range(steps):
        grad_x[:] = 0.0
        for u in range(n):
            grad_z[u] = v
        for r in range(rows):
            if y[r] > 0:
                share = y[r] * over[r]
                for k in range(indptr[r], indptr[r + 1]):
                    grad_x[edge[k]] += share * abs(load[k])
                for g in range(groups if source[r] >= 0 else 0):
                    grad_z[source[r], g] += y[r] * part[r, g]
        # x and z step down; what rows and prices see is the point beyond it
        for e in range(len(x)):
            if sum_x[e] > 0:
                new = max(0.0, x[e] - (1.0 - grad_x[e] * per[e]) / (sum_x[e] * pull))
            else:
                new = FADE * x[e]
            grad_x[e], x[e] = (2.0 * new - x[e]) * per[e], new
            mean_x[e] += new
        held[:] = 0.0
        for u in range(n):
            for g in range(groups):
                new_z[g] = z[u, g] - s / (most[u] * pull) * grad_z[u, g]
            _onto_simplex(new_z)
            for g in range(groups):
                grad_z[u, g], z[u, g] = 2.0 * new_z[g] - z[u, g], new_z[g]
                mean_z[u, g] += new_z[g]
                held[g] += grad_z[u, g]
        for r in range(rows):
            gap, length = 1.0 if source[r] < 0 else 0.0, 0.0
            for g in range(groups if source[r] >= 0 else 0):
                gap += part[r, g] * grad_z[source[r], g]
            for k in range(indptr[r], indptr[r + 1]):
                length += abs(load[k]) * grad_x[edge[k]]
            gap -= length * over[r]
            y[r] = max(0.0, y[r] + pull / sum_y[r] * gap)
            mean_y[r] += y[r]
        for g in range(groups):
            v[g] = max(0.0, v[g] + pull / (s * n) * (held[g] - count[g]))
            mean_v[g] += v[g]
    x[:] = mean_x / steps
    y[:] = mean_y / steps
    v[:] = mean_v / steps
    z[:] = mean_z / steps


@kernel
def _sums(pool: _Pool, n: int) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """What steps are measured by: coefficients of every x (M,), of z (n,) and of every row (rows,) added up; the scale of z."""
    source, indptr, edge, load, over, per, part, count = pool
    sum_x, most, sum_y = np.zeros(len(per)), np.ones(n), np.empty(len(source))
    crossed, whole = 0.0, 0.0
    for r in range(len(source)):
        total, high = 0.0, 0.0
        for k in range(indptr[r], indptr[r + 1]):
            e = edge[k]
            total += abs(load[k]) * per[e]
            sum_x[e] += abs(load[k]) * over[r]
        sum_y[r] = total * over[r]
        if source[r] < 0:
            continue
        for g in range(len(count)):
            whole += part[r, g]
            high = max(high, part[r, g])
        most[source[r]] += high
        crossed += sum_y[r]
    scale = SCALE * crossed / whole if whole > 0 else 1.0
    for r in range(len(source)):
        for g in range(len(count) if source[r] >= 0 else 0):
            sum_y[r] += scale * part[r, g]
    sum_x *= per
    return sum_x, most, sum_y, scale


@plain
def _onto_simplex(point: FloatArray) -> None:
    """Move a point (G,) to the nearest with entries >= 0 that add up to 1 (Michelot 1986)."""
    count, total = len(point), 0.0
    for g in range(len(point)):
        total += point[g]
    level = (total - 1.0) / count
    while True:
        kept, left = 0, 0.0
        for g in range(len(point)):
            if point[g] > level:
                kept += 1
                left += point[g]
        if kept == 0 or kept >= count:
            break
        count, level = kept, (left - 1.0) / kept
    for g in range(len(point)):
        point[g] = max(0.0, point[g] - level)


@kernel
def fitted(
    indptr: IntArray, edge: Int32Array, load: AnyArray, weight: FloatArray, share: FloatArray
) -> FloatArray:
    """(rows,) shares near ``share`` at which no pair carries more than its traffic: softened, cut, then filled up row by row."""
    rows = len(share)
    y, used = share.copy(), np.empty(len(weight))
    for turn in range(10):
        used[:] = 0.0
        for r in range(rows):
            if y[r] > 0:
                for k in range(indptr[r], indptr[r + 1]):
                    used[edge[k]] += y[r] * abs(load[k])
        if turn == 9:
            break
        for r in range(rows):
            if y[r] > 0:
                over = 0.0
                for k in range(indptr[r], indptr[r + 1]):
                    over = max(over, used[edge[k]] / weight[edge[k]])
                if over > 1.0:
                    y[r] *= over ** (-0.4) if turn < 8 else 1.0 / over
    # the legs of a set may cross a pair more than once
    crossed = np.zeros(len(weight))
    for r in range(rows):
        left = np.inf
        for k in range(indptr[r], indptr[r + 1]):
            crossed[edge[k]] += abs(load[k])
        for k in range(indptr[r], indptr[r + 1]):
            left = min(left, (weight[edge[k]] - used[edge[k]]) / crossed[edge[k]])
        for k in range(indptr[r], indptr[r + 1]):
            crossed[edge[k]] = 0.0
            if left > 0:
                used[edge[k]] += left * abs(load[k])
        if left > 0 and left < np.inf:
            y[r] += left
    return y
