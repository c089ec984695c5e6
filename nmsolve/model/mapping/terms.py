"""Weights of the terms of M1's reward."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.model.errors import InputError


@dataclass(frozen=True)
class RewardTerms:
    """How much the terms of M1's reward count (M1.7: the user may remove or re-weight them); 1 each as published.

    The objective ``reward`` is ``sum over cores (horizontal * max(left, right) + vertical * max(up, down)) *
    exp(deadlock * prohibited turns / channels)``; see :mod:`nmsolve.hw.reward`.

    Attributes
    ----------
    horizontal, vertical : >= 0, of what cores exchange along rows and along columns
    deadlock : >= 0, of the exponent; 0 leaves the exchange alone
    """

    horizontal: float = 1.0
    vertical: float = 1.0
    deadlock: float = 1.0

    def __post_init__(self) -> None:
        for name in ("horizontal", "vertical", "deadlock"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0):
                raise InputError(f"the reward's weight {name} is {value}", "", "a finite number >= 0")


#: The reward as published.
PUBLISHED = RewardTerms()
