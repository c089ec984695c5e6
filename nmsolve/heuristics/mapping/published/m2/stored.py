"""M2.1: topologies on disk, every level in a ``.nmz`` store of its own, one shard of it in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from nmsolve.heuristics.mapping.published.m2.topology import Piece, Topology, kinds, merged
from nmsolve.model.errors import NmsolveError
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.store.block import Block, Records, symmetric
from nmsolve.model.store.graph import StoredGraph
from nmsolve.model.store.reader import Store
from nmsolve.model.store.regroup import regrouped
from nmsolve.model.store.scratch import Scratch
from nmsolve.model.store.writer import StoreWriter
from nmsolve.model.types import Int32Array, IntArray, frozen

#: Bytes of a connection of a topology in memory while it is bisected: the arrays, and those of the induced halves.
EDGE_BYTES = 40
#: Bytes for sorting, and for the coarsest level, where no budget is given; least that sorting works with.
USUAL, LEAST = 2**28, 2**22


@dataclass(frozen=True)
class Disk:
    """Where levels go: the run's scratch folder, bytes that connections may take in memory, the unit of weights (None:
    floats), and what is called now and then and may raise to stop."""

    scratch: Scratch
    memory: int
    unit: float | None
    poll: Callable[[], None]


@dataclass(frozen=True)
class StoredTopology:
    """A :class:`~nmsolve.heuristics.mapping.published.m2.topology.Topology` whose connections are in level ``depth``'s file.

    Vertices are visited shard by shard in random order, in random order within a shard: the random order of the method, as
    far as it can be had without reading the file once per vertex.
    """

    store: Store
    sizes: IntArray
    kind: Int32Array
    disk: Disk
    depth: int

    @property
    def n(self) -> int:
        """Number of vertices."""
        return self.store.n

    @property
    def connections(self) -> int:
        """Connections, counted at both ends."""
        return self.store.connections

    def pieces(self, rng: np.random.Generator) -> Iterator[Piece]:
        """Yield the connections of all vertices, shard by shard in random order."""
        for block in self.store.blocks(rng.permutation(len(self.store.shards)).tolist()):
            self.disk.poll()
            yield Piece(block.first, frozen(block.indptr), frozen(block.neighbour), frozen(block.weight))

    def contracted(self, group: Int32Array, groups: int) -> StoredTopology:
        """Merge vertices of equal ``group`` (n,), 0..groups - 1, into a file of the next level.

        Raises
        ------
        InputError : the scratch disk is full
        """
        disk, none = self.disk, np.empty(0, np.int32)

        def records() -> Iterator[Records]:
            for block in self.store.blocks():
                disk.poll()
                fine = np.repeat(
                    np.arange(block.first, block.first + len(block.indptr) - 1), np.diff(block.indptr)
                )
                yield Records(group[fine], group[block.neighbour], block.weight, none)

        sizes, kind = merged(self.sizes, self.kind, group, groups)
        return _written(records(), groups, sizes, kind, disk, self.depth + 1)

    def loaded(self) -> Topology:
        """Return the same in memory, for what needs all connections at once (M2.3, M2.5 to M2.7 on few vertices).

        Raises
        ------
        NmsolveError : it does not fit in the memory left
        """
        need = EDGE_BYTES * self.connections
        if need > self.disk.memory:
            raise NmsolveError(
                f"{self.n} vertices with {self.connections} connections are left after coarsening and take "
                f"{need / 2**20:.0f} MiB to bisect, {self.disk.memory / 2**20:.0f} MiB are left"
            )
        blocks = list(self.store.blocks())
        indptr = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(b.indptr) for b in blocks]))])
        indices = np.concatenate([b.neighbour for b in blocks])
        return Topology(indptr, indices, np.concatenate([b.weight for b in blocks]), self.sizes, self.kind)


def stored_topology(
    problem: MappingProblem, scratch: Scratch, memory: int | None, poll: Callable[[], None]
) -> StoredTopology:
    """The symmetric traffic of a problem whose graph is on disk: level 0, sorted on disk.

    Parameters
    ----------
    memory : bytes that may be taken, or None: a quarter of a GiB for connections
    poll : called now and then, may raise to stop

    Raises
    ------
    NmsolveError : not even the nodes fit in memory
    InputError : the scratch disk is full
    """
    graph = problem.graph
    assert isinstance(graph, StoredGraph)
    nodes = problem.n * (8 * problem.sizes.shape[1] + 64)
    left = USUAL if memory is None else memory - nodes
    if left < LEAST:
        raise NmsolveError(f"the nodes alone take {nodes / 2**20:.0f} MiB here, more than --memory leaves")
    coding = graph.store.manifest.weight
    disk = Disk(scratch, left * 3 // 4, 1.0 / coding.per if coding.code == "integer" else None, poll)

    def watched() -> Iterator[Block]:
        for block in graph.store.blocks():
            poll()
            yield block

    return _written(symmetric(watched()), graph.n, problem.sizes, kinds(problem), disk, 0)


def _written(
    records: Iterator[Records], vertices: int, sizes: IntArray, kind: Int32Array, disk: Disk, depth: int
) -> StoredTopology:
    """Sort and merge connections into the file of a level."""
    path = disk.scratch.file(f"m2-{depth}.nmz")
    path.unlink(
        missing_ok=True
    )  # the groups of a placement are one level further than the coarsest, or than level 0
    rows = regrouped(records, vertices, memory=disk.memory // 2, scratch=disk.scratch, drop_loops=True)
    with StoreWriter(path, vertices=vertices, weight_unit=disk.unit) as writer:
        for block in rows:
            disk.poll()
            writer.append(block.indptr, block.neighbour, block.weight)
        writer.close()
    return StoredTopology(Store.open(path), frozen(sizes), frozen(kind), disk, depth)
