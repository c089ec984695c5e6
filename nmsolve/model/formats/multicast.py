"""Graphs in which every node sends one message per step to all its targets, from files that cannot say so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from nmsolve.model.errors import InputError, doubtful
from nmsolve.model.graph import LogicGraph, row_max
from nmsolve.model.network import Connections, Network
from nmsolve.model.types import BoolArray, FloatArray, IntArray


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
