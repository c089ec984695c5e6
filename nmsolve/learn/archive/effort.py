"""How much work an alignment has done, counted in operations: equal runs end at the same point on every machine."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

#: Nominal ns of a connection in a round of colours, of a pair with votes in a round, and of a connection or node for smooth
#: coordinates or descriptors, as measured on one core.
COLOUR, VOTE, SMOOTH, DESCRIBED = 15.0, 200.0, 1500.0, 3000.0


def _never() -> bool:
    return False


@dataclass
class Effort:
    """Nominal nanoseconds spent, and how many there may be.

    Attributes
    ----------
    most : work after which to stop
    should_stop : asked besides, for machines slower than the rates above say
    """

    most: float = math.inf
    should_stop: Callable[[], bool] = _never
    spent: float = 0.0

    def add(self, ns: float) -> None:
        """Count work that was done."""
        self.spent += ns

    def over(self, ahead: float = 0.0) -> bool:
        """Return True once there is no work left, or not enough for ``ahead`` ns more."""
        return self.spent + ahead >= self.most or self.should_stop()
