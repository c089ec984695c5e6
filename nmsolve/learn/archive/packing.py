"""A solved run as bytes, and back: arrays and JSON only, every length and number checked."""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from nmsolve.learn.archive.arcs import Arcs
from nmsolve.model.graph import MOST_EDGES
from nmsolve.model.types import FloatArray, IntArray

#: Most bytes of a run, packed.
MOST_DATA = 2**26
#: Most nodes of a run, cores of its board, and bytes of a node's name.
MOST_NODES, MOST_CORES, MOST_NAME = 2**26, 2**20, 1000


@dataclass(frozen=True, eq=False)
class Solved:
    """A mapping found earlier.

    Attributes
    ----------
    name : of the graph
    graph : what was mapped, ``together`` groups merged
    rows, cols : of the board
    core : (graph.n,) int64, core of every node
    value : of the objective, as its run says
    key : of its row
    apart : distance of its signature from that of the problem it was looked up for
    version : of nmsolve that found it
    """

    name: str
    graph: Arcs
    rows: int
    cols: int
    core: IntArray
    value: float
    key: str = ""
    apart: float = 0.0
    version: str = ""


def digest(data: bytes, rows: int, cols: int) -> str:
    """Return a hash against damage; it is no proof of where a run comes from."""
    return hashlib.sha256(f"{rows} {cols} ".encode() + data).hexdigest()[:32]


def packed(arcs: Arcs, core: IntArray) -> bytes:
    """Return graph and mapping as bytes: four arrays, then the ids as JSON."""
    ids = b"" if arcs.ids is None else json.dumps(arcs.ids).encode()
    arrays = (core, arcs.source, arcs.target)
    return zlib.compress(
        b"".join(np.ascontiguousarray(a, "<i4").tobytes() for a in arrays)
        + arcs.weight.astype("<f8").tobytes()
        + ids,
        1,
    )


def unpacked(
    key: str,
    apart: float,
    version: Any,
    name: Any,
    n: Any,
    m: Any,
    rows: Any,
    cols: Any,
    value: Any,
    data: Any,
    found: Any,
) -> Solved | None:
    """Return what a row holds, or None if anything in it is not as :func:`packed` writes it.

    SQLite stores any type in any column, so types are checked, too. No more is unpacked than the stated sizes need.
    """
    sizes = [(n, 1, MOST_NODES), (m, 0, MOST_EDGES), (rows, 1, MOST_CORES), (cols, 1, MOST_CORES)]
    if not all(type(size) is int and least <= size <= most for size, least, most in sizes):
        return None
    if not (type(name) is str and type(version) is str and type(data) is bytes and type(value) is float):
        return None
    if not math.isfinite(value) or rows * cols > MOST_CORES or digest(data, rows, cols) != found:
        return None
    most = 4 * (n + 2 * m) + 8 * m
    try:
        raw = zlib.decompressobj().decompress(data, most + MOST_NAME * n)
    except zlib.error:
        return None
    if len(raw) < most:
        return None
    core, source, target = np.split(np.frombuffer(raw, "<i4", n + 2 * m).astype(np.int64), [n, n + m])
    weight: FloatArray = np.frombuffer(raw, "<f8", m, offset=4 * (n + 2 * m)).astype(np.float64)
    text = raw[most:]
    ids = _names(text, n) if text else None
    if (text and ids is None) or core.min() < 0 or core.max() >= rows * cols:
        return None
    graph = Arcs(n, source, target, weight, ids)
    return Solved(name, graph, rows, cols, core, value, key, apart, version) if _whole(graph) else None


def _names(text: bytes, n: int) -> tuple[str | int, ...] | None:
    """Return ``n`` different names, or None."""
    try:
        ids = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(ids, list) or len(ids) != n or not all(type(name) in (str, int) for name in ids):
        return None
    return tuple(ids) if len(set(ids)) == n else None


def _whole(graph: Arcs) -> bool:
    """Return True if the connections are as :class:`.Arcs` promises."""
    if not len(graph.source):
        return True
    inside = min(graph.source.min(), graph.target.min()) >= 0
    inside &= bool(max(graph.source.max(), graph.target.max()) < graph.n)
    apart = bool((graph.source != graph.target).all() and (np.diff(graph.key) > 0).all())
    return bool(inside and apart and np.isfinite(graph.weight).all() and (graph.weight > 0).all())
