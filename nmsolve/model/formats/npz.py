"""NumPy archives ``.npz``: everything a :class:`LogicGraph` holds, a sparse matrix of SciPy, or plain compressed sparse rows.

*Our own keys*: the array fields of :class:`LogicGraph` and ``header``, a JSON text with the rest.

*SciPy*: what ``scipy.sparse.save_npz`` writes, with a member ``format`` (:mod:`.npz_scipy`).

*Plain rows*: ``indptr``, ``indices`` and optionally ``weights`` (or ``data``) and ``vwgt`` hold an undirected graph with each
edge at both ends, as METIS wants it. A directed fan-out that may be beside it (``d_indptr``, ``d_indices``,
``rate``) is *not* read: the undirected part is the same traffic with both directions added up, and it is what other
partitioners are given.
"""

from __future__ import annotations

import io
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.files import write_atomic
from nmsolve.model.formats.npz_members import (
    check_length,
    indices_of,
    numbers_of,
    read_members,
    row_starts,
    warn_of_members,
)
from nmsolve.model.formats.npz_own import MEMBERS, OWN, own_graph, own_members, own_network
from nmsolve.model.formats.npz_scipy import COMMON, LAYOUTS, layout_of, scipy_graph
from nmsolve.model.formats.reading import AS_IT_IS, GraphReading
from nmsolve.model.formats.symmetric import each_edge_once
from nmsolve.model.graph import LogicGraph
from nmsolve.model.network import Network
from nmsolve.model.types import AnyArray, IntArray

OPTIONS = ("pattern", "absolute")
#: Members of plain rows.
PLAIN: tuple[str, ...] = ("indptr", "indices", "weights", "data", "vwgt")


def load(path: Path, reading: GraphReading = AS_IT_IS) -> LogicGraph:
    """Read an archive of any kind. Pickled objects are never loaded. An ``InputWarning`` names members that are passed over.

    Raises
    ------
    InputError : truncated or damaged, a member that is missing or unpacks to more than it may, arrays that do not
        fit together, an option of ``reading`` for what is no matrix of SciPy
    """
    arrays, others = read_members(path, {*OWN, *PLAIN, *COMMON, *chain.from_iterable(LAYOUTS.values())})
    known: tuple[str, ...]
    if "header" in arrays:
        known, kind = OWN, MEMBERS
    elif "format" in arrays:
        layout = layout_of(arrays, path)
        known, kind = (*COMMON, *LAYOUTS[layout]), f"the members of a {layout} matrix as SciPy writes it"
    else:
        known, kind = PLAIN, ", ".join(PLAIN)
    warn_of_members([name for name in (*arrays, *others) if name not in known], path, kind)
    if known is not OWN and known is not PLAIN:
        return scipy_graph(arrays, path, reading)
    reading.require(
        ("multicast",), path, "this archive, which is no matrix of SciPy (it has no member format)"
    )
    return own_graph(arrays, path) if known is OWN else _plain(arrays, path)


def stream(path: Path, reading: GraphReading = AS_IT_IS) -> Network | None:
    """Return the network of an archive of ours in blocks; None for what is read into memory.

    Raises
    ------
    InputError : as :func:`load`
    """
    network = own_network(path)
    if network is not None:
        reading.require(("multicast",), path, "an archive of nmsolve")
    return network


def _plain(arrays: dict[str, AnyArray], path: Path) -> LogicGraph:
    """Return an undirected graph with each edge at both ends."""
    if "weights" in arrays and "data" in arrays:
        raise InputError("members weights and data", str(path), "one of them: the weight of every entry")
    key = "data" if "data" in arrays else "weights"
    entries = len(numbers_of(arrays, "indices", path))
    indptr = row_starts(arrays, path, entries)
    n = len(indptr) - 1
    indices = indices_of(arrays, "indices", path, n)
    weights = numbers_of(arrays, key, path) if key in arrays else np.ones(entries)
    check_length(weights, entries, key, path)
    sizes: IntArray | None = None
    resources: tuple[str, ...] = ("neurons",)
    if "vwgt" in arrays:
        vwgt = arrays["vwgt"].reshape(len(arrays["vwgt"]), -1) if arrays["vwgt"].ndim else np.zeros((0, 1))
        if vwgt.dtype.kind not in "iu" or len(vwgt) != n or (vwgt < 0).any():
            raise InputError(f"found {vwgt.dtype} {vwgt.shape}", f"{path}: vwgt", f"{n} whole numbers >= 0")
        sizes = np.ascontiguousarray(vwgt, np.int64)
        resources = ("neurons", *(f"weight{i + 1}" for i in range(1, sizes.shape[1])))
    edges = each_edge_once(indptr, indices, weights, lambda u: f"{path}: row {u}", 0)
    return LogicGraph.from_edges(
        len(indptr) - 1, *edges, directed=False, resources=resources, sizes=sizes, name=path.stem
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
