"""Dense matrices over the usable cores for tabu search, and repeated searches on them."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.placement.data import PlacementData, placement_cost
from nmsolve.heuristics.mapping.placement.tabu_kernel import (
    FORBIDDEN,
    Dense,
    Prices,
    cross,
    fill,
    kick,
    tabu_search,
)
from nmsolve.heuristics.rng import new_rng
from nmsolve.model.types import AnyArray, FloatArray, Int32Array, IntArray

#: Swap-price updates of one call of the kernel, about 0.05 s.
SLICE = 2.5e7


class DenseSearch:
    """Tabu searches on one problem. A placement here is a ``seat``: (P,) int32, a permutation of the usable cores.

    Parameters
    ----------
    data : the problem; empty cores become dummy nodes ``n .. P - 1`` without traffic
    """

    def __init__(self, data: PlacementData, seed: int) -> None:
        self.data, self._rng = data, new_rng(seed, 2)
        self.dense = dense_problem(data)
        n, kind = len(data.free), self.dense.flow.dtype
        self._now = Prices(
            np.zeros(n, np.int32), np.zeros((n, n), kind), np.full((n, n), FORBIDDEN, kind), np.zeros(n, kind)
        )
        self._until = np.zeros((n, n), np.int32)
        self._count = np.zeros(3)
        self._slice = max(1, int(SLICE / n**2))
        self._left = 0
        self._length = 0
        #: Best seat of the present search.
        self.best = np.zeros(n, np.int32)

    @property
    def cost(self) -> float:
        """Cost of the best placement of the present search."""
        return float(self._count[2])

    def core(self) -> IntArray:
        """Return (n,) int64 core of every node in the best placement of the present search."""
        return self.core_of(self.best)

    def core_of(self, seat: Int32Array) -> IntArray:
        """Return (n,) int64 core of every node."""
        core: IntArray = self.data.free[seat[: self.data.n]]
        return core

    def seat_of(self, core: IntArray) -> Int32Array:
        """Return the seat (seats,) of a placement (n,); dummies take the empty cores in order."""
        number = np.full(self.data.cores, -1, np.int64)
        number[self.data.free] = np.arange(len(self.data.free))
        empty = np.setdiff1d(np.arange(len(self.data.free)), number[core])
        return np.concatenate([number[core], empty]).astype(np.int32)

    def begin(self, seat: Int32Array, length: int) -> None:
        """Begin a search at ``seat`` (P,); it ends ``length`` iterations after its last new best."""
        self._now.seat[:] = self.best[:] = seat
        cost = placement_cost(self.data, self.core_of(seat))
        self._count[:] = 0.0, cost, cost
        self._until[:] = 0
        self._left = self._length = length
        fill(self.dense, self._now)

    def iterate(self) -> bool:
        """One slice of the present search; False when it is through."""
        best, steps = self.cost, min(self._slice, self._left)
        tabu_search(steps, self._rng, self.dense, self._now, self._until, self.best, self._count)
        self._left = self._length if self.cost < best else self._left - steps
        return self._left > 0

    def kicked(self, seat: Int32Array, share: float) -> Int32Array:
        """Return ``seat`` (seats,) after random permitted swaps that touch about ``share`` of the nodes."""
        out = seat.copy()
        kick(max(2, int(share * len(seat) / 2)), self._rng, self.dense.can, out)
        return out

    def crossed(self, seat: Int32Array, other: Int32Array) -> Int32Array:
        """Return a child (seats,) that agrees with both parents where they agree."""
        out = seat.copy()
        cross(self._rng, self.dense.can, self.data.n, np.ascontiguousarray(other), out)
        return out


def dense_problem(data: PlacementData) -> Dense:
    """Return the matrices of :class:`tabu_kernel.Dense` over the usable cores.

    In float32 where that is exact: whole numbers, and all sums below 2**24. Otherwise in float64.
    """
    free, n = data.free, len(data.free)
    flow, dist = dense_matrices(data)
    joint = flow if data.symmetric else flow + flow.T
    own = np.diag(dist)
    extra = dist + dist.T - own[:, None] - own[None, :]
    can = np.ones((n, n), bool)
    can[: data.n] = data.domains[data.domain][:, free]
    largest = 8 * max(flow.sum(0).max(), flow.sum(1).max()) * np.abs(dist).max()
    whole = bool((flow == np.rint(flow)).all() and (dist == np.rint(dist)).all())
    kind = np.float32 if whole and largest < 2**24 else np.float64

    def of(matrix: FloatArray) -> AnyArray:
        return np.ascontiguousarray(matrix, kind)

    return Dense(
        of(flow),
        of(flow.T),
        of(dist),
        of(dist.T),
        of(joint),
        of(extra),
        can,
        np.arange(n) < data.n,
        data.symmetric,
    )


def dense_matrices(data: PlacementData) -> tuple[FloatArray, FloatArray]:
    """Return ``(flow, dist)`` over the usable cores, both (P, P) float64.

    The cost is ``sum over ordered pairs of flow[i, j] * dist[seat i, seat j]``, half of it if ``data.symmetric``.
    """
    free, n = data.free, len(data.free)
    flow = np.zeros((n, n))
    row = np.repeat(np.arange(data.n), np.diff(data.indptr))
    flow[row, data.indices] = data.out
    np.fill_diagonal(flow, 0.0)
    if data.separable:
        r, c = np.divmod(free, data.cols)
        dist = data.dx[np.ix_(c, c)].astype(np.float64) + data.dy[np.ix_(r, r)]
    else:
        dist = np.ascontiguousarray(data.matrix[np.ix_(free, free)])
    return flow, dist
