"""What a NIR file says: kinds of nodes, their parameters, and edges, as its HDF5 groups have them.

Source: https://neuroir.org/docs and the package nir 1.0.8, which is not used here: it adds inputs to subgraphs, and refuses
grouped convolutions in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from nmsolve.model.errors import InputError, doubtful, name_unread

_WINDOW = ("weight", "bias", "stride", "padding", "dilation", "groups", "input_shape")
_POOL = ("kernel_size", "stride", "padding")

#: Parameters by kind of node.
PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "Affine": ("weight", "bias"), "Linear": ("weight",), "Conv1d": _WINDOW, "Conv2d": _WINDOW, "SumPool2d": _POOL,
    "AvgPool2d": _POOL, "Input": ("shape",), "Output": ("shape",), "Scale": ("scale",), "Delay": ("delay",),
    "Threshold": ("threshold",), "Flatten": ("input_type", "start_dim", "end_dim"), "I": ("r",),
    "IF": ("r", "v_threshold", "v_reset"), "LI": ("tau", "r", "v_leak"),
    "LIF": ("tau", "r", "v_leak", "v_threshold", "v_reset"), "CubaLI": ("tau_syn", "tau_mem", "r", "v_leak", "w_in"),
    "CubaLIF": ("tau_syn", "tau_mem", "r", "v_leak", "v_threshold", "v_reset", "w_in"),
}  # fmt: skip

#: Kind of a graph, and its members.
GRAPH, MEMBERS = "NIRGraph", ("nodes", "edges")

#: Beginnings of the versions that this was written for.
VERSIONS = ("0.", "1.")


@dataclass(frozen=True)
class Node:
    """A node that is no graph: its kind, and its parameters as arrays, numbers or texts."""

    kind: str
    parameters: Mapping[str, Any]

    def __getitem__(self, name: Any) -> Any:
        """Return a parameter. ValueError if it is missing."""
        if name not in self.parameters:
            raise ValueError(f"its {name!r} is missing")
        return self.parameters[name]


class Graph(NamedTuple):
    """Nodes by name, and the edges between them, each once."""

    nodes: dict[str, Node | Graph]
    edges: list[tuple[str, str]]


def read_graph(file: Any, where: str) -> Graph:
    """Return the graph in an open HDF5 file; what is not known in it is named in a warning.

    Raises
    ------
    InputError : no graph, a kind of node that is not known, edges that are no pairs of names
    """
    if "node" not in file:
        held = "recorded data" if _text(file.attrs.get("__type__")) == "NIRGraphData" else "no graph"
        raise InputError(f"it holds {held}", where, "the group 'node' of a NIR graph")
    _name_unknown(file, ("version", "node"), "the file", where)
    version = _text(file["version"][()]) if "version" in file else VERSIONS[0]
    if not version.startswith(VERSIONS):
        doubtful(f"it is of version {version[:40]!r} of NIR", where, "version 0 or 1")
    content = _node(file["node"], "", where)
    if isinstance(content, Node):
        raise InputError(f"its outermost node is of kind {content.kind}", where, f"a {GRAPH}")
    return content


def _node(group: Any, name: str, where: str) -> Node | Graph:
    """Return the node that a group holds; ``name`` is its own with those of the graphs around it."""
    said = f"node {name!r}" if name else "the graph"
    if not hasattr(group, "keys") or "type" not in group:
        raise InputError(f"{said} has no type", where, f"one of {', '.join((*PARAMETERS, GRAPH))}")
    kind = _text(group["type"][()])
    if kind == GRAPH:
        return _graph(group, name, where)
    if kind not in PARAMETERS:
        raise InputError(f"{said} has the kind {kind[:80]}", where, ", ".join(PARAMETERS))
    _name_unknown(group, ("type", "metadata", *PARAMETERS[kind]), f"{said} ({kind})", where)
    return Node(kind, {key: _value(group[key]) for key in PARAMETERS[kind] if key in group})


def _graph(group: Any, name: str, where: str) -> Graph:
    said = f"the graph {name!r}" if name else "the graph"
    _name_unknown(group, ("type", "metadata", *MEMBERS), said, where)
    for member in MEMBERS:
        if member not in group:
            raise InputError(f"{said} has no {member}", where, " and ".join(MEMBERS))
    prefix = f"{name}." if name else ""
    nodes = {str(key): _node(item, prefix + str(key), where) for key, item in group["nodes"].items()}
    pairs = group["edges"][()]
    if pairs.size and (pairs.ndim != 2 or pairs.shape[1] != 2):
        raise InputError(f"the edges of {said} have shape {pairs.shape}", where, "pairs of names")
    edges: dict[tuple[str, str], None] = {}
    for a, b in pairs if pairs.size else ():
        edge = (_text(a), _text(b))
        if edge in edges:
            doubtful(
                f"the edge from {edge[0]!r} to {edge[1]!r} of {said} is stated twice", where, "each edge once"
            )
        edges[edge] = None
    return Graph(nodes, list(edges))


def _name_unknown(group: Any, known: tuple[str, ...], said: str, where: str) -> None:
    unknown = [str(key) for key in (*group, *group.attrs) if key not in known]
    name_unread(f"member of {said}", unknown, where, ", ".join(known))


def _value(dataset: Any) -> Any:
    """Return an array or a number, or a text."""
    value = dataset[()]
    return _text(value) if isinstance(value, bytes | str) else value


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
