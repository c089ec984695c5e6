"""What the explorable page of a network holds: nodes in layers along the data, the part that runs each, tensors, and their moves.

The parts are the stages of a pipeline, or the processors of an assignment; parts that need no transfer between them share a
place.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from nmsolve.model.types import AnyArray, FloatArray, IntArray
from nmsolve.report.explore import column
from nmsolve.report.layered import data_order, layers_of_nodes, places_in_layers

#: Nodes up to which a network can be explored; a larger one has still pictures.
MOST_NODES = 20_000
#: Layers across to nodes down that the drawing aims at; a cell is half as wide again as high.
SHAPE = 0.9
#: Pieces without a line to the others that stand in one layer.
STACKED = 6


#: What is said of a node or part: name, value, unit.
Row = tuple[str, float | str, str]


@dataclass(frozen=True, eq=False)
class Amount:
    """A figure of every node or move: its name, its unit and (N,) values.

    The page scales ``ps``, ``pJ``, ``MACs`` and ``bytes``.
    """

    name: str
    unit: str
    of: AnyArray


@dataclass(frozen=True, eq=False)
class Part:
    """A stage or processor: its name, its place, what is said of it, and what binds it, in words."""

    name: str
    place: int
    rows: Sequence[Row]
    note: str = ""


@dataclass(frozen=True, eq=False)
class Sent:
    """T tensors between N nodes, and the moves of those that another place needs.

    Attributes
    ----------
    names : (T,), or None
    source : (T,) node that makes it, N: from outside
    indptr, targets : CSR of the nodes that use it, N: a result of the network
    bytes : (T,)
    tensor, origin, goal : (X,) which tensor goes from which place to which other; each pair of tensor and goal once
    costs : what every move takes
    """

    names: Sequence[str] | None
    source: IntArray
    indptr: IntArray
    targets: IntArray
    bytes: FloatArray
    tensor: IntArray
    origin: IntArray
    goal: IntArray
    costs: Sequence[Amount]


@dataclass(frozen=True, eq=False)
class Network:
    """A network whose nodes run in parts.

    Attributes
    ----------
    name : for people
    node, part_word : what nodes and parts are called
    labels, kinds : (N,) of the nodes
    part : (N,) the part of every node
    figures : of every node
    notes : by node, further rows that few or text have; or None
    parts : all of them
    places : names of the places
    """

    name: str
    node: str
    part_word: str
    labels: Sequence[str]
    kinds: Sequence[str]
    part: IntArray
    figures: Sequence[Amount]
    notes: Sequence[Sequence[Row]] | None
    sent: Sent
    parts: Sequence[Part]
    places: Sequence[str]


def network_data(network: Network, search: dict[str, Any]) -> dict[str, Any]:
    """Return the data of the page's script, as JSON has it; ``search``: of :func:`nmsolve.report.explore.searched`."""
    sent, count = network.sent, len(network.labels)
    row, x, y = positions(count, sent)
    return {
        "name": network.name, "what": network.node, "part": network.part_word, "nodes": count,
        "labels": text_column(network.labels), "kinds": text_column(network.kinds),
        "row": column(row), "x": column(x), "y": column(y), "of": column(network.part),
        "figures": [_amount(a) for a in network.figures],
        "notes": network.notes,
        "parts": [
            {"name": p.name, "place": p.place, "rows": [list(r) for r in p.rows], "note": p.note} for p in network.parts
        ],
        "places": list(network.places),
        "tensors": {
            "names": None if sent.names is None else text_column(sent.names),
            "source": column(sent.source), "uses": column(np.diff(sent.indptr)), "target": column(sent.targets),
            "bytes": column(sent.bytes),
        },
        "moves": {
            "tensor": column(sent.tensor), "from": column(sent.origin), "to": column(sent.goal),
            "costs": [_amount(a) for a in sent.costs],
        },
        **search,
    }  # fmt: skip


def _amount(amount: Amount) -> dict[str, Any]:
    return {"name": amount.name, "unit": amount.unit, "of": column(np.asarray(amount.of, np.float64))}


def text_column(lines: Sequence[str]) -> dict[str, str]:
    """Return texts as the page holds them, a line each; line breaks in them become spaces."""
    text = "\n".join(line.replace("\n", " ") for line in lines)
    return {"kind": "text", "data": base64.b64encode(zlib.compress(text.encode(), 6)).decode()}


def positions(count: int, sent: Sent) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return (N,) the row, and the place in cells, of every node: layers from left to right, rows of them below each other."""
    tensor = np.repeat(np.arange(len(sent.source)), np.diff(sent.indptr))
    a, b = sent.source[tensor], sent.targets
    inner = (a < count) & (b < count) & (a != b)
    ends = sorted(set(zip(a[inner].tolist(), b[inner].tolist(), strict=True)))
    rank = data_order(count, ends)
    forward = [(p, q) for p, q in ends if rank[p] < rank[q]]
    layer = _beside(layers_of_nodes(count, forward, rank), ends)
    height = places_in_layers(count, forward, layer)
    across = _columns(layer, height)
    row = layer // across
    rows = int(row.max(initial=0)) + 1
    top, low = np.zeros(rows), np.zeros(rows)
    np.minimum.at(top, row, height)
    np.maximum.at(low, row, height)
    base = np.concatenate([[0.0], np.cumsum(low - top + 2.0)])
    return row, (layer % across).astype(float), base[row] - top[row] + height


def _beside(layer: IntArray, ends: Sequence[tuple[int, int]]) -> IntArray:
    """Return the layers (N,) with all that has no line to the largest piece of the network moved to the node before it there."""
    count = len(layer)
    a, b = np.array(ends, np.int64).reshape(-1, 2).T
    _, piece = connected_components(
        csr_matrix((np.ones(len(a), bool), (a, b)), (count, count)), directed=False
    )
    main = np.bincount(piece).argmax()
    known = np.where(piece == main, np.arange(count), -1)
    before = np.maximum.accumulate(known)
    shift, together = np.zeros(int(piece.max()) + 1, np.int64), dict[int, int]()
    for k in np.sort(np.unique(piece, return_index=True)[1]).tolist():
        if piece[k] == main:
            continue
        at = int(before[k])
        many = together[at] = together.get(at, 0) + 1
        shift[piece[k]] = (layer[at] - layer[k] if at >= 0 else 0) + many // STACKED
    out: IntArray = layer + shift[piece]
    out -= out.min()
    return out


def _columns(layer: IntArray, height: FloatArray) -> int:
    """Return how many layers a row has, so that the drawing is about :data:`SHAPE` times as wide as high."""
    layers = int(layer.max(initial=0)) + 1
    high = np.zeros(layers)
    np.maximum.at(high, layer, 2 * np.abs(height))
    best, least = layers, np.inf
    for rows in range(1, layers + 1):
        across = -(-layers // rows)
        tall = float(np.maximum.reduceat(high, np.arange(0, layers, across)).sum()) + 2 * -(-layers // across)
        off = abs(np.log(across / tall / SHAPE))
        if off < least:
            best, least = across, off
        if across < tall:
            break
    return best
