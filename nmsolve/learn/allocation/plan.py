"""Plans from the table: who gets how many seconds, so that the gap expected on problems like this one is small.

The levels of the instances nearest to a problem, weighted by how near they are, say what an engine should reach in a slice; of
several engines the best counts, instance by instance. Slices grow where that brings most per second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nmsolve.learn.allocation.features import FEATURES
from nmsolve.learn.allocation.table import GRID, NO_BOUND, NO_MAPPING, Table
from nmsolve.model.types import AnyArray, FloatArray, IntArray

#: Differences that count as one, by feature; kind and alone must be the same.
SCALES = {"log2 n": 0.7, "log2 degree": 0.8, "skew": 1.0, "log2 cores": 1.0, "fill": 0.3, "chips": 6.0}
#: The same for the logarithm of nodes per core.
PER_CORE = 0.7
#: So many of the nearest instances count, if they are not farther than this.
NEAREST, FARTHEST = 20, 4.0
#: A part of the objective counts as much as this many of the bound.
WORTH = 5.0
#: Heuristics have at least this part of the time: in the shortest runs, and from HORIZON on (as in the fixed plan).
LEAST_PART, LONG_PART = 0.3, 0.5
#: They have at most this part, so that there are bounds.
MOST_PART = 0.65
#: Bounds have the slices that they would have in a run of so many seconds; beyond, the race knows more than the table.
HORIZON = 4.0
#: Part of the time that is planned, but for the seconds in which a run starts; the rest is left to the race.
PLANNED, STARTING = 0.92, 0.2


@dataclass(frozen=True)
class Shares:
    """Seconds of the first slices: of heuristics, then of bounds, both in the order in which they should run."""

    finders: dict[str, float]
    provers: dict[str, float]

    @property
    def whole(self) -> float:
        """Seconds of all slices."""
        return sum(self.finders.values()) + sum(self.provers.values())


def uniform(engines: Mapping[str, bool], seconds: float) -> Shares:
    """Return equal slices; ``engines`` says by name which find only bounds. It is there to compare with."""
    span = PLANNED * seconds / max(1, len(engines))
    finders = {name: span for name, proves in engines.items() if not proves}
    return Shares(finders, {name: span for name, proves in engines.items() if proves})


def near(table: Table, features: FloatArray, blind: bool = False) -> tuple[IntArray, FloatArray]:
    """Return rows of the instances nearest to a problem with ``features``, and their weights; none if it is like none of them.

    ``blind`` : all instances of its kind, alike
    """
    kind = [FEATURES.index("kind"), FEATURES.index("alone")]
    same = np.flatnonzero((table.features[:, kind] == features[kind]).all(axis=1))
    if blind:
        return same, np.full(len(same), 1.0 / max(1, len(same)))
    away = table.features[same] - features
    per_core = away[:, FEATURES.index("log2 n")] - away[:, FEATURES.index("log2 cores")]
    scaled = [away[:, FEATURES.index(name)] / scale for name, scale in SCALES.items()]
    distance = np.sqrt(np.square([*scaled, per_core / PER_CORE]).sum(axis=0))
    order = np.argsort(distance, kind="stable")[:NEAREST]
    order = order[distance[order] <= FARTHEST]
    weights = np.exp(-(distance[order] ** 2) / 2) + 1e-3
    return same[order], weights / weights.sum() if len(order) else weights


def planned(
    table: Table, features: FloatArray, engines: Sequence[str], seconds: float, blind: bool = False
) -> Shares | None:
    """Return slices for the ``engines`` in a run of ``seconds``; None where the table knows nothing like the problem.

    Engines that the table does not know, and those that should bring nothing, have no slice. ``blind`` : one plan for all
    problems of a kind, to compare with
    """
    rows, weights = near(table, features, blind)
    known = [name for name in engines if name in table.engines]
    if not len(rows) or not known:
        return None
    columns = np.array([list(table.engines).index(name) for name in known])
    proves = np.array([table.proves[c] for c in columns])
    levels = table.levels[np.ix_(rows, columns)]
    worst = np.where(proves, NO_BOUND, NO_MAPPING)[None, :, None]
    levels = np.where(levels < 0, worst, levels)
    costs = np.minimum(GRID, table.ends[np.ix_(rows, columns)][:, :, None])
    cost = (weights @ costs.reshape(len(weights), -1)).reshape(len(known), len(GRID))
    short = min(seconds, HORIZON)
    budget = PLANNED * max(0.5 * short, short - STARTING)
    both = _filled(levels, cost, weights, proves, budget)
    chosen = {c: float(GRID[g]) for c, g in both.items() if not proves[c]}
    if not chosen:
        return None
    least = LEAST_PART + (LONG_PART - LEAST_PART) * short / HORIZON
    had = sum(chosen.values())
    grow = min(max(had, least * short), MOST_PART * short) / had
    finders = {known[c]: grow * span * seconds / short for c, span in chosen.items()}
    left = budget - grow * had
    bounds = _filled(levels, np.where(proves[:, None], cost, np.inf), weights, proves, left)
    provers = {}
    for c, g in bounds.items():  # one that should end by itself may have all that is left, not more
        provers[known[c]] = min(float(GRID[g]), left)
        left -= float(cost[c, g])
    return Shares(dict(sorted(finders.items(), key=lambda item: item[1])), provers)


def _filled(
    levels: FloatArray, cost: FloatArray, weights: FloatArray, proves: AnyArray, budget: float
) -> dict[int, int]:
    """Return the grid point of every engine that gets a slice, in the order in which they got their first.

    The greedy plan; then the greedy one without one of its engines, as long as that is better.

    Parameters
    ----------
    levels : (instances, engines, grid)
    cost : (engines, grid) seconds expected, which are fewer than those of the grid where an engine ends by itself
    """
    best = _greedy(levels, cost, weights, proves, budget)
    while True:
        rivals = []
        for c in best.points:
            left_out = cost.copy()
            left_out[c] = np.inf
            rivals.append((_greedy(levels, left_out, weights, proves, budget), left_out))
        rival, left_out = max(rivals, key=lambda item: -item[0].distance, default=(best, cost))
        if rival.distance >= best.distance - 1e-9:
            return best.points
        best, cost = rival, left_out


class _Filled(NamedTuple):
    """A plan: grid points of engines, and the distance from perfect values that is expected after it."""

    points: dict[int, int]
    distance: float


def _greedy(
    levels: FloatArray, cost: FloatArray, weights: FloatArray, proves: AnyArray, budget: float
) -> _Filled:
    """Return the plan that grows by what brings most per second."""
    chosen: dict[int, int] = {}
    best = {False: np.full(len(weights), NO_MAPPING), True: np.full(len(weights), NO_BOUND)}
    used = 0.0
    while True:
        found: tuple[float, int, int] | None = None
        for c in range(len(cost)):
            kind, before = bool(proves[c]), chosen.get(c, -1)
            price = cost[c, before + 1 :] - (cost[c, before] if before >= 0 else 0.0)
            gain = weights @ np.maximum(0.0, best[kind][:, None] - levels[:, c, before + 1 :])
            rate = (
                np.where(used + price <= budget, gain, 0.0)
                * (1.0 if kind else WORTH)
                / np.maximum(1e-3, price)
            )
            if len(rate) and rate.max() > (1e-6 if found is None else found[0]):
                found = (float(rate.max()), c, before + 1 + int(rate.argmax()))
        if found is None:
            return _Filled(chosen, float(weights @ (WORTH * best[False] + best[True])))
        _, c, g = found
        used += cost[c, g] - (cost[c, chosen[c]] if c in chosen else 0.0)
        chosen[c] = g
        kind = bool(proves[c])
        best[kind] = np.minimum(best[kind], levels[:, c, g])
