"""Ascent by a bundle of cuts: for eigenvalue bounds whose vertices and eigenvalues meet at the top, where plain steps shuttle.

Every evaluation leaves supergradients: of the worst size vertices, and of weights spread over the eigenvalues that come after
the largest parts, which lie close together. All are cuts, linear functions that the bound never exceeds. The next point is the
best one under all cuts less ``|change|^2 / (2 reach)`` (a proximal bundle method, Lemarechal 1978); ``reach`` grows while the
cuts foretell what comes, and shrinks where they do not. Steps are scaled by degree.
"""

from __future__ import annotations

import numpy as np

from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.mapping.bounds.ascent import SPARE, Spectral
from nmsolve.solvers.mapping.bounds.chebyshev import Shifted
from nmsolve.solvers.mapping.bounds.eigen import Tracker
from nmsolve.solvers.mapping.bounds.pairs import ShouldStop

#: Degree of the polynomial that follows the eigenvectors from step to step.
DEGREE = 6
#: Most cuts, and most numbers in them.
MOST_CUTS, MOST_NUMBERS = 120, 12_000_000
#: Size vertices per evaluation, of those within this part of the worst value and different by this part of all nodes.
VERTICES, NEAR, DIFFERENT = 3, 0.02, 0.05
#: The first reach gains this part of the value if all goes as foretold.
FIRST_GAIN = 1.0
#: A point is better if it brings this part of the foretold gain, and the reach grows from this part on.
BETTER, GOOD = 0.1, 0.5
#: Growth and shrinkage of the reach; it shrinks after this many vain evaluations, and the centre is evaluated again.
GROW, SHRINK, VAIN = 4.0, 0.6, 2
#: Foretold gains below this part of the value do not matter.
DONE = 1e-5
#: Steps of the inner problem.
INNER = 1500


