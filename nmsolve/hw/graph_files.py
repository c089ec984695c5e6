"""A network with the core of every node, for programs that draw graphs: Graphviz (DOT) and GraphML."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from nmsolve.hw.cost import checked_core
from nmsolve.model.errors import InputError
from nmsolve.model.files import atomic_file, made_folder
from nmsolve.model.graph import LogicGraph, pieces
from nmsolve.model.machine import Machine
from nmsolve.model.types import AnyArray, IntArray

#: Edges that such programs may get at most: they draw thousands, not millions.
MOST_EDGES = 1_000_000
#: Attributes of nodes in GraphML, with their types.
ATTRIBUTES = {"id": "string", "core": "int", "row": "int", "column": "int"}


def export_graph(graph: LogicGraph, machine: Machine, core: AnyArray, folder: str | Path, form: str) -> Path:
    """Write ``graph.dot`` or ``graph.graphml`` into ``folder``, which is made if need be, and return its path.

    In DOT the nodes of a core are a cluster. Edges have their weights; a multicast message is an edge to each of its targets.

    Raises
    ------
    InputError : more than :data:`MOST_EDGES` edges, a wrong mapping, a folder that cannot be written
    """
    if graph.m > MOST_EDGES:
        raise InputError(
            f"{graph.m:,} edges", graph.name, f"at most {MOST_EDGES:,} for a program that draws graphs"
        )
    at = checked_core(graph, machine, core)
    target = made_folder(folder)
    path = target / f"graph.{form}"
    with atomic_file(path) as file:
        for text in {"dot": _dot, "graphml": _graphml}[form](graph, machine, at):
            file.write(text.encode())
    return path


def _edges(graph: LogicGraph) -> Iterator[tuple[int, int, float]]:
    for rows, row in pieces(graph):
        yield from zip(rows.source[row].tolist(), rows.targets.tolist(), rows.weights.tolist(), strict=True)


def quoted(text: str) -> str:
    """Return a string of DOT: quotes and backslashes are escaped, line breaks become ``\\n``."""
    inside = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "")
    return f'"{inside}"'


def _dot(graph: LogicGraph, machine: Machine, core: IntArray) -> Iterator[str]:
    yield f"{'digraph' if graph.directed else 'graph'} {quoted(graph.name)} {{\n  node [shape=box];\n"
    order = np.argsort(core, kind="stable")
    for p in np.unique(core).tolist():
        nodes = order[slice(*np.searchsorted(core[order], (p, p + 1)))].tolist()
        row, col = divmod(p, machine.cols)
        yield f'  subgraph cluster_{p} {{\n    label="core ({row}, {col})";\n'
        yield from (f"    n{i} [label={quoted(str(graph.node_id(i)))}];\n" for i in nodes)
        yield "  }\n"
    arrow = "->" if graph.directed else "--"
    yield from (f"  n{a} {arrow} n{b} [weight={w:.10g}];\n" for a, b, w in _edges(graph))
    yield "}\n"


def _graphml(graph: LogicGraph, machine: Machine, core: IntArray) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    for name, kind in ATTRIBUTES.items():
        yield f'  <key id="{name}" for="node" attr.name="{name}" attr.type="{kind}"/>\n'
    yield '  <key id="weight" for="edge" attr.name="weight" attr.type="double"/>\n'
    way = "directed" if graph.directed else "undirected"
    yield f'  <graph id={quoteattr(_xml(graph.name))} edgedefault="{way}">\n'
    for i, p in enumerate(core.tolist()):
        values = (str(graph.node_id(i)), p, *divmod(p, machine.cols))
        data = "".join(
            f'<data key="{k}">{escape(_xml(str(v)))}</data>' for k, v in zip(ATTRIBUTES, values, strict=True)
        )
        yield f'    <node id="n{i}">{data}</node>\n'
    for a, b, w in _edges(graph):
        yield f'    <edge source="n{a}" target="n{b}"><data key="weight">{w!r}</data></edge>\n'
    yield "  </graph>\n</graphml>\n"


def _xml(text: str) -> str:
    """Return a text without the control characters that XML has no way to write."""
    return "".join(c if c in "\t\n\r" or ord(c) >= 32 else "\ufffd" for c in text)
