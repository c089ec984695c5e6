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
from nmsolve.solvers.mapping.bounds.codes import core_codes
from nmsolve.solvers.mapping.bounds.pairs import (
    PairForm,
    dense_traffic,
    pair_form,
    seats,
    too_wide,
    usable_cores,
)

#: From this many cores on, eigenvectors are carried from step to step instead of computed afresh.
BLOCK_FROM = 320
#: Vectors beyond those wanted, and degree of the filter.
SPARE, DEGREE = 8, 8


class Spectrum:
    """Least scalar product of the eigenvalues of V'SV with those of V'DV (``mu``, rising), for many similar S."""

    def __init__(self, mu: FloatArray, k: int) -> None:
        self.k = k
        self.one_sided = bool((mu <= 0).all()) and len(mu) < k - 1
        self.mu = mu[::-1].copy() if self.one_sided else spread(mu, k - 1)[::-1].copy()
        self.blocked = self.one_sided and k >= BLOCK_FROM and 4 * len(mu) < k
        self.block: FloatArray | None = None

    def forget(self) -> None:
        """Compute eigenvectors afresh the next time: the matrix changes much, or its value must be right."""
        self.block = None

    def paired(self, shift: FloatArray) -> tuple[float, tuple[FloatArray, FloatArray]]:
        """Return the product, and (weights (r,), vectors (k, r)) with supergradient ``vectors diag(weights) vectors'``."""
        from scipy.linalg import eigh

        r, k = len(self.mu), self.k
        if r == 0:
            return 0.0, (self.mu, np.zeros((k, 0)))
        if not shift.any():  # all bases are equally good: their mean
            return 0.0, (np.full(k, float(self.mu.sum()) / (k - 1)), np.eye(k) - 1 / k)
        mean = shift.mean(axis=0)
        a = shift - mean
        a -= (mean - mean.mean())[:, None]
        if self.blocked:
            lam, vectors = self._carried(a)
        elif self.one_sided:
            a -= (1.0 + np.abs(a).sum(axis=1).max()) / k
            lam, vectors = eigh(a, subset_by_index=(k - r, k - 1), check_finite=False)
            if len(lam) < r:  # LAPACK may miss some of many equal eigenvalues
                lam, vectors = (v[..., -r:] for v in np.linalg.eigh(a))
        else:
            a -= (1.0 + np.abs(a).sum(axis=1).max()) / k
            lam, vectors = np.linalg.eigh(a)
            lam, vectors = lam[1:], vectors[:, 1:]
        return float(lam @ self.mu), (self.mu, vectors)

    def _carried(self, a: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the largest Ritz pairs of the block after one Chebyshev filter; exact ones at the first call."""
        from scipy.linalg import eigh

        r, k = len(self.mu), self.k
        if self.block is None:
            wide = min(k - 1, r + SPARE)
            lam, self.block = eigh(a, subset_by_index=(k - wide, k - 1), check_finite=False)
            cut = float(lam[0])
        else:
            cut = float(np.linalg.eigvalsh(self.block.T @ (a @ self.block))[0])
        low = _least_estimate(a)
        centre, half = (cut + low) / 2, (cut - low) / 2
        if half <= 0:  # a multiple of the identity on the complement of (1..1)
            self.block = None
            return np.full(r, cut), np.linalg.qr(np.eye(k, r) - 1 / k)[0]
        before, now = self.block, (a @ self.block - centre * self.block) / half
        for _ in range(DEGREE - 1):
            after = a @ now
            after -= centre * now
            after *= 2 / half
            after -= before
            before, now = now, after
        now -= now.mean(axis=0)
        basis = np.linalg.qr(now)[0]
        lam, turned = np.linalg.eigh(basis.T @ (a @ basis))
        self.block = basis @ turned
        return lam[-r:], self.block[:, -r:]


def _least_estimate(a: FloatArray) -> float:
    """About the least eigenvalue, or a little lower: 15 Lanczos steps. Steers only."""
    now = np.cos(np.arange(len(a)) * 1.7)
    now /= np.linalg.norm(now)
    before, beta = np.zeros(len(a)), 0.0
    diagonal, beside = [], []
    for _ in range(15):
        after = a @ now - beta * before
        alpha = float(after @ now)
        diagonal.append(alpha)
        after -= alpha * now
        beta = float(np.linalg.norm(after))
        if beta == 0.0:
            break
        beside.append(beta)
        before, now = now, after / beta
    tridiagonal = np.diag(diagonal) + np.diag(beside[: len(diagonal) - 1], 1)
    lam = np.linalg.eigvalsh(tridiagonal, UPLO="U")
    return float(lam[0] - 0.05 * (lam[-1] - lam[0]))


def spread(mu: FloatArray, length: int) -> FloatArray:
    """Return (length,) ``mu`` filled up with zeros, rising."""
    return np.sort(np.concatenate([mu, np.zeros(length - len(mu))]))


def distance_spectrum(form: PairForm) -> FloatArray:
    """(r,) non-zero eigenvalues of V'DV, rising: from the codes on a mesh or torus, else from the matrix; no constant step."""
    if form.distance.separable:
        code = core_codes(form.distance, form.cores)
        code = code - code.mean(axis=0)
        mu = np.asarray(-2.0 * np.linalg.eigvalsh(code.T @ code)[::-1], np.float64)
    else:
        mu = np.asarray(np.linalg.eigvalsh(project(form.plain_distances())), np.float64)
    out: FloatArray = mu[np.abs(mu) > 1e-13 * np.abs(mu).max(initial=0.0)]
    return out


def project(a: FloatArray) -> FloatArray:
    """Return ``V' a V`` (k-1, k-1) for the orthonormal complement V of (1..1) that a Householder reflection gives."""
    k = len(a)
    v = np.full(k, 1 / np.sqrt(k))
    v[0] += 1.0
    v *= np.sqrt(2.0) / np.linalg.norm(v)
    av = a @ v
    h = a - np.outer(av, v) - np.outer(v, av) + (v @ av) * np.outer(v, v)
    out: FloatArray = h[1:, 1:]
    return out


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
