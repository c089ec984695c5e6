"""Matrix Market ``.mtx``: a general matrix is a directed graph (row -> column), any other is undirected.

``pattern`` entries weigh 1; the diagonal is dropped. Skew-symmetric, Hermitian and complex matrices need an option of reading
(:mod:`.matrix`). Format: Boisvert, Pozo, Remington, NISTIR 5935 (1996).
The reader is our own because SciPy's compiled one can crash the process on a damaged file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nmsolve.model.errors import InputError, doubtful
from nmsolve.model.files import believed_nodes, read_limited, write_atomic
from nmsolve.model.formats.matrix import WITH, Entries, matrix_graph
from nmsolve.model.formats.reading import AS_IT_IS, GraphReading
from nmsolve.model.formats.text import decimal, decimal_lines, repeated, whole_number, wrong_word
from nmsolve.model.graph import LogicGraph
from nmsolve.model.types import AnyArray, FloatArray, IntArray, first_true

OPTIONS = ("pattern", "absolute")

#: Numbers of an entry's value, by field.
FIELDS = {"real": 1, "double": 1, "integer": 1, "unsigned-integer": 1, "complex": 2, "pattern": 0}
SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")
#: Symmetries whose upper triangle differs in sign: only by an option of reading are they graphs.
SIGNED = ("skew-symmetric", "hermitian")


@dataclass(frozen=True)
class Header:
    """Banner and size line; ``body`` is the byte after the size line, ``line`` its number (from 1)."""

    dense: bool
    field: str
    symmetry: str
    size: int
    entries: int
    body: int
    line: int

    @property
    def per_entry(self) -> int:
        """Numbers of an entry."""
        return FIELDS[self.field] + (0 if self.dense else 2)


def load(path: Path, reading: GraphReading = AS_IT_IS) -> LogicGraph:
    """Read a square matrix as a graph. An ``InputWarning`` says if places are listed twice (they are added up).

    Raises
    ------
    InputError : not Matrix Market, truncated, not square, a line without its numbers; without an option of ``reading`` a negative
        or complex entry, a skew-symmetric or Hermitian matrix
    """
    data = read_limited(path)
    header = _header(data, path)
    if header.symmetry in SIGNED and not reading.options():
        what = f"the matrix is {header.symmetry}: values differ from their mirrors"
        raise InputError(what, f"{path}:1", WITH)
    table = _numbers(data, header, path)
    row, col = _dense_places(header) if header.dense else _places(table, header, path)
    value = _values(table, header, path)
    if header.dense:
        used = np.flatnonzero(value)
        row, col, value = row[used], col[used], value[used]
    else:
        _warn_of_repeats(row, col, header, path)
    directed = header.symmetry == "general"
    return matrix_graph(
        Entries(header.size, row, col, value, directed), path.stem, str(path),
        lambda i, j: f"entry ({i + 1}, {j + 1})", reading,
    )  # fmt: skip


def _header(data: bytes, path: Path) -> Header:
    """Read banner and size line, and check what they promise against the file's size."""
    banner = data[:1024].split(b"\n", 1)[0].decode("latin-1").lower().split()
    if len(banner) != 5 or banner[:2] != ["%%matrixmarket", "matrix"]:
        raise InputError("no Matrix Market banner", f"{path}:1", "%%MatrixMarket matrix ...")
    layout, field, symmetry = banner[2:]
    for what, found, known in (
        ("layout", layout, ("coordinate", "array")),
        ("field", field, tuple(FIELDS)),
        ("symmetry", symmetry, SYMMETRIES),
    ):
        if found not in known:
            raise InputError(f"{what} {found!r}", f"{path}:1", "one of " + ", ".join(known))
    dense = layout == "array"
    if dense and field == "pattern":
        raise InputError("an array cannot have pattern entries", f"{path}:1", "coordinate, or another field")
    words, body, number = _size_line(data, path)
    where = f"{path}:{number}"
    if len(words) != (2 if dense else 3) or any(whole_number(w) is None for w in words):
        raise InputError("malformed size line", where, "rows, columns" + ("" if dense else ", entries"))
    rows, cols = int(words[0]), int(words[1])
    if rows != cols or rows < 1:
        raise InputError(f"the matrix is {rows} x {cols}", where, "a square matrix with at least one row")
    entries = (
        int(words[2]) if not dense else rows * rows if symmetry == "general" else _in_triangle(rows, symmetry)
    )
    header = Header(dense, field, symmetry, rows, entries, body, number)
    if entries * 2 * header.per_entry > len(data) + 1 or rows > believed_nodes(len(data)):
        raise InputError(
            f"the size line promises {rows} rows and {entries} entries, the file has {len(data)} bytes",
            where,
            "a complete file",
        )
    return header


