"""Connections of consecutive nodes, and what a batch of them wants: what passes over a level hand around."""

from __future__ import annotations

from typing import NamedTuple

from nmsolve.model.types import AnyArray, Int32Array, IntArray

#: Batches consist of runs of this many nodes, whose connections are adjacent in memory.
RUN = 16


class Arcs(NamedTuple):
    """Traffic of consecutive nodes: node ``first + i`` talks to ``neighbour[indptr[i]:indptr[i + 1]]``.

    indptr (k + 1,) int64, starting anywhere; neighbour int32; weight float32, both directions added up. Every
    connection is listed at both of its ends; a neighbour may be listed twice.
    """

    first: int
    indptr: IntArray
    neighbour: Int32Array
    weight: AnyArray

    @property
    def nodes(self) -> int:
        """Number of nodes of the block."""
        return len(self.indptr) - 1


class Batch(NamedTuple):
    """Where the nodes of the runs at ``first + offset``, ``first + offset + stride``, ... want to go: node ``first + i`` to
    ``to[i]``. ``nodes`` of the block; ``paid``: what those of the batch pay, ``rise``: what they would pay more (refinement).
    """

    first: int
    nodes: int
    offset: int
    to: Int32Array
    paid: float = 0.0
    rise: float = 0.0
