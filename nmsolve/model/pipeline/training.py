"""What training asks of a chain of stages: results kept for the backward pass, of several micro-batches at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.types import AnyArray, FloatArray, IntArray

#: ``1f1b``: every stage takes backward and forward passes in turns (PipeDream-Flush, Narayanan et al. 2021); ``gpipe``: all
#: forward passes of a step, then all backward ones (Huang et al. 2019).
SCHEDULES = ("1f1b", "gpipe")


@dataclass(frozen=True, eq=False)
class Training:
    """A step is B micro-batches forward and backward through all stages; then weights change.

    A stage keeps, of every micro-batch that has passed it forward and not yet backward (*in flight*), all buffers that a
    backward pass of its layers needs. Where that does not fit, and ``recompute`` allows it, it keeps only the buffers that come
    in, and runs its layers forward once more before it takes them backward.

    Attributes
    ----------
    schedule : of ``SCHEDULES``
    batches : B
    recompute : stages may run forward again what they do not keep
    forward : (L, C) time of a layer's forward pass alone; the problem's ``time`` is that of both passes
    indptr, layer : CSR over the problem's buffers: the layers whose backward pass needs them, rising
    returned : the first of the problem's tensors that is a gradient: it goes from its target back to its source. None: tensors
        are those of the forward pass, and the time of each is that of its gradient, too
    """

    schedule: str
    batches: int
    recompute: bool
    forward: FloatArray
    indptr: IntArray
    layer: IntArray
    returned: int | None = None

    @property
    def arrays(self) -> tuple[AnyArray, ...]:
        """All arrays, in the order of the attributes."""
        return self.forward, self.indptr, self.layer

    def in_flight(self, behind: int) -> int:
        """Return the most micro-batches in flight in a stage with this many stages ``behind`` it.

        With 1F1B the last stage takes each one back at once, and every stage one more than the next: this many are enough for a
        period of the slowest stage, as a micro-batch's way to the last stage and back takes no more than a period per stage.
        """
        return self.batches if self.schedule == "gpipe" else min(self.batches, behind + 1)

    def require(self, time: FloatArray, buffers: int, where: str) -> None:
        """Raise InputError unless all of it fits a problem with this (L, C) ``time`` and this many ``buffers``."""
        if self.schedule not in SCHEDULES:
            raise InputError(f"unknown schedule {self.schedule!r}", where, "one of " + ", ".join(SCHEDULES))
        if self.batches < 1:
            raise InputError(f"{self.batches} micro-batches per step", where, "at least one")
        if self.forward.shape != time.shape or not bool(((self.forward >= 0) & (self.forward <= time)).all()):
            raise InputError("times of the forward pass", where, f"{time.shape} numbers up to those of both")
        if (np.diff(self.forward, axis=1) > 0).any():
            raise InputError("a forward pass is slower on more cores", where, "times that do not grow")
        fits = len(self.indptr) == buffers + 1 and self.indptr[0] == 0 and self.indptr[-1] == len(self.layer)
        if not fits or (np.diff(self.indptr) < 0).any():
            raise InputError("arrays of kept buffers differ in length", where, f"{buffers} buffers")
        rising = np.diff(self.layer) > 0
        inner = self.indptr[1:-1]
        rising[inner[(inner > 0) & (inner < len(self.layer))] - 1] = True
        if not rising.all() or (
            len(self.layer) and not 0 <= self.layer.min() <= self.layer.max() < len(time)
        ):
            raise InputError(
                "layers that need a buffer do not rise, or do not exist", where, f"0..{len(time) - 1}"
            )
