"""Ascent by a bundle of cuts: for eigenvalue bounds whose vertices and eigenvalues meet at the top, where plain steps shuttle.

Every evaluation leaves supergradients: of the worst size vertices, and of weights spread over the eigenvalues that come after
the largest parts, which lie close together. All are cuts, linear functions that the bound never exceeds. The next point is the
best one under all cuts less ``|change|^2 / (2 reach)`` (a proximal bundle method, Lemarechal 1978); ``reach`` grows while the
cuts foretell what comes, and shrinks where they do not. Steps are scaled by degree.
"""

from __future__ import annotations

import numpy as np

from nmsolve.model.types import FloatArray
from nmsolve.solvers.mapping.bounds.ascent import SPARE, Pairs, Spectral
from nmsolve.solvers.mapping.bounds.chebyshev import Shifted
from nmsolve.solvers.mapping.bounds.eigen import Tracker
from nmsolve.solvers.mapping.bounds.pairs import ShouldStop

#: Degree of the polynomial that follows the eigenvectors from step to step.
DEGREE = 6
#: Most cuts, fewest that are of use, and most numbers in them.
MOST_CUTS, FEWEST_CUTS, MOST_NUMBERS = 120, 12, 20_000_000
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


class Bundle:
    """Cuts of a concave function, the best point so far and the next one to evaluate; the last coordinate is at least 0.

    Attributes
    ----------
    point : (dimensions,) where the function is to be evaluated
    centre, best : the best point so far, and the value there
    """

    def __init__(self, point: FloatArray, scaling: FloatArray) -> None:
        self.point = self.centre = point
        self.scaling = scaling
        self.best, self.foretold, self.reach, self.vain = -np.inf, -np.inf, 0.0, 0
        #: the centre has just been evaluated a second time
        self.sure = False
        most = min(MOST_CUTS, MOST_NUMBERS // len(point))
        self.slope, self.level, self.used = np.zeros((most, len(point))), np.zeros(most), 0
        self.gram, self.share = np.zeros((most, most)), np.zeros(most)

    @property
    def exhausted(self) -> bool:
        """True once no gain that matters is foretold."""
        return self.sure and self.foretold - self.best < DONE * abs(self.best)

    def judge(self, value: float) -> bool:
        """Note the value at the point; True if the centre is there now. The reach follows how well the value was foretold."""
        gain, self.sure = self.foretold - self.best, self.vain >= VAIN
        if self.sure:  # what was noted there may have been too high: Ritz values are upper estimates
            self.best, self.vain = value, 0
            return True
        if not np.isfinite(self.best) or value > self.best + BETTER * max(gain, 0.0):
            if np.isfinite(self.best) and value > self.best + GOOD * gain:
                self.reach *= GROW
            self.centre, self.best, self.vain = self.point, value, 0
            return True
        self.vain += 1
        if self.vain >= VAIN:
            self.reach *= SHRINK
        return False

    def add(self, slope: FloatArray, value: FloatArray) -> None:
        """Add cuts with slopes (cuts, dimensions) and values (cuts,) at the point; the idlest go where there are too many."""
        count = len(value)
        where = np.arange(self.used, self.used + count)
        if self.used + count > len(self.level):
            where = np.argsort(self.share[: self.used], kind="stable")[:count]
        self.used = max(self.used, int(where.max()) + 1)
        self.slope[where], self.level[where] = slope, value - slope @ self.point
        across = self.slope[: self.used] @ (slope * self.scaling).T
        self.gram[: self.used, where], self.gram[where, : self.used] = across, across.T
        self.share[where] = 0.0
        if self.share.sum() <= 0:
            self.share[where[0]] = 1.0
        self.share /= self.share.sum()
        if self.reach == 0.0:
            self.reach = FIRST_GAIN * abs(self.best) / max(float(self.gram[0, 0]), 1e-300)

    def advance(self) -> None:
        """Go to the point that the cuts foretell to be best, or back to the centre after vain evaluations."""
        if self.vain >= VAIN:
            self.point = self.centre
            return
        slope, level, share = (values[: self.used] for values in (self.slope, self.level, self.share))
        gram = self.gram[: self.used, : self.used]
        share[:] = least_mixture(gram, level + slope @ self.centre, self.reach, share)
        self.point = self.centre + self.reach * self.scaling * (share @ slope)
        self.point[-1] = max(0.0, float(self.point[-1]))
        self.foretold = float((level + slope @ self.point).min())


class BundleAscent:
    """A ``SpectralClimber`` of :mod:`.ascent`, begun at given multipliers."""

    def __init__(
        self, spectral: Spectral, seed: int, shift: FloatArray, rho: float, start: FloatArray | None = None
    ) -> None:
        n, degree = spectral.n, spectral.laplacian.diagonal()
        self.spectral = spectral
        self.tracker: Pairs = Tracker(n, min(spectral.rank + SPARE, n), seed, start, DEGREE)
        self.best_block = self.tracker.block
        scaling = np.append(degree / max(float(degree.mean()), 1e-300) + 0.15, 1.0)
        self.bundle = Bundle(np.append(shift, rho), scaling)

    @property
    def best(self) -> float:
        """The best value so far, not yet certain."""
        return self.bundle.best

    @property
    def best_shift(self) -> FloatArray:
        """(n,) the shift at the best point."""
        return self.bundle.centre[:-1]

    @property
    def best_rho(self) -> float:
        """Rho at the best point."""
        return float(self.bundle.centre[-1])

    @property
    def exhausted(self) -> bool:
        """True once no gain that matters is foretold."""
        return self.bundle.exhausted

    def advance(self, upper: float, should_stop: ShouldStop) -> None:
        """Evaluate, keep cuts, go to the point that they foretell to be best. ``upper`` is not looked at."""
        spectral, shift, rho = self.spectral, self.bundle.point[:-1], float(self.bundle.point[-1])
        pairs = self.tracker.pairs(Shifted(spectral.laplacian, shift, rho), should_stop)
        lam, vectors = (v[..., : spectral.rank] for v in pairs)
        values = spectral.values(lam, shift, rho)
        if self.bundle.judge(float(values.min())):
            self.best_block = self.tracker.block
        mixed = [(at, w) for at in self._worst(values) for w in spread(spectral.weights(lam, at))]
        weights, drift = np.array([w for _, w in mixed]), spectral.drift[[at for at, _ in mixed]]
        by_rho = weights @ vectors.sum(axis=0) ** 2 / spectral.n - drift
        slope = np.column_stack([weights @ (vectors * vectors).T - spectral.length, by_rho])
        self.bundle.add(slope, weights @ lam - rho * drift - spectral.length * shift.sum())
        self.bundle.advance()

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
