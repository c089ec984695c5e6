"""Outward-rounded arithmetic of the re-checks: what is called *down* is never above the exact value, *up* never below.

Floating products and sums are correctly rounded (IEEE 754, round to nearest), so one step to the next float outward is
enough after each product and after an exact sum (:func:`math.fsum`). Long chains of operations are charged by
``gamma(m) = m u / (1 - m u)``, u = 2^-53, the bound on the relative error of m roundings in any order (Higham, Accuracy and
Stability of Numerical Algorithms, lemma 3.1); ``SAFE`` covers the rounding of such error terms themselves, which are sums of
numbers >= 0. Results too large for a float come out as -inf (down) or inf (up): they prove nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum, inf, nextafter

import numpy as np

from nmsolve.model.types import FloatArray

#: Unit roundoff of double precision.
ROUNDOFF = 2.0**-53
#: Factor on computed error terms (sums of numbers >= 0) for their own rounding: covers up to 10^12 roundings.
SAFE = 1.001
#: Larger than what products lose where they fall below the range of normal floats, even summed 10^12 times.
UNDERFLOW = 2.0**-1000


def gamma(roundings: int) -> float:
    """Return the relative error of this many roundings in a row or of a sum of this many terms, rounded up; inf from 2^52 on."""
    part = roundings * ROUNDOFF
    return inf if part >= 0.5 else SAFE * part / (1 - part)


def down(value: float) -> float:
    """Return the next float below: after one rounded operation, never above its exact result. Not a number becomes -inf."""
    return nextafter(value, -inf) if value == value and value != inf else -inf


def up(value: float) -> float:
    """Return the next float above; not a number becomes inf."""
    return nextafter(value, inf) if value == value and value != -inf else inf


def sum_down(values: Iterable[float] | FloatArray) -> float:
    """Return the sum of (k,) values, rounded once, downwards."""
    return down(_sum(values, -inf))


def sum_up(values: Iterable[float] | FloatArray) -> float:
    """Return the sum of (k,) values, rounded once, upwards."""
    return up(_sum(values, inf))


def _sum(values: Iterable[float] | FloatArray, otherwise: float) -> float:
    """Return the correctly rounded sum, ``otherwise`` where it is too large."""
    terms = values.ravel().tolist() if isinstance(values, np.ndarray) else values
    try:
        return fsum(terms)
    except (OverflowError, ValueError):  # too large on the way, or inf - inf
        return otherwise


def products(
    low: FloatArray, high: FloatArray, other_low: FloatArray, other_high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the products of intervals (k,), number by number, rounded outwards."""
    with np.errstate(all="ignore"):
        corners = np.stack([low * other_low, low * other_high, high * other_low, high * other_high])
    return (
        np.where(np.isnan(corners).any(axis=0), -inf, np.nextafter(corners.min(axis=0), -inf)),
        np.where(np.isnan(corners).any(axis=0), inf, np.nextafter(corners.max(axis=0), inf)),
    )


def dot_down(a: FloatArray, b: FloatArray) -> float:
    """Return the scalar product of two (k,) vectors, never above the exact one."""
    return sum_down(products(a, a, b, b)[0])


def dot_up(a: FloatArray, b: FloatArray) -> float:
    """Return the scalar product of two (k,) vectors, never below the exact one."""
    return sum_up(products(a, a, b, b)[1])


def row_sums(m: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (n,) sums of the rows of ``m`` (n, k) and how far each can be from the exact one, one more rounding included."""
    return m.sum(axis=1), SAFE * gamma(m.shape[1] + 2) * np.abs(m).sum(axis=1)


def whole(*arrays: FloatArray) -> bool:
    """Return True if every number is whole and so small that sums and differences of two are exact."""
    return all(bool((a == np.rint(a)).all() and (np.abs(a) < 2.0**52).all()) for a in arrays)
