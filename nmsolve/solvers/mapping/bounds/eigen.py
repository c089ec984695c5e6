"""Certain lower bounds on the smallest eigenvalues of a large sparse symmetric matrix.

Ritz values of the smallest eigenvalues are never below them, so as they stand they would make a bound invalid. Up to
``DENSE`` rows a dense decomposition (backward stable) answers. Beyond, let Q hold r Ritz vectors with values theta and
residual R = A Q - Q diag(theta) = Z S (Z orthonormal), and let B be A on the complement of Q, with no eigenvalue below
beta. Then A >= Q diag(theta) Q' + Q S'Z' + Z S Q' + beta (I - QQ'), so

``lambda_i(A) >= lambda_i([[diag(theta), S'], [S, beta I]])`` for i <= r,

a matrix of 2 r rows; the error is of second order in R.
``lambda_min(B)`` is bounded with random vectors g (standard normal) and a Chebyshev polynomial T of degree m on
[low, high]: an eigenvector z of B with eigenvalue below ``low`` gives ``|T| |z'g| <= |T(B) g|``, and z'g is a standard
normal number, below DELTA for all four g with probability under 5e-13. So with that certainty no eigenvalue of B is
below ``low - (cosh(arccosh(max |T(B) g| / DELTA) / m) - 1) (high - low) / 2``. An underestimated ``high`` only makes the
result weaker, never wrong.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nmsolve.model.types import AnyArray, FloatArray
from nmsolve.solvers.mapping.bounds.chebyshev import Operator, StoppedError, filtered

#: Largest matrix that is decomposed densely.
DENSE = 1500
#: Largest matrix that is decomposed densely at every step of an ascent.
EXACT_STEPS = 300
#: Passes over a block that begins at random, or whose matrix has changed much, and over one that begins near by.
FRESH, NEAR = 5, 2
#: Blocks are this many vectors wide, or a multiple: what a processor multiplies at once.
LANES = 8
#: Passes end once values fall by less than this part of how far they lie apart, the first, which may be far below, left out.
SETTLED = 0.01
#: Residuals up to this part of the largest eigenvalue need filters in double precision.
ROUGH = 1e-4
#: Filters raise the smallest eigenvectors at most by e to this, in single and in double precision.
RAISED = 9.0, 27.0
#: Single precision holds numbers of this size, with room for products.
SINGLE = 1e30
#: A standard normal number is smaller than this with probability < 8e-4; four of them < 5e-13.
DELTA = 1e-3


class Tracker:
    """Ritz pairs near the smallest eigenvalues of a matrix that changes little from call to call.

    Up to EXACT_STEPS rows they are exact. Beyond, a block of ``count + 5`` vectors or a few more is kept, filtered with a
    Chebyshev polynomial that damps everything above its largest Ritz value, and orthonormalised: one pass per small change,
    in single precision, is enough to steer an ascent; ``settle`` passes until the residuals are small, in double precision
    where they are.

    Parameters
    ----------
    start : (n, any number) vectors that span about what is looked for; at random if not given
    """

    def __init__(
        self, n: int, count: int, seed: int, start: FloatArray | None = None, degree: int = 20
    ) -> None:
        self.count, self.degree = count, degree
        width = min(n, -(-(count + 5) // LANES) * LANES)
        block = np.random.default_rng(seed).standard_normal((n, width))
        if start is not None:
            known = min(width, start.shape[1])
            block[:, :known] = start[:, :known] + 1e-3 * block[:, :known]
        self.block = np.linalg.qr(block)[0]
        self.high, self.age, self.passes = 0.0, 0, FRESH if start is None else NEAR
        self.last: Operator | None = None

    def pairs(self, a: Operator, should_stop: Callable[[], bool]) -> tuple[FloatArray, FloatArray]:
        """Return (count,) Ritz values, rising, and (n, count) orthonormal vectors. Raises StoppedError."""
        if len(a.shift) <= EXACT_STEPS:
            return self._dense(a)
        for _ in range(self.passes):
            theta, _ = self._pass(a, self.degree, True, should_stop)
        self.passes = 1
        return theta[: self.count], self.block[:, : self.count]

    def settle(self, a: Operator, should_stop: Callable[[], bool]) -> tuple[FloatArray, FloatArray]:
        """Return the whole block, (r,) and (n, r), its first ``count`` with residuals below 2 % of the values if that can be had.

        It makes eight passes at most, and ends where values hardly fall any more. The other vectors keep the rest at a distance.
        """
        if len(a.shift) <= EXACT_STEPS:
            return self._dense(a)
        before, residual = np.full(self.block.shape[1], np.inf), np.inf
        for _ in range(8):
            theta, residual = self._pass(a, 30, residual > ROUGH * self.high, should_stop)
            fallen, wide = before - theta, float(theta[self.count - 1] - theta[:2].max())
            if (
                residual < 2e-2 * float(np.abs(theta).mean())
                or fallen[1 : self.count].mean() < SETTLED * wide
            ):
                break
            before = theta
        return theta, self.block

    def _dense(self, a: Operator) -> tuple[FloatArray, FloatArray]:
        lam, vectors = np.linalg.eigh(a.dense())
        return lam[: self.count], vectors[:, : self.count]

    def _pass(
        self, a: Operator, degree: int, rough: bool, should_stop: Callable[[], bool]
    ) -> tuple[FloatArray, float]:
        """Filter, orthonormalise, Rayleigh-Ritz; returns the Ritz values and the residual norm of those wanted.

        A filter that raised the smallest eigenvectors so far that the others would drown in their rounding gets a lower degree.
        ``rough``: in single precision, if the degree and the numbers do.
        """
        self._update_high(a, should_stop)
        values = np.linalg.eigvalsh(self.block.T @ (a @ self.block))
        low = float(values[-1])
        outside = 1 + 2 * (low - float(values[0])) / max(self.high - low, 1e-300)
        steep = max(float(np.arccosh(outside)), 1e-300)
        fits = max(abs(self.high), abs(float(values[0]))) < SINGLE
        rough = rough and fits and degree * steep < RAISED[0]
        degree = max(2, min(degree, int(RAISED[1] / steep)))
        block: AnyArray = self.block.astype(np.float32) if rough else self.block
        passed = filtered(a, block, low, self.high, degree, None, should_stop)
        basis = np.linalg.qr(passed.astype(np.float64))[0]
        image = a @ basis
        theta, turn = np.linalg.eigh(basis.T @ image)
        self.block = basis @ turn
        kept = turn[:, : self.count]
        residual = image @ kept - self.block[:, : self.count] * theta[: self.count]
        return theta, float(np.sqrt(max(0.0, np.linalg.eigvalsh(residual.T @ residual)[-1])))

    def _update_high(self, a: Operator, should_stop: Callable[[], bool]) -> None:
        """Keep ``high`` above the largest eigenvalue: by Weyl after small changes, by Lanczos every tenth time."""
        if self.last is None or self.age >= 10:
            self.high, self.age = largest_estimate(a, should_stop), 0
        elif self.last is not a:
            self.high = min(self.high + a.growth(self.last), a.ceiling())
            self.age += 1
        self.last = a


def lower_eigenvalues(
    a: Operator, vectors: FloatArray, wanted: int, seed: int, should_stop: Callable[[], bool]
) -> FloatArray:
    """Return (r,) certain lower bounds, ascending, on the r smallest eigenvalues, from r approximate eigenvectors.

    ``wanted`` <= r: the polynomial's degree is chosen so that the first ``wanted`` lose little.
    """
    n, count = vectors.shape
    if n <= DENSE:
        dense = a.dense()
        lam = np.linalg.eigvalsh(dense)[:count]
        # four times the usual error of a backward-stable decomposition: a re-check encloses it at about that width
        return np.asarray(lam - 32 * n * np.finfo(float).eps * np.linalg.norm(dense), np.float64)
    q = np.linalg.qr(vectors)[0]
    aq = a @ q
    theta, turn = np.linalg.eigh((q.T @ aq + aq.T @ q) / 2)
    residual = aq @ turn - (q @ turn) * theta
    low, high = float(theta[-1]), largest_estimate(a, should_stop)
    spare = max(low - float(theta[wanted - 1]), 2e-3 * float(np.abs(theta).mean()), 1e-5 * (high - low))
    steps = int(np.log(2 * np.sqrt(n) / DELTA) * np.sqrt((high - low) / (4 * spare))) + 10
    floor = low - complement_margin(a, q, low, high, steps, seed, should_stop)
    rounding = 1e-12 * (abs(high) + abs(float(theta[0])))
    return bordered_eigenvalues(theta, residual, floor) - rounding


def stated(lam: FloatArray, n: int, high: float) -> FloatArray:
    """Return (count,) what a certificate states of eigenvalues with proved bounds ``lam`` (count,), rising.

    The matrix has ``n`` rows and the largest eigenvalue ``high``. Of large matrices it states a little less, so that a
    re-check with other random vectors confirms it.
    """
    if n <= DENSE:
        return lam
    return lam - max(2e-4 * float(np.abs(lam).mean()), 5e-6 * (high - float(lam[-1])))


def bordered_eigenvalues(theta: FloatArray, residual: FloatArray, floor: float) -> FloatArray:
    """Return (r,) eigenvalues, rising, that A has at least; see the module's text. ``floor`` is beta."""
    border = np.linalg.qr(residual)[1]
    corner = floor * np.eye(len(border))
    whole = np.block([[np.diag(theta), border.T], [border, corner]])
    out: FloatArray = np.linalg.eigvalsh(whole)[: len(theta)]
    return out


