"""The projection bound of Hadley, Rendl and Wolkowicz with a tuned diagonal, for one node per core.

Pad the traffic S with idle nodes to k = number of usable cores, add a diagonal shift t (free: the distance of a core
to itself is 0) and split permutations into the part along e = (1..1) and the part V orthogonal to it:

``2 cost >= <lambda(V'(S + diag t)V), mu(V'DV)>_- + 2/k <S e + t, D e>_- - (e'Se + e't)(e'De)/k^2``

``<a, b>_-`` is the least scalar product over all orders of b. On a mesh D is the squared Euclidean distance of unary
codes (one coordinate per line between rows or columns, scaled by the root of the line's weight), so V'DV has only
rows + columns - 2 non-zero eigenvalues, all negative, and only as many of the largest traffic eigenvalues count.
A constant ``step`` between different cores is taken out first: it is paid by all traffic.

The bound is concave in t: subgradient ascent with Polyak steps, stoppable at any time. t is the certificate. Eigenvectors carried
from step to step only steer the ascent; what is reported comes from a dense eigen-decomposition of the shifted, projected
traffic, less a margin for its rounding error.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nmsolve.model.bound import Bound, round_up
from nmsolve.model.features import at_most
from nmsolve.model.mapping.features import LIMITS, takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray
from nmsolve.solvers.mapping.bounds.bound_context import UNLIMITED, BoundContext
from nmsolve.solvers.mapping.bounds.pairs import dense_traffic, pair_form, seats, too_wide, usable_cores
from nmsolve.solvers.mapping.bounds.spectrum import Spectrum, distance_spectrum, project, spread

#: Dense eigen-decompositions up to this many cores.
MAX_SIDE = 2048
#: Without a good mapping the ascent aims at this part of a random placement's mean cost, or this much above the best.
TARGET, AIM = 0.15, 0.1
#: A gain is more than this part of the best; steps without one before going back with shorter steps, and how much shorter.
GAIN, PATIENCE, SHORTER = 1e-7, 12, 0.6
#: Rounding is charged this many times the cores and the unit of rounding; the re-check charges 50 for a thousand cores.
ROUNDING = 128
#: Supergradients below this part of the distances (both squared) are rounding, and a step along them would have any length.
FLAT = 1e-20


#: Why the bound cannot take a problem, or None.
refuses_projection = takes(
    f"pairs {LIMITS} -several -lone", at_most(MAX_SIDE, usable_cores, "usable cores"), seats(2), too_wide
)


def projection_bounds(
    problem: MappingProblem, context: BoundContext = UNLIMITED, rounds: int = 300
) -> Iterator[Bound]:
    """Ever better projection bounds: the first after one step, then whenever the number of steps (``rounds`` at most) doubles."""
    form = pair_form(problem)
    base = form.distance.step * form.total
    best, due = -np.inf, 1
    ascent = DiagonalAscent(dense_traffic(form), form.plain_distances().sum(axis=1), distance_spectrum(form))
    for step in range(1, rounds + 1):
        ascent.advance(2.0 * (context.upper() - base))
        stopping = context.should_stop() or step == rounds or ascent.exhausted
        if step == due or stopping:
            due *= 2
            value = base + certified_value(ascent) / 2
            if value > best:
                best = value
                rounded = round_up(value, form.lattice > 0, form.lattice or 1.0)
                yield Bound(
                    rounded, "projection", "full", {"method": "projection", "shift": ascent.best_shift.copy()}
                )
        if stopping:
            return


def certified_value(ascent: DiagonalAscent) -> float:
    """What the best shift proves, doubled, without the constant step: a dense eigen-decomposition, less a margin for rounding."""
    a, reach = ascent.traffic + np.diag(ascent.best_shift), ascent.reach
    k, mu = len(a), spread(ascent.mu, len(a) - 1)
    lam = np.linalg.eigvalsh(project(a))
    quadratic = float(lam @ np.sort(mu)[::-1])
    load = a.sum(axis=1)
    linear = 2 / k * float(np.sort(load) @ np.sort(reach)[::-1])
    constant = load.sum() * reach.sum() / k**2
    eps = ROUNDING * k * np.finfo(float).eps
    size = np.linalg.norm(a) * np.abs(mu).sum() + np.abs(lam).sum() * np.abs(mu).max(initial=0.0)
    margin = eps * (size + abs(linear) + abs(constant))
    return float(quadratic + linear - constant - margin)


class DiagonalAscent:
    """Subgradient ascent on the diagonal shift, in doubled costs without the constant step.

    Attributes
    ----------
    traffic : (k, k) symmetric, idle nodes at the end
    reach : (k,) row sums of the distances
    mu : non-zero eigenvalues of V'DV, rising
    best, best_shift : the best by the (uncertified) value
    average : mean cost of random placements
    """

    def __init__(self, traffic: FloatArray, reach: FloatArray, mu: FloatArray) -> None:
        self.traffic, self.reach, self.mu = traffic, reach, mu
        self._spectrum = Spectrum(mu, len(traffic))
        self._degree, self._far_first = traffic.sum(axis=1), np.sort(reach)[::-1]
        self.average = float(traffic.sum() * reach.sum()) / max(1, len(traffic) * (len(traffic) - 1))
        self._shift = self.best_shift = np.zeros(len(traffic))
        self._direction, self._scale, self._stalled = np.zeros(len(traffic)), 1.0, 0
        self.best = -np.inf
        self._returned = False

    @property
    def exhausted(self) -> bool:
        """True once the steps have become too short to matter."""
        return self._scale < 1e-3

    def advance(self, upper: float) -> None:
        """Evaluate at the shift, note the best, and step towards ``upper`` (inf if unknown)."""
        value, gradient = self.evaluate(self._shift)
        if self._returned:  # carried eigenvectors may have promised more there
            self.best, self._returned = value, False
        if not np.isfinite(self.best) or value > self.best + GAIN * abs(self.best):
            self.best, self.best_shift, self._stalled = value, self._shift, 0
        else:
            self._stalled += 1
            if self._stalled >= PATIENCE:
                self._scale, self._stalled = self._scale * SHORTER, 0
                self._shift, self._direction = self.best_shift, np.zeros(len(self.reach))
                self._spectrum.forget()
                self._returned = True
                return
        self._direction = gradient - gradient.mean() + 0.6 * self._direction
        target = min(upper, max((1 + AIM) * self.best, TARGET * self.average))
        norm = float(self._direction @ self._direction)
        if norm > FLAT * float(self.reach @ self.reach):
            length = self._scale * max(target - value, 1e-3 * abs(self.best)) / norm
            self._shift = self._shift + length * self._direction

    def evaluate(self, shift: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and supergradient."""
        k, total, load = len(shift), float(self.reach.sum()), self._degree + shift
        reach = np.empty(k)
        reach[np.argsort(load, kind="stable")] = self._far_first
        quadratic, (weight, vectors) = self._spectrum.paired(self.traffic + np.diag(shift))
        value = quadratic + 2 / k * float(load @ reach) - float(load.sum()) * total / k**2
        return value, (vectors * vectors) @ weight + 2 / k * reach - total / k**2
