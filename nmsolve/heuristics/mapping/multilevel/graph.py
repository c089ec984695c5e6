"""The arrays that all kernels of this engine share: a graph at one level, and a board of cores or of regions of cores."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.common.kinds import kinds_of
from nmsolve.heuristics.mapping.common.nodes import nodes_of
from nmsolve.model.compiled import embedded
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import AnyArray, BoolArray, FloatArray, Int32Array, IntArray


class Graph(NamedTuple):
    """Symmetric traffic at one level of coarsening, without self-loops.

    Attributes
    ----------
    ptr, neighbour, weight : CSR; (n + 1,) int64, (2m,) int32, (2m,) float32
    sizes : (n, R) int64
    volume : (n,) float64, share of a core that a node takes: the largest over its resources
    domain : (n,) int32, row of :attr:`Board.allowed`
    apart_ptr, apart : CSR of nodes that may not share a core; (n + 1,) int64, int32
    kind : (n,) int32, set of kinds of a node, or (0,) where these are not limited
    """

    ptr: IntArray
    neighbour: Int32Array
    weight: AnyArray
    sizes: IntArray
    volume: FloatArray
    domain: Int32Array
    apart_ptr: IntArray
    apart: Int32Array
    kind: Int32Array


class Board(NamedTuple):
    """Blocks that nodes go to: the usable cores, or regions of them.

    Attributes
    ----------
    distance : (K, K) float64, symmetric, 0 on the diagonal
    room : (K, R) int64
    share : (K,) float64, volume that a block takes
    allowed : (D, K) bool
    near_ptr, near : CSR of the blocks nearest to each, where nodes without neighbours there may go too
    """

    distance: FloatArray
    room: IntArray
    share: FloatArray
    allowed: BoolArray
    near_ptr: IntArray
    near: Int32Array


#: Least share of a core that a node counts as: nodes of size 0 take part in products and quotients.
LEAST_VOLUME = 1e-9


def finest_graph(problem: MappingProblem) -> Graph:
    """Return the problem's own graph, without edges whose weight is 0 in 32 bits."""
    ptr, neighbour, weight = problem.graph.traffic
    ptr, neighbour, weight = np.array(ptr), np.array(neighbour), weight.astype(np.float32)
    if not (some := weight > 0).all():
        before = np.concatenate([[0], np.cumsum(some)])
        ptr, neighbour, weight = before[ptr], neighbour[some], weight[some]
    sizes, volume, domain, apart_ptr, apart = nodes_of(problem)
    share = np.maximum(volume.astype(np.float64), LEAST_VOLUME)
    return Graph(ptr, neighbour, weight, sizes, share, domain, apart_ptr, apart, kinds_of(problem)[0])


@embedded
def alike(g: Graph, u: int, v: int) -> bool:
    """Return whether two nodes may be on the same cores and are of the same kinds, so that they may be one on coarser levels."""
    return g.domain[u] == g.domain[v] and (len(g.kind) == 0 or g.kind[u] == g.kind[v])


@embedded
def room_for(g: Graph, load: IntArray, room: IntArray, v: int, p: int) -> bool:
    """Return whether block or core ``p`` has room for node ``v``."""
    for r in range(load.shape[1]):  # noqa: SIM110 (numba)
        if load[p, r] + g.sizes[v, r] > room[p, r]:
            return False
    return True


@embedded
def overfull(load: IntArray, room: IntArray, p: int) -> bool:
    """Return whether a block or core holds more than it may."""
    for r in range(load.shape[1]):  # noqa: SIM110 (numba)
        if load[p, r] > room[p, r]:
            return True
    return False


#: Blocks that are at most this many times as far as the nearest count as near; and how many of them at most.
NEAR, MOST_NEAR = 1.3, 6


def board_of(distance: FloatArray, room: IntArray, share: FloatArray, allowed: BoolArray) -> Board:
    """Return a board with the nearest blocks of every block."""
    k = len(share)
    ptr, near = np.zeros(k + 1, np.int64), []
    far = distance + np.where(np.eye(k, dtype=bool), np.inf, 0.0)
    for block in range(k):
        row = far[block]
        within = np.flatnonzero(row <= NEAR * row.min()) if k > 1 else np.zeros(0, np.int64)
        near.append(within[np.argsort(row[within], kind="stable")][:MOST_NEAR])
        ptr[block + 1] = ptr[block] + len(near[-1])
    return Board(
        np.ascontiguousarray(distance), np.ascontiguousarray(room), share, np.ascontiguousarray(allowed), ptr,
        np.concatenate(near).astype(np.int32),
    )  # fmt: skip
