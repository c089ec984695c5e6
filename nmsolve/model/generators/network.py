"""A generated network in blocks of nodes, so that one of any size can be made: put together in memory, or stored.

Every generator of large networks describes itself as a :class:`Network`. :func:`graph` and :func:`store` take the same
blocks, so what is written to an ``.nmz`` file is the graph that memory would have held.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nmsolve.model.graph import LogicGraph, row_max
from nmsolve.model.types import BoolArray, FloatArray, Int32Array, IntArray

#: Connections of a block, about: a few arrays of this length are all that a generator works on at a time.
BLOCK = 2**20


class Connections(NamedTuple):
    """Connections of the next nodes: (k + 1,) ``indptr``, and per connection neighbour, weight and synapses.

    Neighbours rise within a node. ``synapses`` is None where every connection is one synapse.
    """

    indptr: IntArray
    neighbour: Int32Array
    weight: FloatArray
    synapses: Int32Array | None = None


@dataclass
class Network:
    """What a :class:`LogicGraph` says of its nodes, and the connections in blocks (to be taken once).

    Attributes
    ----------
    rate : (n,), or None for the largest weight of each node's connections
    sizes : (n, len(resources)) int64, or None for ones; complete when the last block has been taken
    unit : every weight is a whole multiple of it; None if there is no such unit
    """

    n: int
    name: str
    blocks: Iterator[Connections]
    directed: bool = True
    multicast: bool = True
    rate: FloatArray | None = None
    resources: tuple[str, ...] = ("neurons",)
    sizes: IntArray | None = None
    ids: tuple[str | int, ...] | None = None
    unit: float | None = None
    meta: dict[str, object] = field(default_factory=dict)

    def node_sizes(self) -> IntArray:
        """(n, resources)."""
        return np.ones((self.n, len(self.resources)), np.int64) if self.sizes is None else self.sizes

    def casts(self) -> BoolArray:
        """(n,): whether each node sends one message to all its targets."""
        return np.full(self.n, self.multicast)


def graph(network: Network) -> LogicGraph:
    """The network in memory."""
    degree, neighbour, weight = [], [], []
    for block in network.blocks:
        degree.append(np.diff(block.indptr))
        neighbour.append(block.neighbour)
        weight.append(block.weight)
    indptr = np.zeros(network.n + 1, np.int64)
    np.cumsum(np.concatenate(degree), out=indptr[1:])
    targets = np.concatenate(neighbour)
    neighbour.clear()
    weights = np.concatenate(weight)
    weight.clear()
    return LogicGraph(
        n=network.n,
        indptr=indptr,
        targets=targets,
        weights=weights,
        source=np.arange(network.n, dtype=np.int32),
        multicast=network.casts(),
        rate=row_max(indptr, weights) if network.rate is None else network.rate,
        resources=network.resources,
        sizes=network.node_sizes(),
        ids=network.ids,
        directed=network.directed,
        name=network.name,
        meta=network.meta,
    )


def store(network: Network, path: Path, workers: int = 1) -> int:
    """Write the network to the ``.nmz`` file ``path`` block by block; returns the number of connections.

    Raises
    ------
    InputError : the file cannot be written
    """
    from nmsolve.model.store import StoreWriter

    rate = np.zeros(network.n) if network.rate is None else network.rate
    first = connections = 0
    with StoreWriter(
        path, vertices=network.n, name=network.name, directed=network.directed, weight_unit=network.unit,
        resources=network.resources, meta=network.meta, workers=workers,
    ) as writer:  # fmt: skip
        for block in network.blocks:
            writer.append(block.indptr, block.neighbour, block.weight, block.synapses)
            last = first + len(block.indptr) - 1
            if network.rate is None:
                rate[first:last] = row_max(block.indptr, block.weight)
            first, connections = last, connections + len(block.neighbour)
        writer.close(sizes=network.node_sizes(), rate=rate, multicast=network.casts(), ids=network.ids)
    return connections
