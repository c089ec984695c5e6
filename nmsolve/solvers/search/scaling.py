"""Whole numbers for solvers that support no others, without ever claiming too much.

A model minimises ``sum w' * d'`` with whole ``w'`` and ``d'``. Where the user's numbers become whole after
multiplication with a small factor, the model is *exact*. Where they do not, they are multiplied and rounded
**down**: every mapping then costs in the model at most what it costs in truth (times the factor), so the
model's lower bound divided by the factor stays a lower bound. Mappings are always rescored by the evaluator.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np

from nmsolve.model.bound import round_up
from nmsolve.model.types import FloatArray, IntArray

#: Model objectives stay below this: exact in int64 and in double precision, with room to spare.
OBJECTIVE_LIMIT = 2**50
#: Relative distance at which a scaled number counts as whole (binary fractions of decimal figures).
_WHOLE = 1e-12


@dataclass(frozen=True)
class Scale:
    """How a model's objective relates to the user's: ``model <= factor * objective``, equal if ``exact``.

    ``integral``: the user's objective takes whole values only.
    """

    factor: float
    exact: bool
    integral: bool

    def bound(self, model_bound: float) -> float:
        """Lower bound on the objective from one on the model's, safe against rounding."""
        if self.exact and self.factor == 1.0:
            near = float(np.rint(model_bound))  # solvers state whole bounds as 20.000000000000004
            whole = self.integral and abs(near - model_bound) <= 1e-9 * max(1.0, abs(near))
            return max(0.0, near if whole else float(model_bound))
        return round_up(model_bound / self.factor, self.integral)

    def floor_row(self, bound: float) -> int | None:
        """``model >= value`` that a proven bound on the objective allows; None if it says nothing, or numbers were rounded."""
        if not self.exact or not np.isfinite(bound) or bound <= 0:
            return None
        return int(np.ceil(bound * self.factor * (1 - 1e-9) - 1e-6))

    def ceiling_row(self, most: float) -> int:
        """Return ``model <= value`` that every mapping within a ceiling obeys."""
        return int(np.floor(most * self.factor * (1 + 1e-9) + 1e-6))


def whole_factor(values: FloatArray, largest: float) -> tuple[float, bool]:
    """Return a factor that makes ``values`` whole numbers up to ``largest``, and whether it does so exactly.

    Parameters
    ----------
    values : numbers >= 0
    largest : no scaled value may exceed this (>= 1)

    Returns
    -------
    (factor, True) with the smallest factor found (1, a power of ten, or the least common denominator of
    fractions with denominators up to 1000), or (factor, False) with a power of two for rounding down.
    """
    top = float(values.max()) if values.size else 0.0
    if top == 0.0:
        return 1.0, True
    for factor in (1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6, float(_common_denominator(values))):
        scaled = values * factor
        if top * factor <= largest and (np.abs(scaled - np.rint(scaled)) <= _WHOLE * scaled).all():
            return factor, True
    return float(2.0 ** np.floor(np.log2(largest / top))), False


def fair_unit(largest: float) -> float:
    """Return a power of two that brings ``largest`` to between 2^9 and 2^10; 1 where it is 0 or between 1 and 2^20 already.

    MIP solvers work with absolute tolerances (10^-6 and 10^-7): coefficients far from 1 would drown in them.
    """
    if largest <= 0.0 or not np.isfinite(largest) or 1.0 <= largest <= 2.0**20:
        return 1.0
    return float(2.0 ** np.clip(9 - np.floor(np.log2(largest)), -1000, 1000))


def _common_denominator(values: FloatArray) -> int:
    """Return the least common denominator of the nearest fractions with denominators up to 1000; 1 if above 10^6."""
    out = 1
    for v in np.unique(values).tolist():
        out = lcm(out, Fraction(v).limit_denominator(1000).denominator)
        if out > 10**6:
            return 1
    return out


def to_whole(values: FloatArray, factor: float, exact: bool) -> IntArray:
    """Return ``values * factor`` as int64, same shape: rounded to nearest if ``exact``, otherwise down."""
    scaled = values * factor
    out: IntArray = (np.rint(scaled) if exact else np.floor(scaled)).astype(np.int64)
    return out
