"""The matrices of the eigenvalue bounds, and lower bounds on their smallest eigenvalues that are proved."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array, diags_array

from nmsolve.check.mapping.bounds.eigenvalues import DECOMPOSED, FACTORED, least, least_by_chance, spectrum
from nmsolve.check.mapping.bounds.parts import CertificateError
from nmsolve.check.mapping.bounds.rounding import SAFE, gamma
from nmsolve.model.types import FloatArray

#: Most eigenvalues a certificate may state for a matrix that is not decomposed as a whole.
MOST_STATED = 512
#: Relative tolerance between a stated and the proved eigenvalue bound; the proved one counts.
NEAR = 1e-6


@dataclass(frozen=True)
class Operator:
    """``L + diag(shift) + rho ee'/n - 2 sum_i rate_i q_i q_i'``, L the Laplacian of ``pairs``.

    ``pairs`` (n, n) symmetric, >= 0; ``pulls`` (nets, n), the rows q_i, or None.
    """

    pairs: csr_array
    shift: FloatArray
    rho: float
    pulls: csr_array | None = None
    rate: FloatArray = field(default_factory=lambda: np.zeros(0))

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.shift)

    @cached_property
    def base(self) -> csr_array:
        """The Laplacian and the shift."""
        return csr_array(diags_array(self.pairs.sum(axis=1) + self.shift) - self.pairs)

    @property
    def mass(self) -> float:
        """At least the largest row sum of the matrix of absolute values of all terms."""
        rows = 2 * self.pairs.sum(axis=1) + np.abs(self.shift) + self.rho
        if self.pulls is not None:
            size = abs(self.pulls)
            rows = rows + size.T @ (2 * self.rate * size.sum(axis=1))
        return SAFE * float(np.max(rows, initial=0.0))

    @property
    def longest(self) -> int:
        """Most terms that are added to one entry of the matrix or of its product with a vector."""
        per_row = np.diff(self.pairs.indptr).max(initial=0)
        if self.pulls is None:
            return int(per_row)
        lengths, counts = np.diff(self.pulls.indptr), np.bincount(self.pulls.indices, minlength=1)
        return int(per_row + lengths.max(initial=0) + counts.max(initial=0))

    @property
    def error(self) -> float:
        """Bound on the 2-norm of the difference between :meth:`dense` and the matrix itself."""
        return gamma(self.longest + 16) * self.mass

    def dense(self) -> FloatArray:
        """Return (n, n) in Fortran order, newly made."""
        out = self.base.toarray(order="F")
        out += self.rho / self.n
        if self.pulls is not None:
            weighted = csr_array(diags_array(2 * self.rate) @ self.pulls)
            across = csr_array(self.pulls.T)
            for first in range(0, self.n, 1024):
                out[:, first : first + 1024] -= (across @ weighted[:, first : first + 1024]).toarray()
        return np.asarray(out)

    def apply(self, x: FloatArray) -> FloatArray:
        """Return the product with vectors (n,) or (n, m), without ``rho``, which is easier to round as a sum in blocks."""
        y = self.base @ x
        if self.pulls is not None:
            inner = self.pulls @ x
            y = y - self.pulls.T @ (2 * (self.rate if x.ndim == 1 else self.rate[:, None]) * inner)
        return np.asarray(y)


def proved(a: Operator, stated: FloatArray) -> FloatArray:
    """Return (c,) rising lower bounds on the c smallest eigenvalues of ``a``, none above ``stated`` (rising).

    Raises
    ------
    CertificateError : what is stated is too high, or cannot be confirmed
    """
    if a.n <= DECOMPOSED:
        low = spectrum(_symmetric(a.dense()), a.error)[0][: len(stated)]
    else:
        if len(stated) > MOST_STATED:
            raise CertificateError(
                f"'eigenvalues' has {len(stated)} entries, at most {MOST_STATED} can be checked"
            )
        values, vectors = _approximate(a, len(stated))
        _compare(stated, values)
        found = (
            least(a.dense, a.error, vectors, stated)
            if a.n <= FACTORED
            else least_by_chance(a.apply, a.rho, a.mass, a.longest, vectors, stated)
        )
        if found is None:
            raise CertificateError(f"'eigenvalues' entry 0 is {stated[0]:.10g}, and not all can be confirmed")
        low = found
    return confirmed(stated, low)


def confirmed(stated: FloatArray, low: FloatArray) -> FloatArray:
    """Return (c,) what counts of ``stated`` (c,), rising, where eigenvalues are at least ``low`` (c,): it rises, too.

    Raises
    ------
    CertificateError : what is stated is too high
    """
    _compare(stated, low)
    # a lower bound on a later eigenvalue that is lower still stays one: so the answer rises
    return np.minimum.accumulate(np.minimum(stated, low)[::-1])[::-1]


def _symmetric(m: FloatArray) -> FloatArray:
    """Return the same with entries above the diagonal mirrored (they differ by rounding, if at all)."""
    return np.triu(m) + np.triu(m, 1).T


def _compare(stated: FloatArray, known: FloatArray) -> None:
    high = np.flatnonzero(stated > known + NEAR * (np.abs(stated) + np.abs(known)))
    if len(high):
        i = int(high[0])
        raise CertificateError(
            f"'eigenvalues' entry {i} is {stated[i]:.10g}, only {known[i]:.10g} can be confirmed"
        )


def _approximate(a: Operator, count: int) -> tuple[FloatArray, FloatArray]:
    """Return the smallest eigenvalues and their vectors, not certain; any vectors will do, bad ones only prove nothing."""
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

    n, ones = a.n, np.full(a.n, 1 / np.sqrt(a.n))
    whole = LinearOperator((n, n), matvec=lambda x: a.apply(x) + a.rho * ones * (ones @ x), dtype=np.float64)
    start = np.random.default_rng(11).standard_normal(n)
    try:
        values, vectors = eigsh(whole, count, which="SA", tol=1e-5, v0=start, ncv=min(n, 3 * count + 30))
    except ArpackError as broken:
        raise CertificateError("the eigenvalues cannot be computed") from broken
    order = np.argsort(values)
    return values[order], vectors[:, order]
