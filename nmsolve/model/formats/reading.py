"""Options of reading: what the user says of a graph that its file cannot say, such as one message per step to all targets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from nmsolve.model.errors import InputError, doubtful
from nmsolve.model.graph import LogicGraph, row_max
from nmsolve.model.network import Connections, Network
from nmsolve.model.types import BoolArray, FloatArray, IntArray


class GraphReading(msgspec.Struct, frozen=True):
    """How a graph file is read. Reports state it, so that later commands read the same graph.

    Attributes
    ----------
    pattern : every stored entry of a matrix weighs 1
    absolute : an entry of a matrix weighs its absolute value
    nodes : path of the node table beside an edge list
    multicast : every node sends one message per step to all its targets
    """

    pattern: bool = False
    absolute: bool = False
    nodes: str | None = None
    multicast: bool = False

    def options(self) -> dict[str, Any]:
        """Return the options that are set, by name."""
        return {f: v for f in GraphReading.__struct_fields__ if (v := getattr(self, f))}

    def require(self, known: tuple[str, ...], path: Path, who: str = "") -> None:
        """Refuse options that the format of this file, or ``who``, has no use for.

        Raises
        ------
        InputError : an option that is not in ``known``, or both ways to read entries
        """
        for name in self.options():
            if name not in known:
                what = f"--{name} has no meaning for {who or f'a {path.suffix.lower()} file'}"
                raise InputError(what, str(path), _FOR[name])
        if self.pattern and self.absolute:
            raise InputError("--pattern and --absolute", str(path), "one of them")


#: What files an option is for.
_FOR = dict.fromkeys(("pattern", "absolute"), "a matrix: .mtx, or an .npz of SciPy")
_FOR["nodes"] = "an edge list: .txt, .edges, .csv or .tsv"
#: A file is read as it is.
AS_IT_IS = GraphReading()


def as_multicast(graph: LogicGraph) -> LogicGraph:
    """Return the graph with every message multicast; its rate is the one that is stated, else its largest weight.

    A warning says how many nodes have edges of different weights: they may have meant one message each.

    Raises
    ------
    InputError : an undirected graph, whose edges do not say who sends; connections on disk
    """
    if graph.on_disk:
        raise InputError(
            "--multicast for a graph on disk", graph.name, "a file that `convert --multicast` wrote"
        )
    _require_directed(graph.directed or bool(graph.multicast.all()), graph.name)
    _tell_unequal(_unequal(graph.indptr, graph.weights, graph.multicast), graph.name)
    return replace(graph, multicast=np.ones(graph.rows, bool))


def network_as_multicast(network: Network) -> Network:
    """Return the same of a network in blocks. InputError as :func:`as_multicast`."""
    before = network.casts()
    _require_directed(network.directed or bool(before.all()), network.name)
    return replace(network, multicast=True, blocks=_watched(network.blocks, before, network.name))


def _require_directed(directed: bool, name: str) -> None:
    if not directed:
        raise InputError(
            "--multicast for an undirected graph", name, "edges that lead from sender to receiver"
        )


def _watched(blocks: Iterable[Connections], before: BoolArray, name: str) -> Iterator[Connections]:
    """Yield the blocks; then warn of unequal weights."""
    row = unequal = 0
    for block in blocks:
        rows = len(block.indptr) - 1
        unequal += _unequal(block.indptr, block.weight, before[row : row + rows])
        row += rows
        yield block
    _tell_unequal(unequal, name)


def _unequal(indptr: IntArray, weights: FloatArray, multicast: BoolArray) -> int:
    """Return how many messages that did not multicast have unequal weights."""
    least = -row_max(indptr, -weights)
    return int(np.count_nonzero((least < row_max(indptr, weights)) & ~multicast))


def _tell_unequal(count: int, name: str) -> None:
    if count:
        what = f"nodes whose edges have different weights: {count}; each sends one message of the largest"
        doubtful(what, name, "equal weights, or no --multicast")
