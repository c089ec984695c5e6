"""Prices of units: what a tick on each is worth if all work is spread as evenly as unit sets allow."""

from __future__ import annotations

import numpy as np

from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.types import FloatArray, IntArray

#: Rounds of raising prices where work is, and by how much at first.
ROUNDS, STEP = 100, 0.3


def mode_prices(problem: ScheduleProblem) -> FloatArray:
    """(M,) ticks of every mode with its load, times the prices of its units; prices are 1 on average.

    Multiplicative weights: again and again every process takes its cheapest mode, and units with much work become dearer. So
    prices are highest where processes cannot be spread any further.
    """
    m, s = problem.modes, problem.sets
    if not s.count:
        return np.zeros(m.count)
    ticks = (m.span + np.where(m.item >= 0, np.append(problem.items.load, 0)[m.item], 0)).astype(float)
    size = np.append(np.diff(s.indptr), 0)[m.unit_set]
    price = np.ones(problem.units.count)
    for k in range(ROUNDS):
        cost = ticks * _of_sets(problem, price)
        least = np.repeat(np.minimum.reduceat(cost, m.first[:-1]), np.diff(m.first))
        pick = _first_of_each(problem, np.flatnonzero(cost <= least))
        begin = np.append(s.indptr[:-1], 0)[m.unit_set[pick]]
        many = size[pick]
        within = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
        work = np.bincount(
            s.members[np.repeat(begin, many) + within],
            weights=np.repeat(ticks[pick], many),
            minlength=len(price),
        )
        price = price * np.exp(STEP / np.sqrt(1 + k / 5) * work / max(1.0, work.max()))
        price = price / price.mean()
    prices: FloatArray = ticks * _of_sets(problem, price)
    return prices


def _of_sets(problem: ScheduleProblem, price: FloatArray) -> FloatArray:
    """(M,) sums of prices over the units of every mode."""
    s = problem.sets
    sums: FloatArray = np.append(np.add.reduceat(price[s.members], s.indptr[:-1]), 0.0)[
        problem.modes.unit_set
    ]
    return sums


def _first_of_each(problem: ScheduleProblem, modes: IntArray) -> IntArray:
    """(P,) the first of ascending ``modes`` of every process."""
    pick = np.zeros(problem.count, np.int64)
    pick[problem.modes.process[modes[::-1]]] = modes[::-1]
    return pick
