"""Matrix Market ``.mtx``: a symmetric matrix is an undirected graph, a general one is directed (row -> column).

``pattern`` entries weigh 1; the diagonal is dropped. Format: Boisvert, Pozo, Remington, NISTIR 5935 (1996).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.files import read_limited, write_atomic
from nmsolve.model.graph import LogicGraph


def load(path: Path) -> LogicGraph:
    """Read a square, real, non-negative matrix as a graph.

    Raises
    ------
    InputError : not Matrix Market, truncated, not square, complex, or a negative or non-finite entry
    """
    from io import BytesIO

    data = read_limited(path)
    symmetric = _check_header(data, path)
    from scipy.io import mmread
    from scipy.sparse import coo_array

    try:
        matrix = coo_array(mmread(BytesIO(data)))
    except (ValueError, OverflowError, IndexError, EOFError, OSError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"damaged: {reason}", str(path), "a complete Matrix Market file") from None
    row, col = (np.asarray(c, np.int64) for c in matrix.coords)
    weight = np.asarray(matrix.data, np.float64)
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(bad):
        k = bad[0]
        raise InputError(
            f"entry ({row[k] + 1}, {col[k] + 1}) is {weight[k]:g}", str(path), "a finite number >= 0"
        )
    if symmetric:
        upper = row < col
        row, col, weight = row[upper], col[upper], weight[upper]
    return LogicGraph.from_edges(matrix.shape[0], row, col, weight, directed=not symmetric, name=path.stem)


def _check_header(data: bytes, path: Path) -> bool:
    """Check banner and size line against the file's size; True if the matrix is symmetric."""
    lines = data[: 2**20].splitlines()
    banner = lines[0].decode("latin-1").lower().split() if lines else []
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
    number = next((i for i, s in enumerate(lines) if s.strip() and not s.startswith(b"%")), None)
    if number is None:
        raise InputError("no size line", str(path), "rows, columns and entries")
    where = f"{path}:{number + 1}"
    words = lines[number].split()
    if len(words) != (3 if layout == "coordinate" else 2) or not all(w.isdigit() for w in words):
        raise InputError("malformed size line", where, "rows, columns" + (", entries" * (len(words) != 2)))
    rows, cols = int(words[0]), int(words[1])
    if rows != cols or rows < 1:
        raise InputError(f"the matrix is {rows} x {cols}", where, "a square matrix with at least one row")
    entries, least = (int(words[2]), 4) if len(words) == 3 else (rows * (rows + 1) // 2, 2)
    if entries * least > len(data) + 1 or rows > max(2**22, 64 * len(data)):
        raise InputError(
            f"the size line promises {rows} rows and {entries} entries, the file has {len(data)} bytes",
            where,
            "a complete file",
        )
    return symmetry == "symmetric"


def save(graph: LogicGraph, path: Path) -> None:
    """Write the adjacency matrix; undirected graphs as ``symmetric`` (lower triangle), sizes are not kept.

    Raises
    ------
    InputError : a hypergraph, a file that cannot be written
    """
    if not graph.one_row_per_node:
        raise InputError("the graph has nets", str(path), "a graph for .mtx, or .hgr for nets")
    row, col = graph.edge_source.astype(np.int64) + 1, graph.targets.astype(np.int64) + 1
    if not graph.directed:
        row, col = col, row
    whole = bool((graph.weights == np.rint(graph.weights)).all())
    kind = f"{'integer' if whole else 'real'} {'general' if graph.directed else 'symmetric'}"
    weight = graph.weights.astype(np.int64).tolist() if whole else graph.weights.tolist()
    body = "".join(f"{u} {v} {w}\n" for u, v, w in zip(row.tolist(), col.tolist(), weight, strict=True))
    write_atomic(path, f"%%MatrixMarket matrix coordinate {kind}\n{graph.n} {graph.n} {graph.m}\n{body}")