class BundleAscent:
    """A ``Climber`` of :mod:`.ascent` on shift and rho, begun at given multipliers."""

    def __init__(
        self, spectral: Spectral, seed: int, shift: FloatArray, rho: float, start: FloatArray | None = None
    ) -> None:
        n, degree = spectral.n, spectral.laplacian.diagonal()
        self.spectral = spectral
        self.scaling = np.append(degree / max(float(degree.mean()), 1e-300) + 0.15, 1.0)
        self.tracker = Tracker(n, min(spectral.rank + SPARE, n), seed, start, DEGREE)
        self.point = np.append(shift, rho)
        self.centre, self.best, self.best_block = self.point, -np.inf, self.tracker.block
        self.foretold, self.reach, self.vain = -np.inf, 0.0, 0
        #: the centre has just been evaluated a second time
        self.sure = False
        self.most = max(20, min(MOST_CUTS, MOST_NUMBERS // n))
        self.slope, self.level = np.zeros((0, n + 1)), np.zeros(0)
        self.gram, self.share = np.zeros((0, 0)), np.zeros(0)

    @property
    def best_shift(self) -> FloatArray:
        """(n,) the shift at the best point."""
        return self.centre[:-1]

    @property
    def best_rho(self) -> float:
        """Rho at the best point."""
        return float(self.centre[-1])

    @property
    def exhausted(self) -> bool:
        """True once no gain that matters is foretold."""
        return self.sure and self.foretold - self.best < DONE * abs(self.best)

    def advance(self, upper: float, should_stop: ShouldStop) -> None:
        """Evaluate, keep cuts, go to the point that they foretell to be best. ``upper`` is not looked at."""
        spectral, shift, rho = self.spectral, self.point[:-1], float(self.point[-1])
        pairs = self.tracker.pairs(Shifted(spectral.laplacian, shift, rho), should_stop)
        lam, vectors = (v[..., : spectral.rank] for v in pairs)
        values = spectral.values(lam, shift, rho)
        self._judge(float(values.min()))
        self._cut(lam, vectors, values)
        if self.reach == 0.0:
            self.reach = FIRST_GAIN * abs(self.best) / max(float(self.gram[0, 0]), 1e-300)
        if self.vain >= VAIN:
            self.point = self.centre
            return
        gap = self.level + self.slope @ self.centre
        self.share = least_mixture(self.gram, gap, self.reach, self.share)
        change = self.reach * self.scaling * (self.share @ self.slope)
        self.point = self.centre + change
        self.point[-1] = max(0.0, float(self.point[-1]))
        self.foretold = float((self.level + self.slope @ self.point).min())

    def _judge(self, value: float) -> None:
        """Move the centre where the value is better, and the reach by how well it was foretold."""
        gain, self.sure = self.foretold - self.best, self.vain >= VAIN
        if self.sure:  # what was noted there may have been too high: Ritz values are upper estimates
            self.best, self.vain, self.best_block = value, 0, self.tracker.block
            return
        if not np.isfinite(self.best) or value > self.best + BETTER * max(gain, 0.0):
            if np.isfinite(self.best) and value > self.best + GOOD * gain:
                self.reach *= GROW
            self.centre, self.best, self.vain, self.best_block = self.point, value, 0, self.tracker.block
            return
        self.vain += 1
        if self.vain >= VAIN:
            self.reach *= SHRINK

    def _cut(self, lam: FloatArray, vectors: FloatArray, values: FloatArray) -> None:
        """Add the cuts of this evaluation; the idlest go where there are too many."""
        spectral = self.spectral
        weights = np.array([w for at in self._worst(values) for w in spread(spectral.weights(lam, at))])
        drift = np.repeat(
            [spectral.drift[at] for at in self._worst(values)], len(weights) // len(self._worst(values))
        )
        by_rho = weights @ vectors.sum(axis=0) ** 2 / spectral.n - drift
        slope = np.column_stack([weights @ (vectors * vectors).T - spectral.length, by_rho])
        level = weights @ lam - float(self.point[-1]) * drift - spectral.length * self.point[:-1].sum()
        level = level - slope @ self.point
        room = self.most - len(level)
        if len(self.share) > room:
            self._keep(np.sort(np.argsort(-self.share, kind="stable")[:room]))
        scaled = slope * self.scaling
        across = self.slope @ scaled.T
        self.gram = np.block([[self.gram, across], [across.T, scaled @ slope.T]])
        self.slope, self.level = np.concatenate([self.slope, slope]), np.concatenate([self.level, level])
        self.share = np.append(self.share, np.zeros(len(level)))
        if self.share.sum() <= 0:
            self.share[0] = 1.0
        self.share /= self.share.sum()

    def _keep(self, which: IntArray) -> None:
        """Drop all cuts but these."""
        self.slope, self.level, self.share = self.slope[which], self.level[which], self.share[which]
        self.gram = self.gram[np.ix_(which, which)]

    def _worst(self, values: FloatArray) -> list[int]:
        """Return the worst size vertex and a few others that are nearly as bad, but different."""
        sigma, chosen = self.spectral.sigma, list[int]()
        limit = values.min() + NEAR * abs(float(values.min()))
        different = DIFFERENT * 2 * self.spectral.length * self.spectral.n
        for at in np.argsort(values, kind="stable")[:400].tolist():
            if len(chosen) == VERTICES or values[at] > limit:
                break
            if all(np.abs(sigma[at] - sigma[other]).sum() > different for other in chosen):
                chosen.append(at)
        return chosen


def spread(weights: FloatArray) -> list[FloatArray]:
    """Return weights (count,) as they are, and with those after the two largest levelled over 2, 4, 8 ... eigenvalues."""
    out, width = [weights], 2
    while 2 + width <= len(weights):
        for first in (2, 3):
            level = weights.copy()
            level[first : first + width] = level[first : first + width].mean()
            out.append(level)
        width *= 2
    return out


def least_mixture(gram: FloatArray, gap: FloatArray, reach: float, share: FloatArray) -> FloatArray:
    """Return (m,) shares >= 0 that add up to 1 and make ``gap . share + reach/2 share' gram share`` small, begun at ``share``.

    Weight moves from the cut with the steepest slope to that with the least, as far as that pays.
    """
    share = share.copy()
    slope = gap + reach * (gram @ share)
    for _ in range(INNER):
        to = int(slope.argmin())
        source = int(np.where(share > 0, slope, -np.inf).argmax())
        drop = float(slope[source] - slope[to])
        if drop <= 1e-9 * (abs(float(slope[source])) + 1e-300):
            break
        bend = reach * float(gram[to, to] + gram[source, source] - 2 * gram[to, source])
        moved = min(float(share[source]), drop / max(bend, 1e-300))
        share[to] += moved
        share[source] = 0.0 if moved == share[source] else share[source] - moved
        slope += reach * moved * (gram[:, to] - gram[:, source])
    return share
