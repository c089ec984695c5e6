"""The placement problem as flat arrays for the compiled kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.heuristics.mapping.multilevel.lines import line_distances
from nmsolve.hw.cost import core_distance
from nmsolve.hw.deltas import arcs
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray, FloatArray, Int32Array, IntArray, read_only


@dataclass(frozen=True)
class PlacementData:
    """A placement problem in the form the kernels read.

    The cost of a placement is :func:`placement_cost`. Distances are separable
    (``dx[col, col'] + dy[row, row']``; the step that every pair pays is left out) or a matrix.

    Attributes
    ----------
    n, cores, rows, cols : nodes and board
    indptr, indices : CSR of neighbours, each pair stored in both rows
    weights : traffic of the pair in both directions together
    out, back : traffic from the row's node and to it, for asymmetric distances (else ``weights`` and zeros)
    dx, dy : (cols, cols) and (rows, rows) float32; (cols, 1) and (rows, 1) zeros where ``matrix`` holds
    matrix : (cores, cores) float64 or (0, 0)
    symmetric : the distance is the same in both directions
    domain : (n,) int32 row of ``domains``; ``domains`` : (D, cores) bool
    free : (P,) int64 cores that some node may use
    wrap_x, wrap_y : the board is a torus along that axis
    """

    n: int
    cores: int
    rows: int
    cols: int
    indptr: IntArray
    indices: Int32Array
    weights: FloatArray
    out: FloatArray
    back: FloatArray
    dx: FloatArray
    dy: FloatArray
    matrix: FloatArray
    symmetric: bool
    domain: Int32Array
    domains: BoolArray
    free: IntArray
    wrap_x: bool
    wrap_y: bool

    @property
    def separable(self) -> bool:
        """True if rows and columns can be charged apart."""
        return len(self.matrix) == 0

    @property
    def degree(self) -> float:
        """Mean number of neighbours."""
        return len(self.indices) / self.n


def placement_data(problem: MappingProblem) -> PlacementData:
    """Flatten ``problem`` (one node per core, a pairwise objective).

    A symmetric distance charges every pair ``w_uv + w_vu`` times its distance; an asymmetric one charges both
    directions on their own. Where the traffic is symmetric, an asymmetric distance is replaced by the mean of
    its two directions, which costs every mapping the same.
    """
    graph, d = problem.graph, core_distance(problem)
    indptr, indices, out, back = map(np.array, arcs(graph))
    weights = out + back
    matrix = d.matrix
    symmetric = d.separable or bool((matrix == matrix.T).all())
    if not symmetric and np.array_equal(out, back):
        matrix, symmetric = (matrix + matrix.T) / 2, True
    if symmetric:
        out, back = weights, np.zeros_like(weights)
    return PlacementData(
        n=graph.n,
        cores=problem.cores,
        rows=d.rows,
        cols=d.cols,
        indptr=indptr,
        indices=indices,
        weights=weights,
        out=out,
        back=back,
        dx=line_distances(d.x, d.wrap_x) if d.separable else np.zeros((d.cols, 1), np.float32),
        dy=line_distances(d.y, d.wrap_y) if d.separable else np.zeros((d.rows, 1), np.float32),
        matrix=read_only(matrix),
        symmetric=symmetric,
        domain=problem.domain_of.copy(),
        domains=problem.domains.copy(),
        free=np.flatnonzero(problem.domains.any(axis=0)),
        wrap_x=d.wrap_x > 0,
        wrap_y=d.wrap_y > 0,
    )


def placement_cost(data: PlacementData, core: IntArray) -> float:
    """Return the objective of a placement (n,) in float64, without the constant step; every pair once."""
    row = np.repeat(np.arange(data.n), np.diff(data.indptr))
    p, q = core[row], core[data.indices]
    if data.separable:
        (r, c), (rr, cc) = np.divmod(p, data.cols), np.divmod(q, data.cols)
        dist = data.dx[c, cc].astype(np.float64) + data.dy[r, rr]
        return float((data.weights * dist).sum() / 2)
    if data.symmetric:
        return float((data.weights * data.matrix[p, q]).sum() / 2)
    return float((data.out * data.matrix[p, q]).sum())
