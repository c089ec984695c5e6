"""Graphs as JSON: NetworkX node-link, or nmsolve's column form for large graphs and for hypergraphs; what others keep in JSON.

The forms are told apart by their keys; all are described in ``docs/files.md``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import msgspec

from nmsolve.model.errors import InputError, name_unread
from nmsolve.model.files import believed_nodes, convert_json, decode_json, read_limited, write_atomic
from nmsolve.model.formats import json_columns, json_node_link
from nmsolve.model.formats.json_parts import Columns, Edge, Form, Net, NodeLink
from nmsolve.model.graph import LogicGraph
from nmsolve.model.network import Network, graph

T = TypeVar("T", NodeLink, Columns)
#: Keys of ``graph`` that have a meaning.
ATTRIBUTES = ("name", "mesh", "chips", "capacity", "distances", "resources", "traffic", "constant")
#: No configuration of a circuit is longer (bytes).
LARGEST_CONFIG = 2**26
#: Graphs with more edges than this are written in the column form.
NODE_LINK_EDGES = 1_000_000


def load(path: Path) -> LogicGraph:
    """Read any JSON form.

    Raises
    ------
    InputError : not JSON, a value of the wrong type, an unknown or repeated node, a negative or non-finite
        number; each with its JSON path
    """
    data = read_limited(path)
    form = decode_json(data, Form, path)
    if _is_circuit(form, data, path):
        from nmsolve.model.formats import sonata_circuit

        return graph(sonata_circuit.stream(path))
    if _is_netpyne(form, data, path):
        from nmsolve.model.formats import netpyne

        return netpyne.load(path)
    if form.nmsolve not in (None, 1):
        raise InputError(f"the file has version {form.nmsolve}", f"{path}: $.nmsolve", "1")
    if form.form not in ("columns", "node-link"):
        raise InputError(f"found {form.form!r}", f"{path}: $.form", "'columns' or 'node-link'")
    try:
        if form.form == "columns":
            return json_columns.build(_known(data, Columns, path), path, believed_nodes(len(data)))
        return json_node_link.build(_known(data, NodeLink, path), path)
    except InputError:
        other = _other_form(data, path)
        if other is None:
            raise
        what = "node-link JSON, as networkx.node_link_data writes it"
        raise InputError(f"this is {other}", str(path), what) from None


def _known(data: bytes, shape: type[T], path: Path) -> T:
    """Decode a file; keys that have no meaning in ``shape`` are passed over with a warning."""
    try:
        out = decode_json(data, shape, path)
    except InputError as error:
        if "unknown field" not in error.what:
            raise
        out = _stripped(data, shape, path)
    kept = (key for key in out.graph if key not in ATTRIBUTES)
    name_unread("key", kept, f"{path}: $.graph", ", ".join(ATTRIBUTES))
    return out


def _stripped(data: bytes, shape: type[T], path: Path) -> T:
    """Decode a file without the keys at its top and of its edges that ``shape`` does not have, and name them in a warning."""
    content, edges = decode_json(data, dict[str, Any], path), {}
    unread = [key for key in content if key not in shape.__struct_fields__]
    for key in unread:
        del content[key]
    for name in ("edges", "links"):
        for edge in content[name] if isinstance(content.get(name), list) else ():
            for key in edge.keys() - Edge.__struct_fields__ if isinstance(edge, dict) else ():
                edges[key] = name
                del edge[key]
    out = convert_json(content, shape, path)
    name_unread("key", unread, f"{path}: $", ", ".join(shape.__struct_fields__))
    where = f"{path}: $.{next(iter(edges.values()), '')}"
    name_unread("key", sorted(edges), where, ", ".join(Edge.__struct_fields__))
    return out


def _other_form(data: bytes, path: Path) -> str | None:
    """Return the name of another well-known form of graphs in JSON, by its keys."""
    content = decode_json(data, dict[str, Any], path)
    graph = content.get("graph")
    if "elements" in content:
        return "Cytoscape's JSON"
    if "adjacency" in content:
        return "NetworkX's adjacency data"
    if "graphs" in content or (isinstance(graph, dict) and "nodes" in graph):
        return "JSON Graph Format"
    return None


def stream(path: Path) -> Network | None:
    """Return a SONATA circuit in blocks; None for forms that are read into memory.

    Raises
    ------
    InputError : as :func:`load`
    """
    if not path.is_file() or path.stat().st_size > LARGEST_CONFIG:
        return None
    data = read_limited(path)
    if not _is_circuit(decode_json(data, Form, path), data, path):
        return None
    from nmsolve.model.formats import sonata_circuit

    return sonata_circuit.stream(path)


def _is_circuit(form: Form, data: bytes, path: Path) -> bool:
    """Return whether a file is a SONATA circuit, or a simulation of one."""
    if isinstance(form.networks, dict):
        return "nodes" in form.networks
    simulation = isinstance(form.network, str) or isinstance(form.run, dict)
    return simulation and "nodes" not in decode_json(data, dict[str, Any], path)


def _is_netpyne(form: Form, data: bytes, path: Path) -> bool:
    """Return whether NetPyNE saved a file, perhaps without its cells."""
    if isinstance(form.net, Net) and form.net.cells is not None:
        return True
    mark = isinstance(form.simConfig, dict) or isinstance(form.net, Net)
    return mark and "nodes" not in decode_json(data, dict[str, Any], path)


def save(graph: LogicGraph, path: Path) -> None:
    """Write node-link JSON; above a million edges, and for hypergraphs, the column form.

    Raises
    ------
    InputError : a file that cannot be written
    """
    columns = not graph.one_row_per_node or graph.m > NODE_LINK_EDGES
    content = json_columns.content(graph) if columns else json_node_link.content(graph)
    write_atomic(path, msgspec.json.encode(content) + b"\n")
