"""QAPLIB ``.dat``: n, then two n x n matrices; one is traffic, the other the distances of n places.

Cost = sum over ordered pairs of ``first[i, j] * second[p(i), p(j)]`` (Burkard, Karisch, Rendl 1997). The inverse
permutation exchanges the roles of the matrices, so either may be the traffic. Which one is the distance matrix:

1. a matrix that is exactly the Manhattan distance of a row-major mesh (the first is looked at first);
2. else the second, unless only the first is symmetric: symmetric distances are handled faster and bounded better.

The traffic graph is directed with both directions, so ``hops`` equals the QAPLIB cost; where both diagonals are
non-zero and one of them is constant, the cost is ``hops + meta["constant"]``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.files import read_limited, write_atomic
from nmsolve.model.formats.implied import implied_machine
from nmsolve.model.formats.text import decimal, decimals, whole_number, wrong_word
from nmsolve.model.graph import LogicGraph
from nmsolve.model.types import FloatArray


def load(path: Path) -> LogicGraph:
    """Read a QAPLIB instance; ``meta`` says the machine it implies (``mesh`` or ``distances``).

    ``meta["traffic"]`` is ``first`` or ``second``: the matrix that is the traffic.

    Raises
    ------
    InputError : truncated or too long, negative numbers, or diagonals whose product depends on the assignment
        (a node's traffic with itself times a place's distance to itself)
    """
    first, second = _matrices(path)
    mesh, which = mesh_shape(first), "second"
    if mesh is None:
        mesh = mesh_shape(second)
        which = "second" if mesh is None and _symmetric(first) and not _symmetric(second) else "first"
    traffic, distance = (first, second) if which == "first" else (second, first)
    meta: dict[str, object] = {"mesh": list(mesh)} if mesh else {"distances": _offdiagonal(distance).tolist()}
    meta["traffic"] = which
    own, home = traffic.diagonal(), distance.diagonal()
    if own.any() and home.any():
        if (own != own[0]).any() and (home != home[0]).any():
            raise InputError(
                "both diagonals are non-zero and neither is constant",
                str(path),
                "a zero diagonal (what a node sends itself times a place's distance to itself is not traffic)",
            )
        constant = own[0] * home.sum() if (own == own[0]).all() else home[0] * own.sum()
        meta["constant"] = float(constant)
    source, target = np.nonzero(_offdiagonal(traffic))
    return LogicGraph.from_edges(
        len(traffic), source, target, traffic[source, target], name=path.stem, meta=meta
    )


def _matrices(path: Path) -> tuple[FloatArray, FloatArray]:
    data = read_limited(path)
    n = whole_number((data[:64].split() or [b""])[0])
    if n is None or not 1 <= n <= 10**6:
        raise InputError("the file does not begin with a size", f"{path}:1", "a whole number from 1 to 10^6")
    values = decimals(data)
    if values is None:
        raise _bad_number(data, n, path)
    values = values[1:]
    given = len(values)
    if given != 2 * n * n:
        if given < 2 * n * n:
            matrix, entry = divmod(given, n * n)
            where = f"the file ends in row {entry // n + 1} of matrix {matrix + 1}"
        else:
            where = "there is more after the second matrix"
        raise InputError(
            f"{given} numbers after the size, {where}", str(path), f"{2 * n * n} (two {n} x {n} matrices)"
        )
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(bad):
        matrix, entry = divmod(int(bad[0]), n * n)
        raise InputError(
            f"entry ({entry // n + 1}, {entry % n + 1}) of matrix {matrix + 1} is {values[bad[0]]:g}",
            str(path),
            "a finite number >= 0",
        )
    return values[: n * n].reshape(n, n), values[n * n :].reshape(n, n)


def _bad_number(data: bytes, n: int, path: Path) -> InputError:
    """Find the first word that is not a number (only runs where there is one)."""
    bad = wrong_word(data, decimal)
    if bad is None:
        return InputError("the file is not a text of numbers", str(path))
    matrix, entry = divmod(bad.before - 1, n * n)  # the size comes first
    what = f"entry ({entry // n + 1}, {entry % n + 1}) of matrix {matrix + 1} is {bad.word}, not a number"
    return InputError(what, f"{path}:{bad.line}", "two matrices of numbers")


def mesh_shape(matrix: FloatArray) -> tuple[int, int] | None:
    """Return ``(rows, columns)`` if ``matrix`` is exactly the Manhattan distance of that row-major mesh, else None.

    The number of columns is the place in row 0 where the distance falls back to 1 (a single row if it never does).
    """
    n = len(matrix)
    fall = np.flatnonzero(matrix[0, 1:] != np.arange(1, n))
    cols = int(fall[0]) + 1 if len(fall) else n
    if n % cols:
        return None
    r, c = np.divmod(np.arange(n), cols)
    expected = np.abs(r[:, None] - r) + np.abs(c[:, None] - c)
    return (n // cols, cols) if bool((matrix == expected).all()) else None


def _symmetric(matrix: FloatArray) -> bool:
    return bool((matrix == matrix.T).all())


def _offdiagonal(matrix: FloatArray) -> FloatArray:
    out = matrix.copy()
    np.fill_diagonal(out, 0.0)
    return out


def save(graph: LogicGraph, path: Path) -> None:
    """Write traffic (first) and distances (second) of the machine that ``graph.meta`` implies.

    More cores than nodes are filled up with nodes that have no traffic.

    Raises
    ------
    InputError : no machine implied, more nodes than cores, a hypergraph, a file that cannot be written
    """
    machine = implied_machine(graph, str(path))
    if machine is None:
        raise InputError(
            "the graph does not describe its machine", str(path), "graph.mesh or graph.distances for .dat"
        )
    if not graph.one_row_per_node or graph.n > machine.size:
        what = "nets" if not graph.one_row_per_node else f"{graph.n} nodes for {machine.size} cores"
        raise InputError(f"the graph has {what}", str(path), "an ordinary graph, one node per core")
    size = machine.size
    traffic = np.zeros((size, size))
    traffic[graph.edge_source, graph.targets] = graph.weights
    if machine.distance_matrix is not None:
        distance = machine.distance_matrix
    else:
        r, c = np.divmod(np.arange(size), machine.cols)
        distance = (np.abs(r[:, None] - r) + np.abs(c[:, None] - c)).astype(np.float64)
    write_atomic(path, f"{size}\n\n{_text(traffic)}\n{_text(distance)}")


def _text(matrix: FloatArray) -> str:
    whole = bool((matrix == np.rint(matrix)).all())
    rows = matrix.astype(np.int64).tolist() if whole else matrix.tolist()
    return "".join(" ".join(map(str, row)) + "\n" for row in rows)
