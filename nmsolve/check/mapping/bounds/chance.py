"""Eigenvalues of matrices too large to factor, confirmed with random vectors that cannot be foreseen.

For a symmetric B and a vector g of independent standard normal numbers, a unit eigenvector z of B whose eigenvalue is below
``level`` gives ``|T(B) g| >= |T(lambda)| |z'g|``, T the Chebyshev polynomial of degree m on [level, high]; z'g is a standard
normal number, and all four are below ``SMALL`` with probability under 5e-13. The vectors come from the system's own entropy: a
certificate made to fit known ones would prove anything. The rounding of the recurrence is charged step by step.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nmsolve.check.mapping.bounds.eigenvalues import lifted_mass, lowered
from nmsolve.check.mapping.bounds.rounding import ROUNDOFF, SAFE, gamma
from nmsolve.model.types import FloatArray

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
    """Do as :func:`.eigenvalues.least` for A = ``apply`` + rho ee'/n; the result holds with probability above 1 - 5e-13.

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
