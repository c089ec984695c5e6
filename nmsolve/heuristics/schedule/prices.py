"""Prices of units: what a tick on each is worth, so that work is spread as evenly as unit sets allow."""

from __future__ import annotations

import numpy as np

from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule, on_units
from nmsolve.model.types import FloatArray, IntArray

#: Rounds of raising prices where work is, and by how much at first.
ROUNDS, STEP = 100, 0.3
#: By how much a schedule raises them.
STEP_LATER = 0.5


def mode_prices(problem: ScheduleProblem, price: FloatArray) -> FloatArray:
    """(M,) ticks of every mode with its load, times the prices of its units (U,)."""
    return _ticks(problem) * _of_sets(problem, price)


def unit_prices(problem: ScheduleProblem) -> FloatArray:
    """(U,) prices, 1 on average.

    Multiplicative weights: again and again every process takes its cheapest mode, and units with much work become dearer. So
    prices are highest where processes cannot be spread any further.
    """
    m, ticks = problem.modes, _ticks(problem)
    price = np.ones(problem.units.count)
    if not problem.sets.count:
        return price
    for k in range(ROUNDS):
        cost = ticks * _of_sets(problem, price)
        least = np.repeat(np.minimum.reduceat(cost, m.first[:-1]), np.diff(m.first))
        pick = _first_of_each(problem, np.flatnonzero(cost <= least))
        price = _dearer(price, _work(problem, pick, ticks[pick]), STEP / np.sqrt(1 + k / 5))
    return price


def prices_after(problem: ScheduleProblem, price: FloatArray, answer: Schedule) -> FloatArray:
    """(U,) prices, higher where a schedule works most: with the loads that it needs, and where its queues leave no gap."""
    m = problem.modes
    ticks = m.span[answer.mode] + np.where(answer.loaded, problem.mode_load[answer.mode], 0)
    return _dearer(price, _work(problem, answer.mode, ticks.astype(float)), STEP_LATER)


def _dearer(price: FloatArray, work: FloatArray, step: float) -> FloatArray:
    """Return prices raised by work, 1 on average."""
    raised = price * np.exp(step * work / max(1.0, float(work.max(initial=0.0))))
    found: FloatArray = raised / raised.mean() if len(raised) else raised
    return found


def _work(problem: ScheduleProblem, mode: IntArray, ticks: FloatArray) -> FloatArray:
    """(U,) ticks of modes on every unit."""
    which, unit = on_units(problem, mode)
    work = np.zeros(problem.units.count)
    np.add.at(work, unit, ticks[which])
    return work


def _ticks(problem: ScheduleProblem) -> FloatArray:
    """(M,) span and load."""
    ticks: FloatArray = (problem.modes.span + problem.mode_load).astype(float)
    return ticks


def _of_sets(problem: ScheduleProblem, price: FloatArray) -> FloatArray:
    """(M,) sums of prices over the units of every mode."""
    s = problem.sets
    if not s.count:
        return np.zeros(problem.modes.count)
    sums: FloatArray = np.append(np.add.reduceat(price[s.members], s.indptr[:-1]), 0.0)[
        problem.modes.unit_set
    ]
    return sums


def _first_of_each(problem: ScheduleProblem, modes: IntArray) -> IntArray:
    """(P,) the first of ascending ``modes`` of every process."""
    pick = np.zeros(problem.count, np.int64)
    pick[problem.modes.process[modes[::-1]]] = modes[::-1]
    return pick
