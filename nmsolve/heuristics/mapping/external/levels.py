"""One level of the semi-external multilevel search: what is known of every node, and its traffic in blocks.

Everything that has one entry per node is in memory; connections are handed out block by block by a *source*
(:class:`Resident` here, :class:`nmsolve.heuristics.mapping.external.residence.Streamed` where they are on disk).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from nmsolve.heuristics.mapping.external.arcs import Arcs
from nmsolve.heuristics.mapping.external.away import Away
from nmsolve.model.types import AnyArray, Int32Array, IntArray

#: Arcs of one block of a resident level: about 10 ms of work for one thread.
BLOCK_ARCS = 1 << 22


class Source(Protocol):
    """Hands out the connections of a level."""

    def blocks(self, order: IntArray | None = None) -> Iterator[Arcs]:
        """Yield all blocks once, in the order of their numbers or in ``order`` (count,)."""

    @property
    def count(self) -> int:
        """Number of blocks."""

    @property
    def arcs(self) -> int:
        """Number of connections, each counted at both ends."""


@dataclass(frozen=True, eq=False)
class Resident:
    """All connections in memory, as one CSR: ``indptr`` (n + 1,), ``neighbour`` and ``weight`` (arcs,)."""

    indptr: IntArray
    neighbour: Int32Array
    weight: AnyArray
    cuts: tuple[int, ...]

    @classmethod
    def of(cls, indptr: IntArray, neighbour: Int32Array, weight: AnyArray) -> Resident:
        """Cut connections (arcs,), split by ``indptr`` (n + 1,), into blocks of about :data:`BLOCK_ARCS`."""
        steps = max(1, round(len(neighbour) / BLOCK_ARCS))
        goal = np.arange(1, steps) * (len(neighbour) / steps)
        cuts = np.unique(np.concatenate([[0], np.searchsorted(indptr, goal), [len(indptr) - 1]]))
        return cls(indptr, neighbour, weight, tuple(int(c) for c in cuts))

    @property
    def count(self) -> int:
        """Number of blocks."""
        return len(self.cuts) - 1

    @property
    def arcs(self) -> int:
        """Number of connections, each counted at both ends."""
        return len(self.neighbour)

    def blocks(self, order: IntArray | None = None) -> Iterator[Arcs]:
        """Yield views of the blocks, in the order of their numbers or in ``order`` (count,)."""
        for b in range(self.count) if order is None else order.tolist():
            first, last = self.cuts[b], self.cuts[b + 1]
            yield Arcs(first, self.indptr[first : last + 1], self.neighbour, self.weight)


@dataclass(frozen=True, eq=False)
class Level:
    """A graph at one level of coarsening.

    sizes (n, R) int64; volume (n,) float32: share of a core that the node takes (largest over the resources);
    domain (n,) int32: row of the board's ``allowed``; apart_ptr, apart: CSR of nodes that may not share a core;
    away: other machines that hold the connections, too, and work for passes.
    """

    source: Source
    sizes: IntArray
    volume: AnyArray
    domain: Int32Array
    apart_ptr: IntArray
    apart: Int32Array
    away: Away | None = None

    @property
    def n(self) -> int:
        """Number of nodes."""
        return len(self.volume)

    @property
    def machines(self) -> int:
        """Number of other machines at work for passes; 0: this one is alone."""
        return 0 if self.away is None else self.away.machines
