"""What layers send to each other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Tensors:
    """T tensors, each made by one layer and used by others. A stage pays for a tensor once, however many layers use it.

    Attributes
    ----------
    source : (T,) layer that makes it
    indptr, targets : CSR of the layers that use it
    time : (T,) time to send it, and as much to receive it
    volume : (T,) bytes, for reports
    """

    source: IntArray
    indptr: IntArray
    targets: IntArray
    time: FloatArray
    volume: FloatArray

    @property
    def count(self) -> int:
        """T."""
        return len(self.source)

    @property
    def arrays(self) -> tuple[IntArray, IntArray, IntArray, FloatArray, FloatArray]:
        """All arrays, in the order of the attributes."""
        return self.source, self.indptr, self.targets, self.time, self.volume

    @cached_property
    def pairs(self) -> tuple[IntArray, IntArray]:
        """(E,) source and (E,) target of every use, in the order of ``targets``."""
        return np.repeat(self.source, np.diff(self.indptr)), self.targets

    def require(self, layers: int, where: str) -> None:
        """Raise InputError unless the arrays fit together and name layers ``0..layers - 1``."""
        count = len(self.source)
        if len(self.indptr) != count + 1 or len(self.time) != count or len(self.volume) != count:
            raise InputError("arrays of tensors differ in length", where, "one entry per tensor")
        for what, ends in (("made", self.source), ("used", self.targets)):
            if len(ends) and not 0 <= int(ends.min()) <= int(ends.max()) < layers:
                raise InputError(
                    f"a tensor is {what} by a layer that does not exist", where, f"0..{layers - 1}"
                )
        bad = np.flatnonzero(~(np.isfinite(self.time) & (self.time >= 0)))
        if len(bad):
            raise InputError(
                f"the time of tensor {int(bad[0])} is negative or not finite", where, "a number >= 0"
            )
