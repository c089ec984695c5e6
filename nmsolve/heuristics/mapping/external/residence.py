"""Connections that lie in a store: read block by block, as many as there is memory for held decoded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from nmsolve.heuristics.mapping.external.levels import Arcs
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
    """

    def __init__(self, store: Store, crew: Crew) -> None:
        self._store, self._left, self._crew = store, 0, crew
        self._held: dict[int, Arcs] = {}
        self._shards: list[list[int]] = []
        size = BLOCK_ARCS
        for number, shard in enumerate(store.shards):
            if size >= BLOCK_ARCS:
                self._shards.append([])
                size = 0
            self._shards[-1].append(number)
            size += shard.connections

    @property
    def count(self) -> int:
        """Number of blocks."""
        return len(self._shards)

    @property
    def arcs(self) -> int:
        """Number of connections, each counted at both ends."""
        return self._store.connections

    def hold(self, memory: int) -> None:
        """Let decoded blocks stay in memory, so many bytes of them."""
        self._left = memory

    @property
    def held(self) -> int:
        """Number of blocks held in memory."""
        return len(self._held)

    def blocks(self, order: IntArray | None = None) -> Iterator[Arcs]:
        """All blocks once, in the order of their numbers or the one given."""
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
        parts = list(
            map(self._decoded, shards)
            if self._crew.pool is None
            else self._crew.pool.map(self._decoded, shards)
        )
        if len(parts) == 1:
            return parts[0]
        degrees = np.concatenate([np.diff(p.indptr) for p in parts])
        indptr = np.zeros(len(degrees) + 1, np.int64)
        np.cumsum(degrees, out=indptr[1:])
        return Arcs(
            parts[0].first,
            indptr,
            np.concatenate([p.neighbour for p in parts]),
            np.concatenate([p.weight for p in parts]),
        )

    def _decoded(self, shard: int) -> Arcs:
        block = self._store.read(shard)
        return Arcs(block.first, block.indptr, block.neighbour, block.weight.astype(np.float32))
