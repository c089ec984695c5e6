"""Compiled kernels of :mod:`regroup`: scatter records into buckets, sort and merge the records of a bucket."""

from __future__ import annotations

import numpy as np

from nmsolve.model.compiled import kernel
from nmsolve.model.types import AnyArray, FloatArray, Int32Array, IntArray

#: Position inside a row, in the low bits of a sort code (a row of one bucket has fewer records).
POSITION = np.int64(0xFFFFFFFF)

#: Rows up to this long are sorted by insertion.
SHORT = 24


@kernel
def scatter(
    key: AnyArray,
    neighbour: AnyArray,
    weight: FloatArray,
    size: AnyArray,
    bucket: AnyArray,
    buckets: int,
    drop_loops: bool,
) -> tuple[IntArray, Int32Array, Int32Array, FloatArray, Int32Array]:
    """Order records by bucket (counting sort, stable).

    ``bucket[k]`` is the bucket of key ``k``; ``size`` of length 0 means all 1, and so does the one returned. With
    ``drop_loops``, records whose key is their neighbour are left out.

    Returns
    -------
    ends, (buckets + 1,): records of bucket ``b`` are ``ends[b]`` to ``ends[b + 1] - 1``; then the ordered columns
    """
    ends = np.zeros(buckets + 1, np.int64)
    for i in range(len(key)):
        if not (drop_loops and key[i] == neighbour[i]):
            ends[bucket[key[i]] + 1] += 1
    for b in range(buckets):
        ends[b + 1] += ends[b]
    total = ends[buckets]
    sized = len(size) > 0
    out_key = np.empty(total, np.int32)
    out_neighbour = np.empty(total, np.int32)
    out_weight = np.empty(total, np.float64)
    out_size = np.empty(total if sized else 0, np.int32)
    cursor = ends[:-1].copy()
    for i in range(len(key)):
        if drop_loops and key[i] == neighbour[i]:
            continue
        b = bucket[key[i]]
        at = cursor[b]
        cursor[b] = at + 1
        out_key[at] = key[i]
        out_neighbour[at] = neighbour[i]
        out_weight[at] = weight[i]
        if sized:
            out_size[at] = size[i]
    return ends, out_key, out_neighbour, out_weight, out_size


@kernel
def merge(
    key: Int32Array,
    neighbour: Int32Array,
    weight: FloatArray,
    size: Int32Array,
    first: int,
    keys: int,
) -> tuple[IntArray, Int32Array, FloatArray, IntArray]:
    """Rows of the keys ``first`` to ``first + keys - 1`` from their records, which come in any order.

    Equal (key, neighbour) become one, sizes and weights added in the order of the records (so that sums of floats do
    not depend on where a piece of input ends).

    Returns
    -------
    indptr (keys + 1,), neighbour (sorted within a row), weight, size (int64)
    """
    start = np.zeros(keys + 1, np.int64)
    for i in range(len(key)):
        start[key[i] - first + 1] += 1
    for k in range(keys):
        start[k + 1] += start[k]
    code = np.empty(len(key), np.int64)
    row_weight = np.empty(len(key), np.float64)
    row_size = np.empty(len(size), np.int32)
    cursor = start[:-1].copy()
    for i in range(len(key)):
        k = key[i] - first
        at = cursor[k]
        cursor[k] = at + 1
        code[at] = (np.int64(neighbour[i]) << 32) | (at - start[k])
        row_weight[at] = weight[i]
        if len(size):
            row_size[at] = size[i]
    indptr = np.zeros(keys + 1, np.int64)
    out_neighbour = np.empty(len(key), np.int32)
    out_weight = np.empty(len(key), np.float64)
    out_size = np.empty(len(key), np.int64)
    end = 0
    for k in range(keys):
        a = start[k]
        sort(code[a : start[k + 1]])
        row = end
        for i in range(a, start[k + 1]):
            at = a + (code[i] & POSITION)
            other = np.int32(code[i] >> 32)
            s = np.int64(row_size[at]) if len(size) else np.int64(1)
            if end > row and out_neighbour[end - 1] == other:
                out_weight[end - 1] += row_weight[at]
                out_size[end - 1] += s
            else:
                out_neighbour[end] = other
                out_weight[end] = row_weight[at]
                out_size[end] = s
                end += 1
        indptr[k + 1] = end
    return indptr, out_neighbour[:end], out_weight[:end], out_size[:end]


@kernel
def sort(code: IntArray) -> None:
    """Sort in place; rows are often short or sorted already."""
    if len(code) > SHORT:
        for i in range(1, len(code)):
            if code[i] < code[i - 1]:
                code.sort()
                return
        return
    for i in range(1, len(code)):
        c, j = code[i], i
        while j > 0 and code[j - 1] > c:
            code[j] = code[j - 1]
            j -= 1
        code[j] = c


@kernel
def sources(first: int, indptr: IntArray) -> Int32Array:
    """The vertex of every connection of a block."""
    out = np.empty(indptr[-1] - indptr[0], np.int32)
    for k in range(len(indptr) - 1):
        out[indptr[k] : indptr[k + 1]] = first + k
    return out
