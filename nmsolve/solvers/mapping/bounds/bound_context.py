"""Limits and hints of a bound computation. They decide how good a bound gets and how fast, never whether it holds."""

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


class BoundContext(NamedTuple):
    """Limits and hints of a bound computation.

    Attributes
    ----------
    upper : returns the best known cost (inf without one), which sets the step length
    should_stop : True once the computation has to end; the best bound so far counts
    seconds : expected time at the start, for planning
    left : seconds until the end; the last certificate is started early enough to finish. None: the rest of ``seconds``
    clock : seconds worked, from any origin
    seed : of random vectors and of grown sets
    core : (n,) a mapping to start near, None without one
    workers : threads that may read a graph on disk
    memory : returns the bytes that may still be allocated (None: no budget)
    duals : predicts multipliers to try after the first step; None: no prediction
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
    def of(cls, context: Context) -> BoundContext:
        """Return the bound context of an engine's run from now on."""
        core = context.incumbent()[0]
        upper = lambda: context.incumbent()[1]  # noqa: E731
        left = context.time_left if context.pace < 1 else None
        seconds = context.pace * context.time_left()
        return cls(
            upper, context.should_stop, seconds, context.seed, core, left, context.worked,
            workers=context.workers, memory=lambda: context.memory,
        )  # fmt: skip

    def toward(self, cost: float) -> BoundContext:
        """Return this context with a fixed best known cost."""
        return self._replace(upper=lambda: cost)

    def after(self, began: float) -> BoundContext:
        """Return the context of a computation that starts now, if this one started when ``clock`` was at ``began``."""
        return self._replace(seconds=self.seconds - (self.clock() - began))

    def remaining(self, spent: float) -> float:
        """Return the seconds until the end, after ``spent`` seconds."""
        return self.seconds - spent if self.left is None else self.left()


def predicted_multipliers(
    duals: Duals, traffic: csr_array, hint: FloatArray, lines: int
) -> tuple[FloatArray, float] | None:
    """Return predicted multipliers, arguments as in :data:`Duals`; None without a prediction or if it is not plausible.

    Plausible is a finite number per node, none larger than all traffic. Plausible multipliers may still be bad.
    """
    found = duals(traffic, hint, lines)
    if found is None:
        return None
    shift, whole = np.asarray(found[0], np.float64), float(found[1])
    most = float(traffic.sum())
    if shift.shape != hint.shape or not bool((np.abs(shift) <= most).all()) or not 0 <= whole <= most:
        return None
    return shift, whole


#: No hints, no time limit.
UNLIMITED = BoundContext()
