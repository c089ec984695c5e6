"""External bucket sort: records in any order become sorted rows, in a bounded amount of memory.

The one primitive behind reading edge lists, symmetrising, transposing and contracting graphs that do not fit in
memory: ``(key, neighbour, size, weight)`` records come in, rows of consecutive keys go out with equal (key, neighbour)
merged. First every piece of input is ordered by *bucket* (a range of keys) and held, on disk beyond the budget; then
bucket after bucket is read back, counting-sorted by key, sorted within each row, and merged. The result does not depend
on memory, workers or how the input is cut into pieces: equal records are added in the order they came.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.store.block import Block, Records, joined
from nmsolve.model.store.reader import ahead
from nmsolve.model.store.regroup_kernels import merge, scatter, sources
from nmsolve.model.store.scratch import Scratch, Spill, packed
from nmsolve.model.types import IntArray

#: More buckets and the counting sort of a piece misses the cache at every store.
BUCKETS = 512

#: Working memory of a record (bytes) while its piece is ordered by bucket, and while its bucket is merged.
SCATTERING, MERGING = 72, 56


def regrouped(
    records: Iterable[Records],
    keys: int,
    *,
    memory: int,
    scratch: Scratch,
    drop_loops: bool = False,
    workers: int = 1,
) -> Iterator[Block]:
    """Yield rows of the keys ``0 .. keys - 1`` from records in any order, as blocks of consecutive keys.

    Equal (key, neighbour) are merged: sizes and weights are added, in the order of the records. Where a few keys have
    most of the records, their bucket is read several times.

    Parameters
    ----------
    records : pieces of any length; indices below 2**31
    memory : bytes this may use at a time, beside the pieces of ``records`` and the block handed out
    scratch : where records lie beyond that
    drop_loops : leave out records whose key is their neighbour
    workers : threads

    Raises
    ------
    InputError : the scratch disk is full; a merged size does not fit in 31 bits
    """
    bounds = _bounds(keys)
    spill = Spill(scratch, memory // 2)
    try:
        ends = _distribute(records, bounds, spill, memory // 8, drop_loops, workers)
        limit = max(4096, memory * 3 // 8 // (MERGING * (workers + 2)))
        pieces = _Pieces(spill, ends, bounds, limit)
        yield from ahead(pieces.rows, pieces.ranges(), workers)
    finally:
        spill.close()


def _bounds(keys: int) -> IntArray:
    """Keys at which buckets begin, and ``keys`` at the end: about as many keys in each."""
    if not 1 <= keys < 2**31:
        raise InputError(f"{keys} keys", "regroup", "1 to 2147483647")
    buckets = min(BUCKETS, keys)
    return np.arange(buckets + 1, dtype=np.int64) * keys // buckets


def _distribute(
    records: Iterable[Records], bounds: IntArray, spill: Spill, memory: int, drop_loops: bool, workers: int
) -> list[IntArray]:
    """Order every piece by bucket and put it on the pile; for each piece, where its buckets begin."""
    buckets = len(bounds) - 1
    bucket = np.repeat(np.arange(buckets, dtype=np.uint16), np.diff(bounds))
    piece = max(4096, memory // (SCATTERING * (workers + 2)))

    def work(job: tuple[int, Records]) -> IntArray:
        """Spill one part, sorted by bucket; where each bucket ends in it."""
        number, part = job
        ends: IntArray
        ends, key, neighbour, weight, size = scatter(*part, bucket, buckets, drop_loops)
        columns = {"key": key, "neighbour": neighbour, "weight": weight}
        spill.put(number, packed({**columns, "size": size} if len(size) else columns))
        return ends

    jobs = ((spill.reserve(), part) for part in _cut(records, piece))
    return list(ahead(work, jobs, workers))


def _cut(records: Iterable[Records], length: int) -> Iterator[Records]:
    """Yield the same records in pieces of about ``length``: long ones cut, short ones joined."""
    waiting: list[Records] = []
    total = 0
    for part in records:
        for a in range(0, len(part.key), length):
            cut = Records(*(column[a : a + length] for column in part))
            waiting.append(cut)
            total += len(cut.key)
            if 2 * total >= length:
                yield joined(waiting)
                waiting, total = [], 0
    if waiting:
        yield joined(waiting)


class _Range(NamedTuple):
    """Keys ``first .. last - 1``, whose records are among those of the buckets ``low .. high - 1``."""

    first: int
    last: int
    low: int
    high: int


class _Pieces:
    """The second half of the sort: all pieces, ordered by bucket, are on the pile."""

    def __init__(self, spill: Spill, ends: list[IntArray], bounds: IntArray, limit: int) -> None:
        self._spill, self._ends, self._bounds, self._limit = spill, ends, bounds, limit

    def ranges(self) -> Iterator[_Range]:
        """Yield all keys in order, in ranges of at most ``limit`` records (or one key)."""
        totals = sum((np.diff(ends) for ends in self._ends), np.zeros(len(self._bounds) - 1, np.int64))
        low = held = 0
        for b, records in enumerate(totals.tolist()):
            if held + records > self._limit and low < b:
                yield self._range(low, b)
                low, held = b, 0
            held += records
            if records > self._limit:
                yield from self._parts(b)
                low, held = b + 1, 0
        if low < len(totals):
            yield self._range(low, len(totals))

    def rows(self, keys: _Range) -> Block:
        """Return the merged rows of a range; a range over the limit is merged while it is read."""
        keep: list[Records] = []
        held, full = 0, self._limit
        for part in self._read(keys):
            keep.append(part)
            held += len(part.key)
            if held > full:
                block = _merged(joined(keep), keys)
                keep = [Records(sources(keys.first, block.indptr), block.neighbour, block.weight, block.size)]
                held = len(block.neighbour)
                full = max(self._limit, 2 * held)
        return _merged(joined(keep), keys)

    def _range(self, low: int, high: int) -> _Range:
        return _Range(int(self._bounds[low]), int(self._bounds[high]), low, high)

    def _parts(self, bucket: int) -> Iterator[_Range]:
        """Yield a bucket over the limit, in ranges of keys that are not (single keys may be)."""
        whole = self._range(bucket, bucket + 1)
        count = np.zeros(whole.last - whole.first, np.int64)
        for part in self._read(whole):
            count += np.bincount(part.key - whole.first, minlength=len(count))
        first = held = 0
        for k, records in enumerate(count.tolist()):
            if held + records > self._limit and first < k:
                yield _Range(whole.first + first, whole.first + k, bucket, bucket + 1)
                first, held = k, 0
            held += records
        yield _Range(whole.first + first, whole.last, bucket, bucket + 1)

    def _read(self, keys: _Range) -> Iterator[Records]:
        """Yield the records of a range, piece by piece, in the order they came."""
        whole = self._bounds[keys.low] == keys.first and self._bounds[keys.high] == keys.last
        for number, ends in enumerate(self._ends):
            if ends[keys.low] == ends[keys.high]:
                continue
            part = self._spill.get(number, int(ends[keys.low]), int(ends[keys.high]))
            if not whole:
                part = part[(part["key"] >= keys.first) & (part["key"] < keys.last)]
            yield Records(
                part["key"].astype(np.int32),
                part["neighbour"].astype(np.int32),
                part["weight"].astype(np.float64),
                part["size"].astype(np.int32)
                if "size" in (part.dtype.names or ())
                else np.empty(0, np.int32),
            )


def _merged(records: Records, keys: _Range) -> Block:
    """Sort and merge the records of a range."""
    indptr, neighbour, weight, size = merge(*records, keys.first, keys.last - keys.first)
    largest = int(size.max(initial=1))
    if largest >= 2**31:
        raise InputError(f"{largest} connections between two vertices", "regroup", "at most 2147483647")
    small = np.empty(0, np.int32) if largest == 1 else size.astype(np.int32)
    return Block(keys.first, indptr, np.empty(0, np.int32), neighbour, small, weight)
