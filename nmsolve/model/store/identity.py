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
        #: First vertex, or sender and number of each message; and lengths of the messages.
        self._lengths: list[tuple[int | tuple[Int32Array, Int32Array], Int32Array]] = []

    def add(
        self, first: int, indptr: IntArray, tag: Int32Array, neighbour: Int32Array, weight: FloatArray
    ) -> None:
        """Connections of vertices ``first``, ``first + 1``, ... as in a block; weights as a reader will get them."""
        length = np.diff(indptr).astype(np.int32)
        place: int | tuple[Int32Array, Int32Array] = first
        if len(tag):
            out = (tag & 1) == 0
            neighbour, weight = neighbour[out], weight[out]
            sender = np.repeat(np.arange(first, first + len(length), dtype=np.int32), length)[out]
            number = tag[out] >> 1
            new = np.ones(len(number), bool)
            new[1:] = (sender[1:] != sender[:-1]) | (number[1:] != number[:-1])
            start = np.flatnonzero(new)
            place = sender[start], number[start]
            length = np.diff(start, append=len(number)).astype(np.int32)
        self._targets.update(np.ascontiguousarray(neighbour).data)
        self._weights.update(np.ascontiguousarray(weight).data)
        self._lengths.append((place, length))

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
        for place, length in self._lengths:
            used = np.flatnonzero(length)
            sender, number = (place + used, np.zeros(1, np.int32)) if isinstance(place, int) else place
            if (number >= many[sender]).any():
                raise InputError("a connection of a message that its vertex lacks", where)
            indptr[first[sender] + number + 1] = length[used]
        np.cumsum(indptr, out=indptr)
        return indptr
