"""The context of an engine that works within another, on a problem of its own."""

from __future__ import annotations

import math

from nmsolve.model.bound import Bound
from nmsolve.model.engine import Context, SubtaskWorker
from nmsolve.model.types import IntArray


class Within:
    """A part of the time of another context, whose seed, workers, memory and files it uses; the engine starts from nothing.

    Parameters
    ----------
    seconds : what the engine may use; all that is left if not given
    """

    def __init__(self, context: Context, seconds: float | None = None) -> None:
        self._context, self._end = context, 0.0 if seconds is None else context.time_left() - seconds
        self.seed, self.workers, self.scratch = context.seed, context.workers, context.scratch
        self.memory, self.pace = context.memory, context.pace
        # seconds that the whole has worked, notes for it, and objects on other machines as it makes them
        self.worked, self.note, self.remotes = context.worked, context.note, context.remotes

    def subtasks(self, worker: SubtaskWorker) -> None:
        """Return None: parts of a part stay here."""

    def incumbent(self) -> tuple[IntArray | None, float]:
        """Return no mapping: mappings of the whole problem do not fit the engine's part."""
        return None, math.inf

    def bound(self) -> float:
        """Return 0: nothing is known."""
        return 0.0

    def time_left(self) -> float:
        """Return the seconds left of the part."""
        return self._context.time_left() - self._end

    def should_stop(self) -> bool:
        """Return True when the part or the whole is over."""
        return self.time_left() <= 0 or self._context.should_stop()

    def raise_bound(self, bound: Bound) -> bool:
        """Ignore a bound: one on another problem is of no use to the whole."""
        return False
