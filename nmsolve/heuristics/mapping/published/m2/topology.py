"""The topology M2 works on: an undirected weighted graph in memory, with its contraction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from nmsolve.model.compiled import plain
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

    def pieces(self, rng: np.random.Generator) -> Iterator[Piece]:
        """All connections, in one piece."""
        yield Piece(0, self.indptr, self.indices, self.weights)

    def contracted(self, group: Int32Array, groups: int) -> Topology:
        """See :func:`contract`."""
        return contract(self, group, groups)

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
    room = int((top.indptr[nodes + 1] - top.indptr[nodes]).sum())
    indices, weights = np.empty(room, np.int32), np.empty(room)
    indptr = np.zeros(len(nodes) + 1, np.int64)
    used = _induce(top.indptr, top.indices, top.weights, nodes, local, indptr, indices, weights)
    return Topology(indptr, indices[:used].copy(), weights[:used].copy(), top.sizes[nodes], top.kind[nodes])


@plain
def _induce(
    indptr: IntArray,
    indices: Int32Array,
    weights: FloatArray,
    nodes: IntArray,
    local: Int32Array,
    out_ptr: IntArray,
    out_ind: Int32Array,
    out_w: FloatArray,
) -> int:
    used = 0
    for i in range(len(nodes)):
        for e in range(indptr[nodes[i]], indptr[nodes[i] + 1]):
            v = local[indices[e]]
            if v >= 0:
                out_ind[used] = v
                out_w[used] = weights[e]
                used += 1
        out_ptr[i + 1] = used
    return used


def contract(top: Topology, group: Int32Array, groups: int) -> Topology:
    """Merge vertices of equal ``group``: sizes add up, parallel connections are summed, inner ones vanish.

    Serves the contraction of pairs (M2.2) and the packing of parts into neuron groups (step S6 of the
    source).
    """
    order = np.argsort(group, kind="stable")
    start = np.zeros(groups + 1, np.int64)
    np.cumsum(np.bincount(group, minlength=groups), out=start[1:])
    indices, weights = np.empty(len(top.indices), np.int32), np.empty(len(top.indices))
    indptr = np.zeros(groups + 1, np.int64)
    used = _contract(
        top.indptr,
        top.indices,
        top.weights,
        group,
        order,
        start,
        indptr,
        indices,
        weights,
        np.empty(groups, np.int64),
    )
    sizes = np.zeros((groups, top.sizes.shape[1]), np.int64)
    np.add.at(sizes, group, top.sizes)
    kind = np.full(groups, -1, np.int32)
    kind[group] = top.kind
    return Topology(indptr, indices[:used].copy(), weights[:used].copy(), sizes, kind)


@plain
def _contract(
    indptr: IntArray,
    indices: Int32Array,
    weights: FloatArray,
    group: Int32Array,
    order: IntArray,
    start: IntArray,
    out_ptr: IntArray,
    out_ind: Int32Array,
    out_w: FloatArray,
    slot: IntArray,
) -> int:
    slot[:] = -1
    used = 0
    for g in range(len(start) - 1):
        first = used
        for i in range(start[g], start[g + 1]):
            u = order[i]
            for e in range(indptr[u], indptr[u + 1]):
                h = group[indices[e]]
                if h == g:
                    continue
                if slot[h] < first:
                    slot[h] = used
                    out_ind[used] = h
                    out_w[used] = 0.0
                    used += 1
                out_w[slot[h]] += weights[e]
        out_ptr[g + 1] = used
    return used


class Stopped(Exception):
    """Raised by a poll function when the run has to end; engines catch it, nobody else sees it."""
