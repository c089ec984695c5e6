"""Subgradient ascent of the split bound."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nmsolve.model.compiled import plain
from nmsolve.model.types import FloatArray, Int32Array
from nmsolve.solvers.mapping.bounds.pairs import ShouldStop, never
from nmsolve.solvers.mapping.bounds.projection import FLAT
from nmsolve.solvers.mapping.bounds.split.form import SplitForm
from nmsolve.solvers.mapping.bounds.split.rows import Rows
from nmsolve.solvers.mapping.bounds.split.value import Evaluator

#: Share of the old direction in the new one; memory of the mean distances on which rows are separated.
MOMENTUM, MEMORY = 0.9, 0.9
#: Steps between two separations of rows; steps without gain before going back to the best with shorter steps.
SEPARATE, PATIENCE, SHORTER = 20, 40, 0.8
#: The same from LARGE cores on, where steps are few, after a return to the best that gained nothing.
LARGE, HASTE, MUCH_SHORTER = 300, 12, 0.5
#: Parts of the traffic given to the spectral side that are tried as a start.
STARTS = (1.0, 0.0, 0.5, 0.75, 0.25)
#: Without a mapping known, the ascent aims this far above the best value.
AIM = 0.1


@dataclass(frozen=True)
class Multipliers:
    """Multipliers and the (uncertified) value they gave: ``m`` (k, k), ``table`` and ``tau`` of the rows."""

    value: float
    m: FloatArray
    table: Int32Array
    tau: FloatArray

    @classmethod
    def spectral(cls, form: SplitForm, shift: FloatArray) -> Multipliers:
        """Give all traffic to the spectral side, with a diagonal ``shift`` (k,)."""
        rows = Rows.none(form)
        return cls(-np.inf, form.traffic + np.diag(shift), rows.table, rows.tau)


class Ascent:
    """Polyak steps with momentum; rows separated on the way; ``best`` is the best point by the uncertified value."""

    def __init__(self, form: SplitForm, shift: FloatArray, should_stop: ShouldStop = never) -> None:
        self.form = form
        self.evaluator = Evaluator(form)
        self.rows = Rows.none(form)
        spectral = form.traffic + np.diag(shift)
        starts: list[tuple[float, float]] = []
        for part in STARTS:
            if not starts or not should_stop():
                starts.append((Evaluator(form).value(part * spectral, self.rows), part))
        self.m = max(starts)[1] * spectral
        self.best = Multipliers(max(starts)[0], self.m.copy(), self.rows.table, self.rows.tau)
        self.direction = np.zeros((form.k, form.k))
        self.mean = np.zeros((form.k, form.k))
        self.most_rows = 40 * form.k + 2000
        self.scale, self.stalled, self.steps, self.gained, self.mark = 1.0, 0, 0, False, -np.inf

    @property
    def exhausted(self) -> bool:
        """True once the steps have become too short to matter."""
        return self.scale < 1e-4

    @property
    def _hasty(self) -> bool:
        return not self.gained and self.form.k >= LARGE

    def advance(self, upper: float) -> None:
        """Evaluate, note the best, step towards ``upper`` (doubled cost without the constant step; inf if unknown)."""
        value = self.evaluator.value(self.m, self.rows)
        self.steps += 1
        if value > self.best.value + 1e-6 * abs(self.best.value):
            self.best = Multipliers(value, self.m.copy(), self.rows.table, self.rows.tau)
            self.stalled, self.gained = 0, True
        else:
            self.stalled += 1
            rising, self.mark = self._rising(value)
            if self.stalled >= (HASTE if self._hasty else PATIENCE) and not rising:
                self._return()
                return
        self._step(value, min(upper, self.best.value + AIM * abs(self.best.value)))
        if self.steps % SEPARATE == 0:
            flat = (self.mean + self.mean.T) / 2
            self.rows = self.rows.renewed(self.form, flat, max(500, 10 * self.form.k), self.most_rows)

    def correct(self, value: float) -> None:
        """Say what the best point really proves: carried eigenvectors may have promised more."""
        if value < self.best.value - 1e-4 * abs(self.best.value):
            self.best = replace(self.best, value=value)
            self.evaluator = Evaluator(self.form)

    def _rising(self, value: float) -> tuple[bool, float]:
        """Return whether many cores' slow ascent is still on its way up, and the value to compare with later.

        From a corner such as the Gilmore-Lawler point every first step goes down, and the way back up takes many.
        """
        if self.form.k < LARGE or self.stalled > 10 * HASTE:
            return False, value
        if self.stalled % HASTE:
            return True, self.mark
        return value > self.mark or self.stalled == HASTE, value

    def _return(self) -> None:
        """Go back to the best point, at rest, with shorter steps; rows found since then stay, with multiplier 0."""
        self.scale *= MUCH_SHORTER if self._hasty else SHORTER
        self.stalled, self.gained = 0, False
        self.m = self.best.m.copy()
        self.rows = Rows.of(self.best.table, self.best.tau, self.form).joined(self.rows.table, self.form)
        self.direction[:] = 0.0

    def _step(self, value: float, target: float) -> None:
        """Move multipliers along supergradient plus momentum; rows with many pairs move less."""
        at, rows = self.evaluator, self.rows
        keep = MEMORY if self.steps > 1 else 0.0
        norm = turn(self.direction, at.spectral, at.lawler, MOMENTUM, self.mean, keep)
        rows.speed = rows.missing(at.lawler) * (3.0 / rows.pairs) + MOMENTUM * rows.speed
        norm += float(rows.speed @ (rows.speed * rows.pairs)) / 3.0
        if norm <= FLAT * float(np.vdot(self.form.distance, self.form.distance)):
            return
        length = self.scale * max(target - value, 1e-3 * abs(self.best.value)) / norm
        self.m += length * self.direction
        rows.tau = np.maximum(0.0, rows.tau + length * rows.speed)
        rows.idle = np.where(rows.tau > 0, 0, rows.idle + 1)


@plain
def turn(
    direction: FloatArray,
    spectral: FloatArray,
    lawler: FloatArray,
    momentum: float,
    mean: FloatArray,
    keep: float,
) -> float:
    """One pass over the pairs: new direction, running mean of ``lawler``; returns the direction's squared norm.

    ``direction = spectral - lawler + momentum * direction``; ``mean = keep * mean + (1 - keep) * lawler``.
    """
    k = len(direction)
    total = 0.0
    for u in range(k):
        for v in range(k):
            d = spectral[u, v] - lawler[u, v] + momentum * direction[u, v]
            direction[u, v] = d
            total += d * d
            mean[u, v] = keep * mean[u, v] + (1.0 - keep) * lawler[u, v]
    return total
