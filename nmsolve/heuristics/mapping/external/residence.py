"""Connections in a store: read block by block, with as many held decoded as memory allows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from nmsolve.heuristics.mapping.external.arcs import Arcs
from nmsolve.heuristics.mapping.external.sweep import Crew
from nmsolve.model.store.reader import Store
from nmsolve.model.types import IntArray

#: Shards are put together to blocks of about this many connections.
BLOCK_ARCS = 1 << 19
#: Bytes of a decoded connection.
ARC_BYTES = 8


class Streamed:
    """The connections of ``store``, each at both of its ends, read again in every pass.

    The first blocks that fit in what :meth:`hold` grants stay in memory: where all are visited in turn, that saves as many
    reads as any choice. The shards of a block are decoded at the same time. What is read does not depend on what is held.

    Parameters
    ----------
    block : connections of a block, about
    """

    def __init__(self, store: Store, crew: Crew, block: int = BLOCK_ARCS) -> None:
        self._store, self._left, self._crew = store, 0, crew
        self._held: dict[int, Arcs] = {}
        self._shards: list[list[int]] = []
        size = block
        for number, shard in enumerate(store.shards):
            if size >= block:
                self._shards.append([])
                size = 0
            self._shards[-1].append(number)
            size += shard.connections

    def apart(self, block: int) -> Streamed:
        """Return the same connections in blocks of another size; nothing is held."""
        return Streamed(self._store, self._crew, block)

    @property
    def count(self) -> int:
        """Number of blocks."""
        return len(self._shards)

    @property
    def arcs(self) -> int:
        """Number of connections, each counted at both ends."""
        return self._store.connections

    def hold(self, memory: int) -> None:
        """Keep decoded blocks in memory, up to this number of bytes."""
        self._left = memory

    @property
    def held(self) -> int:
        """Connections held in memory."""
        return sum(len(a.neighbour) for a in self._held.values())

    def blocks(self, order: IntArray | None = None) -> Iterator[Arcs]:
        """Yield all blocks once, in the order of their numbers or in ``order`` (count,)."""
        numbers: Sequence[int] = range(self.count) if order is None else order.tolist()
        for number in numbers:
            arcs = self._held.get(number)
            if arcs is None:
                arcs = self._read(self._shards[number])
                need = ARC_BYTES * (len(arcs.neighbour) + len(arcs.indptr))
                if need <= self._left:
                    self._held[number] = arcs
                    self._left -= need
            yield arcs

    def _read(self, shards: list[int]) -> Arcs:
        """Decode shards at the same time, into one block."""
        listed = [self._store.shards[i] for i in shards]
        ends = np.cumsum([s.connections for s in listed])
        indptr = np.zeros(sum(s.vertices for s in listed) + 1, np.int64)
        neighbour, weight = np.empty(ends[-1], np.int32), np.empty(ends[-1], np.float32)

        def decode(k: int) -> None:
            block = self._store.read(shards[k])
            begin, at = int(ends[k]) - listed[k].connections, block.first - listed[0].first
            neighbour[begin : ends[k]], weight[begin : ends[k]] = block.neighbour, block.weight
            indptr[at + 1 : at + len(block.indptr)] = block.indptr[1:] + begin

        numbers = range(len(shards))
        for _ in map(decode, numbers) if self._crew.pool is None else self._crew.pool.map(decode, numbers):
            pass
        return Arcs(listed[0].first, indptr, neighbour, weight)
