"""METIS ``.graph``: undirected, each edge at both its vertices, vertices counted from 1.

Header ``n m [fmt [ncon]]``; ``fmt`` has up to three digits: vertex sizes, vertex weights, edge weights.
Vertex weights become node sizes (``neurons``, then ``weight2`` ...). Vertex sizes (METIS's communication
volume) are not used. Graph manual of METIS 5, section 4.1.1.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from nmsolve.model.errors import InputError, doubtful
from nmsolve.model.files import write_atomic
from nmsolve.model.formats.matrix import each_edge_once
from nmsolve.model.formats.text import IntegerLines, integer_text, read_integer_lines
from nmsolve.model.graph import LogicGraph
from nmsolve.model.types import AnyArray, BoolArray, IntArray, first_true, starts


def load(path: Path) -> LogicGraph:
    """Read a METIS graph into an undirected :class:`LogicGraph` (each edge stored once).

    With an ``InputWarning`` it reads isolated vertices that are written as ``0`` and a header that is one edge off, and passes
    over vertex sizes.

    Raises
    ------
    InputError : anything that is not as the header promises, with the line
    """
    lines = read_integer_lines(path)
    n, m, fmt, ncon = _header(lines)
    per_vertex = int(fmt[0] == "1") + (ncon if fmt[1] == "1" else 0)
    step = 2 if fmt[2] == "1" else 1
    start = _vertex_starts(lines, n, m, per_vertex, step)
    tokens = lines.tokens
    zero = _written_as_zero(lines, start, per_vertex)
    length = np.diff(start) - zero
    entries = (length - per_vertex) // step
    _check_lengths(lines, length, per_vertex, step)
    sizes = None
    resources: tuple[str, ...] = ("neurons",)
    if fmt[1] == "1":
        first = start[:-1] + int(fmt[0] == "1")
        sizes = tokens[first[:, None] + np.arange(ncon)]
        resources = ("neurons", *(f"weight{i + 1}" for i in range(1, ncon)))
    body = np.ones(len(tokens), bool)
    body[: start[0]] = False
    for i in range(per_vertex):
        body[start[:-1] + i] = False
    body[start[:-1][zero] + per_vertex] = False
    flat = tokens[body].reshape(-1, step)
    indptr = starts(entries)
    neighbour = flat[:, 0] - 1
    if (k := first_true((neighbour < 0) | (neighbour >= n))) is not None:
        u = int(np.searchsorted(indptr, k, side="right")) - 1
        raise InputError(f"vertex {u + 1} has neighbour {neighbour[k] + 1}", lines.where(u + 1), f"1..{n}")
    weights = flat[:, 1] if step == 2 else np.ones(len(neighbour))
    edges = each_edge_once(indptr, neighbour, weights, lambda u: lines.where(u + 1), 1)
    _check_count(lines, len(edges[0]), m)
    if fmt[0] == "1":
        doubtful(
            "vertex sizes are not used: no traffic is counted by them", lines.where(0), f"format 0{fmt[1:]}"
        )
    return LogicGraph.from_edges(
        len(indptr) - 1, *edges, directed=False, resources=resources, sizes=sizes, name=path.stem
    )


def _header(lines: IntegerLines) -> tuple[int, int, str, int]:
    """Return ``n, m, fmt, ncon`` of the first line, checked against the size of the file before allocating."""
    head = lines.line(0).tolist() if lines.lines else []
    if not 2 <= len(head) <= 4:
        raise InputError(
            f"the header has {len(head)} numbers", lines.where(0), "vertices, edges [, format [, weights]]"
        )
    n, m = head[0], head[1]
    fmt = str(head[2]).zfill(3) if len(head) > 2 else "000"
    if len(fmt) > 3 or set(fmt) - {"0", "1"}:
        raise InputError(f"the header's format is {head[2]}", lines.where(0), "three digits 0 or 1")
    ncon = head[3] if len(head) > 3 else 1
    if ncon < 1 or (len(head) > 3 and fmt[1] == "0" and ncon > 1):
        raise InputError(
            f"the header promises {ncon} weights per vertex", lines.where(0), ">= 1, with format x1x"
        )
    least = 1 if fmt[1] == "0" else 2 * ncon
    if n < 1 or n * least > lines.size + 1 or 4 * m > lines.size + 1:
        raise InputError(
            f"the header promises {n} vertices and {m} edges, the file has {lines.size} bytes",
            lines.where(0),
            "at least one vertex, and a complete file",
        )
    return n, m, fmt, ncon


def _vertex_starts(lines: IntegerLines, n: int, m: int, per_vertex: int, step: int) -> IntArray:
    """Return (n + 1,) first token of every vertex; isolated last vertices may lack their (empty) line."""
    start = lines.start[1:]
    given = lines.lines - 1
    if given > n:
        if (k := first_true(np.diff(start)[n:])) is not None:
            raise InputError(
                "there is a line after the last vertex",
                lines.where(1 + n + k),
                f"{n} vertex lines",
            )
        return start[: n + 1]
    if given < n:
        whole = (start[-1] - start[0] - given * per_vertex) == 2 * m * step
        if per_vertex or not whole:
            raise InputError(
                f"the file ends after {given} of {n} vertices",
                lines.where(lines.lines - 1),
                f"{n} vertex lines",
            )
        start = np.append(start, np.full(n - given, start[-1]))
    return start


def _written_as_zero(lines: IntegerLines, start: IntArray, per_vertex: int) -> BoolArray:
    """Return (n,) which vertices have a single 0 in place of neighbours, as some writers have it; warn if there are any."""
    alone = np.flatnonzero(np.diff(start) == per_vertex + 1)
    zero = np.zeros(len(start) - 1, np.bool_)
    zero[alone] = lines.tokens[start[alone] + per_vertex] == 0
    if zero.any():
        u, count = int(np.argmax(zero)), int(zero.sum())
        more = f", as are {count - 1} more like it" if count > 1 else ""
        doubtful(
            f"vertex {u + 1} has neighbour 0; taken as isolated{more}", lines.where(u + 1), "an empty line"
        )
    return zero


def _check_lengths(lines: IntegerLines, length: IntArray, per_vertex: int, step: int) -> None:
    """Refuse a line without its vertex weights, or with half a pair."""
    if (u := first_true((length < per_vertex) | ((length - per_vertex) % step != 0))) is not None:
        what = f"{per_vertex} vertex weights, then " if per_vertex else ""
        raise InputError(
            f"vertex {u + 1} has {length[u]} numbers",
            lines.where(u + 1),
            what + ("pairs of neighbour and weight" if step == 2 else "neighbours"),
        )


def _check_count(lines: IntegerLines, found: int, m: int) -> None:
    """All lines together hold the promised edges, or one more or less."""
    if found != m:
        what = f"the header promises {m} edges, the lines hold {found}"
        if abs(found - m) != 1:
            raise InputError(what, lines.where(0), "equal numbers")
        doubtful(f"{what}; the lines count", lines.where(0), "equal numbers")


def save(graph: LogicGraph, path: Path) -> None:
    """Write ``graph`` as METIS text; both directions of a directed graph are added up.

    Raises
    ------
    InputError : weights that are not whole numbers >= 1, a file that cannot be written
    """
    indptr, indices, w = graph.traffic
    if not (w == np.rint(w)).all() or (len(w) and w.min() < 1):
        raise InputError(
            "METIS supports only whole edge weights >= 1", str(path), "another format, such as .json"
        )
    weighted = bool((w != 1).any())
    sized = len(graph.resources) > 0 and bool((graph.sizes != 1).any() or len(graph.resources) > 1)
    header = f"{graph.n} {len(indices) // 2}"
    if sized:
        header += f" 01{int(weighted)}" + (f" {len(graph.resources)}" if len(graph.resources) > 1 else "")
    elif weighted:
        header += " 001"
    flat: AnyArray = indices + 1
    if weighted:
        flat = np.column_stack([indices + 1, w.astype(np.int64)]).ravel()
    numbers = flat.tolist()
    cuts = (indptr * (2 if weighted else 1)).tolist()
    rows = [numbers[a:b] for a, b in pairwise(cuts)]
    if sized:
        rows = [size + row for size, row in zip(graph.sizes.tolist(), rows, strict=True)]
    write_atomic(path, f"{header}\n".encode() + integer_text(rows))
