"""The connections of a shard as bytes: per vertex a count, per connection tag, neighbour, size and weight (M2.1).

Whether the two directions of a file agree is told by a checksum that does not depend on the order of connections.
"""

from __future__ import annotations

import numpy as np

from nmsolve.model.compiled import inlined, kernel, plain
from nmsolve.model.splitmix import STEP, mix
from nmsolve.model.store.varint import (
    COUNT,
    FULL,
    NEIGHBOUR,
    OK,
    REST,
    RISING,
    SIZE,
    TAG,
    WEIGHT,
    put,
    short,
    take,
)
from nmsolve.model.types import AnyArray, FloatArray, Int32Array, IntArray

#: Most bytes of a connection's four numbers, and of a vertex's count.
RECORD_BYTES, COUNT_BYTES = 25, 10

_U = np.uint64
_MOST_TAG = _U(2**31 - 1)
_MOST_UNITS = _U(2**51)
_INFINITY = _U(0x7FF0000000000000)


@plain
def swapped(word: np.uint64) -> np.uint64:
    """The 8 bytes of ``word`` in reverse order: short fractions become small numbers."""
    word = ((word & _U(0x00FF00FF00FF00FF)) << _U(8)) | ((word >> _U(8)) & _U(0x00FF00FF00FF00FF))
    word = ((word & _U(0x0000FFFF0000FFFF)) << _U(16)) | ((word >> _U(16)) & _U(0x0000FFFF0000FFFF))
    return (word << _U(32)) | (word >> _U(32))


@plain
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
        pos = put(out, pos, _U(end - begin))
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
            pos = put(out, pos, _U(kind))
            pos = put(out, pos, _U(gap))
            pos = put(out, pos, _U(many))
            pos = put(out, pos, code[c])
    return OK, pos


@inlined
def _long_numbers(
    raw: AnyArray, pos: int, end: int
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64, int | np.int64]:
    """The numbers of a connection (tag, neighbour, size, weight) of any length and the position after them.

    Where one is cut or too long, its status in place of the tag, and position -1.
    """
    kind, pos = take(raw, pos, end)
    if pos < 0:
        return kind, kind, kind, kind, pos
    gap, pos = take(raw, pos, end)
    if pos < 0:
        return gap, gap, gap, gap, pos
    many, pos = take(raw, pos, end)
    if pos < 0:
        return many, many, many, many, pos
    value, pos = take(raw, pos, end)
    return (kind if pos >= 0 else value), gap, many, value, pos


@kernel
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
        count, pos = take(raw, pos, end)
        if pos < 0:
            return np.int64(count), first + i
        if count > _U(len(neighbour) - done):
            return COUNT, first + i
        last_tag, last = _U(0), np.int64(-1)
        for c in range(done, done + np.int64(count)):
            quick = pos + 8 <= end and raw[pos] < 128
            if quick:
                kind = _U(raw[pos])
                gap, at, long1 = short(raw, pos + 1)
                many = _U(raw[at])
                value, at, long2 = short(raw, at + 1)
                quick = many < _U(128) and not long1 and not long2
            if not quick:
                kind, gap, many, value, at = _long_numbers(raw, pos, end)
                if at < 0:
                    return np.int64(kind), first + i
            pos = at
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


@plain
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
            h = mix(pair + STEP)
            h = mix((h ^ (((kind >> _U(1)) << _U(32)) | many)) + STEP)
            h = mix((h ^ code[c]) + STEP)
            total = total + h if out else total - h
    return total
