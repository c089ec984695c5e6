"""The energy of a micro-batch in the steady state, as an objective: sums over stages, and power for the time of the slowest.

Units are the problem's: its bytes, its time, and one of energy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.ticks import exponent_for, in_ticks
from nmsolve.model.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Energy:
    """What a plan's micro-batch takes.

    Attributes
    ----------
    layer : (L,) energy of every layer's operations, the same in all plans
    exchanged : (L, C) bytes that the cores of a group of 1 to C send each other for a layer
    byte : energy per byte that a stage takes in from another, or that the cores of a group exchange
    offchip : energy per byte moved off chip
    power : energy per unit of time of the whole machine, whatever it does
    """

    layer: FloatArray
    exchanged: FloatArray
    byte: float
    offchip: float
    power: float

    def require(self, shape: tuple[int, int], where: str) -> None:
        """Raise InputError unless the arrays are of (L, C) = ``shape`` and all numbers are finite and >= 0."""
        if self.layer.shape != shape[:1] or self.exchanged.shape != shape:
            raise InputError(
                f"energies of shapes {self.layer.shape} and {self.exchanged.shape}",
                where,
                f"{shape[:1]} and {shape}",
            )
        for what, values in (
            ("layers", self.layer),
            ("exchanged bytes", self.exchanged),
            ("bytes and power", np.array([self.byte, self.offchip, self.power])),
        ):
            if not (np.isfinite(values) & (values >= 0)).all():
                raise InputError(
                    f"the energy of {what} is negative or not finite", where, "finite numbers >= 0"
                )

    def in_ticks(self, volume: FloatArray, uses: IntArray, moved: float, exponent: int) -> EnergyTicks:
        """Return all of it as whole numbers.

        Parameters
        ----------
        volume, uses : (T,) bytes of the tensors, and by how many layers each is used
        moved : more bytes than any plan moves off chip
        exponent : of the ticks of time
        """
        most = math.fsum(self.layer) + self.byte * math.fsum(self.exchanged.max(axis=1))
        own = exponent_for(most + self.byte * math.fsum(volume * uses) + self.offchip * moved)
        return EnergyTicks(
            own,
            in_ticks(self.layer[:, None] + self.byte * self.exchanged, own),
            in_ticks(self.byte * volume, own),
            math.ldexp(self.offchip, own),
            math.ldexp(self.power, own - exponent),
        )


@dataclass(frozen=True, eq=False)
class EnergyTicks:
    """Energies in whole ticks of ``2**-exponent``, whose sums are exact.

    Attributes
    ----------
    layer : (L, C) of every layer on groups of 1 to C cores, with what these exchange
    tensor : (T,) of taking in a tensor
    offchip : of a byte moved off chip, not rounded
    weight : of a tick of time of the largest load, not rounded
    """

    exponent: int
    layer: IntArray
    tensor: IntArray
    offchip: float
    weight: float


class EnergyParts(NamedTuple):
    """The energy of a micro-batch by what it is spent on: ``static`` is the power of the machine for one period."""

    compute: float
    transfer: float
    exchange: float
    offchip: float
    static: float

    @property
    def total(self) -> float:
        """The sum."""
        return math.fsum(self)
