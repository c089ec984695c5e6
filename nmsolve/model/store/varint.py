"""Whole numbers of variable length (M2.1): 7 bits per byte, low groups first, top bit 0 in the last byte.

A number takes at most 10 bytes and is below 2^64. Kernels return a status instead of raising, because they run without
the interpreter's lock.
"""

from __future__ import annotations

import numpy as np

from nmsolve.model.compiled import embedded, kernel, plain
from nmsolve.model.types import AnyArray

#: Status of a kernel: what is wrong with the data.
OK, CUT, LONG, COUNT, RISING, NEIGHBOUR, TAG, SIZE, WEIGHT, REST, FULL = range(11)

#: The status in words, for errors.
WORDS = {
    CUT: "the data ends inside a number",
    LONG: "a number of more than 10 bytes, or above 2^64 - 1",
    COUNT: "the connections are more or fewer than the manifest says",
    RISING: "neighbours of a vertex that do not rise",
    NEIGHBOUR: "a neighbour that is not another vertex",
    TAG: "tags of a vertex that fall, or an impossible tag",
    SIZE: "a connection of an impossible size",
    WEIGHT: "a weight that is negative, not finite or above 2^51 units",
    REST: "bytes after the last vertex",
}

_U = np.uint64


@embedded
def put(out: AnyArray, pos: int, value: np.uint64) -> int:
    """Write one number; the position after it."""
    while value >= _U(128):
        out[pos] = np.uint8((value & _U(127)) | _U(128))
        value >>= _U(7)
        pos += 1
    out[pos] = np.uint8(value)
    return pos + 1


@embedded
def take(raw: AnyArray, pos: int, end: int) -> tuple[np.uint64, int]:
    """Read one number: (value, position after it), or (status, -1)."""
    value, shift = _U(0), _U(0)
    while pos < end:
        byte = _U(raw[pos])
        pos += 1
        value |= (byte & _U(127)) << shift
        if byte < _U(128):
            if shift == _U(63) and byte > _U(1):
                return _U(LONG), -1
            return value, pos
        shift += _U(7)
        if shift > _U(63):
            return _U(LONG), -1
    return _U(CUT), -1


@embedded
def short(raw: AnyArray, pos: int) -> tuple[np.uint64, int | np.int64, bool | np.bool_]:
    """A number of up to 3 bytes without a branch: (value, position after it, whether it is longer than that)."""
    a, b, c = _U(raw[pos]), _U(raw[pos + 1]), _U(raw[pos + 2])
    two = a >> _U(7)
    three = two & (b >> _U(7))
    value = (a & _U(127)) | ((b & _U(127)) * two << _U(7)) | (c * three << _U(14))
    return value, pos + 1 + np.int64(two + three), three & (c >> _U(7)) != _U(0)


@plain
def encode_numbers(values: AnyArray, out: AnyArray) -> int:
    """Write ``values`` (uint64) one after the other into ``out`` (>= 10 each, uint8); the bytes written."""
    pos = 0
    for v in values:
        pos = put(out, pos, v)
    return pos


@kernel
def decode_numbers(raw: AnyArray, values: AnyArray) -> int | np.int64:
    """Fill ``values`` (uint64) from ``raw``; the status, OK only if both end together."""
    pos, end = 0, len(raw)
    for i in range(len(values)):
        value, pos = take(raw, pos, end)
        if pos < 0:
            return np.int64(value)
        values[i] = value
    return OK if pos == end else REST
