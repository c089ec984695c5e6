"""Certain lower bounds on the smallest eigenvalues of a large sparse symmetric matrix.

Ritz values of the smallest eigenvalues are never below them, so as they stand they would make a bound invalid. Up to
``DENSE`` rows a dense decomposition (backward stable) answers. Beyond, let Q hold r Ritz vectors with values theta and
residual R = A Q - Q diag(theta), and let B be A on the complement of Q. By Weyl,

``lambda_i(A) >= min(theta_i, lambda_min(B)) - |R|_2``.

``lambda_min(B)`` is bounded with random vectors g (standard normal) and a Chebyshev polynomial T of degree m on
[low, high]: an eigenvector z of B with eigenvalue below ``low`` gives ``|T| |z'g| <= |T(B) g|``, and z'g is a standard
normal number, below DELTA for all four g with probability under 5e-13. So with that certainty no eigenvalue of B is
below ``low - (cosh(arccosh(max |T(B) g| / DELTA) / m) - 1) (high - low) / 2``. An underestimated ``high`` only makes the
result weaker, never wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from nmsolve.model.types import FloatArray

#: Largest matrix that is decomposed densely.
DENSE = 1500
#: A standard normal number is smaller than this with probability < 8e-4; four of them < 5e-13.
DELTA = 1e-3


class StoppedError(Exception):
    """Raised inside an eigenvalue computation when time is up."""


@dataclass(frozen=True)
class Shifted:
    """``A = L + diag(shift) + rho e e' / n`` for sparse symmetric L; multiplies (n,) and (n, b) arrays."""

    laplacian: csr_array
    shift: FloatArray
    rho: float

    def __matmul__(self, x: FloatArray) -> FloatArray:
        shift = self.shift if x.ndim == 1 else self.shift[:, None]
        out: FloatArray = self.laplacian @ x + shift * x + self.rho * x.mean(axis=0)
        return out

    def dense(self) -> FloatArray:
        """The matrix itself."""
        n = len(self.shift)
        out: FloatArray = self.laplacian.toarray() + np.diag(self.shift) + self.rho / n
        return out


def smallest_pairs(
    a: Shifted, count: int, tolerance: float, start: FloatArray | None, should_stop: Callable[[], bool]
) -> tuple[FloatArray, FloatArray]:
    """``count`` Ritz pairs near the smallest eigenvalues (dense and exact for small matrices).

    Raises StoppedError when asked to stop.
    """
    n = len(a.shift)
    if n <= DENSE:
        lam, vectors = np.linalg.eigh(a.dense())
        return lam[:count], vectors[:, :count]
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    def apply(x: FloatArray) -> FloatArray:
        if should_stop():
            raise StoppedError
        return a @ x.ravel()

    op = LinearOperator((n, n), matvec=apply, dtype=np.float64)
    v0 = np.cos(np.arange(n) * 1.7) + 0.1 if start is None else start
    width = min(n - 1, 3 * count + 10)
    try:
        lam, vectors = eigsh(op, count, which="SA", tol=tolerance, v0=v0, ncv=width, maxiter=200)
    except ArpackNoConvergence as unfinished:
        lam, vectors = unfinished.eigenvalues, unfinished.eigenvectors
        if len(lam) < count:
            raise StoppedError from unfinished
    order = np.argsort(lam)
    values: FloatArray = np.real(lam[order])
    basis: FloatArray = np.real(vectors[:, order])
    return values, basis


def lower_eigenvalues(
    a: Shifted, vectors: FloatArray, wanted: int, seed: int, should_stop: Callable[[], bool]
) -> FloatArray:
    """(r,) certain lower bounds, ascending, on the r smallest eigenvalues, from r approximate eigenvectors.

    ``wanted`` <= r: the polynomial's degree is chosen so that the first ``wanted`` lose little.
    """
    n, count = vectors.shape
    if n <= DENSE:
        dense = a.dense()
        lam = np.linalg.eigvalsh(dense)[:count]
        return np.asarray(lam - 8 * n * np.finfo(float).eps * np.linalg.norm(dense), np.float64)
    q = np.linalg.qr(vectors)[0]
    aq = a @ q
    theta, turn = np.linalg.eigh((q.T @ aq + aq.T @ q) / 2)
    residual = aq @ turn - (q @ turn) * theta
    error = float(np.sqrt(max(0.0, np.linalg.eigvalsh(residual.T @ residual)[-1])))
    low, high = float(theta[-1]), largest_estimate(a, should_stop)
    spare = max(low - float(theta[wanted - 1]), 2e-3 * float(np.abs(theta).mean()), 1e-5 * (high - low))
    steps = int(np.log(2 * np.sqrt(n) / DELTA) * np.sqrt((high - low) / (4 * spare))) + 10
    floor = low - complement_margin(a, q, low, high, steps, seed, should_stop)
    rounding = 1e-12 * (abs(high) + abs(float(theta[0])))
    return np.asarray(np.minimum(theta, floor) - error - rounding, np.float64)


def largest_estimate(a: Shifted, should_stop: Callable[[], bool]) -> float:
    """A little above the largest eigenvalue, by Lanczos (an estimate is enough here)."""
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    n = len(a.shift)

    def apply(x: FloatArray) -> FloatArray:
        if should_stop():
            raise StoppedError
        return a @ x.ravel()

    try:
        op = LinearOperator((n, n), matvec=apply, dtype=np.float64)
        top = float(eigsh(op, 1, which="LA", tol=1e-2, v0=np.cos(np.arange(n) * 1.7) + 0.1)[0][0])
    except ArpackNoConvergence:
        top = float((a.laplacian.diagonal() + a.shift).max())
    return top + 0.02 * abs(top) + 1e-9


def complement_margin(
    a: Shifted, q: FloatArray, low: float, high: float, steps: int, seed: int, should_stop: Callable[[], bool]
) -> float:
    """How far below ``low`` an eigenvalue of A on the complement of Q can be (see the module's text)."""
    half, centre = (high - low) / 2, (high + low) / 2

    def apply(x: FloatArray) -> FloatArray:
        y = (a @ x - centre * x) / half
        out: FloatArray = y - q @ (q.T @ y)
        return out

    before = np.random.default_rng(seed).standard_normal((len(q), 4))
    before -= q @ (q.T @ before)
    now = apply(before)
    done = 1
    while done < steps and np.abs(now[:64]).max() < 1e120:
        if should_stop():
            raise StoppedError
        before, now = now, 2 * apply(now) - before
        done += 1
    norm = float(np.linalg.norm(now, axis=0).max())
    return float((np.cosh(np.arccosh(max(1.0, norm / DELTA)) / done) - 1) * half)
