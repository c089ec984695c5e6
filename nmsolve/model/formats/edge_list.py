"""Edge lists: one line per edge, ``source target [weight]``, also compressed with gzip.

Read twice, a few MB at a time: first the nodes are collected and everything is checked, then the edges are taken.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.files import LARGEST_FILE, input_file, write_atomic
from nmsolve.model.formats.sorting import rows_of
from nmsolve.model.formats.text import decimal
from nmsolve.model.graph import LogicGraph
from nmsolve.model.network import Network, graph
from nmsolve.model.types import FloatArray, IntArray

if TYPE_CHECKING:
    from nmsolve.model.store.records import Records

#: Bytes read at a time; also the longest line.
PIECE = 2**22

#: Most digits of a node number.
DIGITS = 18


class Lines(NamedTuple):
    """The edges of some lines: (e,) node numbers as in the file, and weights."""

    source: IntArray
    target: IntArray
    weight: FloatArray


def load(path: Path) -> LogicGraph:
    """Read an edge list into memory; :func:`stream` says what becomes of it.

    Raises
    ------
    InputError : a line that is not an edge (with its number), a damaged archive, no edges
    """
    return graph(stream(path))


def stream(path: Path) -> Network:
    """Return the edge list in blocks: a directed graph, no multicast, of exactly the nodes that occur, by rising number.

    The same edge in several lines is added up, edges of a node to itself are dropped (but name the node).

    Raises
    ------
    InputError : as :func:`load`
    """
    nodes, whole = _nodes(path)
    n = len(nodes)
    if n >= 2**31:
        raise InputError(f"there are {n} nodes", str(path), f"at most {2**31 - 1}")
    dense = bool(nodes[-1] == n - 1)
    return Network(
        n=n,
        name=path.name.split(".")[0],
        blocks=rows_of(_records(path, None if dense else nodes), n, drop_loops=True),
        multicast=False,
        ids=None if dense else tuple(nodes.tolist()),
        unit=1.0 if whole else None,
    )


def _nodes(path: Path) -> tuple[IntArray, bool]:
    """Return all node numbers that occur, rising, and whether all weights and their sums are exact whole numbers."""
    nodes = np.empty(0, np.int64)
    waiting: list[IntArray] = []
    whole, total, pending = True, 0.0, 0
    for lines in _lines(path):
        total += float(lines.weight.sum())
        whole = whole and total < 2**53 and bool((lines.weight == np.rint(lines.weight)).all())
        waiting.append(_distinct([lines.source, lines.target]))
        pending += len(waiting[-1])
        if pending > max(PIECE, len(nodes)):  # so that merging stays proportional to reading
            nodes, waiting, pending = _distinct([nodes, *waiting]), [], 0
    nodes = _distinct([nodes, *waiting])
    if not len(nodes):
        raise InputError("there are no edges", str(path), "lines of source, target and weight")
    return nodes, whole


def _distinct(parts: list[IntArray]) -> IntArray:
    """Return all numbers of ``parts``, rising (sorting is eight times as fast as ``np.unique`` here)."""
    both = np.concatenate(parts)
    both.sort()
    return both[np.flatnonzero(np.diff(both, prepend=-1))]


def _records(path: Path, nodes: IntArray | None) -> Iterator[Records]:
    """Yield every edge with node indices instead of numbers."""
    from nmsolve.model.store.records import Records

    for lines in _lines(path):
        ends = [lines.source, lines.target]
        if nodes is not None:
            ends = [np.searchsorted(nodes, end) for end in ends]
        yield Records(ends[0].astype(np.int32), ends[1].astype(np.int32), lines.weight, np.empty(0, np.int32))


def _lines(path: Path) -> Iterator[Lines]:
    """Yield the edges, piece by piece."""
    parser = _Parser(path)
    rest = b""
    for piece in _pieces(path):
        end = piece.rfind(b"\n") + 1
        if end == 0:
            rest += piece
            if len(rest) > PIECE:
                raise InputError("the line is too long", f"{path}:{parser.line}", f"at most {PIECE} bytes")
            continue
        yield parser.take(rest + piece[:end])
        rest = piece[end:]
    if rest.strip():
        yield parser.take(rest + b"\n")


def _pieces(path: Path) -> Iterator[bytes]:
    """Yield the text of the file, unpacked if it is packed."""
    with input_file(path) as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        if not packed:
            while data := file.read(PIECE):
                yield data
            return
        total = 0
        try:
            with gzip.GzipFile(fileobj=file) as unpacked:
                while data := unpacked.read(PIECE):
                    total += len(data)
                    if total > LARGEST_FILE:
                        raise InputError("the text does not end", str(path), f"at most {LARGEST_FILE} bytes")
                    yield data
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(f"damaged gzip data ({error})", str(path), "a complete file") from None


@dataclass
class _Parser:
    """Reads lines; knows how many columns they have and the number of the next line."""

    path: Path
    columns: int = 0
    line: int = 1
    titled: bool = False

    def take(self, text: bytes) -> Lines:
        """Return the edges of whole lines."""
        from nmsolve.model.formats.edge_text import OK, POWERS, parse

        data = np.frombuffer(text, np.uint8)
        room = int((data == 10).sum())
        u, v, w = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room)
        late = np.empty((room, 3), np.int64)
        status, edges, slow, columns, begin = parse(data, self.columns, POWERS, u, v, w, late)
        if status != OK:
            title = self._title(text, begin) if self.columns == edges == 0 and not self.titled else 0
            if not title:
                self.columns = columns
                raise self._refused(text, begin)
            self.titled, self.line = True, self.line + text.count(b"\n", 0, title)
            return self.take(text[title:])
        self.columns = columns
        if slow:
            w[late[:slow, 0]] = self._floats(text, late[:slow])
        self.line += room
        return Lines(u[:edges], v[:edges], w[:edges])

    def _title(self, text: bytes, begin: int) -> int:
        """Return where the line behind the names of the columns begins, if that is what the first line is; else 0."""
        end = text.index(b"\n", begin) + 1
        words = text[begin:end].replace(b",", b" ").replace(b";", b" ").split()
        named = len(words) in (2, 3) and all(w.strip(b'"')[:1].isalpha() for w in words)
        return end if named else 0

    def _floats(self, text: bytes, late: IntArray) -> FloatArray:
        """Return weights of many digits, and whatever is not a weight at all."""
        words = [text[a:b] for _, a, b in late.tolist()]
        out = np.array([decimal(word) for word in words], np.float64)  # None is NaN
        bad = np.flatnonzero(~(np.isfinite(out) & (out >= 0)))
        if len(bad):
            raise self._refused(text, text.rfind(b"\n", 0, int(late[bad[0], 1])) + 1)
        return out

    def _refused(self, text: bytes, begin: int) -> InputError:
        """Return what is wrong with the line that begins there."""
        shown = text[begin : text.index(b"\n", begin)].strip()[:60].decode("utf-8", "replace")
        expected = {0: "source target [weight]", 2: "source target", 3: "source target weight"}[self.columns]
        line = self.line + text.count(b"\n", 0, begin)
        return InputError(
            f"found {shown!r}", f"{self.path}:{line}", f"{expected}; nodes are whole numbers, weights >= 0"
        )


def save(graph: LogicGraph, path: Path) -> None:
    """Write one line per edge; a node without edges is written as an edge of weight 0 to itself.

    Nodes are written by id if all ids are whole numbers >= 0, else by index. Comma-separated if the name says so.

    Raises
    ------
    InputError : a hypergraph, a file that cannot be written
    """
    if not graph.one_row_per_node:
        raise InputError("the graph has nets", str(path), "a graph without nets, or an .hgr file")
    numbers = graph.ids is None or all(isinstance(i, int) and 0 <= i < 10**DIGITS for i in graph.ids)
    ids = np.arange(graph.n) if graph.ids is None or not numbers else np.array(graph.ids, np.int64)
    used = np.zeros(graph.n, bool)
    used[graph.edge_source] = used[graph.targets] = True
    alone = ids[~used].tolist()
    whole = bool((graph.weights == np.rint(graph.weights)).all())
    weights = graph.weights.astype(np.int64).tolist() if whole else graph.weights.tolist()
    comma = "," if ".csv" in path.suffixes else "\t" if ".tsv" in path.suffixes else " "
    edges = zip(ids[graph.edge_source].tolist(), ids[graph.targets].tolist(), weights, strict=True)
    text = "".join(f"{u}{comma}{v}{comma}{w}\n" for u, v, w in edges)
    text += "".join(f"{u}{comma}{u}{comma}0\n" for u in alone)
    data = text.encode()
    write_atomic(path, gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
