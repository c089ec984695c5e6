"""Splitmix64 (Steele, Lea, Flood 2014): random bits from a counter, so that any seed is a good seed."""

from __future__ import annotations

from typing import Any

import numpy as np

from nmsolve.model.compiled import embedded

#: What the counter grows by: 2**64 divided by the golden ratio.
STEP = np.uint64(0x9E3779B97F4A7C15)


@embedded
def mix(z: Any) -> Any:
    """Return 64 random bits (uint64) of a counter (uint64); no two counters have the same."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
