"""Eigenvalues that are proved: computed ones, and how far they can be from the true ones (docs/bounds.md, "Eigenvalues").

Nothing here trusts a decomposition: whatever vectors and values come out of it, their residuals are computed and charged, with
the rounding of that computation. Three ways, by size:

* up to ``DECOMPOSED`` rows all eigenvalues are enclosed (:func:`spectrum`);
* up to ``FACTORED`` rows a Cholesky factorisation that ends shows that a matrix has no eigenvalue far below 0 (:func:`least`);
* beyond, random vectors show it with probability above 1 - 5e-13 over the system's own randomness (:mod:`.chance`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nmsolve.check.mapping.bounds.parts import CertificateError
from nmsolve.check.mapping.bounds.rounding import ROUNDOFF, SAFE, UNDERFLOW, gamma
from nmsolve.model.types import FloatArray

#: Largest matrix that is decomposed, and largest that is factored (3.3 GB, about 40 s).
DECOMPOSED, FACTORED = 1500, 20_000
#: What :func:`least` tries in turn: first with something in hand, so that what is stated can be proved without loss.
PATIENCE = (-4.0, 2.0, 60.0)


def spectrum(m: FloatArray, error: FloatArray | float) -> tuple[FloatArray, FloatArray]:
    """Ends of intervals, rising, that hold the i-th smallest eigenvalue of every symmetric matrix near ``m``.

    ``m`` (..., n, n) symmetric; ``error`` (...,) bounds the 2-norm of the differences to it.

    Raises
    ------
    CertificateError : a matrix has numbers too large to decompose
    """
    n = m.shape[-1]
    with np.errstate(all="ignore"):
        if not np.isfinite(m).all():
            raise CertificateError("the numbers are too large")
        try:
            value, x = np.linalg.eigh(m)
        except np.linalg.LinAlgError as broken:
            raise CertificateError("the eigenvalues cannot be computed") from broken
        turned = np.swapaxes(x, -1, -2)
        size = np.abs(x)
        residual = _norm(m - (x * value[..., None, :]) @ turned)
        # entries of the product are sums of n products of three numbers; its largest row sum bounds the 2-norm
        mass = size @ (np.abs(value)[..., None] * (np.swapaxes(size, -1, -2) @ np.ones((n, 1))))
        residual += gamma(n + 4) * (mass[..., 0].max(axis=-1) + np.abs(m).sum(axis=-1).max(axis=-1))
        skew = _norm(turned @ x - np.eye(n))
        skew += gamma(n + 2) * (np.swapaxes(size, -1, -2) @ (size @ np.ones((n, 1))) + 1)[..., 0].max(axis=-1)
        wide = SAFE * (residual + error)[..., None] + SAFE * skew[..., None] * np.abs(value)
        wide = wide + 2 * ROUNDOFF * np.abs(value) + UNDERFLOW
        if not (np.isfinite(wide).all() and float(np.max(skew, initial=0.0)) < 0.5):
            raise CertificateError("the numbers are too large")
    return value - wide, value + wide


def _norm(m: FloatArray) -> FloatArray:
    """Return Frobenius norms of matrices (..., n, n), never below the exact ones by more than ``SAFE`` allows for."""
    return np.asarray(np.sqrt((m * m).sum(axis=(-1, -2))) + np.sqrt(UNDERFLOW))


def projected(m: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ends of the k - 1 eigenvalues, rising, of the symmetric ``m`` (k, k) on the complement of the vector of ones.

    P M P with P = I - ee'/k has them all, and 0 for e; e is moved above all others and left out.

    Raises
    ------
    CertificateError : ``m`` has numbers too large to decompose
    """
    k = len(m)
    high = float(np.abs(m).sum(axis=1).max())
    if not np.isfinite(high) or high > 1e100:
        raise CertificateError("the numbers are too large")
    lift = 4 * high
    rows = m.sum(axis=1)
    inner = m - (rows[:, None] + rows[None, :]) / k + (rows.sum() / k + lift) / k
    inner = (inner + inner.T) / 2
    # every entry is within gamma of |m| + |rows|/k + |rows|/k + |sum|/k^2 + lift/k, whose row sums are below 4 high + lift
    low, top = spectrum(inner, SAFE * gamma(2 * k + 12) * (4 * high + lift))
    return low[:-1], top[:-1]


