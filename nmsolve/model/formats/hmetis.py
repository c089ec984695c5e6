"""hMETIS ``.hgr``: nets over nodes counted from 1; a net's first pin sends one message to all its others.

Header ``nets nodes [fmt]``; ``fmt`` 1: net weights, 10: node weights, 11: both.
Manual of hMETIS 1.5.3, section 5.1.

AxonFlow also calls its binary hypergraphs ``.hgr``: those are recognised by their content and read by
:mod:`nmsolve.model.formats.axon`.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from nmsolve.model.errors import InputError, doubtful
from nmsolve.model.files import believed_nodes, write_atomic
from nmsolve.model.formats import axon
from nmsolve.model.formats.text import IntegerLines, integer_text, read_integer_lines, repeated
from nmsolve.model.graph import LogicGraph
from nmsolve.model.network import Network, graph
from nmsolve.model.types import IntArray, first_true, starts


def load(path: Path) -> LogicGraph:
    """Read an hMETIS hypergraph; every net is one multicast row, node weights are ``neurons``.

    An ``InputWarning`` names a net that lists a pin twice.

    Raises
    ------
    InputError : anything that is not as the header promises, with the line
    """
    if axon.is_binary(path):
        return graph(axon.stream(path))
    lines = read_integer_lines(path)
    nets, n, fmt = _header(lines)
    weighted, sized = fmt in (1, 11), fmt in (10, 11)
    wanted = nets + (n if sized else 0)
    length = np.diff(lines.start)[1:]
    more = np.flatnonzero(length[wanted:])
    if lines.lines - 1 < wanted or len(more):
        last = lines.lines - 1 if not len(more) else wanted + 1 + int(more[0])
        what = "there is another line" if len(more) else f"there are {last} lines after the header"
        raise InputError(
            what,
            lines.where(last),
            f"{nets} nets" + (f" and {n} node weights" if sized else ""),
        )
    if (k := first_true(length[:nets] < 1 + weighted)) is not None:
        raise InputError(f"net {k + 1} has no pin", lines.where(1 + k), "at least one pin")
    begin, end = int(lines.start[1]), int(lines.start[1 + nets])
    tokens = lines.tokens[begin:end]
    heads = lines.start[1 : 1 + nets] - begin
    weight = tokens[heads].astype(np.float64) if weighted else np.ones(nets)
    pins = np.delete(tokens, heads) if weighted else tokens
    indptr = starts(length[:nets] - weighted)
    if (at := first_true((pins < 1) | (pins > n))) is not None:
        net = int(np.searchsorted(indptr, at, side="right")) - 1
        raise InputError(f"net {net + 1} has pin {pins[at]}", lines.where(1 + net), f"1..{n}")
    sizes = _node_weights(lines, nets, n, length) if sized else None
    _warn_of_repeats(lines, indptr, pins, n)
    return LogicGraph.from_nets(n, indptr, pins - 1, weight, sizes=sizes, name=path.stem)


def stream(path: Path) -> Network | None:
    """Return a binary file in blocks; None for text.

    Raises
    ------
    InputError : as :func:`axon.stream <nmsolve.model.formats.axon.stream>`
    """
    return axon.stream(path) if axon.is_binary(path) else None


def _header(lines: IntegerLines) -> tuple[int, int, int]:
    """Return ``nets, n, fmt``, checked against the size of the file before anything is allocated."""
    head = lines.line(0).tolist() if lines.lines else []
    if not 2 <= len(head) <= 3:
        raise InputError(f"the header has {len(head)} numbers", lines.where(0), "nets, nodes [, format]")
    nets, n, fmt = head[0], head[1], head[2] if len(head) > 2 else 0
    if fmt not in (0, 1, 10, 11):
        raise InputError(f"the header's format is {fmt}", lines.where(0), "1, 10 or 11")
    # A node needs no pin, so n itself cannot be checked against the file; it only has to be believable.
    if (
        n < 1
        or 2 * nets > lines.size + 1
        or n > believed_nodes(lines.size)
        or (fmt >= 10 and 2 * n > lines.size)
    ):
        raise InputError(
            f"the header promises {nets} nets of {n} nodes, the file has {lines.size} bytes",
            lines.where(0),
            "at least one node, and a complete file",
        )
    return nets, n, fmt


def _warn_of_repeats(lines: IntegerLines, indptr: IntArray, pins: IntArray, n: int) -> None:
    """Say that nets list pins more than once."""
    first, count = repeated(np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)) * (n + 1) + pins)
    if count:
        net, pin = divmod(first, n + 1)
        more = f", and {count - 1} more like it" if count > 1 else ""
        what = f"net {net + 1} has pin {pin} twice{more}; it counts once"
        doubtful(what, lines.where(1 + net), "each pin once")


def _node_weights(lines: IntegerLines, nets: int, n: int, length: IntArray) -> IntArray:
    if (k := first_true(length[nets : nets + n] != 1)) is not None:
        raise InputError(
            f"node {k + 1} has {length[nets + k]} weights",
            lines.where(1 + nets + k),
            "one weight per line",
        )
    return lines.tokens[lines.start[1 + nets] : lines.start[1 + nets + n]].reshape(n, 1)


def save(graph: LogicGraph, path: Path) -> None:
    """Write ``graph`` as nets: one net per message (source first), or one per edge of an undirected graph.

    Messages without targets are left out. The first resource is written as node weight.

    Raises
    ------
    InputError : rates or weights that are not whole numbers, a file that cannot be written
    """
    if graph.one_row_per_node and not graph.directed:
        heads, rate = graph.edge_source.astype(np.int64), graph.weights
        indptr, targets = np.arange(graph.m + 1), graph.targets
    else:
        full = np.diff(graph.indptr) > 0
        heads, rate = graph.source[full].astype(np.int64), graph.rate[full]
        indptr, targets = starts(np.diff(graph.indptr)[full]), graph.targets
    if not (rate == np.rint(rate)).all():
        raise InputError("hMETIS supports only whole weights", str(path), "another format, such as .json")
    pins = (targets + 1).tolist()
    columns = (rate.astype(np.int64).tolist(), (heads + 1).tolist(), pairwise(indptr.tolist()))
    rows = [[w, head, *pins[a:b]] for w, head, (a, b) in zip(*columns, strict=True)]
    sized = len(graph.resources) > 0 and bool((graph.sizes[:, 0] != 1).any())
    if sized:
        rows += graph.sizes[:, :1].tolist()
    write_atomic(path, f"{len(heads)} {graph.n} {11 if sized else 1}\n".encode() + integer_text(rows))
