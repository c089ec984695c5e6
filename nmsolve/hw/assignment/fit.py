"""Regression between measured sizes: time as an affine function of the work, with its error (M3.8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nmsolve.model.types import FloatArray

#: Fewest samples, and fewest of different work.
FEWEST, DIFFERENT = 4, 3
#: How far beyond the measured sizes a regression is believed.
BEYOND = 2.0
#: Samples left out in turn for the error, at most.
FOLDS = 32


class Sample(NamedTuple):
    """Work of an operation (MACs, elements, bytes), and its measured ps."""

    macs: int
    elements: int
    bytes: int
    time: float


@dataclass(frozen=True)
class Fit:
    """``time = base + macs * per_mac + elements * per_element + bytes * per_byte`` ps, no coefficient below 0.

    Attributes
    ----------
    coefficients : the four
    error : median of ``|predicted / measured - 1|``, each sample predicted by a regression without it
    samples : how many there were
    least, most : of the three features among them
    """

    coefficients: tuple[float, float, float, float]
    error: float
    samples: int
    least: tuple[float, ...]
    most: tuple[float, ...]

    def time(self, macs: int, elements: int, bytes_: int) -> float | None:
        """Return ps; None if the work lies too far outside what was measured."""
        work = (macs, elements, bytes_)
        if any(
            not low / BEYOND <= x <= BEYOND * high
            for x, low, high in zip(work, self.least, self.most, strict=True)
        ):
            return None
        return max(1.0, float(np.dot(self.coefficients, (1.0, *work))))


def fitted(samples: Sequence[Sample]) -> Fit | None:
    """Return the regression with the least sum of squared relative errors; None with too few samples, or too alike."""
    if len(samples) < FEWEST or len({s[:3] for s in samples}) < DIFFERENT:
        return None
    work = np.array([s[:3] for s in samples], np.float64)
    time = np.array([s.time for s in samples])
    coefficients = _solve(work, time)
    errors = []
    for k in range(0, len(samples), max(1, len(samples) // FOLDS)):
        rest = np.arange(len(samples)) != k
        predicted = float(np.dot(_solve(work[rest], time[rest]), (1.0, *work[k])))
        errors.append(abs(predicted / time[k] - 1))
    a, b, c, d = coefficients.tolist()
    return Fit(
        (a, b, c, d), float(np.median(errors)), len(samples), tuple(work.min(axis=0)), tuple(work.max(axis=0))
    )


def _solve(work: FloatArray, time: FloatArray) -> FloatArray:
    """Return (4,) coefficients >= 0; rows are divided by the times, columns by their largest values."""
    from scipy.optimize import nnls

    rows = np.column_stack([np.ones(len(time)), work]) / time[:, None]
    scale = rows.max(axis=0)
    scale[scale == 0] = 1.0
    found: FloatArray = nnls(rows / scale, np.ones(len(time)))[0] / scale
    return found
