"""Eigenvalues that are proved: computed ones, and how far they can be from the true ones (docs/bounds.md, "Eigenvalues").

Nothing here trusts a decomposition: whatever vectors and values come out of it, their residuals are computed and charged, with
the rounding of that computation. Three ways, by size:

* up to ``DECOMPOSED`` rows all eigenvalues are enclosed (:func:`spectrum`);
* up to ``FACTORED`` rows a Cholesky factorisation that ends shows that a matrix has no eigenvalue far below 0 (:func:`least`);
* beyond, random vectors that cannot be foreseen show it with probability above 1 - 5e-13 (:func:`least_by_chance`).

That last way: for a symmetric B and a vector g of independent standard normal numbers, a unit eigenvector z of B whose eigenvalue
is below ``level`` gives ``|T(B) g| >= |T(lambda)| |z'g|``, T the Chebyshev polynomial of degree m on [level, high]; z'g is a
standard normal number, and all four are below ``SMALL`` with probability under 5e-13. The vectors come from the system's own
entropy: a certificate made to fit known ones would prove anything. The rounding of the recurrence is charged step by step.
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


#: Four standard normal numbers are all smaller than this with probability < 5e-13.
SMALL, VECTORS = 1e-3, 4
#: Rows of a block of a scalar product: two short sums have smaller errors than a long one.
BLOCK = 512
#: How far below ``level`` is aimed at, in parts of the stated eigenvalues and of the matrix's spread.
LOSS, SPREAD = 1e-4, 5e-6
#: Most steps of the recurrence.
MOST_STEPS = 20_000


def least_by_chance(
    apply: Callable[[FloatArray], FloatArray],
    rho: float,
    mass: float,
    longest: int,
    vectors: FloatArray,
    stated: FloatArray,
) -> FloatArray | None:
    """Do as :func:`least` for A = ``apply`` + rho ee'/n; the result holds with probability above 1 - 5e-13.

    None if the premise cannot be shown.

    Parameters
    ----------
    vectors, stated : (n, c) and (c,)
    mass : bound on the row sums of |A|; longest : most terms of one entry of a product
    """
    n = len(vectors)
    gaps = stated[-1] - stated
    blocks = -(-n // BLOCK)
    # rounding of a product with A and Q diag(gaps) Q': short sums over edges, long ones over all nodes
    error = gamma(longest + 24) * mass + gamma(BLOCK + blocks + len(stated) + 24) * (
        rho + lifted_mass(vectors, gaps)
    )

    def image(x: FloatArray) -> FloatArray:
        inner = sum(vectors[i : i + BLOCK].T @ x[i : i + BLOCK] for i in range(0, n, BLOCK))
        mean = sum(x[i : i + BLOCK].sum(axis=0) for i in range(0, n, BLOCK)) / n
        return np.asarray(apply(x) + rho * mean + vectors @ (gaps[:, None] * inner))

    high = _largest(image, n)
    half = (high - float(stated[-1])) / 2
    loss = max(LOSS * float(np.abs(stated).mean()), SPREAD * half)
    level = float(stated[-1]) + loss  # what is stated has as much in hand, so nothing is lost in the end
    if not (np.isfinite(half) and half > 0 and loss > 0):
        return None
    degree = int(np.log(2.5 * np.sqrt(n) / SMALL) * np.sqrt(half / (2 * loss))) + 20
    if degree > MOST_STEPS:
        return None
    growth = growth_of(image, n, level, half, degree, SAFE * error)
    if growth is None:
        return None
    below = SAFE * (np.cosh(np.arccosh(growth) / degree) - 1) * half
    return lowered(stated, float(below) - loss + 8 * ROUNDOFF * (abs(level) + half), vectors)


def growth_of(
    image: Callable[[FloatArray], FloatArray],
    n: int,
    level: float,
    half: float,
    degree: int,
    error: float,
    among: tuple[int, float] = (VECTORS, SMALL),
) -> float | None:
    """No eigenvalue below ``level`` makes |T| larger than this; None if rounding hides it.

    ``error`` bounds what rounding does to ``image`` of a unit vector. ``among``: how many random vectors, and a size below which
    all their parts along one direction are with probability < 5e-13.

    With v_i the computed vectors and r_i the rounding of step i, ``z'v_m = T_m z'g + sum_i U_(m-i) z'r_i``, and outside [-1, 1]
    ``|U_k| <= (k + 1) |T_k| <= (k + 1) |T_m|``.
    """
    middle, (vectors, small) = level + half, among
    old = np.random.default_rng().standard_normal((n, vectors))
    per_step = SAFE * (2 * error / half + 16 * ROUNDOFF * (1 + abs(middle) / half))
    rounding = 0.0
    new = (image(old) - middle * old) / half
    rounding += degree * per_step * float(np.linalg.norm(old, axis=0).max())
    for i in range(1, degree):
        size = float(np.linalg.norm(new, axis=0).max())
        rounding += (degree - i) * (per_step * size + 4 * ROUNDOFF * float(np.linalg.norm(old, axis=0).max()))
        if not rounding < small / 2:
            return None
        old, new = new, (2 / half) * (image(new) - middle * new) - old
    size = float(np.linalg.norm(new, axis=0).max())
    return max(1.0, SAFE * size / (small - rounding)) if np.isfinite(size) else None


def _largest(image: Callable[[FloatArray], FloatArray], n: int) -> float:
    """Return a little above the largest eigenvalue; an estimate that is too small proves less, never too much."""
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

    whole = LinearOperator((n, n), matvec=lambda x: image(x.reshape(-1, 1)).ravel(), dtype=np.float64)
    start = np.random.default_rng(11).standard_normal(n)
    try:
        top = float(eigsh(whole, 1, which="LA", tol=1e-2, v0=start)[0][0])
    except ArpackError:
        return float("nan")
    return top + 0.03 * abs(top)
