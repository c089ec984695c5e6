"""What the cores of a stage do: one group or several in turns, how it moves data, and what does not fit in its memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.types import AnyArray, IntArray

#: Most replicas of a stage that can be asked for.
MOST_REPLICAS = 1024


@dataclass(frozen=True, eq=False)
class Groups:
    """How the cores of a stage work together (chains).

    Attributes
    ----------
    border : what a group of c cores takes in and gives out passes isqrt(c) cores at a time, the side of a square, and so in that
        part of its tensors' times, rounded up to a tick; False: one core at a time
    replicas : most replicas of a stage (no hosts). A stage of c cores may be r groups of min(c // r, C) cores that each hold
        all of it and take micro-batches in turns: its load is a group's, divided by r and rounded up to a tick. It has as many
        as make its load least
    """

    replicas: int = 1
    border: bool = False

    @property
    def single(self) -> bool:
        """A stage is one group, which moves data through one core."""
        return self.replicas == 1 and not self.border

    @property
    def asks(self) -> str:
        """Words of refusals."""
        return "replicas of stages" if self.replicas > 1 else "borders of groups"

    def sides(self, largest: int) -> IntArray:
        """(C,) cores that a group of 1 to C = ``largest`` cores moves data through at a time."""
        if not self.border:
            return np.ones(largest, np.int64)
        return np.array([math.isqrt(c) for c in range(1, largest + 1)], np.int64)

    def require(self, where: str, chain: bool, hosts: int, adds_up: bool) -> None:
        """Raise InputError where it does not go with the split, hosts, or a goal that adds up."""
        many = self.replicas > 1
        for wrong, what, expected in (
            (self.border and not chain, "borders of groups with another split", "--split chain"),
            (not 1 <= self.replicas <= MOST_REPLICAS, f"{self.replicas} replicas", f"1 to {MOST_REPLICAS}"),
            (
                many and (not chain or hosts),
                "replicas with another split or hosts",
                "--split chain, no hosts",
            ),
            (many and adds_up, "replicas with another objective", "--objective period"),
        ):
            if wrong:
                raise InputError(what, where, expected)

    @property
    def hashed(self) -> Sequence[bytes]:
        """What tells it from others."""
        many = repr(("replicas", self.replicas)).encode() if self.replicas > 1 else b""
        return (b"border" if self.border else b"", many)


#: A stage is one group, which moves data through one core.
ONE_GROUP = Groups()


@dataclass(frozen=True, eq=False)
class OffChip:
    """Memory that takes what does not fit on the cores of a stage, in place of a rule: weights are moved once in every run, live
    bytes beyond those twice.

    Attributes
    ----------
    byte : time in which a core on its share of the bandwidth moves a byte
    trips : (L,) trips of the loop that begins with a layer, else 0: all that a stage moves is moved once more in every trip of
        every loop that it holds; None: no loops
    """

    byte: float
    trips: IntArray | None = None

    def require(self, where: str, count: int, live: bool) -> None:
        """Raise InputError where it does not go with L = ``count`` layers, or memory that is not counted by live ranges."""
        if not (math.isfinite(self.byte) and self.byte > 0):
            raise InputError(f"{self.byte} per byte moved off chip", where, "a finite time > 0")
        if not live:
            raise InputError("off-chip memory without live ranges", where, "buffers")
        if self.trips is not None and self.trips.shape != (count,):
            raise InputError(f"trips of shape {self.trips.shape}", where, f"({count},)")

    @property
    def hashed(self) -> Sequence[AnyArray]:
        """What tells it from others, but for the time of a byte."""
        return () if self.trips is None else (self.trips,)
