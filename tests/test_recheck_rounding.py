"""The arithmetic below the re-checks: ends of intervals against fractions, eigenvalues against ones known exactly."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

from nmsolve.check.mapping.bounds import eigenvalues, operator
from nmsolve.check.mapping.bounds.eigenvalues import least, lowest, projected, spectrum
from nmsolve.check.mapping.bounds.operator import Operator, proved
from nmsolve.check.mapping.bounds.parts import CertificateError
from nmsolve.check.mapping.bounds.rounding import (
    dot_down,
    dot_up,
    gamma,
    products,
    row_sums,
    sum_down,
    sum_up,
)


def wild(rng: np.random.Generator, k: int) -> np.ndarray:
    """Numbers of either sign and very different sizes."""
    return rng.choice([-1.0, 1.0], k) * 10 ** rng.uniform(-25, 25, k)


def exact(values: np.ndarray) -> list[Fraction]:
    """The same numbers as fractions."""
    return [Fraction(x) for x in values.tolist()]


def test_sums_and_products_contain_the_exact_value() -> None:
    """Outward-rounded sums, scalar products, interval products and row sums against fractions."""
    rng = np.random.default_rng(1)
    for _ in range(400):
        a, b = wild(rng, 7), wild(rng, 7)
        total = sum(exact(a))
        assert Fraction(sum_down(a)) < total < Fraction(sum_up(a))
        dot = sum(x * y for x, y in zip(exact(a), exact(b), strict=True))
        assert Fraction(dot_down(a, b)) < dot < Fraction(dot_up(a, b))
        low, high = np.minimum(a, a * 0.9), np.maximum(a, a * 0.9)
        down, up = products(low, high, b, b)
        for i, y in enumerate(exact(b)):
            for x in (Fraction(float(low[i])), Fraction(float(high[i]))):
                assert Fraction(float(down[i])) < x * y < Fraction(float(up[i]))
        sums, off = row_sums(a[None, :])
        assert abs(Fraction(float(sums[0])) - total) <= Fraction(float(off[0]))


def test_what_is_too_large_proves_nothing() -> None:
    """Overflow and what is no number go to the harmless end."""
    big = np.array([1e308, 1e308])
    assert sum_down(big) == -np.inf and sum_up(big) == np.inf
    assert dot_down(big, big) == -np.inf and dot_up(-big, big) == np.inf
    assert sum_down(np.array([np.nan])) == -np.inf and sum_up(np.array([np.nan])) == np.inf
    assert gamma(2**53) == np.inf


def known_matrix(n: int, seed: int, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """A symmetric matrix of whole numbers and its whole eigenvalues: a diagonal one, mirrored at the vector of ones."""
    rng = np.random.default_rng(seed)
    v = np.ones(n)  # v'v = n, a power of two
    lam = np.sort(rng.integers(-40, 40, n)).astype(float)
    h = np.eye(n) * n - 2 * np.outer(v, v)
    return (h * lam) @ h * scale, lam * n * n * scale


@pytest.mark.parametrize("n", [2, 8, 64, 256])
def test_enclosures_hold_the_eigenvalues_and_are_narrow(n: int) -> None:
    """Whole matrices with known whole eigenvalues, many of them equal; what a matrix lacks widens the intervals."""
    for seed in range(5):
        m, true = known_matrix(n, seed)
        low, high = spectrum(m, 0.0)
        assert (low <= true).all() and (true <= high).all()
        assert (high - low).max() < 1e-11 * n * max(1.0, np.abs(m).sum(axis=1).max())
        low, high = spectrum(m, 3.0)
        assert (high - low >= 6.0).all()


def test_projected_eigenvalues_are_those_on_the_complement_of_ones() -> None:
    """A matrix with the vector of ones as an eigenvector loses just that eigenvalue."""
    k = 16
    m = known_matrix(k, 3)[0]
    p = np.eye(k) * k - np.ones((k, k))  # whole: k times the projection
    low, high = projected(p @ m @ p)
    want = np.sort(np.linalg.eigvalsh(p @ m @ p))
    drop = int(np.abs(want).argmin())
    want = np.delete(want, drop)
    assert len(low) == k - 1 and (low <= want + 1e-6 * np.abs(want).max()).all()
    assert (want - 1e-6 * np.abs(want).max() <= high).all()
    with pytest.raises(CertificateError):
        projected(np.full((3, 3), 1e200))


def test_a_factorisation_proves_no_more_than_is_true() -> None:
    """The least eigenvalue is never above the true one; a level above it is refused or paid for."""
    for seed in range(6):
        m, true = known_matrix(128, seed)
        least_true = float(true[0])
        span = float(np.abs(np.diag(m)).sum())
        s = lowest(np.asfortranarray(m), least_true - 1e-9 * span, -4.0)
        assert s is not None and s <= 0
        for level in (least_true + 1e-9 * span, least_true + 1.0):
            found = lowest(np.asfortranarray(m), level, 2.0)
            assert found is None or level - found <= least_true


def laplacian(n: int) -> Operator:
    """A ring with chords, with a shift and a lift of the vector of ones."""
    rng = np.random.default_rng(n)
    a, b = rng.integers(0, n, 4 * n), rng.integers(0, n, 4 * n)
    keep = a != b
    w = csr_array((rng.random(keep.sum()), (a[keep], b[keep])), shape=(n, n))
    return Operator(csr_array(w + w.T), rng.standard_normal(n), 3.0)


@pytest.mark.parametrize("way", ["decomposed", "factored", "by chance"])
def test_what_is_stated_is_proved_or_refused(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All three ways: a little below the truth passes without loss, a little above is refused, never more than true."""
    if way != "decomposed":
        monkeypatch.setattr(operator, "DECOMPOSED", 10)
    if way == "by chance":
        monkeypatch.setattr(operator, "FACTORED", 10)
    a = laplacian(400)
    true = np.linalg.eigvalsh(a.dense())[:6]
    stated = true - 2e-3 * np.abs(true).mean()
    np.testing.assert_allclose(proved(a, stated), stated, rtol=0, atol=1e-9)
    assert (proved(a, stated) <= stated).all()
    for at, more in ((0, 0.05), (5, 0.05)):
        wrong = stated.copy()
        wrong[at:] = np.maximum(wrong[at:], true[at] + more)
        with pytest.raises(CertificateError, match="eigenvalues"):
            proved(a, wrong)


