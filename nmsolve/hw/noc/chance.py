"""Random numbers inside kernels: one word of state, so that a run does not depend on how it is split."""

from __future__ import annotations

import math

import numpy as np

from nmsolve.hw.noc.kernel import kernel, piece
from nmsolve.hw.noc.layout import NEVER
from nmsolve.model.splitmix import STEP, mix
from nmsolve.model.types import AnyArray


@piece
def uniform(chance: AnyArray) -> float:
    """Return a float64 in [0, 1): SplitMix64 (Steele et al. 2014). ``chance`` is (1,) uint64."""
    chance[0] += STEP
    return float(mix(chance[0]) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@piece
def below(chance: AnyArray, count: int) -> int:
    """Return a whole number in 0..count-1."""
    return int(uniform(chance) * count)


@kernel
def gap(chance: AnyArray, probability: float) -> int:
    """Return trials up to and including the next success (>= 1) of a Bernoulli process; ``NEVER`` for probability 0."""
    if probability >= 1.0:
        return 1
    if probability <= 0.0:
        return NEVER
    steps = math.log(1.0 - uniform(chance)) / math.log1p(-probability)
    return 1 + int(steps) if steps < 1e15 else NEVER
