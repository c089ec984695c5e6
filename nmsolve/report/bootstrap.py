"""Resampled means, for intervals around what was measured."""

from __future__ import annotations

import numpy as np

from nmsolve.model.types import FloatArray

#: How many means are drawn, and from which seed: the same figures, the same interval.
RESAMPLES, SEED = 2000, 1


def resampled_means(values: FloatArray) -> FloatArray:
    """Return (RESAMPLES,) means of ``values`` (n,) drawn with replacement (Efron 1979)."""
    picks = np.random.default_rng(SEED).integers(0, len(values), (RESAMPLES, len(values)))
    means: FloatArray = values[picks].mean(axis=1)
    return means


def percentiles(values: FloatArray) -> tuple[float, float]:
    """Return the ends of the 95 % percentile interval of ``values`` (n,)."""
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)
