"""Multipliers and prices that raise a Lagrangian bound: steps along deflected subgradients towards a level.

The level is a little above the best bound. It comes nearer where bounds do not rise (Brännlund 1993; Goffin and Kiwiel 1999), and
steps have Polyak's length for it. Directions turn away from the one before if they are opposed to it (Camerini, Fratta and
Maffioli 1975). Multipliers are scaled by their memories, so that they and prices are costs alike.
"""

from __future__ import annotations

import numpy as np

from nmsolve.model.types import BoolArray, FloatArray, IntArray
from nmsolve.solvers.assignment.elimination_kernels import NEVER
from nmsolve.solvers.assignment.relaxation import Relaxation

#: The first level is higher than the first bound by this part of it, the last one by that.
FAR, NEAR = 0.02, 1e-7
#: Steps without half the way to the level before it comes nearer.
PATIENCE = 25
#: The level goes further away, by this factor, if half of the way took no more steps than that.
GROWTH, QUICK = 1.5, 3
#: How much an opposed direction is turned.
TURN = 1.5
#: Largest factor of multipliers that is tried where nothing fits.
FARTHEST = 1 << 18
#: Costs of choices stay below this, multipliers included.
LIMIT = 2.0**59
#: What the latest strategies weigh in their average.
LATEST = 0.05


class SubgradientAscent:
    """A bound that rises.

    Attributes
    ----------
    value : best bound so far, in parts; :data:`NEVER` if nothing is possible
    multipliers, prices : (R,), (K,) of it
    strategy : (N,) the latest that reaches a bound
    often : (choices,) the part of the latest strategies that take a choice
    """

    def __init__(
        self,
        relaxation: Relaxation,
        barred: BoolArray | None = None,
        multipliers: IntArray | None = None,
        prices: IntArray | None = None,
    ) -> None:
        self.relaxation, self.barred = relaxation, barred
        self.scale: FloatArray = 1.0 / np.maximum(relaxation.rows.most, 1)
        count = len(relaxation.rows.memory), len(relaxation.prices.of)
        self.multipliers = np.zeros(count[0], np.int64) if multipliers is None else multipliers
        self.prices = np.zeros(count[1], np.int64) if prices is None else prices
        self._at = self._floats()
        self._ahead = np.zeros(len(self._at))
        self.value, self.strategy = relaxation.bound(self.multipliers, self.prices, barred)
        self.often: FloatArray = relaxation.chosen(self.strategy).astype(float)
        self._delta, self._base, self._vain = FAR * abs(self.value), self.value, 0
        self._now, self._paid = self.value, self.prices

    @property
    def ahead(self) -> float:
        """How far above the bound the level is, in parts: about what more steps may gain."""
        return self._delta

    @property
    def is_done(self) -> bool:
        """Whether more steps are of no use."""
        return self.value >= NEVER or not len(self._at) or self._delta <= NEAR * abs(self.value)

    def step(self, upper: float) -> None:
        """Take one step; ``upper`` is the value of a known solution, in parts, or inf."""
        slope = self._slope()
        if not slope.any():
            self._delta = 0.0
            return
        size = float(self._ahead @ self._ahead)
        turned = max(0.0, -TURN * float(slope @ self._ahead) / size) if size else 0.0
        self._ahead = slope + turned * self._ahead
        level = min(float(self.value) + self._delta, upper)
        length = max(0.0, level - float(self._now)) / float(self._ahead @ self._ahead)
        self._at = np.maximum(0.0, self._at + length * self._ahead)
        multipliers, prices = self._whole()
        self._now, self.strategy = self.relaxation.bound(multipliers, prices, self.barred)
        self._paid = prices
        self.often = (1 - LATEST) * self.often + LATEST * self.relaxation.chosen(self.strategy)
        if self._now > self.value:
            self.value, self.multipliers, self.prices = self._now, multipliers, prices
        self._vain += 1
        if self.value >= self._base + 0.5 * self._delta:
            self._delta *= GROWTH if self._vain <= QUICK else 1.0
            self._base, self._vain = self.value, 0
        elif self._vain > PATIENCE:
            self._delta, self._base, self._vain = self._delta / 2, self.value, 0
            self._at, self._ahead = self._floats(), np.zeros(len(self._at))

    def escape(self) -> None:
        """Try much larger multipliers: where nothing fits, bounds rise without end."""
        multipliers, times = self.multipliers, 1
        while self.value < NEVER and times < FARTHEST:
            times *= 8
            self._at = np.concatenate([multipliers / self.scale * times, self.prices.astype(float)])
            tried, prices = self._whole()
            value, _ = self.relaxation.bound(tried, prices, self.barred)
            if value <= self.value:
                break
            self.value, self.multipliers, self.prices = value, tried, prices
        self._at = self._floats()

    def _slope(self) -> FloatArray:
        """Return the subgradient at the latest strategies, in terms of scaled multipliers and prices; none below 0."""
        over, short = self.relaxation.slopes(self.strategy, self._paid)
        slope: FloatArray = np.concatenate([over * self.scale, short.astype(float)])
        slope[(self._at <= 0) & (slope < 0)] = 0.0
        return slope

    def _floats(self) -> FloatArray:
        """Return the best multipliers, each times its memory, and prices."""
        out: FloatArray = np.concatenate([self.multipliers / self.scale, self.prices.astype(float)])
        return out

    def _whole(self) -> tuple[IntArray, IntArray]:
        """Return multipliers and prices in whole parts, small enough for whole numbers."""
        rows = len(self.scale)
        multipliers = np.rint(np.minimum(self._at[:rows] * self.scale, LIMIT)).astype(np.int64)
        prices = np.rint(np.minimum(self._at[rows:], LIMIT / max(1, len(self._at)))).astype(np.int64)
        held = self.relaxation.rows
        whole = np.concatenate([[0.0], np.cumsum(multipliers.astype(float))])
        charged = float((held.amount * (whole[held.last] - whole[held.first])).sum())
        if charged > LIMIT:
            multipliers = np.floor(multipliers * (LIMIT / charged) / 2).astype(np.int64)
        return multipliers, prices
