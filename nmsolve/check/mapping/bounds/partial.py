"""Lower bounds on what every child of a partial mapping costs, by multipliers of which nothing is believed.

With weights ``A = W + sum of rows``, S symmetric and K skew, every completion costs at least (doubled)

``fixed_A + paid + projection(S) + sum_u (linear_A[u, p] + 2/m rS(u) rD(p) + least_{A-S+K}[u, p])``

over its assignment of open nodes to the m free cores; the proof is in docs/bounds.md. Everything but the projection, whose
eigenvalues are enclosed, is one sum per entry: entries are rounded down to whole 1/1024 after its possible error is taken off,
and from there on everything is exact.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np

from nmsolve.check.mapping.bounds.exhaustion import BANNED, reduced
from nmsolve.check.mapping.bounds.parts import CertificateError
from nmsolve.check.mapping.bounds.rounding import SAFE, gamma
from nmsolve.check.mapping.bounds.spectral import projection_value
from nmsolve.check.mapping.bounds.split import least_detour, least_triangle
from nmsolve.model.types import BoolArray, FloatArray, IntArray

#: Parts of a unit of doubled cost.
PARTS = 1024
#: Numbers of multipliers beyond this prove nothing.
MOST = 1e9


class Multipliers(NamedTuple):
    """Anyone's.

    Attributes
    ----------
    spectral, skew : (n, n) any numbers; what is used of them is made symmetric, or skew
    row : (T, 4) for every three nodes a < b < c in order: of d_ab - d_ac - d_bc <= 0, of d_ac - d_bc - d_ab <= 0, of
        d_bc - d_ab - d_ac <= 0, and of perimeter - d_ab - d_ac - d_bc <= 0; what is below 0 counts 0
    """

    spectral: FloatArray
    skew: FloatArray
    row: FloatArray


class Relaxed:
    """The bound for symmetric traffic both ways ``pairs`` (n, n) and symmetric distances ``far`` (k, k), both whole."""

    def __init__(self, pairs: IntArray, far: IntArray) -> None:
        n = len(pairs)
        self.pairs, self.far = pairs.astype(float), far.astype(float)
        self._three = np.array(list(combinations(range(n), 3)), np.int64).reshape(-1, 3)
        metric = len(far) >= 3 and least_detour(self.far) >= 0
        self._perimeter = least_triangle(self.far) if len(far) >= 3 else 0.0
        self._usable = np.array([metric, metric, metric, True])

    def children(
        self, place: IntArray, left: BoolArray, given: Multipliers
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Return (r, m) what mappings cost at least (doubled, in 1/1024) that put an open node on a free core; nodes; cores.

        Entries of :data:`BANNED` or more, where a node may not use a core or no assignment is left, mean that there are none.

        Parameters
        ----------
        place : (n,) cores of placed nodes, -1 for open ones
        left : (n, k) bool cores that open nodes may use
        """
        nodes, fixed = np.flatnonzero(place < 0), np.flatnonzero(place >= 0)
        cores = np.setdiff1d(np.arange(len(self.far)), place[fixed])
        r, m = len(nodes), len(cores)
        a, paid, mass = self._weights(given.row)
        d = self.far[np.ix_(cores, cores)]
        s, k = np.zeros((m, m)), given.skew[np.ix_(nodes, nodes)]
        part = given.spectral[np.ix_(nodes, nodes)]
        s[:r, :r] = (part + part.T) / 2
        k = (k - k.T) / 2
        if not (np.isfinite(s).all() and np.isfinite(k).all() and mass < MOST
                and max(np.abs(s).max(), np.abs(k).max()) < MOST):  # fmt: skip
            raise CertificateError("the numbers are too large")
        mixed = np.zeros((r, m))
        mixed[:, :r] = a[np.ix_(nodes, nodes)] - s[:r, :r] + k
        mixed[np.arange(r), np.arange(r)] = np.inf
        falling = -np.sort(-mixed, axis=1)[:, 1:]
        near = np.sort(d + np.diag(np.full(m, -1.0)), axis=1)[:, 1:]
        cost = falling @ near.T + 2 / m * np.outer(s[:r].sum(axis=1), d.sum(axis=0))
        cost += 2 * a[np.ix_(nodes, fixed)] @ self.far[np.ix_(place[fixed], cores)]
        at = self.far[np.ix_(place[fixed], place[fixed])]
        value = float((a[np.ix_(fixed, fixed)] * at).sum()) + paid + projection_value(s, d, linear=False)
        # Every weight and multiplier enters a sum at most three times, times at most the largest distance, after at most as
        # many roundings as there are terms.
        size = float(self.pairs.sum()) + 4 * mass + 4 * float(np.abs(s).sum() + np.abs(k).sum())
        off = (
            SAFE
            * gamma(6 * len(self.far) + 4 * len(self._three) + 60)
            * (4 * size * float(self.far.max()) + abs(value))
        )
        return self._assigned(cost - off, value - off, left[np.ix_(nodes, cores)]), nodes, cores

    def _weights(self, row: FloatArray) -> tuple[FloatArray, float, float]:
        """(n, n) traffic with the rows added, what the rows are worth, and the sum of their multipliers."""
        a, n = self.pairs.copy(), len(self.pairs)
        tau = np.where(self._usable, np.maximum(row, 0.0), 0.0)
        which = np.flatnonzero(tau.any(axis=1))
        tau = tau[which]
        u, v, w = self._three[which].T
        total = tau.sum(axis=1)
        for one, two, kind in ((u, v, 0), (u, w, 1), (v, w, 2)):
            change = np.bincount(one * n + two, 2 * tau[:, kind] - total, n * n).reshape(n, n)
            a += change + change.T
        return a, 2.0 * self._perimeter * float(tau[:, 3].sum()), 8.0 * float(total.sum())

    @staticmethod
    def _assigned(cost: FloatArray, value: float, open_ones: BoolArray) -> IntArray:
        """Return (r, m) ``value`` plus the least assignment with each entry, in whole 1/1024, rounded down."""
        r, m = cost.shape
        whole = np.zeros((m, m), np.int64)
        whole[:r] = np.where(open_ones, np.floor(cost * PARTS).astype(np.int64), BANNED)
        shift = int(whole.min())
        whole[:r] -= np.where(open_ones, shift, 0)
        low = reduced(whole, m, np.zeros((7, m), np.int64))
        if low >= BANNED // 2:
            return np.full((r, m), BANNED)
        out: IntArray = whole[:r] + (low + r * shift + int(np.floor(value * PARTS)))
        return out
