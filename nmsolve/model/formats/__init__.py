"""Graph files: one module per format, chosen by the file's extension.

Every format module has ``load(path) -> LogicGraph`` and ``save(graph, path) -> None`` and raises
:class:`InputError` only. What a file says about its machine is kept in ``graph.meta`` (see
:mod:`nmsolve.model.formats.implied`).
"""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine

#: extension -> (module in this package, what it is)
FORMATS: dict[str, tuple[str, str]] = {
    ".json": ("json_graph", "node-link JSON as NetworkX writes it, or nmsolve's column form"),
    ".graph": ("metis", "METIS graph"),
    ".hgr": ("hmetis", "hMETIS hypergraph"),
    ".mtx": ("matrix_market", "Matrix Market coordinate or array"),
    ".dat": ("qaplib", "QAPLIB instance: traffic and distances"),
    ".npz": ("npz", "NumPy archive, written by nmsolve or compressed sparse rows"),
    ".nmz": ("nmz", "nmsolve's store: any size, any part of it without the rest"),
}


def load_graph(path: str | Path) -> LogicGraph:
    """Read a graph; the format is chosen by the extension.

    Raises
    ------
    InputError : unknown extension, or anything wrong with the file (with line or JSON path)
    """
    graph: LogicGraph = _module(path).load(Path(path))
    return graph


def save_graph(graph: LogicGraph, path: str | Path) -> None:
    """Write a graph; the format is chosen by the extension. An existing file survives any failure.

    Raises
    ------
    InputError : unknown extension, a graph the format cannot express, or a file that cannot be written
    """
    _module(path).save(graph, Path(path))


def load_instance(path: str | Path) -> tuple[LogicGraph, Machine | None]:
    """Read a graph and the machine its file implies, or None if it implies none.

    A QAPLIB file always implies one (the mesh, or the distance matrix); a JSON file does by ``graph.mesh``.
    """
    from nmsolve.model.formats.implied import implied_machine

    graph = load_graph(path)
    return graph, implied_machine(graph, str(path))


def _module(path: str | Path) -> ModuleType:
    extension = Path(path).suffix.lower()
    if extension not in FORMATS:
        import difflib

        close = difflib.get_close_matches(extension, FORMATS, n=1, cutoff=0.4)
        hint = f" (did you mean {close[0]}?)" if close else ""
        what = f"unknown extension {extension!r}{hint}" if extension else "the file name has no extension"
        raise InputError(what, str(path), "one of " + ", ".join(FORMATS))
    return importlib.import_module(f"nmsolve.model.formats.{FORMATS[extension][0]}")
