"""Annealing schedules: from hot to frozen within a budget of work, proposals as far as accepted moves still go."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nmsolve.heuristics.mapping.placement.data import PlacementData
from nmsolve.heuristics.mapping.placement.local_search import SLICE, LocalSearch
from nmsolve.model.types import FloatArray

#: Proposals per slice at first, and at most.
FIRST_STEPS, MOST_STEPS = 1000, 200_000
#: Proposals reach this multiple of the mean distance (in lines) of accepted moves.
REACH = 2.5
#: Share of the latest slice in the running mean of that distance, if it accepted 200 moves or more.
SMOOTHING = 0.2
#: On a board of more cores than LINES squared, a node that a start has put wrong has farther to go, which takes heat.
#: Temperatures of starts that are nearly right, and of runs from nowhere, grow as (side / LINES) to these powers; the side is
#: that of a square of as many cores (measured on squares of 32 to 255 lines).
LINES, FARTHER, WIDER = 37, 1.5, 3.0


def temperature_scale(data: PlacementData) -> float:
    """Return the mean traffic of a node times the mean step between lines: about what one move by one line changes."""
    traffic = float(data.weights.sum()) / data.n
    if data.separable:
        far = max(float(data.dx.max()), float(data.dy.max()))
        return traffic * far / max(1, max(data.rows, data.cols) - 1)
    return traffic * float(data.matrix.std()) / 2


def extra_heat(data: PlacementData) -> tuple[float, float]:
    """Return what the temperatures of a start that is nearly right, and of a run from nowhere, are multiplied by."""
    far = max(1.0, math.sqrt(data.cores) / LINES) if data.separable else 1.0
    return far**FARTHER, far**WIDER


@dataclass(frozen=True)
class Cooling:
    """What an annealing run went through, slice by slice: temperatures and costs relative to its start."""

    temperature: FloatArray
    cost: FloatArray

    def frozen_below(self, share: float) -> float:
        """Return the temperature below which less than ``share`` of the whole descent was made."""
        left = self.cost - self.cost.min(initial=0.0)
        moving = np.flatnonzero(left > share * left.max(initial=0.0))
        return float(self.temperature[moving[-1]]) if len(moving) else float(self.temperature[-1])


def anneal(
    search: LocalSearch,
    work: float,
    hot: float,
    cold: float,
    time_used: Callable[[], float],
    should_stop: Callable[[], bool],
) -> Cooling:
    """Cool the search from temperature ``hot`` to ``cold``, geometrically in work.

    Parameters
    ----------
    work : budget in nominal ns
    time_used : share of this run's time that has passed; the schedule is compressed if that runs ahead of the work
    should_stop : asked between slices; if it says so, the search stays where it is
    """
    lines = max(search.data.rows, search.data.cols)
    start, reach, steps = search.work, float(lines), FIRST_STEPS
    small, cost = min(SLICE, work / 200), 0.0
    log = [(hot, cost)]
    while True:
        done = max((search.work - start) / work, time_used())
        if done >= 1.0 or should_stop():
            return Cooling(*np.array(log).T)
        before = search.work
        temperature = hot * (cold / hot) ** done
        stats = search.anneal(steps, temperature, max(1, round(reach)))
        cost += float(stats[3])
        log.append((temperature, cost))
        if stats[1] > 0:
            share = SMOOTHING * min(1.0, stats[1] / 200)
            reach += share * (min(float(lines), REACH * stats[4] / stats[1]) - reach)
        steps = int(np.clip(steps * small / (search.work - before), FIRST_STEPS / 10, MOST_STEPS))
