"""What layers keep in memory while a stage runs: every tensor from when it is made or comes in until its last use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.types import IntArray

MADE, RENAMED = 1, 2


@dataclass(frozen=True, eq=False)
class Buffers:
    """B pieces of memory, each with its events: the layers that write or read it, in order.

    The layers of a stage run in the order of their numbers. In a stage that has an event of it, a buffer is live

    * from the layer that makes it, or if that is in another stage (or it comes into the model) from the stage's first layer,
    * to its last event in the stage, or if a later event of what the stage makes of it lies outside, to the stage's last layer.

    Attributes
    ----------
    size : (B,) bytes
    indptr : (B + 1,) CSR of the events
    layer : (E,) layers ``0..L - 1``, rising in every buffer; L, perhaps its last event: it leaves the model
    made : (E,) 0: the layer reads it; ``MADE``: it makes it, which only a first event does, or later calls it by another shape;
        ``RENAMED``: the same of a buffer that comes into the model, which no layer makes
    """

    size: IntArray
    indptr: IntArray
    layer: IntArray
    made: IntArray

    @property
    def count(self) -> int:
        """B."""
        return len(self.size)

    @property
    def arrays(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """All arrays, in the order of the attributes."""
        return self.size, self.indptr, self.layer, self.made

    def require(self, layers: int, where: str) -> None:
        """Raise InputError unless the arrays fit together and describe buffers of ``layers`` layers."""
        starts, ends = self.indptr[:-1], self.indptr[1:]
        fits = (
            len(self.indptr) == len(self.size) + 1
            and len(self.layer) == len(self.made) == self.indptr[-1]
            and self.indptr[0] == 0
            and bool((starts < ends).all())
        )
        if not fits:
            raise InputError("arrays of buffers differ in length", where, "one or more events per buffer")
        rising = np.diff(self.layer) > 0
        rising[starts[1:] - 1] = True
        if not rising.all() or (len(self.layer) and not 0 <= self.layer.min() <= self.layer.max() <= layers):
            raise InputError(
                "events of a buffer do not rise, or name no layer", where, f"0..{layers} in rising order"
            )
        if (self.layer[self.made > 0] == layers).any() or (self.size < 0).any():
            raise InputError(
                "a buffer is of negative size, or made after the last layer", where, "bytes >= 0"
            )


def buffers_from(pieces: Sequence[tuple[int, Mapping[int, int]]]) -> Buffers:
    """Return buffers from (size, {layer: what it does, as in ``Buffers.made``}) each."""
    indptr, layer, made = [0], [], []
    for _, events in pieces:
        for at in sorted(events):
            layer.append(at)
            made.append(events[at])
        indptr.append(len(layer))
    return Buffers(
        np.array([size for size, _ in pieces], np.int64),
        np.array(indptr, np.int64),
        np.array(layer, np.int64),
        np.array(made, np.int64),
    )
