"""A logic graph on disk: vertices in memory, messages handed out in blocks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph, Rows
from nmsolve.model.host.memory import machine_memory
from nmsolve.model.store.block import Block
from nmsolve.model.store.reader import Store
from nmsolve.model.types import Int32Array, frozen, picked, starts

#: Bytes that a connection takes in memory: target and weight.
EDGE_BYTES = 12

_ON_DISK = ("indptr", "targets", "weights")


class StoredGraph(LogicGraph):
    """A :class:`LogicGraph` whose connections stay in its ``.nmz`` file.

    Everything about vertices and messages is in memory; connections come from :meth:`blocks`. Asking for ``indptr``,
    ``targets`` or ``weights`` (or what is made of them) raises :class:`InputError`. Messages are in the order of their
    vertices, which for hypergraphs need not be the order of the graph that was saved.

    Attributes
    ----------
    store : the open file
    """

    store: Store

    def __init__(self, store: Store) -> None:
        manifest = store.manifest
        values: dict[str, Any] = {
            "store": store,
            "n": store.n,
            "source": frozen(_sources(store)),
            "multicast": frozen(store.multicast),
            "rate": frozen(store.rate),
            "resources": tuple(manifest.resources),
            "sizes": frozen(store.sizes),
            "ids": store.ids,
            "kinds": store.kinds,
            "directed": manifest.directed,
            "name": manifest.name,
            "meta": dict(manifest.meta),
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)

    def __getattr__(self, name: str) -> Any:
        if name in _ON_DISK:
            raise InputError(
                f"the graph is on disk; in memory its connections need {needed_memory(self.store) / 2**30:.2f} GiB",
                str(self.store.path),
                "more memory for this",
            )
        raise AttributeError(name)

    @property
    def on_disk(self) -> bool:
        """True: see :meth:`blocks`."""
        return True

    def __reduce__(self) -> tuple[object, ...]:
        return open_graph, (self.store.path,)  # another process opens the file itself

    @property
    def m(self) -> int:
        """Number of stored edges."""
        return self.store.connections // (2 if self.store.manifest.directions == "both" else 1)

    @property
    def hash(self) -> str:  # type: ignore[override]
        """The hash that the file states; the graph in memory has the same (loading it checks that)."""
        return self.store.manifest.hash

    @cached_property
    def integral(self) -> bool:
        """True if weights are written as whole numbers and rates are whole."""
        weight = self.store.manifest.weight
        return weight.code == "integer" and weight.per == 1 and bool((self.rate == np.rint(self.rate)).all())

    @cached_property
    def one_row_per_node(self) -> bool:
        """True for ordinary graphs, False for hypergraphs."""
        return self.store.messages is None

    def blocks(self, workers: int = 1) -> Iterator[Rows]:
        """Yield all messages in order, one shard at a time; more than one of ``workers`` decode ahead."""
        message = 0
        for block in self.store.blocks(workers=workers):
            rows = _rows(self, block, message)
            message += len(rows.source)
            yield rows


def _sources(store: Store) -> Int32Array:
    """Return (messages,) vertex that sends each message."""
    vertices = np.arange(store.n, dtype=np.int32)
    return vertices if store.messages is None else np.repeat(vertices, store.messages)


def _rows(graph: StoredGraph, block: Block, message: int) -> Rows:
    """Return the outgoing connections of a block, cut into messages; its first one is number ``message`` of the graph."""
    k = len(block.indptr) - 1
    messages = graph.store.messages
    here = np.ones(k, np.int64) if messages is None else messages[block.first : block.first + k]
    indptr, neighbour, weight = block.indptr, block.neighbour, block.weight
    if messages is not None or len(block.tag):
        tag = block.tag if len(block.tag) else np.zeros(len(neighbour), np.int32)
        vertex = np.repeat(np.arange(k), np.diff(block.indptr))
        out = (tag & 1) == 0
        first = starts(here)
        row = first[vertex[out]] + (tag[out] >> 1)
        neighbour, weight = neighbour[out], weight[out]
        indptr = starts(np.bincount(row, minlength=int(first[-1])))
    end = message + len(indptr) - 1
    own = slice(message, end)
    return Rows(message, indptr, graph.source[own], neighbour, weight, graph.multicast[own], graph.rate[own])


def needed_memory(store: Store) -> int:
    """Return bytes that the graph takes when it is loaded, vertices included."""
    m = store.manifest
    edges = m.connections // (2 if m.directions == "both" else 1)
    return EDGE_BYTES * edges + 8 * m.vertices * len(m.resources) + 21 * m.messages


def open_graph(path: str | Path) -> StoredGraph:
    """Return the graph of a ``.nmz`` file, its connections left on disk.

    Raises
    ------
    InputError : see :meth:`nmsolve.model.store.reader.Store.open`
    """
    return StoredGraph(Store.open(path))


def load(path: str | Path) -> LogicGraph:
    """Return the graph of a ``.nmz`` file, in memory.

    Raises
    ------
    InputError : a file that is wrong in any way, or a graph that does not fit in this machine's memory
    """
    with Store.open(path) as store:
        need, have = needed_memory(store), machine_memory()
        if need > have:
            raise InputError(
                f"in memory the graph needs {need / 2**30:.1f} GiB, this machine has {have / 2**30:.1f}",
                str(path),
                "a graph that fits (or --memory, which leaves it on disk)",
            )
        return in_memory(StoredGraph(store), min(4, os.cpu_count() or 1))


def in_memory(stored: StoredGraph, workers: int) -> LogicGraph:
    """Return the graph with its connections in memory, messages in their original order. InputError for damaged data."""
    count = np.zeros(stored.rows, np.int64)
    targets, weights = np.empty(stored.m, np.int32), np.empty(stored.m)
    done = 0
    for rows in stored.blocks(workers):
        end = done + len(rows.targets)
        if end > stored.m:
            raise InputError("more outgoing connections than incoming ones", str(stored.store.path))
        targets[done:end], weights[done:end] = rows.targets, rows.weights
        count[rows.first : rows.first + len(rows.source)] = np.diff(rows.indptr)
        done = end
    indptr = starts(count)
    source, multicast, rate = stored.source, stored.multicast, stored.rate
    if stored.store.row is not None:
        order = np.argsort(stored.store.row)
        indptr, pick = picked(indptr, order)
        targets, weights = targets[pick], weights[pick]
        source, multicast, rate = source[order], multicast[order], rate[order]
    graph = LogicGraph(
        n=stored.n,
        indptr=indptr,
        targets=targets,
        weights=weights,
        source=source,
        multicast=multicast,
        rate=rate,
        resources=stored.resources,
        sizes=stored.sizes,
        ids=stored.ids,
        directed=stored.directed,
        name=stored.name,
        meta=stored.meta,
        kinds=stored.kinds,
    )
    if graph.hash != stored.hash:
        raise InputError(
            f"the content has hash {graph.hash}",
            str(stored.store.path),
            f"{stored.hash} as the manifest says",
        )
    return graph
