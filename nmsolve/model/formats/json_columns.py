"""The column form of graph JSON: one list per property, for large graphs and hypergraphs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.formats.json_parts import (
    Columns,
    EdgeColumns,
    NetColumns,
    NodeColumns,
    NodeIndex,
    amounts,
    whole,
)
from nmsolve.model.graph import LogicGraph, compress_rows, node_kinds, row_max
from nmsolve.model.types import BoolArray, FloatArray, IntArray


def build(content: Columns, path: Path, most: int) -> LogicGraph:
    """Return the graph that a decoded column file describes; ``most`` nodes are believed that no column bears out.

    Raises
    ------
    InputError : with the JSON path of the value
    """
    where = str(path)
    n = _count(content.nodes, where, most)
    ids = content.nodes.id if content.nodes.id is not None else range(n)
    index = NodeIndex(ids, f"{where}: $.nodes.id")
    resources, sizes = _sizes(content.nodes, n, where)
    if content.nets is not None and content.edges is None:
        parts = _net_rows(content.nets, index, f"{where}: $.nets")
    elif content.edges is not None and content.nets is None:
        parts = _edge_rows(content.edges, content.nodes, content.directed, index, where)
    else:
        raise InputError("the file has both edges and nets, or neither", f"{where}: $", "exactly one of them")
    source, rows, targets, weights, multicast, rate = parts
    keep = source[rows] != targets
    if not content.directed and content.nets is None:
        rows, targets = np.minimum(rows, targets), np.maximum(rows, targets)
    indptr, columns, values = compress_rows(len(source), rows[keep], targets[keep], weights[keep], n)
    largest = row_max(indptr, values)
    return LogicGraph(
        n=n,
        indptr=indptr,
        targets=columns,
        weights=values,
        source=source.astype(np.int32),
        multicast=multicast,
        rate=largest if rate is None else np.where(multicast, rate, largest),
        resources=resources,
        sizes=sizes,
        ids=index.ids,
        directed=content.directed,
        name=str(content.graph.get("name") or path.stem),
        meta={k: v for k, v in content.graph.items() if k != "name"},
        kinds=None if content.nodes.kind is None else node_kinds(content.nodes.kind),
    )


def _count(nodes: NodeColumns, where: str, most: int) -> int:
    """Return the number of nodes, the same in every column."""
    lengths = {
        "id": nodes.id,
        "multicast": nodes.multicast,
        "rate": nodes.rate,
        "kind": nodes.kind,
        **{f"sizes.{r}": column for r, column in nodes.sizes.items()},
    }
    known = {key: len(column) for key, column in lengths.items() if column is not None}
    if nodes.n is None and not known:
        raise InputError("no column of nodes", f"{where}: $.nodes", "n, or at least one column")
    n = nodes.n if nodes.n is not None else next(iter(known.values()))
    for key, length in known.items():
        if length != n:
            raise InputError(f"{length} values", f"{where}: $.nodes.{key}", f"{n}, one per node")
    if n < 1 or (not known and n > most):
        raise InputError(f"{n} nodes", f"{where}: $.nodes.n", f"1..{most} in a file of this size")
    return n


def _sizes(nodes: NodeColumns, n: int, where: str) -> tuple[tuple[str, ...], IntArray]:
    if not nodes.sizes:
        return ("neurons",), np.ones((n, 1), np.int64)
    columns = []
    for name, values in nodes.sizes.items():
        bad = next((i for i, v in enumerate(values) if not 0 <= v < 2**62), None)
        if bad is not None:
            whole(values[bad], f"{where}: $.nodes.sizes.{name}[{bad}]")
        columns.append(np.array(values, np.int64))
    return tuple(nodes.sizes), np.ascontiguousarray(np.stack(columns, axis=1))


Rows = tuple[IntArray, IntArray, IntArray, FloatArray, BoolArray, FloatArray | None]


def _edge_rows(edges: EdgeColumns, nodes: NodeColumns, directed: bool, index: NodeIndex, where: str) -> Rows:
    """Return rows of an ordinary graph: ``(row source, row of edge, target, weight, multicast, rate)``."""
    n = index.n
    source = index.lookup(edges.source, f"{where}: $.edges.source")
    target = index.lookup(edges.target, f"{where}: $.edges.target")
    weight = _column(edges.weight, len(source), f"{where}: $.edges.weight")
    if len(target) != len(source):
        raise InputError(f"{len(target)} values", f"{where}: $.edges.target", f"{len(source)}, as in source")
    multicast = np.zeros(n, bool) if nodes.multicast is None else np.array(nodes.multicast, bool)
    if not directed and multicast.any():
        u = int(np.argmax(multicast))
        raise InputError(
            "a multicast node in an undirected graph", f"{where}: $.nodes.multicast[{u}]", "false"
        )
    rate = None if nodes.rate is None else amounts(nodes.rate, f"{where}: $.nodes.rate")
    return np.arange(n), source, target, weight, multicast, rate


def _net_rows(nets: NetColumns, index: NodeIndex, where: str) -> Rows:
    """Return rows of a hypergraph, in the same shape."""
    source = index.lookup(nets.source, f"{where}.source")
    target = index.lookup(nets.target, f"{where}.target")
    indptr = np.array([min(max(v, -1), len(target) + 1) for v in nets.indptr], np.int64)
    rows = len(source)
    if len(indptr) != rows + 1 or indptr[0] != 0 or indptr[-1] != len(target) or (np.diff(indptr) < 0).any():
        raise InputError(
            "indptr does not split the targets into one run per net",
            f"{where}.indptr",
            f"{rows + 1} rising numbers from 0 to {len(target)}",
        )
    weight = _column(nets.weight, len(target), f"{where}.weight")
    multicast = np.ones(rows, bool)
    if nets.multicast is not None:
        multicast = np.array(nets.multicast, bool)
        if len(multicast) != rows:
            raise InputError(f"{len(multicast)} values", f"{where}.multicast", f"{rows}, one per net")
    rate = None if nets.rate is None else _column(nets.rate, rows, f"{where}.rate")
    return source, np.repeat(np.arange(rows), np.diff(indptr)), target, weight, multicast, rate


def _column(values: list[float] | None, length: int, where: str) -> FloatArray:
    """Return (length,) numbers >= 0; ones if the column is not there."""
    if values is None:
        return np.ones(length)
    if len(values) != length:
        raise InputError(f"{len(values)} values", where, str(length))
    return amounts(values, where)


def content(graph: LogicGraph) -> dict[str, object]:
    """Return what a column file of any graph holds, ready for encoding."""
    ids = np.arange(graph.n) if graph.ids is None else np.array(graph.ids, dtype=object)
    nodes: dict[str, object] = {"n": graph.n}
    if graph.ids is not None:
        nodes["id"] = list(graph.ids)
    if graph.kinds is not None:
        nodes["kind"] = [graph.kinds.names[k] for k in graph.kinds.of.tolist()]
    nodes["sizes"] = {r: graph.sizes[:, i].tolist() for i, r in enumerate(graph.resources)}
    out: dict[str, object] = {
        "nmsolve": 1,
        "form": "columns",
        "directed": graph.directed,
        "graph": {"name": graph.name, **graph.meta},
        "nodes": nodes,
    }
    target, weight = ids[graph.targets].tolist(), graph.weights.tolist()
    if graph.one_row_per_node:
        if graph.multicast.any():
            nodes["multicast"], nodes["rate"] = graph.multicast.tolist(), graph.rate.tolist()
        out["edges"] = {"source": ids[graph.edge_source].tolist(), "target": target, "weight": weight}
    else:
        out["nets"] = {
            "indptr": graph.indptr.tolist(),
            "source": ids[graph.source].tolist(),
            "target": target,
            "weight": weight,
            "rate": graph.rate.tolist(),
            "multicast": graph.multicast.tolist(),
        }
    return out
