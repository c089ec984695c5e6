"""Ant colony optimisation of mappings: the MAX-MIN ant system of Stützle and Hoos (2000), *MAX-MIN Ant System*, Future
Generation Computer Systems 16:889-914, in its form for the quadratic assignment problem.

Ants build mappings by trails alone (the published form for assignment uses no heuristic information), a local search improves
them, the best ant of the iteration, or now and then the best ever, lays trail within ``[tau_min, tau_max]``.
"""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.published.prior_art.arena import (
    Arena,
    Mapping,
    assign,
    copied,
    cost_of,
    descend,
    fits,
)
from nmsolve.heuristics.rng import shuffle, uniform
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import AnyArray, FloatArray

#: Ants per iteration, evaporation, steps of the local search per node; every n iterations the best ever lays trail.
ANTS, EVAPORATION, STEPS_PER_NODE, ELITE = 5, 0.2, 60, 5
#: Iterations without a new best before all trails start again.
STALE = 50
#: Most trails (nodes x cores).
MOST_TRAILS = 20_000_000


class AntColony:
    """State of the method; :meth:`advance` sends one ant and returns the best mapping so far."""

    def __init__(self, a: Arena, start: Mapping, rng: AnyArray) -> None:
        self._a, self._rng, self._n = a, rng, len(start.core)
        self.best, self._leader, self._ant = copied(start), copied(start), copied(start)
        self._leader.cost[0] = np.inf
        self._trails = np.ones((self._n, len(a.free)))
        self._ants, self._iteration, self._stale = 0, 0, 0

    def advance(self) -> Mapping:
        """One ant; after the last of an iteration the trails are updated."""
        ant = self._ant
        if _build(self._a, ant, self._trails, self._rng):
            descend(self._a, ant, STEPS_PER_NODE * self._n, self._rng)
            if ant.cost[0] < self._leader.cost[0]:
                assign(self._leader, ant)
        self._ants += 1
        if self._ants == ANTS:
            self._update()
        return self.best

    def _update(self) -> None:
        self._iteration, self._stale = self._iteration + 1, self._stale + 1
        if self._leader.cost[0] < self.best.cost[0] * (1 - 1e-12):
            assign(self.best, self._leader)
            self._stale = 0
        teacher = self.best if self._iteration % ELITE == 0 else self._leader
        # Trails are kept in units of tau_max, so that only the limit tau_min = tau_max / 2n is left of the two.
        if np.isfinite(teacher.cost[0]):
            share = float(self.best.cost[0] / teacher.cost[0]) if teacher.cost[0] > 0 else 1.0
            _lay(self._trails, self._a.free, teacher, EVAPORATION * share, 0.5 / self._n)
        if self._stale >= STALE:
            self._trails[:] = 1.0
            self._stale = 0
        self._ants, self._leader.cost[0] = 0, np.inf


@kernel
def _build(a: Arena, m: Mapping, trails: FloatArray, rng: AnyArray) -> bool:
    """Fill ``m`` node by node in random order, each on a core with room with probability by trail; False if one found none."""
    n = len(m.core)
    order = np.arange(n)
    shuffle(rng, order)
    m.load[:] = 0
    chance = np.empty(len(a.free))
    for u in order:
        total = 0.0
        for j in range(len(a.free)):
            if fits(a, m, u, a.free[j], -1):
                total += trails[u, j]
            chance[j] = total
        if total == 0.0:
            return False
        j = min(int(np.searchsorted(chance, uniform(rng) * total, side="right")), len(a.free) - 1)
        while not fits(a, m, u, a.free[j], -1):  # only by rounding at the very end
            j -= 1
        q = a.free[j]
        m.core[u] = q
        for r in range(a.sizes.shape[1]):
            m.load[q, r] += a.sizes[u, r]
    m.cost[0] = cost_of(a, m.core)
    return True


@plain
def _lay(trails: FloatArray, free: AnyArray, teacher: Mapping, amount: float, least: float) -> None:
    """Evaporate, let the teacher lay trail, keep the limits."""
    for u in range(trails.shape[0]):
        for j in range(len(free)):
            t = (1.0 - EVAPORATION) * trails[u, j]
            if teacher.core[u] == free[j]:
                t += amount
            trails[u, j] = min(1.0, max(least, t))
