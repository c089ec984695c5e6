"""A mapping's messages as messages between cores; for verification only.

Nothing here holds more than a piece of the graph, so a graph that lies on disk is verified as it is read.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import coo_array, csr_array

from nmsolve.model.graph import LogicGraph, Rows, pieces
from nmsolve.model.machine import Machine
from nmsolve.model.types import BoolArray, FloatArray, IntArray

#: Most bytes of messages between cores that are kept from one walk to the next.
KEPT = 2**27
#: Most pairs of cores whose edges are summed before they are walked.
MOST_PAIRS = 2**22


class BetweenCores:
    """The messages of a mapping as messages between cores: its node ``p`` is core ``p``.

    Edges that are sent alone are summed over equal pairs of cores (row ``p`` for core ``p``), multicast rows keep a
    row each, with their distinct destination cores. No sum over links changes, and there is less to walk.

    Made block by block; the blocks are kept for the next time as far as ``KEPT`` bytes go, and made again otherwise.
    """

    def __init__(self, graph: LogicGraph, machine: Machine, core: IntArray) -> None:
        self.n, self.name = machine.size, graph.name
        self._graph, self._core = graph, core
        self._kept: list[Rows] | None = None

    def blocks(self, workers: int = 1) -> Iterator[Rows]:
        """Multicast rows in order; the sums of all other edges last, and in between where they get too many."""
        del workers  # the pieces are made one after the other
        if self._kept is not None:
            yield from self._kept
            return
        kept: list[Rows] | None = []
        size = 0
        for rows in self._made():
            size += sum(a.nbytes for a in rows[1:])
            if kept is not None and size <= KEPT:
                kept.append(rows)
            else:
                kept = None
            yield rows
        self._kept = kept

    def _made(self) -> Iterator[Rows]:
        dense = self.n**2 <= MOST_PAIRS
        total, sent = np.zeros(self.n**2 if dense else 0), np.zeros(self.n**2 if dense else 0, bool)
        alone = csr_array((self.n, self.n))
        first = 0
        for rows, row in pieces(self._graph):
            one = rows.multicast[row]
            p, q = self._core[rows.source[row]], self._core[rows.targets]
            here, many = (p != q) & ~one, (p != q) & one
            if dense:
                key = (p * self.n + q)[here]
                sent[key] = True
                total += np.bincount(key, rows.weights[here], self.n**2)
            elif here.any():
                alone = alone + self._sums(rows.weights[here], p[here], q[here], self.n)
            if alone.nnz > MOST_PAIRS:
                yield self._edges(alone)
                alone = csr_array((self.n, self.n))
            trees = np.flatnonzero(rows.multicast)
            if len(trees):
                number = np.cumsum(rows.multicast) - 1
                sums = self._sums(rows.weights[many], number[row[many]], q[many], len(trees))
                every = np.ones(len(trees), bool)
                yield _rows(first, sums, self._core[rows.source[trees]], every, rows.rate[trees])
                first += len(trees)
        if dense:
            key = np.flatnonzero(sent)
            alone = self._sums(total[key], key // self.n, key % self.n, self.n)
        yield self._edges(alone)

    def _edges(self, sums: csr_array) -> Rows:
        return _rows(0, sums, np.arange(self.n), np.zeros(self.n, bool), np.zeros(self.n))

    def _sums(self, weight: FloatArray, row: IntArray, q: IntArray, rows: int) -> csr_array:
        return coo_array((weight, (row, q)), shape=(rows, self.n)).tocsr()


def _rows(first: int, sums: csr_array, source: IntArray, multicast: BoolArray, rate: FloatArray) -> Rows:
    indptr, targets = sums.indptr.astype(np.int64), sums.indices.astype(np.int32)
    return Rows(first, indptr, source.astype(np.int32), targets, sums.data, multicast, rate)