def largest_estimate(a: Operator, should_stop: Callable[[], bool]) -> float:
    """Return a little above the largest eigenvalue, by Lanczos (an estimate is enough here).

    Raises
    ------
    StoppedError : ``should_stop`` said so
    """
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    n = len(a.shift)

    def apply(x: FloatArray) -> FloatArray:
        if should_stop():
            raise StoppedError
        return (a @ x.reshape(-1, 1)).ravel()

    try:
        op = LinearOperator((n, n), matvec=apply, dtype=np.float64)
        top = float(eigsh(op, 1, which="LA", tol=1e-2, v0=np.cos(np.arange(n) * 1.7) + 0.1)[0][0])
    except ArpackNoConvergence:
        top = a.ceiling()
    return top + 0.02 * abs(top) + 1e-9


def complement_margin(
    a: Operator,
    q: FloatArray,
    low: float,
    high: float,
    degree: int,
    seed: int,
    should_stop: Callable[[], bool],
) -> float:
    """Return how far below ``low`` an eigenvalue of A on the complement of ``q`` (n, r) can be (see the module's text)."""
    block = np.random.default_rng(seed).standard_normal((len(q), 4))
    block -= q @ (q.T @ block)
    norm = float(np.linalg.norm(filtered(a, block, low, high, degree, q, should_stop), axis=0).max())
    if not np.isfinite(norm):
        return float("inf")
    return float((np.cosh(np.arccosh(max(1.0, norm / DELTA)) / degree) - 1) * (high - low) / 2)
