"""Which messages reach each vertex of a level: the graph's transpose, about one byte per connection.

Built from the graph's blocks alone, in two passes (measure, then write) for each part that fits in memory, so that the
graph may be on disk; a part that is too large goes to a scratch file. Contraction is the same thing with fewer vertices:
messages come one after another, so a vertex that a message reached already is seen at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from nmsolve.model.compiled import embedded, plain
from nmsolve.model.graph import LogicGraph, Rows
from nmsolve.model.host.disk import read_at, write_at
from nmsolve.model.store.varint import put
from nmsolve.model.types import AnyArray, BoolArray, Int32Array, IntArray, starts

#: Bytes of a block, the piece that a sweep reads at once.
BLOCK = 4 << 20


class Piece(NamedTuple):
    """The lists of consecutive vertices: vertex ``v``'s is ``data[at[v] - base : at[v + 1] - base]``; ``at`` (n + 1,) as in
    :class:`Incidence`."""

    first: int
    last: int
    base: int
    at: IntArray
    data: AnyArray


@dataclass(frozen=True, eq=False)
class Incidence:
    """For every vertex the rows that reach it, rising, as gaps minus one in varints (7 bits a byte, low ones first).

    A row that starts in a vertex is not in that vertex's list: it never leaves its core.

    Attributes
    ----------
    at : (n + 1,) int64, where each vertex's list begins, in bytes
    entries : number of (vertex, row) pairs
    data : the bytes, or None where they are in ``file``, an open scratch file
    """

    at: IntArray
    entries: int
    data: AnyArray | None
    file: int = -1

    @property
    def n(self) -> int:
        """Number of vertices."""
        return len(self.at) - 1

    def pieces(self) -> list[tuple[int, int]]:
        """(first, last) vertices of the blocks; depends on the lists alone, not on where they lie."""
        marks = np.arange(0, int(self.at[-1]) + BLOCK, BLOCK)
        cuts = np.unique(np.append(np.searchsorted(self.at[:-1], marks), self.n)).tolist()
        return [(a, b) for a, b in itertools.pairwise(cuts) if b > a]

    def read(self, first: int, last: int) -> Piece:
        """The lists of vertices ``first`` to ``last - 1``."""
        begin, end = int(self.at[first]), int(self.at[last])
        if self.data is not None:
            return Piece(first, last, begin, self.at, self.data[begin:end])
        got = read_at(self.file, end - begin, begin)
        if len(got) != end - begin:
            raise OSError(f"the scratch file ends {end - begin - len(got)} bytes early")
        return Piece(first, last, begin, self.at, np.frombuffer(got, np.uint8))


def charged_rows(graph: LogicGraph, every: bool) -> BoolArray:
    """(rows,) bool: the messages charged by their route tree that cost anything at all."""
    whole = np.ones(graph.rows, bool) if every else graph.multicast
    out: BoolArray = whole & (graph.rate > 0)
    return out


def incidence(
    graph: LogicGraph,
    charged: BoolArray,
    label: Int32Array,
    n: int,
    *,
    workers: int = 1,
    memory: int | None = None,
    scratch: Callable[[], int] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Incidence | None:
    """The incidence of the graph with nodes contracted to ``label`` (nodes,), ``n`` vertices; None if stopped.

    Parameters
    ----------
    charged : (rows,) bool, the rows to list
    memory : most bytes the lists may take in memory; what is longer goes to the file that ``scratch`` opens
    """
    length, seen = np.zeros(n, np.int64), np.full(n, -1, np.int32)
    entries = np.zeros(workers, np.int64)

    def lists(at: IntArray, data: AnyArray, rows: Rows, thread: int, begin: int, end: int) -> None:
        block = rows.first, rows.indptr, rows.source, rows.targets
        entries[thread] += _list(*block, charged, label, begin, end, seen, at, data)

    if not _walk(graph, workers, should_stop, 0, n, partial(lists, length, np.zeros(0, np.uint8))):
        return None
    many = int(entries.sum())
    at = starts(length)
    total = int(at[-1])
    room = total if memory is None else max(memory, int(length.max(initial=0)))
    file = -1 if total <= room or scratch is None else scratch()
    buffer = np.empty(min(total, room) if file >= 0 else total, np.uint8)
    first = 0
    while first < n:
        last = n if file < 0 else int(np.searchsorted(at, at[first] + room, side="right")) - 1
        seen[:] = -1
        free = at[:-1] - at[first]
        if not _walk(graph, workers, should_stop, first, last, partial(lists, free, buffer)):
            return None
        if file >= 0:
            write_at(file, buffer[: int(at[last] - at[first])].data, int(at[first]))
        first = last
    return Incidence(at, many, None if file >= 0 else buffer, file)


def at_once(
    pool: ThreadPoolExecutor, workers: int, begin: int, end: int, work: Callable[[int, int, int], object]
) -> None:
    """``work(thread, first, last)`` on equal parts of ``range(begin, end)``, one per thread, at the same time.

    The caller takes the first part: it would only wait else, and waking one more thread takes as long as a small part.
    """
    cuts = np.linspace(begin, end, workers + 1).astype(np.int64).tolist()
    jobs = [pool.submit(work, k, cuts[k], cuts[k + 1]) for k in range(1, workers)]
    work(0, cuts[0], cuts[1])
    for job in jobs:
        job.result()


def _walk(
    graph: LogicGraph, workers: int, should_stop: Callable[[], bool], begin: int, end: int, work: Callable[..., object]
) -> bool:  # fmt: skip
    """``work(rows, thread, first, last)`` for all blocks of the graph; each thread does a part of the vertices from
    ``begin`` to ``end - 1``. False if stopped."""
    with ThreadPoolExecutor(workers) as pool:
        for rows in graph.blocks(workers):
            if should_stop():
                return False
            at_once(pool, workers, begin, end, partial(work, rows))
    return True


@embedded
def gap_bytes(gap: int) -> int:
    """Bytes that a gap takes in a list."""
    size = 1
    while gap >= 128:
        gap >>= 7
        size += 1
    return size


@plain
def _list(
    first: int, indptr: IntArray, source: Int32Array, targets: Int32Array, charged: BoolArray, label: Int32Array,
    begin: int, end: int, seen: Int32Array, at: IntArray, data: AnyArray,
) -> int:  # fmt: skip
    """A block's rows for the lists of vertices ``begin`` to ``end - 1``; how many entries they make.

    The bytes are added to ``at`` (n,), or, with ``data``, written there from ``at`` on, which moves on.
    """
    many = 0
    for i in range(len(source)):
        row = first + i
        if not charged[row]:
            continue
        own = label[source[i]]
        for k in range(indptr[i], indptr[i + 1]):
            v = label[targets[k]]
            if v < begin or v >= end or v == own or seen[v] == row:
                continue
            gap = row - seen[v] - 1
            seen[v] = row
            many += 1
            at[v] = put(data, at[v], np.uint64(gap)) if len(data) else at[v] + gap_bytes(gap)
    return many


@embedded
def next_gap(data: AnyArray, k: int) -> tuple[int, int]:
    """The gap that begins at byte ``k``, and where the next one begins; nothing is checked."""
    byte = int(data[k])
    k += 1
    gap = byte & 127
    shift = 7
    while byte >= 128:
        byte = int(data[k])
        k += 1
        gap |= (byte & 127) << shift
        shift += 7
    return gap, k


@plain
def unpack(data: AnyArray, begin: int, end: int, out: Int32Array) -> int:
    """Decode one vertex's list into ``out``; returns its length."""
    k, row, many = begin, -1, 0
    while k < end:
        gap, k = next_gap(data, k)
        row += gap + 1
        out[many] = row
        many += 1
    return many


def one_list(lists: Incidence, v: int) -> Int32Array:
    """The rows that reach vertex ``v``, rising."""
    piece = lists.read(v, v + 1)
    out = np.empty(len(piece.data), np.int32)
    return out[: unpack(piece.data, 0, len(piece.data), out)]
