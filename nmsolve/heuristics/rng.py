"""A seeded random generator for numba kernels, passed in as an array (no global state).

The state is one ``uint64`` in an array of length 1, the counter of splitmix64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nmsolve.model.compiled import embedded, plain
from nmsolve.model.splitmix import STEP, mix
from nmsolve.model.types import AnyArray


def new_rng(seed: int, stream: int = 0) -> AnyArray:
    """State (shape (1,), uint64) of stream number ``stream`` of a seed; different streams are independent."""
    return np.random.SeedSequence([seed & (2**63 - 1), stream]).generate_state(1, np.uint64)


@embedded
def next_bits(rng: AnyArray) -> Any:
    """Next 64 random bits (uint64)."""
    rng[0] += STEP
    return mix(rng[0])


@embedded
def uniform(rng: AnyArray) -> float:
    """Random number in [0, 1)."""
    return float(next_bits(rng) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@embedded
def below(rng: AnyArray, end: int) -> int:
    """Random whole number in [0, end), ``end`` < 2**31: signed, so that kernels that take it have no version for uint64."""
    return int(np.int64(((next_bits(rng) >> np.uint64(32)) * np.uint64(end)) >> np.uint64(32)))


@plain
def shuffle(rng: AnyArray, items: AnyArray) -> None:
    """Shuffle a 1-D array in place."""
    for i in range(len(items) - 1, 0, -1):
        j = below(rng, i + 1)
        items[i], items[j] = items[j], items[i]
