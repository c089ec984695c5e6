"""NumPy archives ``.npz``: everything a :class:`LogicGraph` holds, a sparse matrix of SciPy, or plain compressed sparse rows.

*Our own keys*: the array fields of :class:`LogicGraph` and ``header``, a JSON text with the rest.

*SciPy*: what ``scipy.sparse.save_npz`` writes, with a member ``format``: csr, csc, coo, bsr and dia, as matrices or arrays, read
without SciPy's own loader. A symmetric matrix is an undirected graph, any other a directed one (row -> column).

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
from nmsolve.model.files import believed_nodes, write_atomic
from nmsolve.model.formats.matrix import Entries, each_edge_once, matrix_graph
from nmsolve.model.formats.npz_members import (
    check_length,
    indices_of,
    numbers_of,
    read_members,
    row_starts,
    warn_of_members,
)
from nmsolve.model.formats.npz_own import MEMBERS, OWN, own_graph, own_members, own_network
from nmsolve.model.formats.reading import AS_IT_IS, GraphReading
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


#: Members beside ``data``, by layout.
LAYOUTS: dict[str, tuple[str, ...]] = {
    "csr": ("indptr", "indices"),
    "csc": ("indptr", "indices"),
    "bsr": ("indptr", "indices"),
    "coo": ("row", "col", "coords"),
    "dia": ("offsets",),
}
#: Members of every archive.
COMMON = ("format", "shape", "data", "_is_array")


def scipy_graph(arrays: dict[str, AnyArray], path: Path, reading: GraphReading) -> LogicGraph:
    """Return the graph of an archive's members.

    Raises
    ------
    InputError : an unknown layout, not square, members that do not fit together, or entries as in :mod:`.matrix`
    """
    layout, n = layout_of(arrays, path), _size(arrays, path)
    if "data" not in arrays:
        raise InputError("there is no member 'data'", str(path), f"the entries of a {layout} matrix")
    if layout == "coo":
        row, col, value = _of_coordinates(arrays, path, n)
    elif layout == "dia":
        row, col, value = _of_diagonals(arrays, path, n)
    else:
        row, col, value = _of_blocks(arrays, path, n, layout)
    entries = Entries(n, row, col, value, directed=None)
    return matrix_graph(entries, path.stem, str(path), lambda i, j: f"entry [{i}, {j}]", reading)


def layout_of(arrays: dict[str, AnyArray], path: Path) -> str:
    """Return the layout that the member ``format`` names."""
    found = arrays["format"]
    text = found.item() if found.ndim == 0 else repr(found)
    layout = text.decode("latin-1") if isinstance(text, bytes) else str(text)
    if layout not in LAYOUTS:
        raise InputError(f"layout {layout!r}", f"{path}: format", "one of " + ", ".join(LAYOUTS))
    return layout


def _size(arrays: dict[str, AnyArray], path: Path) -> int:
    """Return n of an n x n matrix that the file may hold."""
    shape = indices_of(arrays, "shape", path, 2**62)
    if len(shape) != 2 or shape[0] != shape[1] or not shape[0]:
        raise InputError(f"the shape is {tuple(shape.tolist())}", f"{path}: shape", "a square matrix")
    most = believed_nodes(path.stat().st_size)
    if shape[0] > most:
        raise InputError(f"{shape[0]} rows", f"{path}: shape", f"at most {most} in a file of this size")
    return int(shape[0])


def _of_coordinates(arrays: dict[str, AnyArray], path: Path, n: int) -> tuple[IntArray, IntArray, AnyArray]:
    """Return rows, columns and values of a ``coo`` matrix."""
    value = arrays["data"]
    if "coords" in arrays:
        both = arrays["coords"]
        if both.ndim != 2 or len(both) != 2:
            raise InputError(f"found shape {both.shape}", f"{path}: coords", "rows and columns")
        arrays = {**arrays, "row": both[0], "col": both[1]}
    row, col = indices_of(arrays, "row", path, n), indices_of(arrays, "col", path, n)
    for key, array in (("row", row), ("col", col)):
        check_length(array, value.size, key, path)
    return row, col, value.ravel()


def _of_diagonals(arrays: dict[str, AnyArray], path: Path, n: int) -> tuple[IntArray, IntArray, AnyArray]:
    """Return rows, columns and values of a ``dia`` matrix: entry [j - offsets[k], j] is data[k, j]; zeros only fill it up."""
    value, offsets = arrays["data"], numbers_of(arrays, "offsets", path)
    if value.ndim != 2 or len(value) != len(offsets) or offsets.dtype.kind not in "iu":
        what = f"found {value.dtype} {value.shape} and {len(offsets)} offsets"
        raise InputError(what, f"{path}: data", "a row of values for every whole-numbered offset")
    which, col = np.nonzero(value)
    row = col - np.clip(offsets.astype(np.int64), -n, n)[which]
    inside = (col < n) & (row >= 0) & (row < n)
    return row[inside], col[inside], value[which, col][inside]


def _of_blocks(
    arrays: dict[str, AnyArray], path: Path, n: int, layout: str
) -> tuple[IntArray, IntArray, AnyArray]:
    """Return rows, columns and values of compressed rows, columns, or rows of blocks (whose zeros only fill them up)."""
    value, entries = arrays["data"], len(numbers_of(arrays, "indices", path))
    axes = 3 if layout == "bsr" else 1
    if value.ndim != axes or len(value) != entries:
        raise InputError(f"found shape {value.shape}", f"{path}: data", f"{axes} axes, {entries} long")
    height, width = value.shape[1:] if layout == "bsr" else (1, 1)
    if not height or not width or n % height or n % width:
        raise InputError(f"blocks of {height} x {width}", f"{path}: data", f"blocks that divide {n} x {n}")
    indptr = row_starts(arrays, path, entries)
    check_length(indptr, n // height + 1, "indptr", path)
    minor = indices_of(arrays, "indices", path, n // width)
    major = np.repeat(np.arange(n // height), np.diff(indptr))
    if layout != "bsr":
        return (major, minor, value) if layout == "csr" else (minor, major, value)
    block, i, j = np.nonzero(value)
    return major[block] * height + i, minor[block] * width + j, value[block, i, j]
