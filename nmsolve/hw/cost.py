"""What a pair of cores costs, in the form the fast kernels use.

Unicast objectives are all sums over traffic ``w_uv * d(core(u), core(v))`` with one of two kinds of *d*:

* separable: ``d(p, q) = step * [p != q] + |x[col p] - x[col q]| + |y[row p] - y[row q]|``, on a torus the
  shorter way round (``wrap_x``, ``wrap_y`` are the circumferences, 0 without a torus);
* a matrix, for machines with dead links or any other topology.

The net objectives (multicast hops, connectivity, multicast energy) charge every message
``rate * (step * remote destination cores + length of its XY-route union in x and y)``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.model.compiled import inlined
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph, Messages
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import AnyArray, FloatArray, IntArray, read_only


class CoreDistance(NamedTuple):
    """Distance of two cores in units of the objective; see the module's text. Kernels take it whole.

    Attributes
    ----------
    rows, cols : board size in cores; core ``p`` is at ``divmod(p, cols)``
    x : (cols,) float64 non-decreasing; y : (rows,) float64 non-decreasing
    wrap_x, wrap_y : circumference of the torus, 0 if none
    step : paid once by every pair on different cores
    matrix : (P, P) float64, or (0, 0) where the separable form holds
    """

    rows: int
    cols: int
    x: FloatArray
    y: FloatArray
    wrap_x: float
    wrap_y: float
    step: float
    matrix: FloatArray

    @property
    def separable(self) -> bool:
        """True if no matrix is needed."""
        return bool(self.matrix.shape[0] == 0)

    @property
    def symmetric(self) -> bool:
        """True if both directions of every pair cost the same (links dead one way break this)."""
        return self.separable or bool((self.matrix == self.matrix.T).all())

    @property
    def farthest(self) -> float:
        """No two cores are further apart."""
        if self.separable:
            return float(self.x[-1] + self.y[-1] + self.step)
        return float(self.matrix.max(initial=0.0))

    @property
    def integral(self) -> bool:
        """True if every distance is a whole number."""
        parts = (self.x, self.y, self.matrix, np.array([self.wrap_x, self.wrap_y, self.step]))
        return all(bool((p == np.rint(p)).all()) for p in parts)

    def dense(self) -> FloatArray:
        """(P, P) float64 distances between all cores."""
        return self.among(np.arange(self.rows * self.cols)) if self.separable else self.matrix

    def among(self, p: IntArray) -> FloatArray:
        """(k, k) float64 distances between the cores ``p`` (k,)."""
        if not self.separable:
            out: FloatArray = self.matrix[np.ix_(p, p)]
            return out
        r, c = np.divmod(p, self.cols)
        dx = np.abs(self.x[c][:, None] - self.x[c][None, :])
        dy = np.abs(self.y[r][:, None] - self.y[r][None, :])
        if self.wrap_x > 0:
            dx = np.minimum(dx, self.wrap_x - dx)
        if self.wrap_y > 0:
            dy = np.minimum(dy, self.wrap_y - dy)
        out = dx + dy + self.step * (p[:, None] != p[None, :])
        return out


@inlined
def pair_distance(p: int, q: int, distance: CoreDistance) -> float:
    """Distance of cores ``p`` and ``q``."""
    cols, x, y, matrix = distance.cols, distance.x, distance.y, distance.matrix
    if p == q:
        return float(matrix[p, p]) if matrix.shape[0] > 0 else 0.0
    if matrix.shape[0] > 0:
        return float(matrix[p, q])
    dx = abs(x[p % cols] - x[q % cols])
    dy = abs(y[p // cols] - y[q // cols])
    if distance.wrap_x > 0.0:
        dx = min(dx, distance.wrap_x - dx)
    if distance.wrap_y > 0.0:
        dy = min(dy, distance.wrap_y - dy)
    return float(dx + dy + distance.step)


def core_distance(problem: MappingProblem) -> CoreDistance:
    """The distance that belongs to the problem's objective.

    As the record of the objective says: the sum of link weights along a shortest route, pJ along a route of least energy
    (:mod:`nmsolve.hw.energy`), or 1 between different cores. Where it is not a sum (``problem.uses_links``), it is a surrogate.

    """
    if problem.aim.distance == "apart":
        m = problem.machine
        return _separable(m, np.zeros(m.cols), np.zeros(m.rows), 0.0, 0.0, 1.0)
    return machine_distance(problem.machine, problem.aim.quantity)


def machine_distance(machine: Machine, quantity: str) -> CoreDistance:
    """Distance of cores measured in ``hops`` (link weights), ``energy`` (pJ) or ``latency`` (ns)."""
    from nmsolve.hw.energy import line_values, step_value

    m = machine
    if m.distance_matrix is not None or m.faulty_links:
        from nmsolve.hw.detours import distance_matrix

        return by_matrix(m.rows, m.cols, distance_matrix(m, quantity))
    wx, wy = line_values(m, quantity, 1), line_values(m, quantity, 0)
    x = np.concatenate([[0.0], np.cumsum(wx[: m.cols - 1])])
    y = np.concatenate([[0.0], np.cumsum(wy[: m.rows - 1])])
    wrap_x = float(wx.sum()) if len(wx) == m.cols else 0.0
    wrap_y = float(wy.sum()) if len(wy) == m.rows else 0.0
    return _separable(m, x, y, wrap_x, wrap_y, step_value(m, quantity))


def by_matrix(rows: int, cols: int, matrix: FloatArray) -> CoreDistance:
    """The distance of the cores of a ``rows`` by ``cols`` board that ``matrix`` (P, P) float64 lists."""
    no_x, no_y = read_only(np.zeros(cols)), read_only(np.zeros(rows))
    return CoreDistance(rows, cols, no_x, no_y, 0.0, 0.0, 0.0, read_only(matrix))


def _separable(
    m: Machine, x: FloatArray, y: FloatArray, wrap_x: float, wrap_y: float, step: float
) -> CoreDistance:
    no_matrix = read_only(np.zeros((0, 0)))
    return CoreDistance(
        m.rows, m.cols, read_only(x), read_only(y), float(wrap_x), float(wrap_y), float(step), no_matrix
    )


def whole_costs(problem: MappingProblem, distance: CoreDistance) -> bool:
    """True if weights, rates and distances are whole and no mapping costs more than floats count exactly."""
    return problem.graph.integral and distance.integral and counts_exactly(problem, distance)


def counts_exactly(problem: MappingProblem, distance: CoreDistance) -> bool:
    """True if sums of whole costs stay below 2^53, both directions and parts of sums included; on disk it is taken for true."""
    graph = problem.graph
    if graph.on_disk:
        return True
    sent = float(graph.weights.sum()) + float(graph.rate @ np.diff(graph.indptr))
    return 2 * sent * max(1.0, distance.farthest) < 2.0**53


def checked_core(graph: Messages, machine: Machine, core: AnyArray) -> IntArray:
    """Return the mapping ``core`` (n,) as contiguous int64, read-only.

    Raises
    ------
    InputError : another shape, or a core number that does not exist
    """
    at: IntArray = read_only(np.asarray(core, np.int64))
    if at.shape != (graph.n,):
        raise InputError(f"the mapping has shape {at.shape}", graph.name, f"({graph.n},)")
    if len(at) and (at.min() < 0 or at.max() >= machine.size):
        raise InputError("the mapping names an unknown core", machine.name, f"0..{machine.size - 1}")
    return at


def require_connected(graph: LogicGraph, machine: Machine, core: AnyArray) -> None:
    """Raise InputError where the mapping ``core`` (n,) has a node on a core that dead links cut off: no route ends there."""
    for u in np.flatnonzero(np.isin(core, machine.cut_off))[:1].tolist() if machine.cut_off else ():
        what = f"node {graph.node_id(u)!r} is on core {core[u]}, which dead links cut off"
        raise InputError(what, machine.name, "every node on a core that is connected to the others")
