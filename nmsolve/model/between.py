"""A mapping's messages as messages to cores; for verification and pictures.

Nothing here holds more than a piece of the graph, so a graph on disk is verified as it is read, once.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import coo_array, csr_array

from nmsolve.model.compiled import kernel
from nmsolve.model.graph import LogicGraph, Rows, pieces
from nmsolve.model.machine import Machine
from nmsolve.model.types import FloatArray, Int32Array, IntArray, read_only

#: Most bytes of messages between cores that are kept from one walk to the next.
KEPT = 2**27
#: Most pairs of cores whose edges are summed before they are walked.
MOST_PAIRS = 2**22


class BetweenCores:
    """The messages of a mapping of ``n`` nodes as messages to cores: core ``p`` is the additional node ``n + p``.

    Multicast rows keep a row each, with their sender and their distinct destination cores (their own may be one). Edges
    that are sent alone are summed over equal pairs of cores; the sum leaves the first of them. No sum over links changes,
    and there is less to walk.

    Made block by block; the blocks are kept for the next time as far as ``KEPT`` bytes go, and made again otherwise.

    Attributes
    ----------
    n, at : number of nodes, cores included; (n,) the core of each
    graph, core : what is mapped, and (its nodes,) the core of each
    """

    def __init__(self, graph: LogicGraph, machine: Machine, core: IntArray) -> None:
        self.n, self.name = graph.n + machine.size, graph.name
        self.at: IntArray = np.concatenate([core, np.arange(machine.size)])
        self.graph, self.core, self._cores = graph, read_only(core), machine.size
        self._kept: list[Rows] | None = None

    def blocks(self, workers: int = 1) -> Iterator[Rows]:
        """Multicast rows in order; the sums of all other edges last, and in between where they get too many."""
        del workers  # the pieces are made one after the other
        if self._kept is not None:
            yield from self._kept
            return
        for _, finished in self._made():
            yield from finished

    def condensed(self) -> Iterator[Rows]:
        """All messages of the graph in order with their traffic by core: ``targets`` are distinct cores ``0..P - 1``."""
        for rows, _ in self._made():
            if rows is not None:
                yield rows

    def _made(self) -> Iterator[tuple[Rows | None, list[Rows]]]:
        """Pieces of :meth:`condensed` (None after the last), each with what is finished of :meth:`blocks`."""
        kept: list[Rows] | None = []
        size = 0
        for rows, finished in self._pieces():
            size += sum(a.nbytes for block in finished for a in block[1:])
            kept = kept + finished if kept is not None and size <= KEPT else None
            yield rows, finished
        self._kept = kept

    def _pieces(self) -> Iterator[tuple[Rows | None, list[Rows]]]:
        cores, first = self._cores, 0
        dense = cores**2 <= MOST_PAIRS
        total, sent = np.zeros(cores**2 if dense else 0), np.zeros(cores**2 if dense else 0, bool)
        alone = csr_array((cores, cores))
        for piece, _ in pieces(self.graph):
            fixed = piece.fixed
            indptr, targets, weights = _by_core(fixed.indptr, fixed.targets, fixed.weights, self.core, cores)
            rows = piece._replace(indptr=indptr, targets=targets, weights=weights)
            finished = []
            if rows.multicast.any():
                trees = self._trees(rows, first)
                first += len(trees.source)
                finished.append(trees)
            if not rows.multicast.all():
                row = np.repeat(np.arange(len(rows.source)), np.diff(indptr))
                home = self.core[rows.source[row]]
                here = ~rows.multicast[row] & (home != targets)
                key = (home * cores + targets)[here]
                if dense:
                    sent[key] = True
                    total += np.bincount(key, weights[here], cores**2)
                else:
                    alone = alone + self._sums(weights[here], key)
            if alone.nnz > MOST_PAIRS:
                finished.append(self._edges(alone))
                alone = csr_array((cores, cores))
            yield rows, finished
        if dense:
            key = np.flatnonzero(sent)
            alone = self._sums(total[key], key)
        yield None, [self._edges(alone)]

    def _trees(self, rows: Rows, first: int) -> Rows:
        """The multicast rows among ``rows``, from number ``first`` on."""
        one, count = rows.multicast, np.diff(rows.indptr)
        mine = np.repeat(one, count)
        indptr = np.concatenate([[0], np.cumsum(count[one])])
        to = (rows.targets[mine] + self.graph.n).astype(np.int32)
        return Rows(first, indptr, rows.source[one], to, rows.weights[mine], one[one], rows.rate[one])

    def _edges(self, sums: csr_array) -> Rows:
        """What cores send each other alone, one row per core."""
        n, none = self.graph.n, np.zeros(self._cores, bool)
        indptr, targets = sums.indptr.astype(np.int64), (sums.indices + n).astype(np.int32)
        source = np.arange(n, self.n, dtype=np.int32)
        return Rows(0, indptr, source, targets, sums.data, none, np.zeros(self._cores))

    def _sums(self, weight: FloatArray, key: IntArray) -> csr_array:
        pairs = key // self._cores, key % self._cores
        return coo_array((weight, pairs), shape=(self._cores, self._cores)).tocsr()


@kernel
def _by_core(
    indptr: IntArray, targets: Int32Array, weights: FloatArray, core: IntArray, cores: int
) -> tuple[IntArray, Int32Array, FloatArray]:
    """The rows with their targets replaced by cores, each core once: starts of the rows, cores, summed weights."""
    start, to, weight = (
        np.zeros(len(indptr), np.int64),
        np.empty(len(targets), np.int32),
        np.empty(len(targets)),
    )
    place = np.full(cores, -1, np.int64)
    end = 0
    for i in range(len(indptr) - 1):
        for j in range(indptr[i], indptr[i + 1]):
            q = core[targets[j]]
            if place[q] < start[i]:  # not in this row yet
                place[q] = end
                to[end], weight[end] = q, weights[j]
                end += 1
            else:
                weight[place[q]] += weights[j]
        start[i + 1] = end
    return start, to[:end].copy(), weight[:end].copy()
