"""A graph in blocks of messages, so that one of any size can be made in memory or stored.

Generators of large networks and readers of large files describe what they have as a :class:`Network`. :func:`graph` and
:func:`store` take the same blocks, so what is written to an ``.nmz`` file is the graph that memory would have held.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nmsolve.model.graph import LogicGraph, NodeKinds, row_max
from nmsolve.model.types import BoolArray, FloatArray, Int32Array, IntArray, starts

if TYPE_CHECKING:
    from nmsolve.model.store.block import Records

#: Connections of a block, about: a few arrays of this length are all that a source of blocks works on at a time.
BLOCK = 2**20
#: What a reader of connections in any order may hold at a time (bytes), beside the columns of its nodes; the rest is in a scratch
#: folder.
MEMORY = 2**29


class Connections(NamedTuple):
    """Connections of the next messages: (k + 1,) ``indptr``, and per connection neighbour, weight and synapses.

    Neighbours rise within a message. ``synapses`` is None where every connection is one synapse.
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
    messages : (n,) messages of every node, which follow one another in the order of nodes; None: one each
    multicast : of all messages, or (messages,)
    rate : (messages,), NaN for the largest weight of a message's connections; or None for that of all
    sizes : (n, len(resources)) int64, or None for ones; complete when the last block has been taken
    unit : every weight is a whole multiple of it; None if there is no such unit
    """

    n: int
    name: str
    blocks: Iterator[Connections]
    directed: bool = True
    multicast: bool | BoolArray = True
    messages: IntArray | None = None
    rate: FloatArray | None = None
    resources: tuple[str, ...] = ("neurons",)
    sizes: IntArray | None = None
    ids: tuple[str | int, ...] | None = None
    unit: float | None = None
    meta: dict[str, object] = field(default_factory=dict)
    kinds: NodeKinds | None = None

    @property
    def rows(self) -> int:
        """Number of messages."""
        return self.n if self.messages is None else int(self.messages.sum())

    def node_sizes(self) -> IntArray:
        """Return (n, resources)."""
        return np.ones((self.n, len(self.resources)), np.int64) if self.sizes is None else self.sizes

    def casts(self) -> BoolArray:
        """Return (messages,): whether each goes to all its targets at once."""
        return np.full(self.rows, self.multicast)


def graph(network: Network) -> LogicGraph:
    """Return the network in memory."""
    degree, neighbour, weight = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)], [np.zeros(0)]
    for block in network.blocks:
        degree.append(np.diff(block.indptr))
        neighbour.append(block.neighbour)
        weight.append(block.weight)
    indptr = starts(np.concatenate(degree))
    targets = np.concatenate(neighbour)
    neighbour.clear()
    weights = np.concatenate(weight)
    weight.clear()
    return LogicGraph(
        n=network.n,
        indptr=indptr,
        targets=targets,
        weights=weights,
        source=np.repeat(
            np.arange(network.n, dtype=np.int32), 1 if network.messages is None else network.messages
        ),
        multicast=network.casts(),
        rate=_rates(network.rate, row_max(indptr, weights)),
        resources=network.resources,
        sizes=network.node_sizes(),
        ids=network.ids,
        directed=network.directed,
        name=network.name,
        meta=network.meta,
        kinds=network.kinds,
    )


def _rates(stated: FloatArray | None, largest: FloatArray) -> FloatArray:
    """Return the rate of every message: the one stated, else its largest weight."""
    return largest if stated is None else np.where(np.isnan(stated), largest, stated)


def store(network: Network, path: Path, workers: int = 1) -> int:
    """Write the network to the ``.nmz`` file ``path`` block by block; returns the number of connections.

    Raises
    ------
    InputError : the file cannot be written
    """
    from nmsolve.model.store.writer import StoreWriter

    row = connections = 0
    largest = np.zeros(network.rows)
    needed = network.rate is None or bool(np.isnan(network.rate).any())
    with StoreWriter(
        path, vertices=network.n, name=network.name, directed=network.directed, weight_unit=network.unit,
        resources=network.resources, meta=network.meta, workers=workers,
    ) as writer:  # fmt: skip
        for block, tag in _by_node(network):
            writer.append(block.indptr, block.neighbour, block.weight, block.synapses, tag)
            if needed:
                largest[row : row + len(block.indptr) - 1] = row_max(block.indptr, block.weight)
            row += len(block.indptr) - 1
            connections += len(block.neighbour)
        writer.close(
            sizes=network.node_sizes(),
            rate=_rates(network.rate, largest),
            multicast=network.casts(),
            ids=network.ids,
            messages=network.messages,
            kinds=network.kinds,
        )
    return connections


def rows_of(records: Iterable[Records], rows: int, drop_loops: bool = False) -> Iterator[Connections]:
    """Yield the connections of rows ``0 .. rows - 1`` from records in any order; equal ones are added up.

    Raises
    ------
    InputError : the scratch disk is full; whatever ``records`` raises
    """
    from nmsolve.model.store.regroup import regrouped
    from nmsolve.model.store.scratch import Scratch

    with Scratch() as scratch:
        for block in regrouped(records, rows, memory=MEMORY, scratch=scratch, drop_loops=drop_loops):
            synapses = block.size if len(block.size) else None
            yield Connections(block.indptr, block.neighbour, block.weight, synapses)


def _by_node(network: Network) -> Iterator[tuple[Connections, Int32Array | None]]:
    """Yield the blocks with rows of whole nodes, and twice the number of each connection's message within its node."""
    if network.messages is None:
        for block in network.blocks:
            yield block, None
        return
    end = np.cumsum(network.messages)
    node, held = (
        0,
        Connections(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0), np.zeros(0, np.int32)),
    )
    for block in network.blocks:
        held = _joined(held, block)
        begin = int(end[node - 1]) if node else 0
        last = int(np.searchsorted(end, begin + len(held.indptr) - 1, side="right"))
        if last == node:
            continue
        now, held = _split(held, int(end[last - 1]) - begin)
        number = np.arange(len(now.indptr) - 1) - np.repeat(
            np.concatenate([[0], end])[node:last] - begin, network.messages[node:last]
        )
        tag = np.repeat(2 * number, np.diff(now.indptr)).astype(np.int32)
        rows = np.concatenate([[0], end[node:last] - begin])
        yield now._replace(indptr=now.indptr[rows]), tag
        node = last


def _joined(a: Connections, b: Connections) -> Connections:
    """Return the messages of ``a``, then those of ``b``."""
    return Connections(
        np.concatenate([a.indptr, b.indptr[1:] + a.indptr[-1]]),
        np.concatenate([a.neighbour, b.neighbour]),
        np.concatenate([a.weight, b.weight]),
        np.concatenate([_synapses(a), _synapses(b)]),
    )


def _split(block: Connections, rows: int) -> tuple[Connections, Connections]:
    """Return the first ``rows`` messages, and the others."""
    at, synapses = int(block.indptr[rows]), _synapses(block)
    return (
        Connections(block.indptr[: rows + 1], block.neighbour[:at], block.weight[:at], synapses[:at]),
        Connections(block.indptr[rows:] - at, block.neighbour[at:], block.weight[at:], synapses[at:]),
    )


def _synapses(block: Connections) -> Int32Array:
    return np.ones(len(block.neighbour), np.int32) if block.synapses is None else block.synapses
