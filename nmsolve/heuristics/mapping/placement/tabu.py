"""Engine ``tabu``: iterated robust tabu search for at most 200 usable cores and any distances."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.common.rng import new_rng
from nmsolve.heuristics.mapping.first_fit import first_fit
from nmsolve.heuristics.mapping.placement.data import PlacementData, placement_cost, placement_data
from nmsolve.heuristics.mapping.placement.engine import refuse_placement
from nmsolve.heuristics.mapping.placement.tabu_kernel import fill_prices, kick, tabu_search
from nmsolve.model.engine import Context
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray

#: Usable cores beyond which the price matrix is too slow to keep.
LARGEST = 200
#: Swap-price updates of one call of the kernel, about 0.05 s.
SLICE = 2.5e7
#: Iterations of one search before the next kick, in multiples of the number of cores.
PATIENCE = 25
#: Kicks move this share of all nodes: the least, the most, and the growth after a search without a new best.
LEAST_KICK, MOST_KICK, GROWTH = 0.15, 0.9, 1.3


class Tabu:
    """Tabu searches from the best placement so far, kicked harder the longer nothing better was found."""

    name = "tabu"
    finds = "mappings"

    def refuses(self, problem: MappingProblem) -> str | None:
        """Takes one node per core on at most 200 usable cores, any distances."""
        cores = int(problem.domains.any(axis=0).sum())
        if cores > LARGEST:
            return f"{cores} usable cores; tabu keeps a price for every pair and takes at most {LARGEST}"
        return refuse_placement(problem)

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Search until told to stop; deterministic by seed, the clock only ends it."""
        data = placement_data(problem)
        start = first_fit(problem, context.seed, context.should_stop)
        if start is None:
            return
        context.offer(start, "first fit")
        if len(data.indices) == 0:
            return
        search = DenseSearch(data, start, context.seed)
        offered, strength = np.inf, LEAST_KICK
        while not context.should_stop():
            improved = False
            while search.iterate() and not context.should_stop():
                if search.cost < offered:
                    improved = True
                    offered = search.cost
                    context.offer(search.core(), "tabu search")
            if search.cost < offered:
                improved, offered = True, search.cost
                context.offer(search.core(), "tabu search")
            strength = LEAST_KICK if improved else min(MOST_KICK, strength * GROWTH)
            search.kick(strength)


class DenseSearch:
    """Dense matrices over the usable cores, one search after another from kicked best placements."""

    def __init__(self, data: PlacementData, core: IntArray, seed: int) -> None:
        self._data, self._rng = data, new_rng(seed, 2)
        free, n = data.free, len(data.free)
        self._flow, self._dist, self._symmetric = dense_matrices(data)
        self._can = np.ones((n, n + 1), bool)
        self._can[: data.n, :n] = data.domains[data.domain][:, free]
        self._can[data.n :, n] = False
        seat_of = np.full(data.cores, -1, np.int64)
        seat_of[free] = np.arange(n)
        empty = np.setdiff1d(np.arange(n), seat_of[core])
        self._seat = np.concatenate([seat_of[core], empty])
        self._best = self._seat.copy()
        self._price = np.zeros((n, n))
        self._until = np.zeros((n, n), np.int64)
        cost = placement_cost(data, core)
        self._now = np.array([0.0, cost, cost])
        self._slice = max(1, min(PATIENCE * n, int(SLICE / n**2)))
        self._refill()

    @property
    def cost(self) -> float:
        """Cost of the best placement so far."""
        return float(self._now[2])

    def core(self) -> IntArray:
        """(n,) int64 core of every node in the best placement so far."""
        core: IntArray = self._data.free[self._best[: self._data.n]]
        return core

    def _refill(self) -> None:
        fill_prices(
            0,
            len(self._seat),
            self._flow,
            self._dist,
            self._seat,
            self._can,
            self._symmetric,
            self._price,
        )
        self._left = PATIENCE * len(self._seat)

    def iterate(self) -> bool:
        """One slice of the present search; False when its patience is at an end."""
        best = self.cost
        tabu_search(
            self._slice,
            self._rng,
            self._flow,
            self._dist,
            self._can,
            self._symmetric,
            self._seat,
            self._price,
            self._until,
            self._best,
            self._now,
        )
        self._left = PATIENCE * len(self._seat) if self.cost < best else self._left - self._slice
        return self._left > 0

    def kick(self, share: float) -> None:
        """Begin a new search at the best placement, perturbed by swaps that touch ``share`` of the nodes."""
        n = len(self._seat)
        self._seat[:] = self._best
        self._now[1] = self._now[2]
        swaps = max(2, int(share * n / 2))
        kick(
            swaps,
            self._rng,
            self._flow,
            self._dist,
            self._can,
            self._symmetric,
            self._seat,
            self._now,
        )
        self._until[:] = 0
        self._refill()


def dense_matrices(data: PlacementData) -> tuple[FloatArray, FloatArray, bool]:
    """``(flow, dist, symmetric)`` over the usable cores, both (P, P) float64; see :mod:`tabu_kernel` for the cost."""
    free, n = data.free, len(data.free)
    flow = np.zeros((n, n))
    row = np.repeat(np.arange(data.n), np.diff(data.indptr))
    flow[row, data.indices] = data.out
    if data.separable:
        r, c = np.divmod(free, data.cols)
        dist = data.dx[np.ix_(c, c)].astype(np.float64) + data.dy[np.ix_(r, r)]
    else:
        dist = np.ascontiguousarray(data.matrix[np.ix_(free, free)])
    return flow, dist, data.symmetric
