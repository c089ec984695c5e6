"""What steers the search for a bound. None of it touches what a bound proves, only how good it gets, and how soon."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nmsolve.model.engine import Context
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.bounds.pairs import ShouldStop, never


def _unknown() -> float:
    return np.inf


class Guide(NamedTuple):
    """What a bound may know and use while it gets better.

    Attributes
    ----------
    upper : the best known cost whenever asked (inf if there is none); aims the length of steps
    should_stop : True once the search is to end; what is proved by then counts
    seconds : time there is; a last certificate is begun while there is time to finish it
    seed : of random vectors and of sets that are grown
    core : (n,) some mapping to begin near, None if there is none
    """

    upper: Callable[[], float] = _unknown
    should_stop: ShouldStop = never
    seconds: float = np.inf
    seed: int = 0
    core: IntArray | None = None

    @classmethod
    def of(cls, context: Context) -> Guide:
        """Return the guide of an engine's run from now on."""
        core = context.incumbent()[0]
        upper = lambda: context.incumbent()[1]  # noqa: E731
        return cls(upper, context.should_stop, context.time_left(), context.seed, core)


#: Nothing known, no end of time.
UNGUIDED = Guide()
