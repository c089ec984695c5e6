"""Edge lists: one line per edge, in columns (:mod:`nmsolve.model.formats.edge_columns`), also compressed with gzip.

Read twice, a few MB at a time: first the nodes are collected and everything is checked, then the edges are taken. Plain numbers
are read by compiled code, all else row by row (:mod:`nmsolve.model.formats.edge_rows`).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nmsolve.model.errors import InputError, doubtful
from nmsolve.model.files import PIECE, text_pieces, write_atomic
from nmsolve.model.formats.delimited import COMMENT, WHITE, whole_lines
from nmsolve.model.formats.edge_columns import Layout, layout_of
from nmsolve.model.formats.edge_rows import MISSING, EdgeRows, Lines
from nmsolve.model.formats.node_table import read_nodes
from nmsolve.model.formats.reading import AS_IT_IS, GraphReading
from nmsolve.model.formats.text import DIGITS, decimal
from nmsolve.model.graph import LogicGraph
from nmsolve.model.network import Connections, Network, rows_of
from nmsolve.model.store.coding import MOST_UNITS, all_whole
from nmsolve.model.types import AnyArray, FloatArray, IntArray

if TYPE_CHECKING:
    from nmsolve.model.store.block import Records

OPTIONS = ("nodes",)


def stream(path: Path, reading: GraphReading = AS_IT_IS) -> Network:
    """Return the edge list in blocks: a directed graph (unless it says otherwise), no multicast.

    Its nodes are exactly those that occur, by rising number, or by first occurrence if they have names; or those of the node
    table of ``reading``, in its order. The same edge in several lines is added up, edges of a node to itself are dropped (but
    name the node); warnings say how many.

    Raises
    ------
    InputError : a line that is not an edge (with its number), a damaged archive, no edges; a node that is not in the table
    """
    table = None if reading.nodes is None else read_nodes(reading.nodes, reading.multicast)
    layout = layout_of(next(text_pieces(path), b""), path)
    lines: _Plain | EdgeRows = EdgeRows(path, layout)
    if layout.plain and layout.separator != ";":  # with that, points may be between thousands
        lines = _Plain(path, layout)
    try:
        found = _scan(lines, path)
    except _NotPlainError:
        lines = EdgeRows(path, layout)
        found = _scan(lines, path)
    nodes, ids = found.nodes, _ids(lines, found.nodes)
    if table is not None:
        nodes, ids = table.order(nodes, ids, path), table.ids
    n = len(nodes) if table is None else table.n
    if n >= 2**31:
        raise InputError(f"there are {n} nodes", str(path), f"at most {2**31 - 1}")
    directed = not (isinstance(lines, EdgeRows) and lines.directed is False)
    weighted = layout.weight >= 0 or layout.attributes
    rate = None if table is None or weighted else table.sent
    order = None if table is None else nodes
    records = _Records(lines, found.nodes, order, directed, rate)
    whole = found.whole and (rate is None or all_whole(rate[~np.isnan(rate)]))
    network = Network(
        n=n,
        name=path.name.split(".")[0],
        blocks=records.counted(rows_of(records, n, drop_loops=True), path),
        directed=directed,
        multicast=False,
        ids=ids,
        unit=1.0 if whole else None,
    )
    return network if table is None else table.described(network)


@dataclass
class _Found:
    """What a first reading found: (n,) all node numbers, rising; whether a store takes all weights and sums as whole numbers."""

    nodes: IntArray
    whole: bool


def _scan(lines: _Plain | EdgeRows, path: Path) -> _Found:
    """Read all edges for the first time."""
    nodes = np.empty(0, np.int64)
    waiting: list[IntArray] = []
    whole, total, pending, loops = True, 0.0, 0, 0
    counts = _Counts(lines.layout.weight >= 0)
    for some in lines:
        counts.look(some)
        total += float(some.weight.sum())
        whole = whole and total <= MOST_UNITS and all_whole(some.weight)
        loops += int(np.count_nonzero(some.weight[some.source == some.target]))
        waiting.append(_distinct([some.source, some.target]))
        pending += len(waiting[-1])
        if pending > max(PIECE, len(nodes)):  # so that merging stays proportional to reading
            nodes, waiting, pending = _distinct([nodes, *waiting]), [], 0
    nodes = _distinct([nodes, *waiting])
    if not len(nodes):
        raise InputError("there are no edges", str(path), "lines of source, target and weight")
    if counts.in_first():
        what = (
            f"the first edge has the numbers of nodes and of edges ({counts.edges}), and is read as an edge"
        )
        doubtful(what, str(path), "edges alone; delete the line if it counts them")
    if loops:
        doubtful(f"edges from a node to itself, which cross no link: {loops} dropped", str(path), "none")
    return _Found(nodes, whole)


@dataclass
class _Counts:
    """Whether the first row counts nodes and edges, as in files of contests and in Matrix Market without its first line.

    Attributes
    ----------
    weighted : the last number of a row is its weight, else its target
    edges : rows after the first
    """

    weighted: bool
    edges: int = -1
    _last: float = 0.0
    _nodes: int = 0
    _largest: int = -1

    def look(self, some: Lines) -> None:
        """Take rows."""
        begin = 0
        if self.edges < 0 and len(some.source):
            begin, source, target = 1, int(some.source[0]), int(some.target[0])
            self._last = float(some.weight[0]) if self.weighted else target
            self._nodes = min(source, target) if self.weighted else source
        self.edges += len(some.source)
        for end in (some.source[begin:], some.target[begin:]):
            self._largest = max(self._largest, int(end.max(initial=-1)))

    def in_first(self) -> bool:
        """Return whether it does: three rows or more are as many as it says, and no number of a node is larger."""
        return self.edges > 2 and self._last == self.edges and self._largest <= self._nodes


def _distinct(parts: list[IntArray]) -> IntArray:
    """Return all numbers of ``parts``, rising (sorting is eight times as fast as ``np.unique`` here)."""
    both = np.concatenate(parts)
    both.sort()
    return both[np.flatnonzero(np.diff(both, prepend=-1))]


def _ids(lines: _Plain | EdgeRows, nodes: IntArray) -> tuple[str | int, ...] | None:
    """Return the ids of ``nodes``; None if they are 0 to n - 1."""
    if isinstance(lines, EdgeRows) and lines.named:
        return tuple(lines.number)
    return None if nodes[-1] == len(nodes) - 1 else tuple(nodes.tolist())


@dataclass
class _Records:
    """Every edge with node indices instead of numbers.

    Attributes
    ----------
    nodes : (n,) numbers that occur, rising
    order : (n,) index of each; None: by its place
    rate : (n,) weight of all edges of a node; NaN: that of each
    edges : that have been taken and lead from one node to another
    """

    lines: Iterable[Lines]
    nodes: IntArray
    order: IntArray | None
    directed: bool
    rate: FloatArray | None = None
    edges: int = 0

    def __iter__(self) -> Iterator[Records]:
        """Yield them, some at a time."""
        from nmsolve.model.store.block import Records

        dense = self.nodes[-1] == len(self.nodes) - 1
        for lines in self.lines:
            ends = [lines.source, lines.target]
            if not dense:
                ends = [np.searchsorted(self.nodes, end) for end in ends]
            if self.order is not None:
                ends = [self.order[end] for end in ends]
            weight = lines.weight
            if self.rate is not None:
                weight = np.where(np.isnan(self.rate[ends[0]]), weight, self.rate[ends[0]])
            if not self.directed:
                ends = [np.minimum(*ends), np.maximum(*ends)]
            self.edges += int(np.count_nonzero(ends[0] != ends[1]))
            yield Records(ends[0].astype(np.int32), ends[1].astype(np.int32), weight, np.empty(0, np.int32))

    def counted(self, blocks: Iterable[Connections], path: Path) -> Iterator[Connections]:
        """Yield the blocks that became of the edges; then say how many repeated others."""
        kept = 0
        for block in blocks:
            kept += len(block.neighbour)
            yield block
        if self.edges > kept:
            doubtful(f"lines that repeat an edge: {self.edges - kept} added up", str(path), "each edge once")


class _NotPlainError(Exception):
    """Edges are not plain numbers."""


@dataclass
class _Plain:
    """Edges of plain numbers, read by compiled code."""

    path: Path
    layout: Layout

    def __iter__(self) -> Iterator[Lines]:
        """Yield the edges, some MB of text at a time.

        Raises
        ------
        InputError : a line that is no edge, with its number
        _NotPlainError : there are edges that are not plain numbers
        """
        line, seen = self.layout.line, False
        for text in whole_lines(self.path, self.layout.begin):
            data = np.frombuffer(text, np.uint8)
            room = int((data == 10).sum())
            found, wrong = self._parsed(text, data, room)
            if wrong is not None:
                self._look(text, wrong, line + text.count(b"\n", 0, wrong), seen or len(found.source) > 0)
            yield found
            line, seen = line + room, True

    def _parsed(self, text: bytes, data: AnyArray, room: int) -> tuple[Lines, int | None]:
        """Return the edges in ``room`` whole lines, and where the first line begins that is none of plain numbers, or None."""
        from nmsolve.model.formats.edge_text import OK, POWERS, parse

        layout = self.layout
        u, v, w = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room)
        late = np.empty((room, 3), np.int64)
        places = np.array([layout.source, layout.target, layout.weight])
        status, edges, slow, begin = parse(
            data, ord(layout.separator), layout.columns, places, POWERS, u, v, w, late
        )
        wrong = None if status == OK else begin
        if slow:
            w[late[:slow, 0]], bad = _floats(text, late[:slow])
            wrong = wrong if bad is None else text.rfind(b"\n", 0, bad) + 1
        return Lines(u[:edges], v[:edges], w[:edges]), wrong

    def _look(self, text: bytes, begin: int, number: int, seen: bool) -> None:
        """Refuse the line that begins there, or raise _NotPlainError if it is an edge."""
        line = text[begin : text.index(b"\n", begin)].decode("utf-8", "replace")
        rows = EdgeRows(self.path, self.layout, named=False if seen else None)
        rows.edge(line, f"{self.path}:{number}")
        raise _NotPlainError


def _floats(text: bytes, late: IntArray) -> tuple[FloatArray, int | None]:
    """Return weights of many digits, and the place of the first word that is no weight, or None."""
    words = [text[a:b] for _, a, b in late.tolist()]
    out = np.array([decimal(word) for word in words], np.float64)  # None is NaN
    bad = np.flatnonzero(~(np.isfinite(out) & (out >= 0)))
    return out, int(late[bad[0], 1]) if len(bad) else None


def save(graph: LogicGraph, path: Path) -> None:
    """Write one line per edge; a node without edges is written as an edge of weight 0 to itself.

    Names of nodes, and edges without direction, take a first line that names the columns. Comma-separated if the name says so.

    Raises
    ------
    InputError : a file that cannot be written
    """
    ids: list[Any] = list(range(graph.n)) if graph.ids is None else list(graph.ids)
    if not all(isinstance(i, int) and 0 <= i < 10**DIGITS for i in ids):
        ids = _as_names(ids, path)
    used = np.zeros(graph.n, bool)
    used[graph.edge_source] = used[graph.targets] = True
    alone = np.flatnonzero(~used).tolist()
    whole = bool((graph.weights == np.rint(graph.weights)).all())
    weights = graph.weights.astype(np.int64).tolist() if whole else graph.weights.tolist()
    comma = "," if ".csv" in path.suffixes else "\t" if ".tsv" in path.suffixes else " "
    text = io.StringIO()
    table = csv.writer(text, delimiter=comma, lineterminator="\n")
    kind = [] if graph.directed else ["Undirected"]
    if kind or (ids and isinstance(ids[0], str)):
        table.writerow(["source", "target", "weight", *(["Type"] if kind else [])])
    ends = zip(graph.edge_source.tolist(), graph.targets.tolist(), weights, strict=True)
    table.writerows((ids[u], ids[v], w, *kind) for u, v, w in ends)
    table.writerows((ids[u], ids[u], 0, *kind) for u in alone)
    write_atomic(path, text.getvalue())


def _as_names(ids: Sequence[str | int], path: Path) -> list[str]:
    """Return ids as text that is read as the same names.

    Raises
    ------
    InputError : a name that would be a number, a comment or another name
    """
    names = [str(i) for i in ids]
    for name in names:
        odd = (
            not name or name != name.strip(WHITE) or name.startswith(COMMENT) or re.search(r"[\t\r\n]", name)
        )
        if odd or decimal(name.encode()) is not None or name.lower() in MISSING:
            raise InputError(f"node {name[:60]!r}", str(path), "names that are none of numbers, or .json")
    return names
