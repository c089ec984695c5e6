"""What steers the search for a bound. None of it touches what a bound proves, only how good it gets, and how soon."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from nmsolve.model.clock import now
from nmsolve.model.engine import Context
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.mapping.bounds.pairs import ShouldStop, never

#: Predicts the multipliers of a bound: from (n, n) traffic, (n,) a hint per node (the supergradient at 0) and the number of
#: eigenvalues (or of nodes per core) to (n,) a multiplier per node and one of the whole graph; None: no prediction.
Duals = Callable[[csr_array, FloatArray, int], tuple[FloatArray, float] | None]
#: Part of the usual length that steps have from a prediction on: it is nearer to the end than the usual start.
CLOSE = 0.2


def _unknown() -> float:
    return np.inf


def _unlimited() -> None:
    return None


class Guide(NamedTuple):
    """What a bound may know and use while it gets better.

    Attributes
    ----------
    upper : the best known cost whenever asked (inf if there is none); aims the length of steps
    should_stop : True once the search is to end; what is proved by then counts
    seconds : time that there should be, as seen at the beginning; work is planned by it
    left : seconds until the search has to end; a last certificate is begun while there is time to finish it. None: what
        is left of ``seconds``
    clock : seconds that the search has worked, from any moment on
    seed : of random vectors and of sets that are grown
    core : (n,) some mapping to begin near, None if there is none
    workers : threads that may read a graph on disk
    memory : bytes that may still be taken whenever asked (None: no budget)
    duals : predicts multipliers that are tried after the first step; None: nothing is predicted
    """

    upper: Callable[[], float] = _unknown
    should_stop: ShouldStop = never
    seconds: float = np.inf
    seed: int = 0
    core: IntArray | None = None
    left: Callable[[], float] | None = None
    clock: Callable[[], float] = now
    duals: Duals | None = None
    workers: int = 1
    memory: Callable[[], int | None] = _unlimited

    @classmethod
    def of(cls, context: Context) -> Guide:
        """Return the guide of an engine's run from now on."""
        core = context.incumbent()[0]
        upper = lambda: context.incumbent()[1]  # noqa: E731
        left = context.time_left if context.pace < 1 else None
        seconds = context.pace * context.time_left()
        return cls(
            upper, context.should_stop, seconds, context.seed, core, left, context.worked,
            workers=context.workers, memory=lambda: context.memory,
        )  # fmt: skip

    def toward(self, cost: float) -> Guide:
        """Return this guide with a best known cost that stays."""
        return self._replace(upper=lambda: cost)

    def after(self, began: float) -> Guide:
        """Return the guide of what begins now, if ``clock`` was at ``began`` when this one began."""
        return self._replace(seconds=self.seconds - (self.clock() - began))

    def remaining(self, spent: float) -> float:
        """Seconds until the search has to end, ``spent`` of this guide's time being over."""
        return self.seconds - spent if self.left is None else self.left()


def foreseen(
    duals: Duals, traffic: csr_array, hint: FloatArray, lines: int
) -> tuple[FloatArray, float] | None:
    """Return predicted multipliers, arguments as in :data:`Duals`; None if there are none, or none that make sense.

    Sense is a finite number per node, none larger than all traffic. Multipliers that make sense may still be bad.
    """
    found = duals(traffic, hint, lines)
    if found is None:
        return None
    shift, whole = np.asarray(found[0], np.float64), float(found[1])
    most = float(traffic.sum())
    if shift.shape != hint.shape or not bool((np.abs(shift) <= most).all()) or not 0 <= whole <= most:
        return None
    return shift, whole


#: Nothing known, no end of time.
UNGUIDED = Guide()
