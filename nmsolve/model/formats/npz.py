"""NumPy archives ``.npz``: everything a :class:`LogicGraph` holds, or plain compressed sparse rows.

*Our own keys*: the array fields of :class:`LogicGraph` and ``header``, a JSON text with the rest.

*Plain rows*: ``indptr``, ``indices`` and optionally ``weights`` and ``vwgt`` hold an undirected graph with each
edge at both ends, as METIS wants it. A directed fan-out that may be beside it (``d_indptr``, ``d_indices``,
``rate``) is *not* read: the undirected part is the same traffic with both directions added up, and it is what other
partitioners are given. ``meta["fan_out"]`` says that there was one.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.files import write_atomic
from nmsolve.model.formats.npz_members import check_length, indices_of, numbers_of, read_members, row_starts
from nmsolve.model.formats.npz_own import OWN, own_graph, own_members, stream
from nmsolve.model.formats.symmetric import each_edge_once
from nmsolve.model.graph import LogicGraph
from nmsolve.model.types import AnyArray, IntArray

__all__ = ["load", "save", "stream"]


def load(path: Path) -> LogicGraph:
    """Read an archive of either kind. Pickled objects are never loaded.

    Raises
    ------
    InputError : truncated or damaged, a member that is missing or unpacks to more than it may, arrays that do not
        fit together
    """
    arrays = read_members(path, {*OWN, "indices", "vwgt"})
    if "header" in arrays:
        return own_graph(arrays, path)
    return _plain(arrays, path)


def _plain(arrays: dict[str, AnyArray], path: Path) -> LogicGraph:
    """Return an undirected graph with each edge at both ends."""
    entries = len(numbers_of(arrays, "indices", path))
    indptr = row_starts(arrays, path, entries)
    n = len(indptr) - 1
    indices = indices_of(arrays, "indices", path, n)
    weights = numbers_of(arrays, "weights", path) if "weights" in arrays else np.ones(entries)
    check_length(weights, entries, "weights", path)
    sizes: IntArray | None = None
    resources: tuple[str, ...] = ("neurons",)
    if "vwgt" in arrays:
        vwgt = arrays["vwgt"].reshape(len(arrays["vwgt"]), -1) if arrays["vwgt"].ndim else np.zeros((0, 1))
        if vwgt.dtype.kind not in "iu" or len(vwgt) != n or (vwgt < 0).any():
            raise InputError(f"found {vwgt.dtype} {vwgt.shape}", f"{path}: vwgt", f"{n} whole numbers >= 0")
        sizes = np.ascontiguousarray(vwgt, np.int64)
        resources = ("neurons", *(f"weight{i + 1}" for i in range(1, sizes.shape[1])))
    meta: dict[str, object] = (
        {"fan_out": "there is a directed fan-out, not read"} if "fan_out" in arrays else {}
    )
    edges = each_edge_once(indptr, indices, weights, lambda u: f"{path}: row {u}", 0)
    return LogicGraph.from_edges(
        len(indptr) - 1, *edges, directed=False, resources=resources, sizes=sizes, name=path.stem, meta=meta
    )


def save(graph: LogicGraph, path: Path) -> None:
    """Write everything the graph holds, compressed; reading it back gives the same hash.

    Raises
    ------
    InputError : a file that cannot be written
    """
    buffer = io.BytesIO()
    arrays: dict[str, Any] = own_members(graph)
    np.savez_compressed(buffer, **arrays)
    write_atomic(path, buffer.getvalue())
