"""The hash of a graph whose connections pass by once: the same that :attr:`LogicGraph.hash` has in memory."""

from __future__ import annotations

import hashlib

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.graph import array_digest, combined_hash
from nmsolve.model.store.columns import Columns
from nmsolve.model.types import FloatArray, Int32Array, IntArray


class Identity:
    """Takes the connections of all vertices in order, then says the hash. Incoming ones (odd tags) are skipped."""

    def __init__(self) -> None:
        self._targets, self._weights = hashlib.sha256(), hashlib.sha256()
        self._lengths: list[
            tuple[Int32Array, Int32Array | None, Int32Array]
        ] = []  # vertex, message (or 0), length

    def add(
        self, first: int, indptr: IntArray, tag: Int32Array, neighbour: Int32Array, weight: FloatArray
    ) -> None:
        """Connections of vertices ``first``, ``first + 1``, ... as in a block; weights as a reader will get them."""
        vertex = np.arange(first, first + len(indptr) - 1, dtype=np.int32)
        message, length = None, np.diff(indptr).astype(np.int32)
        if len(tag):
            out = (tag & 1) == 0
            neighbour, weight = neighbour[out], weight[out]
            sender, number = np.repeat(vertex, length)[out], tag[out] >> 1
            new = np.ones(len(number), bool)
            new[1:] = (sender[1:] != sender[:-1]) | (number[1:] != number[:-1])
            start = np.flatnonzero(new)
            vertex, message = sender[start], number[start]
            length = np.diff(start, append=len(number)).astype(np.int32)
        self._targets.update(np.ascontiguousarray(neighbour).data)
        self._weights.update(np.ascontiguousarray(weight).data)
        self._lengths.append((vertex, message, length))

    def value(
        self,
        n: int,
        directed: bool,
        resources: tuple[str, ...],
        columns: Columns,
        where: str,
    ) -> str:
        """The hash, given everything else about the graph.

        Raises
        ------
        InputError : a connection of a message that its vertex lacks; ``where`` is the place to name
        """
        many = np.ones(n, np.int64) if columns.messages is None else columns.messages
        indptr = self._row_starts(many, where)
        source = np.repeat(np.arange(n, dtype=np.int32), many)
        digests = [array_digest(indptr), self._targets.digest(), self._weights.digest()]
        digests += [array_digest(a) for a in (source, columns.multicast, columns.rate, columns.sizes)]
        return combined_hash(n, directed, resources, columns.ids, digests)

    def _row_starts(self, many: IntArray, where: str) -> IntArray:
        """(messages + 1,) where the targets of each message begin."""
        first = np.cumsum(many) - many
        indptr = np.zeros(int(many.sum()) + 1, np.int64)
        for vertex, message, length in self._lengths:
            used = length > 0
            number = 0 if message is None else message[used]
            if (number >= many[vertex[used]]).any():
                raise InputError("a connection of a message that its vertex lacks", where)
            indptr[first[vertex[used]] + number + 1] = length[used]
        np.cumsum(indptr, out=indptr)
        return indptr