def least(
    make: Callable[[], FloatArray], error: float, vectors: FloatArray, stated: FloatArray
) -> FloatArray | None:
    """Return (c,) lower bounds on the c smallest eigenvalues of A, about as ``stated``, or None if nothing near can be shown.

    With any vectors Q and ``d_i = stated[-1] - stated[i] >= 0``: where A + Q diag(d) Q' - stated[-1] I has no eigenvalue
    below -s, ``lambda_i(A) >= stated[-1] - s - lambda_i(Q diag(d) Q') >= stated[-1] - s - |Q'Q| d_i``. So Q need be neither
    orthonormal nor close to eigenvectors: bad ones make the factorisation fail.

    Parameters
    ----------
    make : an (n, n) symmetric matrix in Fortran order that may be overwritten, the same at every call
    error : bound on the 2-norm of the difference between it and A
    vectors : (n, c) Q
    """
    from scipy.linalg.blas import dgemm

    gaps = stated[-1] - stated
    weighted = np.asfortranarray(vectors * gaps)
    other = np.asfortranarray(vectors)
    for patience in PATIENCE:
        matrix = dgemm(1.0, weighted, other, beta=1.0, c=make(), trans_b=1, overwrite_c=1)
        blocks = range(0, len(matrix), 1024)
        entries = max(float(np.abs(matrix[:, i : i + 1024]).sum(axis=0).max()) for i in blocks)
        below = lowest(matrix, float(stated[-1]), patience)
        if below is not None:
            rounding = gamma(len(stated) + 4) * lifted_mass(vectors, gaps) + 2 * ROUNDOFF * entries
            return lowered(stated, below + SAFE * (error + rounding), vectors)
        del matrix  # before the next one is made: there is room for one
    return None


def lifted_mass(vectors: FloatArray, gaps: FloatArray) -> float:
    """Return the largest row sum of |Q| diag(gaps) |Q|', Q the ``vectors`` (n, c), ``gaps`` (c,)."""
    size = np.abs(vectors)
    return float((size @ (gaps * size.sum(axis=0))).max())


def lowered(stated: FloatArray, s: float, vectors: FloatArray) -> FloatArray:
    """Return (c,) ``stated[-1] - s - |Q'Q| (stated[-1] - stated)``, rounded down; Q the ``vectors`` (n, c)."""
    gaps, size = stated[-1] - stated, np.abs(vectors)
    blocks = range(0, len(vectors), 1024)
    gram = np.sum([vectors[i : i + 1024].T @ vectors[i : i + 1024] for i in blocks], axis=0)
    error = gamma(1026 + len(blocks)) * np.sum(
        [size[i : i + 1024].T @ size[i : i + 1024] for i in blocks], axis=0
    )
    stretch = float((np.abs(gram) + SAFE * error).sum(axis=1).max()) * (1 + 1024 * ROUNDOFF)
    rounding = 8 * ROUNDOFF * (np.abs(stated[-1]) + abs(s) + stretch * gaps)
    out: FloatArray = stated[-1] - s - stretch * gaps - rounding
    return out


def lowest(matrix: FloatArray, level: float, patience: float) -> float | None:
    """s such that ``matrix - level I`` has no eigenvalue below -s, or None; the matrix is overwritten.

    A Cholesky factorisation in floating point that ends is that of a matrix within ``gamma(n + 1) / (1 - gamma(n + 1))`` times
    the trace (Demmel 1989; Higham, theorems 10.3 and 10.5), in any order of its sums; twice that is charged, as some libraries
    multiply by reciprocals of the diagonal. ``patience``: what is added to the diagonal, in parts of that; s is about that, and
    may be negative.
    """
    from scipy.linalg.lapack import dpotrf

    n = len(matrix)
    diagonal = np.arange(n)
    before = matrix[diagonal, diagonal] - level
    unit = 2 * gamma(n + 2)
    lift = patience * unit * float(np.abs(before).sum())
    if not np.isfinite(lift):
        return None
    matrix[diagonal, diagonal] = before + lift
    trace = float(np.abs(before + lift).sum())
    factor, info = dpotrf(matrix, lower=1, overwrite_a=1, clean=0)
    if info != 0 or not np.isfinite(factor[diagonal, diagonal]).all():
        return None
    rounding = 4 * ROUNDOFF * (abs(level) + float(np.abs(before).max()) + abs(lift))
    return lift + SAFE * (unit * trace + rounding + n * UNDERFLOW)
