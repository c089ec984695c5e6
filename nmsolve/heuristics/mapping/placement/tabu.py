"""Engine ``tabu``: tabu searches on a small crossed population, for at most 200 usable cores and any distances."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.first_fit import first_fit
from nmsolve.heuristics.mapping.placement.data import PlacementData, placement_data
from nmsolve.heuristics.mapping.placement.engine import PLACEMENT
from nmsolve.heuristics.mapping.placement.memetic import Population, board_symmetries
from nmsolve.heuristics.mapping.placement.tabu_dense import DenseSearch
from nmsolve.model.engine import Context
from nmsolve.model.features import at_most
from nmsolve.model.mapping.features import takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import Int32Array, IntArray

#: Usable cores beyond which the price matrix is too slow to keep.
LARGEST = 200
#: Iterations of one search after its last new best, in multiples of the number of cores: in the first population and at
#: most. Every new population doubles it, so that short runs cross early and long ones search thoroughly.
PATIENCE, MOST_PATIENCE = 10, 160
#: A child that is no better than a parent is kicked by this share of the nodes.
KICK = 0.15
#: Children in a row that were not taken in before the population is renewed from its best.
STALE = 40


class Tabu:
    """Robust tabu search from many starts; the best of them are crossed and searched again, see :mod:`memetic`."""

    name = "tabu"
    finds = "mappings"
    refuses = takes(PLACEMENT, at_most(LARGEST, lambda p: int(p.domains.any(axis=0).sum()), "usable cores"))

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Search until told to stop; deterministic by seed, the clock only ends it."""
        data = placement_data(problem)
        start, _ = context.incumbent()
        if start is None:
            start = first_fit(problem, context.seed, context.should_stop)
            if start is None:
                return
            context.offer(start, "first fit")
        if len(data.indices):
            _Memetic(data, start, context).run()


class _Memetic:
    """One run of the engine."""

    def __init__(self, data: PlacementData, start: IntArray, context: Context) -> None:
        self._context = context
        self._search = DenseSearch(data, context.seed)
        self._patience = PATIENCE
        self._rng = np.random.default_rng([context.seed, 3])
        self._start = self._search.seat_of(start)
        self._symmetries = board_symmetries(data, self._search.dense)
        self._offered = np.inf

    def run(self) -> None:
        """Fill a population, cross it until it has nothing new to say, begin again with its best."""
        stop, search = self._context.should_stop, self._search
        best, cost = self._improve(self._start, "tabu search")
        while not stop():
            population = Population(search.data.n, self._symmetries, self._rng)
            population.add(best, cost)
            tries = 0
            while not population.full and not stop() and tries < STALE:
                population.add(*self._improve(search.kicked(best, 4.0), "tabu search"))
                tries += 1
            stale = 0
            while population.full and stale < STALE and not stop():
                one, other = population.parents()
                child = search.crossed(one, other)
                if (child == one).all():
                    child = search.kicked(child, KICK)
                stale = 0 if population.add(*self._improve(child, "crossed tabu search")) else stale + 1
            self._patience = min(MOST_PATIENCE, 2 * self._patience)
            i = int(np.argmin(population.costs))
            best, cost = population.seats[i], population.costs[i]

    def _improve(self, seat: Int32Array, move: str) -> tuple[Int32Array, float]:
        """Return the best placement of a search from ``seat`` with its cost; offered if it is the best so far."""
        search = self._search
        search.begin(seat, self._patience * len(seat))
        going = True
        while going and not self._context.should_stop():
            going = search.iterate()
            if search.cost < self._offered:
                self._offered = search.cost
                self._context.offer(search.core(), move)
        return search.best.copy(), search.cost
