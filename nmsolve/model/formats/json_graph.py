"""Graphs as JSON: NetworkX node-link, or nmsolve's column form for large graphs and for hypergraphs; what others keep in JSON.

The forms are told apart by their keys; all are described in ``docs/files.md``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nmsolve.model.errors import InputError
from nmsolve.model.files import believed_nodes, decode_json, read_limited, write_atomic
from nmsolve.model.formats import json_columns, json_node_link
from nmsolve.model.formats.json_schema import Columns, Form, Net, NodeLink
from nmsolve.model.graph import LogicGraph
from nmsolve.model.network import Network

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

        return sonata_circuit.load(path)
    if isinstance(form.net, Net) and form.net.cells is not None:
        from nmsolve.model.formats import netpyne

        return netpyne.load(path)
    if form.nmsolve not in (None, 1):
        raise InputError(f"the file has version {form.nmsolve}", f"{path}: $.nmsolve", "1")
    if form.form == "columns":
        return json_columns.build(decode_json(data, Columns, path), path, believed_nodes(len(data)))
    if form.form != "node-link":
        raise InputError(f"found {form.form!r}", f"{path}: $.form", "'columns' or 'node-link'")
    return json_node_link.build(decode_json(data, NodeLink, path), path)


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


def save(graph: LogicGraph, path: Path) -> None:
    """Write node-link JSON; above a million edges, and for hypergraphs, the column form.

    Raises
    ------
    InputError : a file that cannot be written
    """
    import msgspec

    columns = not graph.one_row_per_node or graph.m > NODE_LINK_EDGES
    content = json_columns.content(graph) if columns else json_node_link.content(graph)
    write_atomic(path, msgspec.json.encode(content) + b"\n")
