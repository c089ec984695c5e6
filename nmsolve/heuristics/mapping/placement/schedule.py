"""Annealing schedules: from hot to frozen within a budget of work, proposals as far as accepted moves still go."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nmsolve.heuristics.mapping.placement.data import PlacementData
from nmsolve.heuristics.mapping.placement.walker import SLICE, Walker

#: Proposals per slice at first, and at most.
FIRST_STEPS, MOST_STEPS = 1000, 200_000
#: Proposals reach this multiple of the mean distance (in lines) of accepted moves.
REACH = 2.5
#: Share of the latest slice in the running mean of that distance, if it accepted 200 moves or more.
SMOOTHING = 0.2


def temperature_scale(data: PlacementData) -> float:
    """Mean traffic of a node times the mean step between lines: about what one move by one line changes."""
    traffic = float(data.weights.sum()) / data.n
    if data.separable:
        far = max(float(data.dx.max()), float(data.dy.max()))
        return traffic * far / max(1, max(data.rows, data.cols) - 1)
    return traffic * float(data.matrix.std()) / 2


def anneal(
    walker: Walker,
    work: float,
    hot: float,
    cold: float,
    time_used: Callable[[], float],
    should_stop: Callable[[], bool],
) -> bool:
    """Cool the walker from temperature ``hot`` to ``cold``, geometrically in work.

    Parameters
    ----------
    work : budget in nominal ns
    time_used : share of this run's time that has passed; the schedule is compressed if it runs ahead of the work

    Returns False if it was stopped on the way.
    """
    lines = max(walker.data.rows, walker.data.cols)
    start, reach, steps = walker.work, float(lines), FIRST_STEPS
    small = min(SLICE, work / 200)
    while True:
        done = max((walker.work - start) / work, time_used())
        if done >= 1.0:
            return True
        if should_stop():
            return False
        before = walker.work
        stats = walker.anneal(steps, hot * (cold / hot) ** done, max(1, round(reach)))
        if stats[1] > 0:
            share = SMOOTHING * min(1.0, stats[1] / 200)
            reach += share * (min(float(lines), REACH * stats[4] / stats[1]) - reach)
        steps = int(np.clip(steps * small / (walker.work - before), FIRST_STEPS / 10, MOST_STEPS))
