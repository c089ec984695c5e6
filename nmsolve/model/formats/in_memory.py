"""Graphs of other packages as they are in memory: NetworkX, SciPy sparse matrices, NumPy arrays.

None of these packages is imported here: an object of a package that was not loaded cannot exist.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec
import numpy as np

from nmsolve.model.errors import InputError, name_unread
from nmsolve.model.formats import load_graph
from nmsolve.model.formats.json_node_link import build
from nmsolve.model.formats.json_parts import Edge, NodeLink, as_float
from nmsolve.model.formats.matrix import Entries, matrix_graph
from nmsolve.model.graph import LogicGraph
from nmsolve.model.types import AnyArray, repeat_of

if TYPE_CHECKING:
    import networkx
    import scipy.sparse

#: What is taken for a graph.
GraphLike: TypeAlias = (
    "LogicGraph | str | Path | networkx.Graph | scipy.sparse.sparray | scipy.sparse.spmatrix | AnyArray"
)

#: For messages.
ACCEPTED = "a LogicGraph, a path, a networkx graph, a scipy.sparse matrix or a square NumPy array"


class Named(NamedTuple):
    """A graph; ``nodes`` (n) are what its nodes are called where it comes from, ``path`` is its file, None if it has none."""

    graph: LogicGraph
    nodes: Sequence[Hashable]
    path: Path | None = None


def named_graph(given: GraphLike) -> Named:
    """Return the graph that ``given`` is.

    Parameters
    ----------
    given : a graph, a file (:func:`nmsolve.load_graph`), or

        * a NetworkX graph. Edge attribute ``weight`` (1 if missing); parallel edges are summed. Node and graph attributes mean
          what they mean in node-link JSON (docs/files.md): ``neurons`` and other resources, ``multicast``, ``rate``, ``mesh``.
        * a SciPy sparse matrix or array, or a NumPy array, (n, n): entry [i, j] is what node i sends to node j

    Raises
    ------
    InputError : something else; not square; no nodes; a weight that is no finite number >= 0; nodes that look the same in text
    """
    if isinstance(given, LogicGraph):
        return Named(given, _ids(given))
    if isinstance(given, str | Path):
        graph = load_graph(given)
        return Named(graph, _ids(graph), Path(given))
    nx, sparse = sys.modules.get("networkx"), sys.modules.get("scipy.sparse")
    if nx is not None and isinstance(given, nx.Graph):
        return _of_networkx(given)
    if sparse is not None and sparse.issparse(given):
        matrix: Any = given
        _require_square(matrix.shape, "sparse matrix")
        matrix = matrix.tocoo()
        row, col = matrix.coords if hasattr(matrix, "coords") else (matrix.row, matrix.col)
        return _of_matrix(matrix.shape, row, col, matrix.data, "sparse matrix")
    if isinstance(given, np.ndarray):
        _require_square(given.shape, "array")
        row, col = np.nonzero(given)
        return _of_matrix(given.shape, row, col, np.asarray(given)[row, col], "array")
    raise InputError(f"a {type(given).__name__} is no graph", "", ACCEPTED)


def _ids(graph: LogicGraph) -> Sequence[Hashable]:
    return range(graph.n) if graph.ids is None else graph.ids


def _of_networkx(given: Any) -> Named:
    """Read it by the rules of node-link JSON."""
    nodes = tuple(given.nodes)
    ids = dict(zip(nodes, _texts(nodes), strict=True))
    attributes = {k: _plain(v) for k, v in given.graph.items() if isinstance(k, str) and _writable(_plain(v))}
    where = str(attributes.get("name") or "networkx graph")
    content = NodeLink(
        nodes=[
            {**{k: _plain(v) for k, v in data.items() if isinstance(k, str)}, "id": ids[v]}
            for v, data in given.nodes(data=True)
        ],
        directed=given.is_directed(),
        multigraph=given.is_multigraph(),
        graph={**attributes, "name": where},
        edges=[
            Edge(ids[u], ids[v], _weight(data.get("weight", 1.0), u, v, where))
            for u, v, data in given.edges(data=True)
        ],
    )
    unread = sorted({str(k) for *_, data in given.edges(data=True) for k in data if k != "weight"})
    name_unread("attribute", unread, f"{where}: edges", "weight")
    return Named(build(content, Path(where)), nodes)


def _texts(nodes: Iterable[Hashable]) -> list[int | str]:
    """Return what files call the nodes: whole numbers and text stay, anything else is written as text."""
    out: list[int | str] = []
    for v in nodes:
        whole = isinstance(v, int | np.integer) and not isinstance(v, bool)
        out.append(int(v) if whole else v if isinstance(v, str) else str(v))  # type: ignore[call-overload]
    if (k := repeat_of(out)) is not None:
        raise InputError(f"two nodes are written {out[k]!r}", "", "nodes that differ as text")
    return out


def _plain(value: Any) -> Any:
    """Return NumPy's scalars and arrays as Python's, also inside lists and dicts."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value


def _writable(value: Any) -> bool:
    """Return whether a file can hold the value; what it cannot hold says nothing about the network."""
    try:
        msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError, OverflowError):
        return False
    return True


def _weight(value: Any, u: Hashable, v: Hashable, where: str) -> float:
    value = _plain(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"edge {u!r} -> {v!r} has weight {value!r}", where, "a finite number >= 0")
    return as_float(value)


def _require_square(shape: tuple[int, ...], what: str) -> None:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise InputError(f"the shape is {tuple(shape)}", what, "(n, n): what every node sends to every other")


def _of_matrix(shape: tuple[int, ...], row: AnyArray, col: AnyArray, value: AnyArray, what: str) -> Named:
    """Build a directed graph from entries: [i, j] is what node i sends to node j."""
    entries = Entries(shape[0], row, col, value, directed=True)
    graph = matrix_graph(entries, what, what, lambda i, j: f"entry [{i}, {j}]")
    return Named(graph, range(graph.n))
