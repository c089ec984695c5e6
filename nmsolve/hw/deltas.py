"""What moving one node or swapping two changes: the reference for every engine's own kernels.

Costs O(degree) for pairwise objectives and the size of the touched rows for net objectives; tested against
full recomputation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nmsolve.hw.cost import CoreDistance, pair_distance
from nmsolve.hw.kernels import Union, new_scratch, union_row
from nmsolve.hw.scores import prepared
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph, Rows, compress_rows
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray, FloatArray, Int32Array, IntArray, read_only


class Arcs(NamedTuple):
    """Who every node talks to, by direction, as CSR over nodes: ``sent[k]`` is the traffic from the node to ``other[k]``,
    ``received[k]`` the traffic back."""

    indptr: IntArray
    other: Int32Array
    sent: FloatArray
    received: FloatArray


def arcs(graph: LogicGraph) -> Arcs:
    """Who every node of a graph talks to."""
    src, dst = graph.edge_source.astype(np.int64), graph.targets.astype(np.int64)
    both = np.concatenate([src, dst]), np.concatenate([dst, src])
    nothing = np.zeros(len(src))
    ptr, other, sent = compress_rows(graph.n, *both, np.concatenate([graph.weights, nothing]))
    received = compress_rows(graph.n, *both, np.concatenate([nothing, graph.weights]))[2]
    return Arcs(read_only(ptr), read_only(other), read_only(sent), read_only(received))


def rows_of_node(graph: LogicGraph) -> tuple[IntArray, Int32Array]:
    """Rows that every node sends or receives: ``(indptr, row)`` as CSR over nodes, each row once."""
    row = np.repeat(np.arange(graph.rows), np.diff(graph.indptr))
    node = np.concatenate([graph.targets.astype(np.int64), graph.source.astype(np.int64)])
    row = np.concatenate([row, np.arange(graph.rows)])
    ptr, rows, _ = compress_rows(graph.n, node, row, np.ones(len(row)), graph.rows)
    return read_only(ptr), read_only(rows)


@plain
def pair_move_delta(u: int, q: int, skip: int, arcs: Arcs, core: IntArray, distance: CoreDistance) -> float:
    """Change of a pairwise objective if node ``u`` moves to core ``q``; edges with node ``skip`` are left
    out."""
    indptr, other, sent, received = arcs.indptr, arcs.other, arcs.sent, arcs.received
    p, delta = core[u], 0.0
    for k in range(indptr[u], indptr[u + 1]):
        v = other[k]
        if v != skip:
            c = core[v]
            delta += sent[k] * (pair_distance(q, c, distance) - pair_distance(p, c, distance))
            delta += received[k] * (pair_distance(c, q, distance) - pair_distance(c, p, distance))
    return delta


@plain
def pair_swap_delta(u: int, v: int, arcs: Arcs, core: IntArray, distance: CoreDistance) -> float:
    """Change of a pairwise objective if nodes ``u`` and ``v`` change places."""
    p, q = core[u], core[v]
    delta = 0.0
    for a, at, b in ((u, q, v), (v, p, u)):
        delta += pair_move_delta(a, at, b, arcs, core, distance)
    for k in range(arcs.indptr[u], arcs.indptr[u + 1]):
        if arcs.other[k] == v:  # matters only where the way back differs from the way there
            delta += (arcs.sent[k] - arcs.received[k]) * (
                pair_distance(q, p, distance) - pair_distance(p, q, distance)
            )
    return delta


class Charged(NamedTuple):
    """Messages and how they are charged, for :func:`net_delta`.

    ``of_node`` from :func:`rows_of_node`; the rows ``by_union`` pay by ``union``, all others edge by edge.
    """

    of_node: tuple[IntArray, Int32Array]
    rows: Rows
    by_union: BoolArray
    union: Union


@kernel
def net_delta(u: int, q: int, v: int, nets: Charged, core: IntArray, distance: CoreDistance) -> float:
    """Change of a net objective if node ``u`` moves to core ``q`` and node ``v`` (if >= 0) to ``u``'s core.

    ``core`` is the same after the call.
    """
    row_ptr, row_ind = nets.of_node
    rows, union, by_union, rate = nets.rows, nets.union, nets.by_union, nets.rows.rate
    indptr, source, targets, weights = rows.indptr, rows.source, rows.targets, rows.weights
    scratch = new_scratch(distance, union)
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
                    length = union_row(i, stamp, rows, core, distance, union, scratch)
                    delta += sign * rate[i] * length
                    stamp += 1
                else:
                    a = core[source[i]]
                    for k in range(indptr[i], indptr[i + 1]):
                        delta += sign * weights[k] * pair_distance(a, core[targets[k]], distance)
        if turn == 0:
            core[u] = q
            if v >= 0:
                core[v] = p
    core[u] = p
    if v >= 0:
        core[v] = home
    return delta


@plain
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

    arcs: Arcs
    nets: Charged
    distance: CoreDistance

    def move(self, core: IntArray, u: int, q: int) -> float:
        """Change of the objective if node ``u`` moves to core ``q``. ``core`` is (n,) int64."""
        if self.by_nets:
            return float(net_delta(u, q, -1, self.nets, core, self.distance))
        return float(pair_move_delta(u, q, -1, self.arcs, core, self.distance))

    def swap(self, core: IntArray, u: int, v: int) -> float:
        """Change of the objective if nodes ``u`` and ``v`` change places. ``core`` is (n,) int64."""
        if self.by_nets:
            return float(net_delta(u, int(core[v]), v, self.nets, core, self.distance))
        return float(pair_swap_delta(u, v, self.arcs, core, self.distance))

    @property
    def by_nets(self) -> bool:
        """True if some message is charged by the union of its routes."""
        return bool(self.nets.by_union.any())


def deltas_of(problem: MappingProblem) -> Deltas:
    """Prepare :class:`Deltas` for a problem.

    Raises
    ------
    InputError : the objective is the load of a link, which is not a sum
    """
    if problem.uses_links:
        raise InputError(f"changes of objective {problem.objective} are not sums", "", "another objective")
    pairs, ready = arcs(problem.graph), prepared(problem)
    (rows,) = problem.graph.blocks()
    nets = Charged(rows_of_node(problem.graph), rows.fixed, read_only(ready.by_union), ready.union)
    return Deltas(pairs, nets, ready.distance)