def _in_triangle(n: int, symmetry: str) -> int:
    """Return the number of entries on and below the diagonal, without it in a skew-symmetric matrix."""
    return n * (n - 1) // 2 if symmetry == "skew-symmetric" else n * (n + 1) // 2


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
    """Return (entries, numbers of each) all numbers after the size line; of coordinates one entry per line."""
    body = data[header.body :]
    found = decimal_lines(body)
    if found is None:
        bad = wrong_word(body, decimal, header.line + 1)
        if bad is None:
            raise InputError("the file is not a text of numbers", str(path))
        raise InputError(f"found {bad.word!r}", f"{path}:{bad.line}", "a number")
    values, start = found
    if len(values) != header.entries * header.per_entry:
        raise InputError(
            f"{len(values)} numbers after the size line",
            str(path),
            f"{header.entries * header.per_entry} ({header.entries} entries)",
        )
    length = np.diff(start)
    broken = np.flatnonzero((length != 0) & (length != header.per_entry))
    if len(broken) and not header.dense:
        k = int(broken[0])
        what = f"row, column{', value'[: 7 * bool(FIELDS[header.field])]} of one entry ({header.field})"
        raise InputError(f"{length[k]} numbers", f"{path}:{header.line + 1 + k}", what)
    return values.reshape(header.entries, header.per_entry)


def _dense_places(header: Header) -> tuple[IntArray, IntArray]:
    """Return rows and columns of an array's entries: column by column, from the diagonal down if it is not general."""
    n = header.size
    if header.symmetry == "general":
        col, row = np.divmod(np.arange(n * n), n)
    else:
        col, row = np.triu_indices(n, k=int(header.symmetry == "skew-symmetric"))
    return row, col


def _places(table: FloatArray, header: Header, path: Path) -> tuple[IntArray, IntArray]:
    """Return rows and columns of a coordinate list; only the lower triangle of a matrix that is not general."""
    at = table[:, :2]
    if (k := first_true(~((at >= 1) & (at <= header.size) & (at == np.rint(at))).all(axis=1))) is not None:
        raise InputError(
            f"entry {k + 1} is at ({at[k, 0]:g}, {at[k, 1]:g})",
            str(path),
            f"whole numbers from 1 to {header.size}",
        )
    row, col = (at - 1).astype(np.int64).T
    above = row < col if header.symmetry != "skew-symmetric" else row <= col
    if header.symmetry != "general" and bool(above.any()):
        k = int(np.argmax(above))
        what = f"entry {k + 1} is {'above' if row[k] < col[k] else 'on'} the diagonal"
        raise InputError(what, str(path), f"only the lower triangle of a {header.symmetry} matrix")
    return row, col


def _values(table: FloatArray, header: Header, path: Path) -> AnyArray:
    """Return (entries,) values: complex ones of that field, 1 each of a pattern."""
    numbers = FIELDS[header.field]
    if not numbers:
        return np.ones(header.entries)
    value: AnyArray = np.ascontiguousarray(table[:, -numbers:])
    if "integer" in header.field and len(broken := np.flatnonzero(value != np.rint(value))):
        k = int(broken[0])
        raise InputError(
            f"entry {k + 1} is {value[k, 0]:g}", str(path), f"whole numbers, as the field is {header.field}"
        )
    return value.view(np.complex128)[:, 0] if numbers == 2 else value[:, 0]


def _warn_of_repeats(row: IntArray, col: IntArray, header: Header, path: Path) -> None:
    """Say that places are listed more than once."""
    first, count = repeated(row * header.size + col)
    if count:
        i, j = divmod(first, header.size)
        more = f", as are {count - 1} more" if count > 1 else ""
        doubtful(f"entry ({i + 1}, {j + 1}) is listed twice{more}; added up", str(path), "each entry once")


def save(graph: LogicGraph, path: Path) -> None:
    """Write the adjacency matrix; undirected graphs as ``symmetric`` (lower triangle), sizes are not kept.

    Raises
    ------
    InputError : a file that cannot be written
    """
    row, col = graph.edge_source.astype(np.int64) + 1, graph.targets.astype(np.int64) + 1
    if not graph.directed:
        row, col = col, row
    whole = bool((graph.weights == np.rint(graph.weights)).all())
    kind = f"{'integer' if whole else 'real'} {'general' if graph.directed else 'symmetric'}"
    weight = graph.weights.astype(np.int64).tolist() if whole else graph.weights.tolist()
    body = "".join(f"{u} {v} {w}\n" for u, v, w in zip(row.tolist(), col.tolist(), weight, strict=True))
    write_atomic(path, f"%%MatrixMarket matrix coordinate {kind}\n{graph.n} {graph.n} {graph.m}\n{body}")
