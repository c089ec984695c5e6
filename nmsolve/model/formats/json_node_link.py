"""Node-link JSON: one object per node and per edge."""

from __future__ import annotations

from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from nmsolve.model.errors import InputError, doubtful, listed
from nmsolve.model.formats.json_parts import Edge, NodeIndex, NodeLink, amounts
from nmsolve.model.formats.json_sizes import node_sizes
from nmsolve.model.graph import LogicGraph, NodeKinds, node_kinds, row_max
from nmsolve.model.types import BoolArray, FloatArray, IntArray


def build(content: NodeLink, path: Path) -> LogicGraph:
    """Return the graph that a decoded node-link file describes.

    Raises
    ------
    InputError : with the JSON path of the node or edge
    """
    nodes, where = content.nodes, str(path)
    if not nodes:
        raise InputError("the graph has no nodes", f"{where}: $.nodes", "at least one node")
    index = NodeIndex(_ids(nodes, where), f"{where}: $.nodes", ".id")
    source, target, weight = _edges(content, index, where)
    multicast, rate = _messages(nodes, content.directed, where)
    resources, sizes = node_sizes(nodes, content.graph, where)
    graph = LogicGraph.from_edges(
        len(nodes),
        source,
        target,
        weight,
        directed=content.directed,
        multicast=multicast,
        resources=resources,
        sizes=sizes,
        ids=index.ids,
        name=str(content.graph.get("name") or path.stem),
        meta={k: v for k, v in content.graph.items() if k != "name"},
        kinds=_kinds(nodes, where),
    )
    repeated = int((source != target).sum()) - graph.m
    if repeated and not content.multigraph:
        what = f"edges that are there before, perhaps the other way round: {repeated}; their weights are added up"
        doubtful(what, f"{where}: $.edges", 'each edge once, or "multigraph": true')
    return graph if rate is None else _with_rate(graph, rate)


def _with_rate(graph: LogicGraph, rate: FloatArray) -> LogicGraph:
    """Return the graph with the given rates (NaN: not given) for its multicast rows."""
    from dataclasses import replace

    largest = row_max(graph.indptr, graph.weights)
    return replace(graph, rate=np.where(graph.multicast & ~np.isnan(rate), rate, largest))


def _ids(nodes: list[dict[str, Any]], where: str) -> list[int | str]:
    out: list[int | str] = []
    for i, node in enumerate(nodes):
        v = node.get("id")
        if type(v) is not int and type(v) is not str:
            keys = ", ".join(k[:40] for k in list(node)[:5]) or "none"
            what = f"the node has no id (keys: {keys})" if "id" not in node else f"found {v!r}"
            raise InputError(what, f"{where}: $.nodes[{i}].id", "text or a whole number")
        out.append(v)
    return out


def _edges(content: NodeLink, index: NodeIndex, where: str) -> tuple[IntArray, IntArray, FloatArray]:
    key = "edges" if content.edges is not None else "links"
    edges: list[Edge] | None = content.edges if content.edges is not None else content.links
    if edges is None:
        raise InputError("the file has no edges", f"{where}: $", "a list called edges (or links)")
    if content.edges is not None and content.links is not None:
        raise InputError("the file has both edges and links", f"{where}: $", "one of them")
    place = f"{where}: $.{key}"
    source = index.lookup(list(map(attrgetter("source"), edges)), place, ".source")
    target = index.lookup(list(map(attrgetter("target"), edges)), place, ".target")
    weights = list(map(attrgetter("weight"), edges))
    try:
        weight = amounts(weights, place, ".weight")
    except InputError:
        amounts(weights, place, ".weight", [f"edge {e.source!r} -> {e.target!r}" for e in edges])
        raise
    return source, target, weight


def _messages(
    nodes: list[dict[str, Any]], directed: bool, where: str
) -> tuple[BoolArray | None, FloatArray | None]:
    """Return (n,) multicast flags and rates (NaN where not given), or None where no node states one."""
    keys = set(chain.from_iterable(nodes))
    multicast = rate = None
    if "multicast" in keys:
        flags = [node.get("multicast", False) for node in nodes]
        for i, flag in enumerate(flags):
            if flag not in (False, True):
                raise InputError(f"found {flag!r}", f"{where}: $.nodes[{i}].multicast", "true or false")
            if flag and not directed:
                raise InputError(
                    "a multicast node in an undirected graph",
                    f"{where}: $.nodes[{i}].multicast",
                    'false, or "directed": true',
                )
        multicast = np.array(flags, bool)
    if "rate" in keys:
        given = [node.get("rate", 0.0) for node in nodes]
        for i, value in enumerate(given):
            if not isinstance(value, int | float) or isinstance(value, bool):
                raise InputError(f"found {value!r}", f"{where}: $.nodes[{i}].rate", "a number >= 0")
        amounts(given, f"{where}: $.nodes", ".rate")
        rate = np.array([node.get("rate", np.nan) for node in nodes], np.float64)
        unused = [str(node["id"]) for node in nodes if node.get("rate") and not node.get("multicast")]
        if unused:
            what = f"the rate of {listed('node', unused)} not used: it sends a message per edge"
            doubtful(what, f"{where}: $.nodes", '"multicast": true beside a rate')
    return multicast, rate


def _kinds(nodes: list[dict[str, Any]], where: str) -> NodeKinds | None:
    """Return the kinds of the nodes, or None where none states one."""
    stated = next((i for i, node in enumerate(nodes) if "kind" in node), None)
    if stated is None:
        return None
    for i, node in enumerate(nodes):
        if type(node.get("kind")) not in (int, str):
            what = f"found {node['kind']!r}" if "kind" in node else f"no kind, but node {stated} has one"
            raise InputError(what, f"{where}: $.nodes[{i}].kind", "text or a whole number, of every node")
    return node_kinds([node["kind"] for node in nodes])


def content(graph: LogicGraph) -> dict[str, object]:
    """Return what a node-link file of an ordinary graph holds, ready for encoding."""
    ids = list(range(graph.n)) if graph.ids is None else list(graph.ids)
    nodes: list[dict[str, object]] = [{"id": v} for v in ids]
    for u in np.flatnonzero(graph.multicast).tolist():
        nodes[u]["multicast"] = True
        nodes[u]["rate"] = _number(float(graph.rate[u]))
    if graph.kinds is not None:
        for node, k in zip(nodes, graph.kinds.of.tolist(), strict=True):
            node["kind"] = graph.kinds.names[k]
    if graph.resources != ("neurons",) or bool((graph.sizes != 1).any()) or "resources" in graph.meta:
        for node, row in zip(nodes, graph.sizes.tolist(), strict=True):
            node["sizes"] = dict(zip(graph.resources, row, strict=True))
    columns = (graph.edge_source.tolist(), graph.targets.tolist(), graph.weights.tolist())
    edges = [
        {"source": ids[u], "target": ids[v], "weight": _number(w)} for u, v, w in zip(*columns, strict=True)
    ]
    return {
        "directed": graph.directed,
        "multigraph": False,
        "graph": {"name": graph.name, **graph.meta},
        "nodes": nodes,
        "edges": edges,
    }


def _number(value: float) -> int | float:
    """Whole numbers are written without a decimal point."""
    return int(value) if value.is_integer() and abs(value) < 2**53 else value