def test_any_vectors_give_valid_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eigenvectors that are scaled, mixed up or random prove less or nothing, never more."""
    a = laplacian(200)
    true, vectors = np.linalg.eigh(a.dense())
    stated = true[:5] - 1e-3
    rng = np.random.default_rng(0)
    tried = 0
    for q in (vectors[:, :5], 1.3 * vectors[:, :5], vectors[:, :5] + 0.05 * rng.standard_normal((200, 5)),
              vectors[:, 4::-1], rng.standard_normal((200, 5)), np.zeros((200, 5))):  # fmt: skip
        for low in (
            least(a.dense, a.error, q, stated),
            eigenvalues.least_by_chance(a.apply, a.rho, a.mass, a.longest, q, stated),
        ):
            if low is not None:
                tried += 1
                assert (low <= true[:5] + 1e-9).all()
    assert tried >= 4


def test_random_vectors_cannot_be_foreseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The vectors come from the system's entropy, whatever seeds numpy's global generator has."""
    drawn = []
    real = np.random.default_rng

    def spy(*seed: object) -> np.random.Generator:
        drawn.append(seed)
        return real(*seed)

    monkeypatch.setattr(eigenvalues.np.random, "default_rng", spy)
    a = laplacian(60)
    true, vectors = np.linalg.eigh(a.dense())
    assert (
        eigenvalues.least_by_chance(a.apply, a.rho, a.mass, a.longest, vectors[:, :3], true[:3] - 0.01)
        is not None
    )
    assert () in drawn
