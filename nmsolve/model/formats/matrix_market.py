"""Matrix Market ``.mtx``: a symmetric matrix is an undirected graph, a general one is directed (row -> column).

``pattern`` entries weigh 1; the diagonal is dropped. Format: Boisvert, Pozo, Remington, NISTIR 5935 (1996).
The reader is our own because SciPy's compiled one can crash the process on a damaged file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.files import believed_nodes, read_limited, write_atomic
from nmsolve.model.formats.text import decimal, decimals, whole_number
from nmsolve.model.graph import LogicGraph
from nmsolve.model.types import FloatArray, IntArray


@dataclass(frozen=True)
class Header:
    """Banner and size line; ``body`` is the byte after the size line, ``line`` its number (from 1)."""

    dense: bool
    pattern: bool
    symmetric: bool
    size: int
    entries: int
    body: int
    line: int


def load(path: Path) -> LogicGraph:
    """Read a square, real, non-negative matrix as a graph.

    Raises
    ------
    InputError : not Matrix Market, truncated, not square, complex, or a negative or non-finite entry
    """
    data = read_limited(path)
    header = _header(data, path)
    values = _numbers(data, header, path)
    row, col, weight = _dense(values, header) if header.dense else _coordinates(values, header, path)
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(bad):
        k = bad[0]
        raise InputError(
            f"entry ({row[k] + 1}, {col[k] + 1}) is {weight[k]:g}", str(path), "a finite number >= 0"
        )
    return LogicGraph.from_edges(header.size, row, col, weight, directed=not header.symmetric, name=path.stem)


def _header(data: bytes, path: Path) -> Header:
    """Read banner and size line, and check what they promise against the file's size."""
    banner = data[:1024].split(b"\n", 1)[0].decode("latin-1").lower().split()
    if len(banner) != 5 or banner[:2] != ["%%matrixmarket", "matrix"]:
        raise InputError("no Matrix Market banner", f"{path}:1", "%%MatrixMarket matrix ...")
    layout, field, symmetry = banner[2:]
    for what, found, known in (
        ("layout", layout, ("coordinate", "array")),
        ("field", field, ("real", "double", "integer", "unsigned-integer", "pattern")),
        ("symmetry", symmetry, ("general", "symmetric")),
    ):
        if found not in known:
            raise InputError(f"{what} {found!r}", f"{path}:1", "one of " + ", ".join(known))
    dense, pattern, symmetric = layout == "array", field == "pattern", symmetry == "symmetric"
    if dense and pattern:
        raise InputError("an array cannot have pattern entries", f"{path}:1", "coordinate, or another field")
    words, body, number = _size_line(data, path)
    where = f"{path}:{number}"
    if len(words) != (2 if dense else 3) or any(whole_number(w) is None for w in words):
        raise InputError("malformed size line", where, "rows, columns" + ("" if dense else ", entries"))
    rows, cols = int(words[0]), int(words[1])
    if rows != cols or rows < 1:
        raise InputError(f"the matrix is {rows} x {cols}", where, "a square matrix with at least one row")
    entries = int(words[2]) if not dense else rows * (rows + 1) // 2 if symmetric else rows * rows
    least = 2 if dense else 4 if pattern else 6
    if entries * least > len(data) or rows > believed_nodes(len(data)):
        raise InputError(
            f"the size line promises {rows} rows and {entries} entries, the file has {len(data)} bytes",
            where,
            "a complete file",
        )
    return Header(dense, pattern, symmetric, rows, entries, body, number)


def _size_line(data: bytes, path: Path) -> tuple[list[bytes], int, int]:
    """Return words of the first line that is neither comment nor blank, the byte after it, and its number."""
    begin, number = 0, 0
    while begin < len(data):
        end = data.find(b"\n", begin)
        end = len(data) if end < 0 else end
        line = data[begin:end].strip()
        begin, number = end + 1, number + 1
        if line and not line.startswith(b"%"):
            return line[:200].split(), begin, number
    raise InputError("no size line", str(path), "rows, columns and entries")


def _numbers(data: bytes, header: Header, path: Path) -> FloatArray:
    """Return all numbers after the size line, exactly as many as promised."""
    per_entry = 1 if header.dense else 2 if header.pattern else 3
    body = data[header.body :]
    values = decimals(body)
    if values is None:
        raise _bad_number(body, header.line, path)
    if len(values) != header.entries * per_entry:
        raise InputError(
            f"{len(values)} numbers after the size line",
            str(path),
            f"{header.entries * per_entry} ({header.entries} entries)",
        )
    return values


def _bad_number(body: bytes, before: int, path: Path) -> InputError:
    for number, line in enumerate(body.split(b"\n"), start=before + 1):
        for word in line.split():
            if decimal(word) is None:
                return InputError(
                    f"found {word[:30].decode('utf-8', 'replace')!r}", f"{path}:{number}", "a number"
                )
    return InputError("the file is not a text of numbers", str(path))


def _dense(values: FloatArray, header: Header) -> tuple[IntArray, IntArray, FloatArray]:
    """Return entries of an array, stored column by column (from the diagonal down if symmetric); zeros are left out."""
    n = header.size
    if header.symmetric:
        col, row = np.triu_indices(n)
    else:
        col, row = np.divmod(np.arange(n * n), n)
    used = np.flatnonzero(values != 0)
    return row[used], col[used], values[used]


def _coordinates(values: FloatArray, header: Header, path: Path) -> tuple[IntArray, IntArray, FloatArray]:
    """Return entries of a coordinate list; of a symmetric one each pair must be listed once."""
    table = values.reshape(header.entries, 2 if header.pattern else 3)
    at = table[:, :2]
    bad = np.flatnonzero(~((at >= 1) & (at <= header.size) & (at == np.rint(at))).all(axis=1))
    if len(bad):
        k = int(bad[0])
        raise InputError(
            f"entry {k + 1} is at ({at[k, 0]:g}, {at[k, 1]:g})",
            str(path),
            f"whole numbers from 1 to {header.size}",
        )
    row, col = (at - 1).astype(np.int64).T
    if header.symmetric and bool((row < col).any()):
        k = int(np.argmax(row < col))
        raise InputError(
            f"entry {k + 1} is above the diagonal", str(path), "only the lower triangle of a symmetric matrix"
        )
    return row, col, np.ones(header.entries) if header.pattern else np.ascontiguousarray(table[:, 2])


def save(graph: LogicGraph, path: Path) -> None:
    """Write the adjacency matrix; undirected graphs as ``symmetric`` (lower triangle), sizes are not kept.

    Raises
    ------
    InputError : a hypergraph, a file that cannot be written
    """
    if not graph.one_row_per_node:
        raise InputError("the graph has nets", str(path), "a graph without nets, or an .hgr file")
    row, col = graph.edge_source.astype(np.int64) + 1, graph.targets.astype(np.int64) + 1
    if not graph.directed:
        row, col = col, row
    whole = bool((graph.weights == np.rint(graph.weights)).all())
    kind = f"{'integer' if whole else 'real'} {'general' if graph.directed else 'symmetric'}"
    weight = graph.weights.astype(np.int64).tolist() if whole else graph.weights.tolist()
    body = "".join(f"{u} {v} {w}\n" for u, v, w in zip(row.tolist(), col.tolist(), weight, strict=True))
    write_atomic(path, f"%%MatrixMarket matrix coordinate {kind}\n{graph.n} {graph.n} {graph.m}\n{body}")
