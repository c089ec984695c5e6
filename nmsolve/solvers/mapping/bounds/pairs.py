"""What the bounds on pairwise objectives need: symmetric traffic, distances, and how many nodes share a core.

Cost of a mapping = ``sum over stored edges w_uv d(c_u, c_v)`` (unicast objectives, :mod:`nmsolve.hw.cost`). With
``S = W + W'`` and a symmetric distance it is ``1/2 sum_uv S_uv d(c_u, c_v)``. An asymmetric distance matrix is made
symmetric by its mean where the traffic is symmetric (exact), else by its smaller direction (valid, weaker).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nmsolve.hw.cost import CoreDistance, by_matrix, core_distance, counts_exactly
from nmsolve.model.features import Limit, at_most
from nmsolve.model.graph import LogicGraph
from nmsolve.model.mapping.features import LIMITS, takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, Int32Array, IntArray

#: Asked between slices of work; True means "return the best valid bound you have".
ShouldStop = Callable[[], bool]

#: Most cores for which bounds build distances of all pairs (128 MiB per 4,096 cores, in blocks beyond).
MAX_CORES = 16384


def never() -> bool:
    """Return the ``should_stop`` of a caller without a deadline."""
    return False


@dataclass(frozen=True)
class PairForm:
    """A pairwise mapping problem as the bounds see it.

    Attributes
    ----------
    n : number of nodes
    indptr, indices, weights : symmetric traffic ``S`` as CSR, every pair twice
    cores : (k,) core numbers that may hold nodes, increasing
    distance : of all cores, matrix form already symmetric
    lattice : the objective is a multiple of this on every mapping; 0 if unknown
    """

    n: int
    indptr: IntArray
    indices: Int32Array
    weights: FloatArray
    cores: IntArray
    distance: CoreDistance
    lattice: float

    @property
    def total(self) -> float:
        """Traffic between different nodes, ``sum_{u<v} S_uv``."""
        return float(self.weights.sum()) / 2

    def rows(self) -> IntArray:
        """Return (nnz,) the node of every CSR entry."""
        return np.repeat(np.arange(self.n), np.diff(self.indptr))

    def block(self, which: IntArray) -> FloatArray:
        """Return (len(which), k) the distances from ``cores[which]`` to all of ``cores``."""
        d, p, q = self.distance, self.cores[which], self.cores
        if not d.separable:
            return np.ascontiguousarray(d.matrix[np.ix_(p, q)])
        dx = np.abs(d.x[p % d.cols][:, None] - d.x[q % d.cols][None, :])
        dy = np.abs(d.y[p // d.cols][:, None] - d.y[q // d.cols][None, :])
        if d.wrap_x > 0:
            dx = np.minimum(dx, d.wrap_x - dx)
        if d.wrap_y > 0:
            dy = np.minimum(dy, d.wrap_y - dy)
        out: FloatArray = dx + dy + d.step * (p[:, None] != q[None, :])
        return out

    def blocks(self) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield slices of about a million distances: (c,) indices into ``cores``, (c, k) distances."""
        k = len(self.cores)
        width = max(1, 1_000_000 // max(1, k))
        for at in range(0, k, width):
            which = np.arange(at, min(k, at + width))
            yield which, self.block(which)

    def plain_distances(self) -> FloatArray:
        """Return (k, k) distances between ``cores`` without the constant step; 0 on the diagonal."""
        out = np.concatenate([block for _, block in self.blocks()]) - self.distance.step
        np.fill_diagonal(out, 0.0)
        return out


def dense_traffic(form: PairForm, size: int | None = None) -> FloatArray:
    """Return (size, size) symmetric traffic, idle nodes at the end; as many as there are cores if no size is given."""
    size = len(form.cores) if size is None else size
    out = np.zeros((size, size))
    out[form.rows(), form.indices] = form.weights
    np.fill_diagonal(out, 0.0)
    return out


def no_core(problem: MappingProblem) -> str | None:
    """No core is usable."""
    return None if problem.machine.usable.any() else "no core is usable"


def usable_cores(problem: MappingProblem) -> int:
    """Return how many cores may hold nodes."""
    return int(problem.machine.usable.sum())


def crowded(problem: MappingProblem) -> str | None:
    """Say why no traffic has to leave a core, or that the nodes do not fit; None otherwise."""
    if room_per_core(problem) >= problem.n:
        return "all nodes may fit on one core"
    return "the nodes do not fit" if room_per_core(problem) * usable_cores(problem) < problem.n else None


def seats(least: int) -> Limit[MappingProblem]:
    """With one node per core: fewer usable cores than nodes, or than ``least``."""

    def limit(problem: MappingProblem) -> str | None:
        usable = usable_cores(problem)
        return f"{usable} usable cores" if usable < max(least, problem.n) else None

    return limit


#: What bounds of any size cannot take.
too_wide = at_most(MAX_CORES, lambda problem: problem.machine.size, "cores")


#: Why the star bound of pairwise objectives cannot take a problem, or None.
refuses_pairs = takes(f"pairs disk {LIMITS}", too_wide, no_core)


def pair_form(problem: MappingProblem) -> PairForm:
    """Bring a pairwise problem into :class:`PairForm` (see the module's text for asymmetric distances).

    Of a graph on disk the traffic is left out, and not looked at.
    """
    graph = problem.graph
    distance = core_distance(problem)
    if graph.on_disk:
        return _form_without_traffic(problem, distance)
    indptr, indices, weights = graph.traffic
    symmetric = True
    if not distance.separable and not np.array_equal(distance.matrix, distance.matrix.T):
        symmetric = _traffic_is_symmetric(graph)
        m = distance.matrix
        merged = (m + m.T) / 2 if symmetric else np.minimum(m, m.T)
        distance = by_matrix(distance.rows, distance.cols, merged)
    # halves that add up to whole pairs are not whole data: re-checks do not round those up
    whole = bool((graph.weights == np.rint(graph.weights)).all())
    lattice = (
        _lattice(weights, distance) if symmetric and whole and counts_exactly(problem, distance) else 0.0
    )
    cores = np.flatnonzero(problem.machine.usable).astype(np.int64)
    return PairForm(problem.n, indptr, indices, weights, cores, distance, lattice)


def _form_without_traffic(problem: MappingProblem, distance: CoreDistance) -> PairForm:
    """Return the form of a graph on disk, without connections; the smaller direction of every distance counts."""
    symmetric = distance.separable or np.array_equal(distance.matrix, distance.matrix.T)
    lattice = float(problem.graph.integral and distance.integral and symmetric)
    if not symmetric:
        distance = by_matrix(distance.rows, distance.cols, np.minimum(distance.matrix, distance.matrix.T))
    cores = np.flatnonzero(problem.machine.usable).astype(np.int64)
    none = np.zeros(problem.n + 1, np.int64), np.zeros(0, np.int32), np.zeros(0)
    return PairForm(problem.n, *none, cores, distance, lattice)


def _traffic_is_symmetric(graph: LogicGraph) -> bool:
    """Return True if every edge u -> v has a twin v -> u of equal weight."""
    from scipy.sparse import coo_array

    src, dst = graph.edge_source, graph.targets
    w = coo_array((graph.weights, (src, dst)), shape=(graph.n, graph.n)).tocsr()
    return bool(abs(w - w.T).sum() == 0)


def _lattice(weights: FloatArray, distance: CoreDistance) -> float:
    """Return the greatest step that divides every cost: gcd of the pair weights times gcd of the distances; 0 if not whole."""
    values = [distance.matrix.ravel(), distance.x, distance.y]
    values.append(np.array([distance.wrap_x, distance.wrap_y, distance.step]))
    d = np.concatenate(values)
    for a in (weights, d):
        if len(a) and not ((a == np.rint(a)).all() and np.abs(a).max() < 2**52):
            return 0.0
    gw, gd = np.gcd.reduce(weights.astype(np.int64)), np.gcd.reduce(d.astype(np.int64))
    return float(gw * gd)


def room_per_core(problem: MappingProblem) -> int:
    """Return the most nodes any one core can hold, counted with the smallest nodes (resource by resource)."""
    if not problem.resources or problem.cores == 0:
        return problem.n
    limit = problem.capacity.max(axis=0)
    smallest = np.cumsum(np.sort(problem.sizes, axis=0), axis=0)
    return int((smallest <= limit).sum(axis=0).min())


class RowRoom(NamedTuple):
    """How many of the others of every row fit on the core of its node beside it, and on another core; both int64."""

    own: IntArray
    other: IntArray


def room_of_rows(
    problem: MappingProblem, node: IntArray | Int32Array, indptr: IntArray, others: Int32Array
) -> RowRoom:
    """Return the room of CSR rows ``indptr`` (rows + 1,), ``others`` (entries,) of ``node`` (rows,).

    Counted with the smallest others, resource by resource: never too few. ``other`` is at least 1 (a node fits somewhere if the
    problem is feasible at all).
    """
    degree = np.diff(indptr)
    room = RowRoom(degree.copy(), degree.copy())
    row = np.repeat(np.arange(len(degree)), degree)
    for r in range(len(problem.resources)):
        size, limit = problem.sizes[:, r], problem.capacity[:, r].max()
        taken = _running_sums(size[others], row, indptr)
        for fits, beside in ((room.own, size[node[row]]), (room.other, 0)):
            here = np.bincount(row, taken + beside <= limit, len(degree)).astype(np.int64)
            np.minimum(fits, here, out=fits)
    return RowRoom(room.own, np.maximum(room.other, 1))


def _running_sums(values: IntArray, row: IntArray, indptr: IntArray) -> IntArray:
    """Return running sums of ``values`` sorted inside every CSR row."""
    if len(values) and values.min() < values.max():
        values = values[np.lexsort((values, row))]
    total = np.cumsum(values)
    before = np.concatenate([[0], total])[indptr[:-1]]
    out: IntArray = total - before[row]
    return out


def slots_by_weight(
    indptr: IntArray, weights: FloatArray, room: RowRoom
) -> tuple[IntArray, FloatArray, IntArray]:
    """Return (row, weight, slot), each (nnz,), of all CSR entries if the heaviest of every row sit as close as they fit.

    Slot 0 is the core of the row's node, slot ``s`` the ``s``-th nearest other core.
    """
    row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    beyond = np.arange(len(row)) - indptr[row] - room.own[row]
    slot = np.where(beyond < 0, 0, 1 + beyond // room.other[row])
    return row, weights[np.lexsort((-weights, row))], slot


def neighbour_slots(problem: MappingProblem, form: PairForm) -> tuple[IntArray, FloatArray, IntArray, int]:
    """Return row, weight and slot (entries,) of every node's neighbours (:func:`slots_by_weight`), and how many slots matter."""
    room = room_of_rows(problem, np.arange(form.n), form.indptr, form.indices)
    row, weight, slot = slots_by_weight(form.indptr, form.weights, room)
    slot = np.minimum(slot, len(form.cores) - 1)
    return row, weight, slot, int(slot.max(initial=0)) + 1


def nearest(block: FloatArray, which: IntArray, count: int) -> FloatArray:
    """Return (len(which), count) the distances of the nearest slots, own core first, of a :meth:`PairForm.block`.

    The own core counts as no farther than the nearest other (matrix topologies may charge a diagonal).
    """
    rest = block.copy()
    at = np.arange(len(which))
    own = rest[at, which].copy()
    rest[at, which] = np.inf
    own = np.minimum(own, rest.min(axis=1))
    if count - 1 < rest.shape[1] - 1:
        rest = np.partition(rest, max(0, count - 2), axis=1)[:, : max(0, count - 1)]
    rest = np.sort(rest, axis=1)[:, : count - 1]
    out: FloatArray = np.column_stack([own, rest])
    return out
