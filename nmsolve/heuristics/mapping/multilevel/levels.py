"""The arrays that the kernels share: a graph at one level, the board, and the state of a placement.

All three are named tuples, which numba passes as structures of arrays.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.common.kinds import Presence, kinds_of
from nmsolve.heuristics.mapping.common.nodes import nodes_of
from nmsolve.hw.cost import CoreDistance, machine_distance
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import AnyArray, BoolArray, FloatArray, Int32Array, IntArray

#: Largest table of nodes times cores (float32 entries) that the dense form may take.
DENSE_ENTRIES = 250_000_000


class Net(NamedTuple):
    """The traffic graph at one level of coarsening; 8 bytes per edge and direction.

    indptr (n + 1,) int64, indices (2m,) int32 sorted in a row, weights (2m,) float32: symmetric traffic without
    self-loops. sizes (n, R) int64; volume (n,) float32: share of a core that the node takes (largest over the
    resources); domain (n,) int32: row of :attr:`Board.allowed`; apart_ptr, apart: CSR of nodes that may not share a core;
    kind (n,) int32: set of kinds of every node, or none where these are not limited.
    """

    indptr: IntArray
    indices: Int32Array
    weights: AnyArray
    sizes: IntArray
    volume: AnyArray
    domain: Int32Array
    apart_ptr: IntArray
    apart: Int32Array
    kind: Int32Array


class Board(NamedTuple):
    """The cores. col, row (P,) int32; lines_x (W, W), lines_y (H, H) float32: distance between columns and rows;
    capacity (P, R) int64; allowed (D, P) bool; kinds: empty cores, with the sets of kinds and how many each may have."""

    col: Int32Array
    row: Int32Array
    lines_x: AnyArray
    lines_y: AnyArray
    capacity: IntArray
    allowed: BoolArray
    kinds: Presence


def line_distances(at: FloatArray, wrap: float) -> AnyArray:
    """Return (L, L) float32 distances between lines at the positions ``at``, the shorter way round if ``wrap`` > 0."""
    d = np.abs(at[:, None] - at[None, :])
    if wrap > 0:
        d = np.minimum(d, wrap - d)
    out: AnyArray = np.ascontiguousarray(d, np.float32)
    return out


def board_of(problem: MappingProblem, distance: CoreDistance) -> Board:
    """Return the cores of a problem.

    Distances that are not a sum over column and row (a matrix, or a price for leaving the core at all) are held as
    one row of P columns: ``lines_x`` is then the whole (P, P) matrix. Above :data:`DENSE_ENTRIES` table entries the
    column and row parts alone stand in for them (offers are rescored by the evaluator).
    """
    cores = np.arange(problem.cores)
    allowed, capacity, kinds = np.array(problem.domains), np.array(problem.capacity), kinds_of(problem)[1]
    additive = distance.separable and distance.step == 0
    if not additive and problem.n * problem.cores <= DENSE_ENTRIES:
        matrix = distance.dense()
        both = np.ascontiguousarray((matrix + matrix.T) / 2, np.float32)
        none = np.zeros((1, 1), np.float32)
        return Board(
            cores.astype(np.int32), np.zeros(len(cores), np.int32), both, none, capacity, allowed, kinds
        )
    if not distance.separable or (distance.x.max() == 0 and distance.y.max() == 0):
        plain = replace(
            problem.machine, distance_matrix=None, faulty_links=()
        )  # in hops, as if no link were dead
        distance = machine_distance(plain, "hops")
    row, col = np.divmod(cores, distance.cols)
    return Board(
        col.astype(np.int32),
        row.astype(np.int32),
        line_distances(distance.x, distance.wrap_x),
        line_distances(distance.y, distance.wrap_y),
        capacity,
        allowed,
        kinds,
    )


def finest_net(problem: MappingProblem) -> Net:
    """Return the problem's own graph as level 0."""
    indptr, indices, weights = problem.graph.traffic
    return Net(
        np.array(indptr),
        np.array(indices),
        weights.astype(np.float32),
        *nodes_of(problem),
        kinds_of(problem)[0],
    )
