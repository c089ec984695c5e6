"""How far two values of an output are apart."""

from __future__ import annotations

import numpy as np

from nmsolve.model.types import AnyArray

#: Largest difference that is taken for rounding, by type; everything else must be equal.
LIMITS = {"float16": 1e-2, "bfloat16": 5e-2, "float32": 1e-4, "float64": 1e-4}


def largest_difference(found: AnyArray, wanted: AnyArray) -> float:
    """Return the largest relative difference of two tensors, inf if their types or shapes differ.

    |found - wanted| / max(|wanted|, mean |wanted|): an element much smaller than the tensor's mean is compared with that mean,
    as it is the rest of a cancellation. Infinities and "not a number" must be at the same places. What is no float is equal
    (0) or not (inf).
    """
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return float("inf")
    if not wanted.size:
        return 0.0
    if wanted.dtype.kind not in "fV" or wanted.dtype.name not in LIMITS:
        return 0.0 if np.array_equal(found, wanted) else float("inf")
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    fine = np.isfinite(b)
    if (np.isfinite(a) != fine).any() or not np.array_equal(a[~fine], b[~fine], equal_nan=True):
        return float("inf")
    if not fine.any():
        return 0.0
    size = np.abs(b[fine])
    scale = np.maximum(size, size.mean())
    gap = np.abs(a[fine] - b[fine])
    with np.errstate(divide="ignore"):  # anything but 0 is infinitely far from a tensor of zeros
        return float((gap[gap > 0] / scale[gap > 0]).max(initial=0.0))


def all_finite(values: AnyArray) -> bool:
    """Return whether there is no infinity and no "not a number"."""
    if values.dtype.kind not in "fV" or values.dtype.name not in LIMITS:
        return True
    return bool(np.isfinite(values.astype(np.float64)).all())


def limit_of(dtype: str) -> float:
    """Return the largest difference that a type may have."""
    return LIMITS.get(dtype, 0.0)
