"""Times as whole numbers, so that sums are exact, in any order.

Sums of floats depend on the order of the terms; two ways to add up one stage would disagree in the last digit, and "nothing
below this value is possible" would mean little. All times of a problem are therefore multiples of one *tick*, a power of two
chosen so that the sum of all of them stays below 2^62 ticks. Whole numbers, and floats above about 2^-9 of the sum, keep
every digit; smaller ones are rounded to the nearest tick, 2^-61 of the sum or less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.types import BoolArray, FloatArray, IntArray

#: What the amounts of a problem, of one kind, add up to, if not to 0: ticks can then be floats without overflow or loss.
LEAST_TOTAL, MOST_TOTAL = 1e-250, 1e289

#: Room without end.
ENDLESS = 2**62


@dataclass(frozen=True, eq=False)
class Ticks:
    """The times of a problem in ticks of ``2**-exponent``.

    Attributes
    ----------
    time : (L, C) of layers on groups
    tensor : (T,) of tensors
    host : (L,) of layers on a host, 0 where ``impossible``
    impossible : (L,) bool: the layer cannot run on a host
    offchip : of one core per byte moved off chip, not rounded
    """

    exponent: int
    time: IntArray
    tensor: IntArray
    host: IntArray
    impossible: BoolArray
    offchip: float = 0.0

    def seconds(self, ticks: int) -> float:
        """Return the time of ``ticks`` in the problem's unit, rounded once; negative ticks mean infinity."""
        return math.inf if ticks < 0 else math.ldexp(float(ticks), -self.exponent)

    def floor(self, seconds: float) -> int:
        """Return the most ticks that are not longer than ``seconds`` (>= 0, finite)."""
        return math.floor(math.ldexp(seconds, self.exponent))

    def within(self, seconds: float) -> int:
        """Return the most ticks whose time, as a float, is not above ``seconds`` (>= 0, finite)."""
        low = self.floor(seconds)
        high = 2**9 + low  # at most half of what the last digit of a float below 2^62 is worth is rounded off
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.seconds(middle) <= seconds else (low, middle - 1)
        return low


def require_range(values: FloatArray, names: Sequence[str], what: str, where: str) -> None:
    """Raise InputError unless amounts (N,), finite and >= 0, add up to 0 or to something that ticks can express.

    Parameters
    ----------
    names : (N,) whose amounts they are, for the error
    """
    with np.errstate(over="ignore"):
        total = float(np.sum(values))
    if total and not LEAST_TOTAL <= total <= MOST_TOTAL:
        k = int(np.argmax(values))
        raise InputError(
            f"{what}s add up to {total:.3g}; the largest is {float(values[k]):.3g}, of {names[k]!r}", where,
            f"a sum of 0, or from {LEAST_TOTAL:g} to {MOST_TOTAL:g}: another unit",
        )  # fmt: skip


def in_ticks(values: FloatArray, exponent: int) -> IntArray:
    """Return ``values`` (any shape) as the nearest whole numbers of ticks ``2**-exponent``, same shape and order."""
    out: IntArray = np.rint(np.ldexp(values, exponent)).astype(np.int64)
    return out


def exponent_for(total: float) -> int:
    """Return the largest exponent with ``total * 2**exponent < 2**61``, between -900 and 900."""
    return max(-900, min(900, 61 - math.frexp(total)[1])) if total > 0 else 0


def ticks_of(
    time: FloatArray, tensor: FloatArray, host: FloatArray | None, moved: float = 0.0, offchip: float = 0.0
) -> Ticks:
    """Return the ticks of (L, C) times, (T,) tensor times and (L,) host times (inf: not possible; None: no layer can).

    ``moved``: the most time that all of a plan's off-chip memory takes; ``offchip``: of one core per byte.
    """
    impossible = np.ones(len(time), bool) if host is None else ~np.isfinite(host)
    possible = np.where(impossible, 0.0, 0.0 if host is None else host)
    total = math.fsum(time[:, 0]) + math.fsum(tensor) + math.fsum(possible) + moved
    exponent = exponent_for(total)
    return Ticks(
        exponent,
        in_ticks(time, exponent),
        in_ticks(tensor, exponent),
        in_ticks(possible, exponent),
        impossible,
        math.ldexp(offchip, exponent),
    )


def rooms_of(storage: FloatArray, memory: float | None, most: int) -> IntArray:
    """(C,) most storage of a group of 1 to C = ``most`` cores, in the whole units of ``storage`` (L,).

    The rule compares floats: the sum of what a stage holds, rounded once, with ``c * memory``. So this is the largest whole
    number that is not more than that, once rounded.
    """
    total = math.fsum(storage)
    exponent = exponent_for(float(storage.sum()))
    rooms = []
    for c in range(1, most + 1):
        limit = math.inf if memory is None else c * memory
        if limit >= total:
            rooms += [ENDLESS] * (most + 1 - c)
            break
        low = math.floor(math.ldexp(limit, exponent))
        # at most half of what the last digit of a float below 2^62 is worth is rounded off
        high = low + 2**9
        while low < high:
            middle = (low + high + 1) // 2
            fits = math.ldexp(float(middle), -exponent) <= limit
            low, high = (middle, high) if fits else (low, middle - 1)
        rooms.append(low)
    return np.array(rooms, np.int64)
