"""nmsolve's own store ``.nmz`` (see ``docs/nmz.md``); this module only takes whole graphs in and out of it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from nmsolve.model.graph import LogicGraph
from nmsolve.model.store.coding import exact_coding, in_pieces
from nmsolve.model.store.graph import StoredGraph, load, open_graph
from nmsolve.model.store.writer import StoreWriter
from nmsolve.model.types import Int32Array, picked, starts

__all__ = ["load", "open_graph", "save"]


def save(graph: LogicGraph, path: Path) -> None:
    """Write a graph, from memory or from another store; reading it back gives the same hash.

    Raises
    ------
    InputError : a file that cannot be written
    """
    manifest = graph.store.manifest if isinstance(graph, StoredGraph) else None
    coding = exact_coding(in_pieces(graph.weights)) if manifest is None else manifest.weight
    workers = min(4, os.cpu_count() or 1)
    with StoreWriter(
        path,
        vertices=graph.n,
        name=graph.name,
        directed=graph.directed,
        directions="out" if manifest is None else manifest.directions,
        weight_unit=None if coding.code == "float" else 1 / coding.per,
        resources=graph.resources,
        meta=graph.meta,
        workers=workers,
    ) as writer:
        order = row = None
        if isinstance(graph, StoredGraph):
            row = graph.store.row
            for b in graph.store.blocks(workers=workers):
                writer.append(
                    b.indptr,
                    b.neighbour,
                    b.weight,
                    b.size if len(b.size) else None,
                    b.tag if len(b.tag) else None,
                )
        elif graph.one_row_per_node:
            writer.append(graph.indptr, graph.targets, graph.weights)
        else:
            order = row = np.argsort(graph.source, kind="stable")
            _append_nets(writer, graph, order)
        pick = slice(None) if order is None else order
        writer.close(
            sizes=graph.sizes,
            rate=graph.rate[pick],
            multicast=graph.multicast[pick],
            ids=graph.ids,
            messages=None if graph.one_row_per_node else np.bincount(graph.source, minlength=graph.n),
            row=row,
            identity=None if row is None else graph.hash,
            kinds=graph.kinds,
        )


def _append_nets(writer: StoreWriter, graph: LogicGraph, order: np.ndarray) -> None:
    """Write a hypergraph: the messages of each vertex after each other, numbered in the tag."""
    length = np.diff(graph.indptr)[order]
    source = graph.source[order]
    per_vertex = np.bincount(source, minlength=graph.n)
    first = np.cumsum(per_vertex) - per_vertex
    number = np.arange(graph.rows) - first[source]
    tag: Int32Array = np.repeat(2 * number, length).astype(np.int32)
    indptr = starts(np.bincount(source, weights=length, minlength=graph.n).astype(np.int64))
    pick = picked(graph.indptr, order)[1]
    writer.append(indptr, graph.targets[pick], graph.weights[pick], None, tag)
