"""Whole numbers of variable length (M2.1): 7 bits per byte, low groups first, top bit 0 in the last byte.

The kernels that write and read the connections of a shard, and columns of numbers. A number takes at most 10 bytes
and is below 2^64. They return a status instead of raising, because they run without the interpreter's lock.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from nmsolve.model.types import AnyArray, FloatArray, Int32Array, IntArray

#: Status of a kernel: what is wrong with the data.
OK, CUT, LONG, COUNT, RISING, NEIGHBOUR, TAG, SIZE, WEIGHT, REST, FULL = range(11)

#: The status in words, for errors.
WORDS = {
    CUT: "the data ends inside a number",
    LONG: "a number of more than 10 bytes, or above 2^64 - 1",
    COUNT: "the connections are more or fewer than the manifest says",
    RISING: "neighbours of a vertex that do not rise",
    NEIGHBOUR: "a neighbour that is no other vertex",
    TAG: "tags of a vertex that fall, or a tag that cannot be",
    SIZE: "a connection of a size that cannot be",
    WEIGHT: "a weight that is negative, not finite or above 2^51 units",
    REST: "bytes after the last vertex",
}

#: Most bytes of a connection's four numbers, and of a vertex's count.
RECORD_BYTES, COUNT_BYTES = 25, 10

_U = np.uint64
_MOST_TAG = _U(2**31 - 1)
_MOST_UNITS = _U(2**51)
_INFINITY = _U(0x7FF0000000000000)


@nb.njit(cache=True, nogil=True, inline="always")
def _put(out: AnyArray, pos: int, value: np.uint64) -> int:
    """Write one number; the position after it."""
    while value >= _U(128):
        out[pos] = np.uint8((value & _U(127)) | _U(128))
        value >>= _U(7)
        pos += 1
    out[pos] = np.uint8(value)
    return pos + 1


@nb.njit(cache=True, nogil=True, inline="always")
def _take(raw: AnyArray, pos: int, end: int) -> tuple[np.uint64, int]:
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


@nb.njit(cache=True, nogil=True, inline="always")
def _short(raw: AnyArray, pos: int) -> tuple[np.uint64, int | np.int64, bool | np.bool_]:
    """A number of up to 3 bytes without a branch: (value, position after it, whether it is longer than that)."""
    a, b, c = _U(raw[pos]), _U(raw[pos + 1]), _U(raw[pos + 2])
    two = a >> _U(7)
    three = two & (b >> _U(7))
    value = (a & _U(127)) | ((b & _U(127)) * two << _U(7)) | (c * three << _U(14))
    return value, pos + 1 + np.int64(two + three), three & (c >> _U(7)) != _U(0)


@nb.njit(cache=True, nogil=True)
def swapped(word: np.uint64) -> np.uint64:
    """The 8 bytes of ``word`` in reverse order: short fractions become small numbers."""
    word = ((word & _U(0x00FF00FF00FF00FF)) << _U(8)) | ((word >> _U(8)) & _U(0x00FF00FF00FF00FF))
    word = ((word & _U(0x0000FFFF0000FFFF)) << _U(16)) | ((word >> _U(16)) & _U(0x0000FFFF0000FFFF))
    return (word << _U(32)) | (word >> _U(32))


@nb.njit(cache=True, nogil=True)
def encode_records(
    first: int,
    n: int,
    indptr: IntArray,
    tag: Int32Array,
    neighbour: Int32Array,
    size: Int32Array,
    code: AnyArray,
    out: AnyArray,
) -> tuple[int, int]:
    """Write the connections of vertices ``first``, ``first + 1``, ... into ``out``.

    Parameters
    ----------
    n : number of vertices of the graph
    indptr : (k + 1,) cuts the other arrays; need not start at 0
    tag, size : as ``neighbour``, or length 0 if all are 0 (tag) or 1 (size)
    code : (e,) uint64 weights as they are written
    out : (>= 10 k + 25 e,) uint8

    Returns
    -------
    status and, if it is OK, the bytes written, else the vertex that is wrong
    """
    pos = 0
    for i in range(len(indptr) - 1):
        begin, end = indptr[i], indptr[i + 1]
        pos = _put(out, pos, _U(end - begin))
        last_tag, last = 0, -1
        for c in range(begin, end):
            kind = tag[c] if len(tag) else 0
            if kind < last_tag:
                return TAG, first + i
            to, gap = neighbour[c], neighbour[c]
            if kind == last_tag and last >= 0:
                gap -= last
                if gap <= 0:
                    return RISING, first + i
            if to < 0 or to >= n or to == first + i:
                return NEIGHBOUR, first + i
            last_tag, last = kind, to
            many = size[c] if len(size) else 1
            if many < 1:
                return SIZE, first + i
            pos = _put(out, pos, _U(kind))
            pos = _put(out, pos, _U(gap))
            pos = _put(out, pos, _U(many))
            pos = _put(out, pos, code[c])
    return OK, pos


@nb.njit(cache=True, nogil=True)
def decode_records(
    raw: AnyArray,
    first: int,
    n: int,
    per: int,
    indptr: IntArray,
    tag: Int32Array,
    neighbour: Int32Array,
    size: Int32Array,
    weight: FloatArray,
    word: AnyArray,
) -> tuple[int | np.int64, int | np.int64]:
    """Read the connections of vertices ``first``, ``first + 1``, ... from ``raw``; everything is checked.

    Parameters
    ----------
    n : number of vertices of the graph
    per : units per 1.0 of a whole-number weight, or 0: weights are floats with their bytes reversed
    indptr : (k + 1,) written; ``indptr[0]`` is 0
    tag, size : (e,) written, or length 0 to read data whose tags are all 0 (sizes all 1)
    neighbour, weight : (e,) written
    word : ``weight`` seen as uint64

    Returns
    -------
    status and the vertex where it arose; FULL if ``tag`` and ``size`` have no room but are needed
    """
    pos, done, end = 0, np.int64(0), len(raw)
    plain = len(tag) == 0
    for i in range(len(indptr) - 1):
        indptr[i] = done
        count, pos = _take(raw, pos, end)
        if pos < 0:
            return np.int64(count), first + i
        if count > _U(len(neighbour) - done):
            return COUNT, first + i
        last_tag, last = _U(0), np.int64(-1)
        for c in range(done, done + np.int64(count)):
            quick = pos + 8 <= end and raw[pos] < 128
            if quick:
                kind = _U(raw[pos])
                gap, at, long1 = _short(raw, pos + 1)
                many = _U(raw[at])
                value, at, long2 = _short(raw, at + 1)
                quick = many < _U(128) and not long1 and not long2
            if quick:
                pos = at
            else:
                kind, pos = _take(raw, pos, end)
                if pos < 0:
                    return np.int64(kind), first + i
                gap, pos = _take(raw, pos, end)
                if pos < 0:
                    return np.int64(gap), first + i
                many, pos = _take(raw, pos, end)
                if pos < 0:
                    return np.int64(many), first + i
                value, pos = _take(raw, pos, end)
                if pos < 0:
                    return np.int64(value), first + i
            if plain:
                if kind != _U(0) or many != _U(1):
                    return FULL, first + i
            else:
                if kind < last_tag or kind > _MOST_TAG:
                    return TAG, first + i
                if many < _U(1) or many > _MOST_TAG:
                    return SIZE, first + i
                tag[c] = np.int32(kind)
                size[c] = np.int32(many)
            if gap >= _U(n):
                return NEIGHBOUR, first + i
            to = np.int64(gap)
            if kind == last_tag and last >= 0:
                if to == 0:
                    return RISING, first + i
                to += last
            if to >= n or to == first + i:
                return NEIGHBOUR, first + i
            last_tag, last = kind, to
            neighbour[c] = np.int32(to)
            if per == 0:
                bits = swapped(value)
                if bits >= _INFINITY:  # infinity, not a number, or a sign bit
                    return WEIGHT, first + i
                word[c] = bits
            elif value > _MOST_UNITS:
                return WEIGHT, first + i
            elif per == 1:
                weight[c] = np.float64(value)
            else:
                weight[c] = np.float64(value) / per
        done += np.int64(count)
    indptr[len(indptr) - 1] = done
    if done != len(neighbour):
        return COUNT, first + len(indptr) - 1
    return (OK if pos == end else REST), first + len(indptr) - 1


@nb.njit(cache=True, nogil=True)
def encode_numbers(values: AnyArray, out: AnyArray) -> int:
    """Write ``values`` (uint64) one after the other into ``out`` (>= 10 each, uint8); the bytes written."""
    pos = 0
    for v in values:
        pos = _put(out, pos, v)
    return pos


@nb.njit(cache=True, nogil=True)
def decode_numbers(raw: AnyArray, values: AnyArray) -> int | np.int64:
    """Fill ``values`` (uint64) from ``raw``; the status, OK only if both end together."""
    pos, end = 0, len(raw)
    for i in range(len(values)):
        value, pos = _take(raw, pos, end)
        if pos < 0:
            return np.int64(value)
        values[i] = value
    return OK if pos == end else REST


@nb.njit(cache=True, nogil=True)
def imbalance(
    first: int, indptr: IntArray, tag: Int32Array, neighbour: Int32Array, size: Int32Array, code: AnyArray
) -> np.uint64:
    """Sum of a hash of every outgoing connection minus that of every incoming one, modulo 2^64.

    Over a whole file with both directions it is 0 exactly if (but for accidents of 2^-64) every connection is there
    twice: at its source with an even tag, at its target with the odd tag that follows. The hash mixes source, target,
    message, size and weight code with the finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
    generators, OOPSLA 2014).
    """
    total = _U(0)
    for i in range(len(indptr) - 1):
        here = _U(first + i)
        for c in range(indptr[i], indptr[i + 1]):
            there = _U(neighbour[c])
            kind = _U(tag[c]) if len(tag) else _U(0)
            many = _U(size[c]) if len(size) else _U(1)
            out = kind & _U(1) == _U(0)
            pair = (here << _U(32)) | there if out else (there << _U(32)) | here
            h = _mix(pair)
            h = _mix(h ^ (((kind >> _U(1)) << _U(32)) | many))
            h = _mix(h ^ code[c])
            total = total + h if out else total - h
    return total


@nb.njit(cache=True, nogil=True, inline="always")
def _mix(x: np.uint64) -> np.uint64:
    x += _U(0x9E3779B97F4A7C15)
    x = (x ^ (x >> _U(30))) * _U(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> _U(27))) * _U(0x94D049BB133111EB)
    return x ^ (x >> _U(31))
