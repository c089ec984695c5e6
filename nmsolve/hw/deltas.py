"""What moving one node or swapping two changes: the reference for every engine's own kernels.

Costs O(degree) for pairwise objectives and the size of the touched rows for net objectives; tested against
full recomputation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba as nb
import numpy as np

from nmsolve.hw.cost import pair_distance, uses_links
from nmsolve.hw.kernels import union_row
from nmsolve.hw.scores import Prepared, prepared
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph, compress_rows
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray, FloatArray, Int32Array, IntArray, frozen


def arcs(graph: LogicGraph) -> tuple[IntArray, Int32Array, FloatArray, FloatArray]:
    """Who every node talks to, by direction: ``(indptr, other, sent, received)`` as CSR over nodes.

    ``sent[k]`` is the traffic from the node to ``other[k]``, ``received[k]`` the traffic back.
    """
    src, dst = graph.edge_source.astype(np.int64), graph.targets.astype(np.int64)
    both = np.concatenate([src, dst]), np.concatenate([dst, src])
    nothing = np.zeros(len(src))
    ptr, other, sent = compress_rows(graph.n, *both, np.concatenate([graph.weights, nothing]))
    received = compress_rows(graph.n, *both, np.concatenate([nothing, graph.weights]))[2]
    return frozen(ptr), frozen(other), frozen(sent), frozen(received)


def rows_of_node(graph: LogicGraph) -> tuple[IntArray, Int32Array]:
    """Rows that every node sends or receives: ``(indptr, row)`` as CSR over nodes, each row once."""
    row = np.repeat(np.arange(graph.rows), np.diff(graph.indptr))
    node = np.concatenate([graph.targets.astype(np.int64), graph.source.astype(np.int64)])
    row = np.concatenate([row, np.arange(graph.rows)])
    ptr, rows, _ = compress_rows(graph.n, node, row, np.ones(len(row)), graph.rows)
    return frozen(ptr), frozen(rows)


@nb.njit(cache=True, nogil=True)
def pair_move_delta(
    u: int,
    q: int,
    skip: int,
    indptr: IntArray,
    other: Int32Array,
    sent: FloatArray,
    received: FloatArray,
    core: IntArray,
    cols: int,
    x: FloatArray,
    y: FloatArray,
    wrap_x: float,
    wrap_y: float,
    step: float,
    matrix: FloatArray,
) -> float:
    """Change of a pairwise objective if node ``u`` moves to core ``q``; edges with node ``skip`` are left
    out.

    Arrays are those of :func:`arcs` and :class:`nmsolve.hw.cost.CoreDistance`.
    """
    p, delta = core[u], 0.0
    for k in range(indptr[u], indptr[u + 1]):
        v = other[k]
        if v != skip:
            c = core[v]
            delta += sent[k] * (
                pair_distance(q, c, cols, x, y, wrap_x, wrap_y, step, matrix)
                - pair_distance(p, c, cols, x, y, wrap_x, wrap_y, step, matrix)
            )
            delta += received[k] * (
                pair_distance(c, q, cols, x, y, wrap_x, wrap_y, step, matrix)
                - pair_distance(c, p, cols, x, y, wrap_x, wrap_y, step, matrix)
            )
    return delta


@nb.njit(cache=True, nogil=True)
def pair_swap_delta(
    u: int,
    v: int,
    indptr: IntArray,
    other: Int32Array,
    sent: FloatArray,
    received: FloatArray,
    core: IntArray,
    cols: int,
    x: FloatArray,
    y: FloatArray,
    wrap_x: float,
    wrap_y: float,
    step: float,
    matrix: FloatArray,
) -> float:
    """Change of a pairwise objective if nodes ``u`` and ``v`` change places. Arrays as :func:`pair_move_delta`."""
    p, q = core[u], core[v]
    delta = 0.0
    for a, at, b in ((u, q, v), (v, p, u)):
        delta += pair_move_delta(
            a, at, b, indptr, other, sent, received, core, cols, x, y, wrap_x, wrap_y, step, matrix
        )
    for k in range(indptr[u], indptr[u + 1]):
        if other[k] == v:  # matters only where the way back differs from the way there
            delta += (sent[k] - received[k]) * (
                pair_distance(q, p, cols, x, y, wrap_x, wrap_y, step, matrix)
                - pair_distance(p, q, cols, x, y, wrap_x, wrap_y, step, matrix)
            )
    return delta


@nb.njit(cache=True, nogil=True)
def net_delta(
    u: int,
    q: int,
    v: int,
    row_ptr: IntArray,
    row_ind: Int32Array,
    indptr: IntArray,
    source: Int32Array,
    targets: Int32Array,
    weights: FloatArray,
    rate: FloatArray,
    by_union: BoolArray,
    core: IntArray,
    cols: int,
    x: FloatArray,
    y: FloatArray,
    wrap_x: float,
    wrap_y: float,
    edge_step: float,
    matrix: FloatArray,
    step: float,
    dist: FloatArray,
    before: Int32Array,
) -> float:
    """Change of a net objective if node ``u`` moves to core ``q`` and node ``v`` (if >= 0) to ``u``'s core.

    ``row_ptr``, ``row_ind`` from :func:`rows_of_node`; ``by_union``, ``step``, ``dist``, ``before`` from
    :func:`nmsolve.hw.scores.prepared`; ``edge_step`` and ``matrix`` are ``CoreDistance.step`` and
    ``.matrix``. ``core`` is the same after the call.
    """
    size = max(dist.shape[0], cols * y.shape[0])
    got, on_tree = np.full(size, -1, np.int64), np.full(size, -1, np.int64)
    columns, reach = np.full((2, cols), -1, np.int64), np.zeros((2, cols))
    p, stamp, delta = core[u], 0, 0.0
    home = core[v] if v >= 0 else 0
    for turn in range(2):
        sign = 2.0 * turn - 1.0
        for node in (u, v):
            if node < 0:
                continue
            for j in range(row_ptr[node], row_ptr[node + 1]):
                i = row_ind[j]
                if node == v and _has(row_ind, row_ptr[u], row_ptr[u + 1], i):
                    continue  # counted with u
                if by_union[i]:
                    delta += sign * rate[i] * union_row(
                        i, stamp, indptr, source, targets, core, cols, x, y, wrap_x, wrap_y, step, dist,
                        before, got, on_tree, columns, reach,
                    )  # fmt: skip
                    stamp += 1
                else:
                    a = core[source[i]]
                    for k in range(indptr[i], indptr[i + 1]):
                        delta += sign * weights[k] * pair_distance(
                            a, core[targets[k]], cols, x, y, wrap_x, wrap_y, edge_step, matrix
                        )  # fmt: skip
        if turn == 0:
            core[u] = q
            if v >= 0:
                core[v] = p
    core[u] = p
    if v >= 0:
        core[v] = home
    return delta


@nb.njit(cache=True, nogil=True)
def _has(sorted_values: Int32Array, first: int, last: int, value: int) -> bool:
    """True if ``value`` is in the sorted stretch ``first:last``."""
    end = last
    while first < last:
        mid = (first + last) // 2
        if sorted_values[mid] < value:
            first = mid + 1
        else:
            last = mid
    return first < end and sorted_values[first] == value


@dataclass(frozen=True, eq=False)
class Deltas:
    """Moves and swaps of one problem, priced without recomputing the rest."""

    problem: MappingProblem
    ready: Prepared
    pairs: tuple[IntArray, Int32Array, FloatArray, FloatArray]
    rows: tuple[IntArray, Int32Array]

    def move(self, core: IntArray, u: int, q: int) -> float:
        """Change of the objective if node ``u`` moves to core ``q``. ``core`` is (n,) int64."""
        if self.ready.by_union.any():
            return self._net(core, u, q, -1)
        d = self.ready.distance
        tail = (core, d.cols, d.x, d.y, d.wrap_x, d.wrap_y, d.step, d.matrix)
        return float(pair_move_delta(u, q, -1, *self.pairs, *tail))

    def swap(self, core: IntArray, u: int, v: int) -> float:
        """Change of the objective if nodes ``u`` and ``v`` change places. ``core`` is (n,) int64."""
        if self.ready.by_union.any():
            return self._net(core, u, int(core[v]), v)
        d = self.ready.distance
        tail = (core, d.cols, d.x, d.y, d.wrap_x, d.wrap_y, d.step, d.matrix)
        return float(pair_swap_delta(u, v, *self.pairs, *tail))

    def _net(self, core: IntArray, u: int, q: int, v: int) -> float:
        g, r, d = self.problem.graph, self.ready, self.ready.distance
        return float(
            net_delta(
                u, q, v, *self.rows, g.indptr, g.source, g.targets, g.weights, g.rate, r.by_union, core,
                d.cols, d.x, d.y, d.wrap_x, d.wrap_y, d.step, d.matrix, r.step, r.dist, r.before,
            )
        )  # fmt: skip


def deltas_of(problem: MappingProblem) -> Deltas:
    """Prepare :class:`Deltas` for a problem.

    Raises
    ------
    InputError : the objective is the load of a link, which is no sum
    """
    if uses_links(problem):
        raise InputError(f"changes of {problem.objective} are not sums", "", "another objective")
    return Deltas(problem, prepared(problem), arcs(problem.graph), rows_of_node(problem.graph))
