"""A seeded random generator for numba kernels, passed in as an array (no global state).

The state is one ``uint64`` in an array of length 1; the generator is splitmix64 (Steele, Lea, Flood 2014), whose
every output is a bijection of a counter, so that any seed is a good seed.
"""

from __future__ import annotations

import numpy as np

from nmsolve.model.compiled import inlined, plain
from nmsolve.model.types import AnyArray


def new_rng(seed: int, stream: int = 0) -> AnyArray:
    """State (shape (1,), uint64) of stream number ``stream`` of a seed; different streams are independent."""
    return np.random.SeedSequence([seed & (2**63 - 1), stream]).generate_state(1, np.uint64)


@inlined
def next_bits(rng: AnyArray) -> int:
    """Next 64 random bits."""
    rng[0] += np.uint64(0x9E3779B97F4A7C15)
    z = rng[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    out: int = z ^ (z >> np.uint64(31))
    return out


@inlined
def uniform(rng: AnyArray) -> float:
    """Random number in [0, 1)."""
    return float(next_bits(rng) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@inlined
def below(rng: AnyArray, end: int) -> int:
    """Random whole number in [0, end), ``end`` < 2**31."""
    return int(((next_bits(rng) >> np.uint64(32)) * np.uint64(end)) >> np.uint64(32))


@plain
def shuffle(rng: AnyArray, items: AnyArray) -> None:
    """Shuffle a 1-D array in place."""
    for i in range(len(items) - 1, 0, -1):
        j = below(rng, i + 1)
        items[i], items[j] = items[j], items[i]
