"""Chebyshev polynomials of a sparse symmetric matrix, applied to a block of vectors at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, Self

import numpy as np
from scipy.sparse import csr_array

from nmsolve.model.compiled import compiled
from nmsolve.model.types import AnyArray, FloatArray, Int32Array, IntArray


class Operator(Protocol):
    """A symmetric matrix with a free diagonal ``shift`` (n,) and ``rho e e' / n``, known by what it does to vectors."""

    @property
    def shift(self) -> FloatArray:
        """(n,) the free diagonal."""

    @property
    def rho(self) -> float:
        """Weight of ``e e' / n``."""

    def __matmul__(self, x: FloatArray) -> FloatArray:
        """The matrix times (n, b)."""

    def step(self, now: FloatArray, before: FloatArray, out: FloatArray, centre: float, scale: float) -> None:
        """``out = scale * (A - centre) now - before``; ``out`` may be ``before``. All in double or all in single precision."""

    def dense(self) -> FloatArray:
        """The matrix itself."""

    def ceiling(self) -> float:
        """No eigenvalue is above this."""

    def growth(self, last: Self) -> float:
        """How far the largest eigenvalue may be above that of ``last``; inf if unknown."""


@dataclass(frozen=True)
class Shifted:
    """``A = L + diag(shift) + rho e e' / n`` for sparse symmetric L; multiplies (n, b) arrays."""

    laplacian: csr_array
    shift: FloatArray
    rho: float

    def __matmul__(self, x: FloatArray) -> FloatArray:
        out: FloatArray = self.laplacian @ x + self.shift[:, None] * x + self.rho * x.mean(axis=0)
        return out

    def step(self, now: FloatArray, before: FloatArray, out: FloatArray, centre: float, scale: float) -> None:
        """As in :class:`Operator`."""
        kind = now.dtype.type
        data = self._single if kind is np.float32 else self.laplacian.data
        sparse = (self.laplacian.indptr, self.laplacian.indices, data)
        diagonal, level = (self.shift - centre).astype(kind), self.rho * now.mean(axis=0)
        chebyshev_step(*sparse, diagonal, level.astype(kind), kind(scale), now, before, out)

    @cached_property
    def _single(self) -> AnyArray:
        """Its entries, half as wide."""
        return self.laplacian.data.astype(np.float32)

    def dense(self) -> FloatArray:
        """The matrix itself."""
        n = len(self.shift)
        out: FloatArray = self.laplacian.toarray() + np.diag(self.shift) + self.rho / n
        return out

    def ceiling(self) -> float:
        """Gershgorin's bound."""
        return float((2 * self.laplacian.diagonal() + self.shift).max()) + max(0.0, self.rho)

    def growth(self, last: Self) -> float:
        """Weyl's bound."""
        return max(0.0, float((self.shift - last.shift).max())) + max(0.0, self.rho - last.rho)


@compiled(fastmath={"contract", "reassoc", "nsz"})
def chebyshev_step(
    indptr: IntArray,
    indices: Int32Array,
    data: FloatArray,
    diagonal: FloatArray,
    level: FloatArray,
    scale: float,
    now: FloatArray,
    before: FloatArray,
    out: FloatArray,
) -> None:
    """``out = scale * (M now + diagonal * now + level) - before`` row by row; ``level`` (b,) is the same for all rows.

    ``M`` (n, n) as CSR; ``now``, ``before``, ``out`` (n, b), ``diagonal`` (n,). ``out`` may
    be ``before``. Touches n x b + nnz x b numbers.
    """
    width = now.shape[1]
    for i in range(now.shape[0]):
        d = diagonal[i]
        for c in range(width):
            out[i, c] = scale * (d * now[i, c] + level[c]) - before[i, c]
        for k in range(indptr[i], indptr[i + 1]):
            w = scale * data[k]
            j = indices[k]
            for c in range(width):
                out[i, c] += w * now[j, c]


class StoppedError(Exception):
    """Raised inside an eigenvalue computation when time is up."""


def filtered(
    a: Operator,
    block: FloatArray,
    low: float,
    high: float,
    degree: int,
    basis: FloatArray | None,
    should_stop: Callable[[], bool],
) -> FloatArray:
    """``T_degree((A - centre) / half) block`` with ``[low, high]`` mapped to [-1, 1].

    With ``basis`` (n, r) orthonormal and orthogonal to ``block``, A is its compression to the complement of the basis.
    Raises StoppedError when asked to stop.
    """
    half, centre = (high - low) / 2, (high + low) / 2
    before, now = np.zeros_like(block), block
    for i in range(degree):
        if should_stop():
            raise StoppedError
        out = np.empty_like(block) if i < 2 else before
        a.step(now, before, out, centre, (2 if i else 1) / half)
        if basis is not None:
            out -= basis @ (basis.T @ out)
        before, now = now, out
    return now
