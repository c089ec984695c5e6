"""The figures of a benchmark: gaps, integrals, means, profiles. Definitions and sources are in docs/bench.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from nmsolve.model.types import FloatArray
from nmsolve.report.bootstrap import percentiles, resampled_means

#: Shifts of the shifted geometric means: seconds, and gaps (one per cent).
SHIFT_SECONDS, SHIFT_GAP = 1.0, 0.01

#: ``(seconds, objective)`` of every solution that was the best so far, in order of time.
Trajectory = Sequence[tuple[float, float]]


def distance(value: float | None, reference: float) -> float:
    """Return ``(value - reference) / value`` for a value >= reference >= 0, the gap of Berthold (2013): from 0 to 1.

    1 where there is no value, 0 where both are equal (0 included) or the value is the better one.
    """
    if value is None:
        return 1.0
    if value <= reference:
        return 0.0
    return min(1.0, (value - reference) / value)


def primal_integral(trajectory: Trajectory, reference: float, limit: float) -> float:
    """Return the area under the gap to ``reference`` over wall time up to ``limit``, in seconds (Berthold 2013).

    The gap is 1 before the first solution and stays at its last value to the end of the limit.
    """
    times = [0.0, *(min(t, limit) for t, _ in trajectory), limit]
    gaps = [1.0, *(distance(v, reference) for _, v in trajectory)]
    return math.fsum(g * (b - a) for g, (a, b) in zip(gaps, pairwise(times), strict=True))


def time_to(trajectory: Trajectory, reference: float, gap: float = 0.0) -> float:
    """Return seconds until the gap to ``reference`` was at most ``gap``; inf if it never was."""
    return next((t for t, v in trajectory if distance(v, reference) <= gap), math.inf)


def gap_at(trajectory: Trajectory, reference: float, times: FloatArray) -> FloatArray:
    """Return (t,) gap to ``reference`` at every time; 1 before the first solution."""
    moments = np.array([t for t, _ in trajectory])
    gaps = np.array([1.0, *(distance(v, reference) for _, v in trajectory)])
    out: FloatArray = gaps[np.searchsorted(moments, times, side="right")]
    return out


def shifted_geometric_mean(values: Sequence[float], shift: float) -> float | None:
    """Return ``exp(mean(log(value + shift))) - shift`` of values >= 0; None of nothing."""
    if not values:
        return None
    return shift * math.expm1(math.fsum(math.log1p(v / shift) for v in values) / len(values))


def interval(values: Sequence[float], shift: float) -> tuple[float, float] | None:
    """Return the 95 % percentile bootstrap interval of the shifted geometric mean; None below three values."""
    if len(values) < 3:
        return None
    logs = np.log1p(np.array(values) / shift)
    return percentiles(shift * np.expm1(resampled_means(logs)))


def profile(costs: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
    """Return performance profiles of Dolan and Moré (2002), one per method.

    Parameters
    ----------
    costs : (methods, tasks), less is better; inf where a method did not solve a task

    Returns
    -------
    list of (ratios, shares)
        ``shares[i]`` of all tasks are solved within ``ratios[i]`` times the best method's cost, ratios rising from 1.
        Tasks that no method solved count as unsolved for all. A best cost of 0 makes every other ratio inf.
    """
    best = costs.min(axis=0, initial=math.inf)
    ratio = np.full(costs.shape, math.inf)
    same = np.isfinite(costs) & (costs == best)
    ratio[same] = 1.0
    some = (best > 0) & np.isfinite(best)
    other = np.isfinite(costs) & ~same & some
    ratio[other] = (costs / np.where(some, best, 1.0))[other]
    out = []
    for row in ratio:
        solved = np.sort(row[np.isfinite(row)])
        steps = np.unique(solved)
        share = np.searchsorted(solved, steps, side="right") / max(1, costs.shape[1])
        if not len(steps) or steps[0] > 1.0:
            steps, share = np.insert(steps, 0, 1.0), np.insert(share, 0, 0.0)
        out.append((steps, share))
    return out


def sign_test(wins: int, losses: int) -> float:
    """Return the two-sided p-value of these numbers of wins and losses if both were equally likely; ties are left out."""
    count = wins + losses
    tail = sum(math.comb(count, k) for k in range(min(wins, losses) + 1))
    return min(1.0, 2.0 * float(tail) / 2.0**count)
