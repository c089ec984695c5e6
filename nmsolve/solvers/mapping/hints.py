"""Multipliers for the second search that re-checks a claim of branch and bound, which believes nothing about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nmsolve.model.types import BoolArray, IntArray

if TYPE_CHECKING:
    from nmsolve.check.mapping.bounds.partial import Multipliers

#: Steps of the ascent at the first partial mapping and at the others.
FIRST_STEPS, STEPS = 300, 60


class Hints:
    """Multipliers by the ascent of the search, each from those of the partial mapping above; call it for them."""

    def __init__(self, pairs: IntArray, far: IntArray) -> None:
        # kernels and SciPy, which take time and memory that nothing else needs
        from nmsolve.check.mapping.bounds.partial import Multipliers
        from nmsolve.solvers.mapping.branch_bound.ascent import ascend
        from nmsolve.solvers.mapping.branch_bound.relaxation import new_relaxation

        self._ascend, self._multipliers = ascend, Multipliers
        self._x = new_relaxation(pairs, far, np.arange(len(far)))
        self._heavy = max(1.0, float(pairs.max(initial=0)))  # weights are scaled by it there

    def __call__(self, place: IntArray, left: BoolArray, most: int) -> Multipliers:
        """Return multipliers for a partial mapping whose parent was asked about before it."""
        x, depth = self._x, int((place >= 0).sum())
        used = np.zeros(left.shape[1], np.int64)
        used[place[place >= 0]] = 1
        target = (most + 1) / x.unit
        self._ascend(x, place, used, left, depth, target, STEPS if depth else FIRST_STEPS)
        d = depth + 1
        return self._multipliers(x.spectral[d] * self._heavy, x.skew[d] * self._heavy, x.row[d] * self._heavy)
