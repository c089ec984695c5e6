"""Weights and rates as whole numbers, exactly: a number of units, or a float with its bytes reversed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.store.manifest import Coding
from nmsolve.model.store.varint import decode_numbers, encode_numbers
from nmsolve.model.types import AnyArray, FloatArray

#: Units per 1.0 that :func:`exact_coding` tries: whole numbers and decimals.
_PER = (1, 10, 100, 1000, 10**4, 10**6)
#: Units that a number in a store has at most.
MOST_UNITS = 2.0**51
_PIECE = 2**18


def coding_of(unit: float | None, where: str) -> Coding:
    """Return the coding with weights in multiples of ``unit`` (1, or one over a whole number); None: floats.

    Raises
    ------
    InputError : another unit
    """
    if unit is None:
        return Coding("float")
    per = round(1 / unit) if unit > 0 else 0
    if per < 1 or 1 / per != unit:
        raise InputError(f"weights in units of {unit}", where, "1, 0.1, 0.001 or another 1/k, or none at all")
    return Coding("integer", per)


def exact_coding(pieces: Iterable[FloatArray]) -> Coding:
    """Return the coarsest coding that restores every value (>= 0) of all one-dimensional ``pieces`` exactly."""
    tried, largest = 0, 0.0
    for values in pieces:
        while tried < len(_PER) and not all_whole(values, _PER[tried]):
            tried += 1  # what was in whole units before still is, as each unit divides those before it
        if tried == len(_PER):
            return Coding("float")
        largest = max(largest, float(values.max(initial=0)))
    return Coding("integer", _PER[tried]) if largest * _PER[tried] <= MOST_UNITS else Coding("float")


def all_whole(values: FloatArray, per: int = 1) -> bool:
    """Return whether all values (k,) >= 0 are whole numbers of units, ``per`` in 1.0, exactly, and at most :data:`MOST_UNITS`."""
    for some in (values[:1000], values):
        with np.errstate(over="ignore", invalid="ignore"):
            units = np.rint(some * per)
        if not ((units <= MOST_UNITS).all() and (units / per == some).all()):
            return False
    return True


def in_pieces(values: FloatArray) -> Iterator[FloatArray]:
    """Cut a 1-D array into slices small enough that what is computed from one takes little memory."""
    return (values[i : i + _PIECE] for i in range(0, len(values), _PIECE))


def to_codes(values: FloatArray, coding: Coding, where: str) -> AnyArray:
    """Return (e,) uint64 numbers to write.

    Values that are multiples of the unit except for rounding errors (sums of decimals) are written as these multiples.

    Raises
    ------
    InputError : a value that is negative, not finite, no multiple of the unit or above 2^51 units
    """
    values = np.ascontiguousarray(values, np.float64)
    if coding.code == "float":
        good = np.isfinite(values) & (values >= 0)
        codes: AnyArray = np.abs(values).view(np.uint64).byteswap()
        expected = "a finite number >= 0"
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = values * coding.per
            units = np.rint(scaled)
            good = (np.abs(scaled - units) <= 1e-6 + 1e-12 * units) & (units >= 0) & (units <= MOST_UNITS)
        codes = np.where(good, units, 0).astype(np.uint64)
        expected = f"a multiple >= 0 of {1 / coding.per:g}, at most 2^51 of it"
    if not good.all():
        raise InputError(f"a weight or rate of {values[~good][0]}", where, expected)
    return codes


def from_codes(codes: AnyArray, coding: Coding, where: str) -> FloatArray:
    """Return the values of ``codes`` (uint64, 1-D) as float64, same length.

    Raises
    ------
    InputError : no number, negative, or above 2^51 units
    """
    if coding.code == "integer":
        values: FloatArray = codes.astype(np.float64) / coding.per
        good = codes <= np.uint64(MOST_UNITS)
    else:
        values = codes.byteswap().view(np.float64)
        good = np.isfinite(values) & ~np.signbit(values)
    if not good.all():
        raise InputError(f"a weight or rate of {values[~good][0]}", where, "a finite number >= 0")
    return values


def pack_numbers(values: AnyArray) -> bytes:
    """Return whole numbers >= 0, 1-D, as varints."""
    numbers = np.ascontiguousarray(values).astype(np.uint64)
    out = np.empty(10 * len(numbers), np.uint8)
    return out[: encode_numbers(numbers, out)].tobytes()


def unpack_numbers(raw: bytes, count: int) -> tuple[int, AnyArray]:
    """Return the status and (count,) uint64 numbers, see :func:`nmsolve.model.store.varint.decode_numbers`."""
    values = np.empty(count, np.uint64)
    return decode_numbers(np.frombuffer(raw, np.uint8), values), values
