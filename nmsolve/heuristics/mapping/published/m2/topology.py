"""The topology M2 works on: an undirected weighted graph in memory, with its contraction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from nmsolve.model.compiled import kernel
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, Int32Array, IntArray, frozen


class Piece(NamedTuple):
    """Connections of consecutive vertices: the first of them, ``indptr`` (k + 1,) from 0, ``indices``, ``weights``."""

    first: int
    indptr: IntArray
    indices: Int32Array
    weights: FloatArray


class Level(Protocol):
    """What M2.2 and M2.4 need of a topology, in memory or on disk."""

    @property
    def n(self) -> int:
        """Number of vertices."""

    @property
    def connections(self) -> int:
        """Connections, counted at both ends."""

    @property
    def sizes(self) -> IntArray:
        """(n, R) int64, what a vertex takes of every limited resource."""

    @property
    def kind(self) -> Int32Array:
        """(n,) int32; only vertices of equal kind >= 0 may be merged."""

    def pieces(self, rng: np.random.Generator) -> Iterator[Piece]:
        """The connections of all vertices, piece by piece in random order."""

    def contracted(self, group: Int32Array, groups: int) -> Level:
        """Vertices of equal ``group`` merged."""

    def loaded(self) -> Topology:
        """All connections in memory."""


@dataclass(frozen=True)
class Topology:
    """Vertices with sizes and weighted connections, every connection stored from both ends.

    Attributes
    ----------
    indptr : (n + 1,) int64; indices : (m,) int32; weights : (m,) float64 >= 0
    sizes : (n, R) int64, what a vertex takes of every limited resource
    kind : (n,) int32; only vertices of equal kind >= 0 may be merged (side constraints, see :func:`kinds`)
    """

    indptr: IntArray
    indices: Int32Array
    weights: FloatArray
    sizes: IntArray
    kind: Int32Array

    def __post_init__(self) -> None:
        for array in (self.indptr, self.indices, self.weights, self.sizes, self.kind):
            frozen(array)  # one array type only, so that every kernel is compiled once

    @property
    def n(self) -> int:
        """Number of vertices."""
        return len(self.indptr) - 1

    @property
    def connections(self) -> int:
        """Connections, counted at both ends."""
        return len(self.indices)

    @property
    def piece(self) -> Piece:
        """All connections, in the form that kernels take."""
        return Piece(0, self.indptr, self.indices, self.weights)

    def pieces(self, rng: np.random.Generator) -> Iterator[Piece]:
        """All connections, in one piece."""
        yield self.piece

    def contracted(self, group: Int32Array, groups: int) -> Topology:
        """As in :class:`Level`: sizes add up, parallel connections are summed, inner ones vanish.

        Serves the contraction of pairs (M2.2) and the packing of parts into neuron groups (step S6 of the source).
        """
        order = np.argsort(group, kind="stable")
        start = np.searchsorted(group[order], np.arange(groups + 1))
        indptr, indices, weights = _contract(self.piece, group, order, start)
        sizes, kind = merged(self.sizes, self.kind, group, groups)
        return Topology(indptr, indices, weights, sizes, kind)

    def loaded(self) -> Topology:
        """This topology."""
        return self


def kinds(problem: MappingProblem) -> Int32Array:
    """(n,) int32: which nodes M2.2 may merge.

    Deviation from the source, which knows no side constraints: nodes with different sets of allowed cores
    are never merged, nodes of an ``apart`` constraint are merged with nothing.
    """
    out = problem.domain_of.copy()
    out[np.diff(problem.apart[0]) > 0] = -1
    return out


def topology_of(problem: MappingProblem) -> Topology:
    """The symmetric traffic graph of a problem with its limited resources."""
    indptr, indices, weights = problem.graph.traffic
    return Topology(indptr, indices, weights, problem.sizes, kinds(problem))


def induced(top: Topology, nodes: IntArray) -> Topology:
    """The part of ``top`` between ``nodes`` (vertex ``i`` of the result is ``nodes[i]``)."""
    local = np.full(top.n, -1, np.int32)
    local[nodes] = np.arange(len(nodes), dtype=np.int32)
    indptr, indices, weights = _induce(top.piece, nodes, local)
    return Topology(indptr, indices, weights, top.sizes[nodes], top.kind[nodes])


@kernel
def _induce(edges: Piece, nodes: IntArray, local: Int32Array) -> tuple[IntArray, Int32Array, FloatArray]:
    """``indptr``, ``indices`` and ``weights`` of the connections between ``nodes``; ``local`` (n,) is -1 for the others."""
    _, indptr, indices, weights = edges
    room, used = 0, 0
    for u in nodes:
        room += indptr[u + 1] - indptr[u]
    out_ptr = np.zeros(len(nodes) + 1, np.int64)
    out_ind, out_w = np.empty(room, np.int32), np.empty(room)
    for i in range(len(nodes)):
        for e in range(indptr[nodes[i]], indptr[nodes[i] + 1]):
            v = local[indices[e]]
            if v >= 0:
                out_ind[used] = v
                out_w[used] = weights[e]
                used += 1
        out_ptr[i + 1] = used
    return out_ptr, out_ind[:used].copy(), out_w[:used].copy()


def merged(sizes: IntArray, kind: Int32Array, group: Int32Array, groups: int) -> tuple[IntArray, Int32Array]:
    """Sizes (groups, R), added up, and kinds (groups,) of merged vertices, given those of the vertices."""
    size = np.zeros((groups, sizes.shape[1]), np.int64)
    np.add.at(size, group, sizes)
    one = np.full(groups, -1, np.int32)
    one[group] = kind
    return size, one


@kernel
def _contract(
    edges: Piece, group: Int32Array, order: IntArray, start: IntArray
) -> tuple[IntArray, Int32Array, FloatArray]:
    """``indptr``, ``indices`` and ``weights`` between groups, whose members are ``order[start[g]:start[g + 1]]``."""
    _, indptr, indices, weights = edges
    out_ptr, slot = np.zeros(len(start), np.int64), np.full(len(start) - 1, -1, np.int64)
    out_ind, out_w = np.empty(len(indices), np.int32), np.empty(len(indices))
    used = 0
    for g in range(len(start) - 1):
        begin = used
        for i in range(start[g], start[g + 1]):
            u = order[i]
            for e in range(indptr[u], indptr[u + 1]):
                h = group[indices[e]]
                if h == g:
                    continue
                if slot[h] < begin:
                    slot[h] = used
                    out_ind[used] = h
                    out_w[used] = 0.0
                    used += 1
                out_w[slot[h]] += weights[e]
        out_ptr[g + 1] = used
    return out_ptr, out_ind[:used].copy(), out_w[:used].copy()


class Stopped(Exception):
    """Raised by a poll function when the run has to end; engines catch it, nothing else sees it."""
