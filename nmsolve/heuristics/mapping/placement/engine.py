"""Engine ``anneal``: long hot annealing of moves and swaps for one node per core."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.first_fit import first_fit
from nmsolve.heuristics.mapping.placement.data import PlacementData, placement_cost, placement_data
from nmsolve.heuristics.mapping.placement.local_search import new_local_search
from nmsolve.heuristics.mapping.placement.neighbourhoods import Neighbourhoods
from nmsolve.heuristics.mapping.placement.schedule import (
    Cooling,
    anneal,
    extra_heat,
    temperature_scale,
)
from nmsolve.heuristics.mapping.placement.spectral import spectral_axes, spectral_start
from nmsolve.model.engine import Context
from nmsolve.model.mapping.features import takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray

#: Temperatures in units of :func:`temperature_scale`: a full run's first and last, and the one that keeps the overall
#: arrangement but loosens everything inside it.
HOT, COLD, WARM = 2.0, 0.01, 0.3
#: A later run ends where the first one had all but this share of its descent behind it.
FROZEN = 2e-4
#: Temperature of a spectral start: hot enough to mend what is wrong with its overall arrangement, not so hot as to forget it.
MODERATE = 1.6
#: The plan in shares of the time: a short run for an early answer, a cooler one, a long one; the rest is for large moves.
EARLY, COOLER, MAIN, REHEAT = 0.05, 0.3, 0.55, 0.03
#: Seconds per node from which there is time for the cooler run: which arrangement a run ends in is luck on some problems.
TWICE_PER_NODE = 0.01
#: Seconds per node above which a plan is not made longer.
MOST_PER_NODE = 0.5
#: What engines for one node per core take.
PLACEMENT = "pairs -several -lone"


class Anneal:
    """Anneal placements from hot to frozen and offer what comes out; until time is up, loosen and refreeze the best.

    The budget of work follows from the time left at the start at fixed rates (see :mod:`.local_search`), so results depend on
    the seed and that time only, unless the machine is too slow for the plan: then every run is compressed.
    """

    name = "anneal"
    finds = "mappings"
    refuses = takes(PLACEMENT)

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Search until time is up."""
        seconds = min(nominal_seconds(context.time_left()), MOST_PER_NODE * problem.n)
        data = placement_data(problem)
        start, _ = context.incumbent()
        warm = start is not None
        if start is None:
            start = first_fit(problem, context.seed, context.should_stop)
            if start is None:
                return
            context.offer(start, "first fit")
        if temperature_scale(data) > 0 and not context.should_stop():
            _Plan(data, start, context, seconds).run(warm)


class _Plan:
    """One run of the engine: the local search, the best placement, and the time that each stage may take."""

    def __init__(self, data: PlacementData, start: IntArray, context: Context, seconds: float) -> None:
        self._context, self._seconds = context, seconds
        self._search = new_local_search(data, context.seed)
        self._search.place(start)
        self._scale = temperature_scale(data)
        farther, wider = extra_heat(data)
        self._hot, self._cold = HOT * wider * self._scale, COLD * self._scale
        self._moderate = MODERATE * farther * self._scale
        self._until = 0.0
        self._best, self._cost = start, placement_cost(data, start)

    def run(self, warm: bool) -> None:
        """Run all stages in order; if ``warm``, the start is a good placement and is loosened and refrozen first."""
        if warm:
            self._stage("reheated", REHEAT, WARM * self._scale / 3)
        axes = spectral_axes(self._search.data)
        self._freeze(self._started("quick annealing", axes, EARLY))
        if self._seconds < TWICE_PER_NODE * self._search.data.n:
            self._started("long annealing", axes, MAIN + COOLER)
        else:
            self._started("cooler annealing", axes, COOLER, 0.5)
            self._started("long annealing", axes, MAIN)
        if not self._context.should_stop():
            self._adopt()
            loose, work = WARM * self._scale, REHEAT * self._seconds * 1e9
            Neighbourhoods(self._search, self._best, self._context, loose, self._cold, work).run()

    def _freeze(self, cooling: Cooling) -> None:
        """Let later runs end where this one had hardly anything left to gain."""
        self._cold = max(self._cold, cooling.frozen_below(FROZEN))

    def _started(self, name: str, axes: FloatArray | None, share: float, heat: float = 1.0) -> Cooling:
        """Anneal from the spectral start, or from nowhere if there is none, at ``heat`` times the usual temperature."""
        if axes is None:
            self._search.scramble()
            return self._stage(name, share, heat * self._hot)
        self._search.place(spectral_start(self._search.data, axes))
        return self._stage(name, share, heat * self._moderate)

    def _keep(self, name: str) -> None:
        """Offer where the search is if that is the best so far."""
        core = self._search.core()
        cost = placement_cost(self._search.data, core)
        if cost < self._cost:
            self._best, self._cost = core, cost
            self._context.offer(core, name)

    def _adopt(self) -> None:
        """Go on from the incumbent if another engine, or the user's warm start, has found something better."""
        core, _ = self._context.incumbent()
        if core is not None:
            cost = placement_cost(self._search.data, core)
            if cost < self._cost:
                self._best, self._cost = core, cost

    def _stage(self, name: str, share: float, hot: float) -> Cooling:
        """Anneal for ``share`` of the plan from temperature ``hot``, polish, offer the result if it is the best.

        A stage that is late takes from all that follow in proportion: it must not leave the next one without time to cool.
        """
        lead = self._context.time_left()
        goal = lead * share / max(share, 1.0 - self._until)
        self._until += share

        def time_used() -> float:
            return (lead - self._context.time_left()) / goal if goal > 0 else 1.0

        stop = self._context.should_stop
        if stop():
            return Cooling(np.array([hot]), np.zeros(1))
        work = share * self._seconds * 1e9
        end = self._search.work + 1.2 * work
        cooling = anneal(self._search, work, hot, self._cold, time_used, stop)
        self._search.descend(lambda: stop() or self._search.work > end or time_used() > 1.2)
        self._keep(name)
        return cooling


def nominal_seconds(time_left: float) -> float:
    """Return the time a run plans with: ``time_left`` rounded down to two digits, so that a few milliseconds more or less
    at the start of a run do not change the plan."""
    if time_left <= 0:
        return 0.0
    unit = 10.0 ** np.floor(np.log10(time_left) - 1)
    return float(np.floor(time_left / unit + 1e-9) * unit)
