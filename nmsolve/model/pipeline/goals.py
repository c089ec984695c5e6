"""What is minimised of a plan: a record each. It states its value, its costs of stages in ticks, and its words.

Every goal is a sum of what stages cost, and ``weight`` times the largest load. Another goal is another record here, its value
once more in :mod:`nmsolve.check.pipeline.reevaluate`, and its option in the statement of the kind.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.loads import StageLoads
from nmsolve.model.pipeline.ticks import exponent_for, in_ticks, require_range
from nmsolve.model.types import AnyArray, FloatArray, IntArray


class Sums(NamedTuple):
    """What a goal adds up, in whole ticks of ``2**-exponent``, whose sums are exact.

    Attributes
    ----------
    weight : of a tick of time of the largest load, not rounded
    layer : (L, C) cost of every layer on groups of 1 to C cores; None: a stage costs its load
    tensor : (T,) of taking in a tensor
    offchip : of a byte moved off chip, not rounded
    """

    exponent: int
    weight: float
    layer: IntArray | None = None
    tensor: IntArray | None = None
    offchip: float = 0.0


class Words(NamedTuple):
    """How a goal is called: ``title`` on pages, before a value, in refusals of engines, and what plans do with it."""

    title: str
    takes: str
    asks: str = ""
    verb: str = "take"


@dataclass(frozen=True, eq=False)
class Goal:
    """The period: the largest load.

    Attributes
    ----------
    adds_up : stages cost something besides; such a goal is one of chains without hosts
    held : another goal, and the value of it that no plan may exceed; None: no such limit
    """

    name: ClassVar[str] = "period"
    adds_up: ClassVar[bool] = False
    held: tuple[Goal, float] | None = field(default=None, kw_only=True)

    @property
    def words(self) -> Words:
        """For people."""
        return Words("slowest stage", "the slowest stage takes")

    def require(self, where: str, labels: Sequence[str], largest: int, use_all: bool) -> None:
        """Raise InputError where it does not go with L ``labels``, groups of up to ``largest`` cores, or all cores in use."""

    def value(self, stage: IntArray, loads: StageLoads) -> float:
        """Of a plan: (L,) stages and their figures; inf if a layer is on a host that cannot run it."""
        return float(loads.load.max())

    def sums(self, volume: FloatArray, uses: IntArray, moved: float, exponent: int) -> Sums:
        """What is added up.

        Parameters
        ----------
        volume, uses : (T,) bytes of the tensors, and by how many layers each is used
        moved : more bytes than any plan moves off chip
        exponent : of the ticks of time
        """
        raise NotImplementedError

    @property
    def hashed(self) -> Sequence[bytes | AnyArray]:
        """What tells it from others."""
        return ()


@dataclass(frozen=True, eq=False)
class Batch(Goal):
    """The time of ``rounds`` micro-batches, B, one after the other: the sum of all loads plus B - 1 times the largest."""

    rounds: int
    name: ClassVar[str] = "batch"
    adds_up: ClassVar[bool] = True

    @property
    def words(self) -> Words:
        title = f"time of {self.rounds:,} micro-batch" + "es" * (self.rounds > 1)
        return Words(title, f"a batch of {self.rounds:,} takes", "the time of a batch as objective")

    def require(self, where: str, labels: Sequence[str], largest: int, use_all: bool) -> None:
        if not 1 <= self.rounds < 2**31:
            raise InputError(f"{self.rounds} micro-batches", where, "1 or more, below 2^31")

    def value(self, stage: IntArray, loads: StageLoads) -> float:
        return math.fsum(loads.load) + (self.rounds - 1) * float(loads.load.max())

    def sums(self, volume: FloatArray, uses: IntArray, moved: float, exponent: int) -> Sums:
        """Stages cost their loads."""
        return Sums(exponent, float(self.rounds - 1))

    @property
    def hashed(self) -> Sequence[bytes | AnyArray]:
        return (repr(("rounds", self.rounds)).encode(),)


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


@dataclass(frozen=True, eq=False)
class Energy(Goal):
    """The energy of a micro-batch in the steady state: sums over stages, and power for the time of the slowest. Units are the
    problem's: its bytes, its time, and one of energy.

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
    name: ClassVar[str] = "energy"
    adds_up: ClassVar[bool] = True

    @property
    def words(self) -> Words:
        title = "energy of a micro-batch"
        return Words(title, f"the {title} is", "energy as objective", "need")

    def require(self, where: str, labels: Sequence[str], largest: int, use_all: bool) -> None:
        if use_all:
            what = "--use-all: cores that a plan does not need may cost energy"
            raise InputError(what, where, "no --use-all with the objective energy")
        shape = (len(labels), largest)
        if self.layer.shape != shape[:1] or self.exchanged.shape != shape:
            what = f"energies of shapes {self.layer.shape} and {self.exchanged.shape}"
            raise InputError(what, where, f"{shape[:1]} and {shape}")
        single = np.array([self.byte, self.offchip, self.power])
        parts = {"layers": self.layer, "exchanged bytes": self.exchanged, "bytes and power": single}
        for what, values in parts.items():
            if not (np.isfinite(values) & (values >= 0)).all():
                what = f"the energy of {what} is negative or not finite"
                raise InputError(what, where, "finite numbers >= 0")
        require_range(self.layer, labels, "energy", where)

    def parts(self, stage: IntArray, loads: StageLoads) -> EnergyParts:
        """The energy of a plan, (L,) stages and their figures, by parts; all cores of the machine have power for one period."""
        own = np.maximum(loads.group, 1)[stage] - 1
        return EnergyParts(
            math.fsum(self.layer),
            self.byte * math.fsum(loads.volume_in),
            self.byte * math.fsum(self.exchanged[np.arange(len(own)), own]),
            self.offchip * float((loads.streamed * loads.moves).sum()),
            self.power * float(loads.load.max()),
        )

    def value(self, stage: IntArray, loads: StageLoads) -> float:
        return self.parts(stage, loads).total

    def sums(self, volume: FloatArray, uses: IntArray, moved: float, exponent: int) -> Sums:
        """Layers with what the cores of their group exchange, and what stages take in."""
        most = math.fsum(self.layer) + self.byte * math.fsum(self.exchanged.max(axis=1))
        most += self.byte * math.fsum(volume * uses) + self.offchip * moved
        own = exponent_for(most)
        return Sums(
            own,
            math.ldexp(self.power, own - exponent),
            in_ticks(self.layer[:, None] + self.byte * self.exchanged, own),
            in_ticks(self.byte * volume, own),
            math.ldexp(self.offchip, own),
        )

    @property
    def hashed(self) -> Sequence[bytes | AnyArray]:
        return (repr(("energy", self.byte, self.offchip, self.power)).encode(), self.layer, self.exchanged)


#: The largest load.
SLOWEST = Goal()
