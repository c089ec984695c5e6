"""Eigenpairs of the projected shift that meet the non-zero eigenvalues of the projected distances."""

from __future__ import annotations

import numpy as np

from nmsolve.model.types import FloatArray
from nmsolve.solvers.mapping.bounds.codes import core_codes
from nmsolve.solvers.mapping.bounds.pairs import PairForm

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
