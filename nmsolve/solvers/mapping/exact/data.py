"""The mapping problem as plain integers: one input for every exact model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nmsolve.hw.cost import CoreDistance, core_distance
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray, FloatArray, IntArray
from nmsolve.solvers.search.scaling import OBJECTIVE_LIMIT, Scale, to_whole, whole_factor


@dataclass(frozen=True)
class Net:
    """A message charged by its route tree: ``rate * (step * remote cores + length of the route union)``."""

    source: int
    targets: tuple[int, ...]
    rate: int


@dataclass(frozen=True, eq=False)
class ExactData:
    """Whole-number data of a mapping problem without ``together`` constraints.

    ``model objective = sum weight * distance(tail, head) + sum of nets`` is at most ``scale`` times the
    objective of the same mapping, and equal to it where ``exact``.

    Attributes
    ----------
    tail, head : (E,) int64 nodes of the pairs that pay for their distance; each unordered pair once where
        distance is symmetric, otherwise once per direction with traffic
    weight : (E,) int64 > 0
    nets : messages charged by route tree (net objectives only)
    spans : True if nets pay for the length of their route, False if only per remote core (connectivity)
    x, y : (cols,), (rows,) int64 positions of the lines; all 0 if only ``step`` or ``matrix`` counts
    wrap_x, wrap_y : circumference, 0 if not a torus
    step : paid by every pair, and per remote core of a net, across cores
    matrix : (P, P) int64, or (0, 0) where the separable form holds
    weight_factor, distance_factor : from user's numbers to these
    """

    problem: MappingProblem
    tail: IntArray
    head: IntArray
    weight: IntArray
    nets: tuple[Net, ...]
    spans: bool
    x: IntArray
    y: IntArray
    wrap_x: int
    wrap_y: int
    step: int
    matrix: IntArray
    weight_factor: float
    distance_factor: float
    exact: bool
    integral: bool

    @property
    def n(self) -> int:
        """Number of nodes."""
        return self.problem.n

    @property
    def cores(self) -> int:
        """Number of cores, usable or not."""
        return self.problem.cores

    @property
    def edges(self) -> int:
        """Number of pairs that pay for their distance."""
        return len(self.tail)

    @property
    def scale(self) -> float:
        """Model objective per unit of the objective."""
        return self.weight_factor * self.distance_factor

    @property
    def claim(self) -> Scale:
        """What the model's objective says of the objective."""
        return Scale(self.scale, self.exact, self.integral)

    @cached_property
    def allowed(self) -> BoolArray:
        """(n, P) bool: usable cores inside pins and regions, outside forbidden ones, that hold the node alone."""
        p = self.problem
        room = (p.sizes[:, None, :] <= p.capacity[None, :, :]).all(axis=2)
        out: BoolArray = p.domains[p.domain_of] & room
        return out

    @cached_property
    def dense(self) -> IntArray:
        """(P, P) int64: what a pair of cores costs per unit of weight."""
        if self.matrix.shape[0]:
            return self.matrix
        xs, ys, wx, wy = (np.asarray(v, np.float64) for v in (self.x, self.y, self.wrap_x, self.wrap_y))
        d = CoreDistance(
            len(ys), len(xs), xs, ys, float(wx), float(wy), float(self.step), np.zeros((0, 0))
        ).dense()
        out: IntArray = np.rint(d).astype(np.int64)
        return out

    @cached_property
    def apart(self) -> BoolArray:
        """(n, n) bool: nodes that never share a core (all of them where a core holds one node)."""
        if self.problem.one_per_core:
            out: BoolArray = ~np.eye(self.n, dtype=bool)
            return out
        indptr, other = self.problem.apart
        out = np.zeros((self.n, self.n), bool)
        out[np.repeat(np.arange(self.n), np.diff(indptr)), other] = True
        return out

    def value(self, core: IntArray) -> int:
        """Model objective of a mapping (n,)."""
        total = int((self.weight * self.dense[core[self.tail], core[self.head]]).sum())
        return total + sum(net.rate * self._net_length(net, core) for net in self.nets)

    def _net_length(self, net: Net, core: IntArray) -> int:
        """Return ``step * remote cores + length of the XY-route union`` of one net."""
        home, far = int(core[net.source]), {int(core[v]) for v in net.targets}
        length = self.step * len(far - {home})
        if not self.spans:
            return length
        row, col = divmod(home, len(self.x))
        by_col: dict[int, list[int]] = {}
        for p in far:
            r, c = divmod(p, len(self.x))
            by_col.setdefault(c, [row]).append(r)
        ends = [col, *by_col]
        length += int(self.x[max(ends)] - self.x[min(ends)])
        return length + sum(int(self.y[max(rs)] - self.y[min(rs)]) for rs in by_col.values())


def exact_data(problem: MappingProblem) -> ExactData:
    """Whole-number data of ``problem``; see :class:`ExactData`."""
    d = core_distance(problem)
    routed = problem.uses_nets
    spans = routed and not problem.aim.reach
    symmetric = d.separable or bool((d.matrix == d.matrix.T).all())
    tail, head, weight = _pairs(problem, routed, symmetric)
    rows = _net_rows(problem) if routed else np.zeros(0, np.int64)
    gaps = [np.diff(d.x), np.diff(d.y), _closing(d.x, d.wrap_x), _closing(d.y, d.wrap_y), np.array([d.step])]
    df, dex = whole_factor(np.concatenate([*gaps, d.matrix.ravel()]), 2.0**20)
    gx, gy, cx, cy, step = (to_whole(g, df, dex) for g in gaps)
    matrix = to_whole(d.matrix, df, dex)
    far = max(int(gx.sum() + gy.sum() + step.sum()), int(matrix.max(initial=1)), 1)
    amounts = np.concatenate([weight, problem.graph.rate[rows]])
    longest = far * max(1, int(np.diff(problem.graph.indptr).max(initial=1)))
    wf, wex = whole_factor(amounts, OBJECTIVE_LIMIT / (longest * max(1, len(amounts))))
    w = to_whole(weight, wf, wex)
    keep = w > 0
    return ExactData(
        problem=problem,
        tail=tail[keep],
        head=head[keep],
        weight=w[keep],
        nets=_nets(problem, rows, to_whole(problem.graph.rate[rows], wf, wex)),
        spans=spans,
        x=np.concatenate([[0], np.cumsum(gx)]).astype(np.int64),
        y=np.concatenate([[0], np.cumsum(gy)]).astype(np.int64),
        wrap_x=int(gx.sum() + cx.sum()) if d.wrap_x > 0 else 0,
        wrap_y=int(gy.sum() + cy.sum()) if d.wrap_y > 0 else 0,
        step=int(step[0]),
        matrix=matrix,
        weight_factor=wf,
        distance_factor=df,
        exact=dex and wex,
        integral=problem.graph.integral and d.integral,
    )


def _closing(position: FloatArray, wrap: float) -> FloatArray:
    """Return the weight of the links that close a torus axis, as an array of length 1 (0 if the axis is open)."""
    return np.array([wrap - position[-1] if wrap > 0 else 0.0])


def _pairs(problem: MappingProblem, routed: bool, symmetric: bool) -> tuple[IntArray, IntArray, FloatArray]:
    """Return pairs charged by distance: ``(tail, head, weight)``, parallel ones summed."""
    graph = problem.graph
    row = np.repeat(np.arange(graph.rows), np.diff(graph.indptr))
    pays = np.ones(graph.rows, bool)
    if routed:
        pays[:] = False if problem.aim.reach else ~graph.multicast
    src, dst = graph.edge_source.astype(np.int64), graph.targets.astype(np.int64)
    keep = pays[row] & (src != dst) & (graph.weights > 0)
    src, dst, w = src[keep], dst[keep], graph.weights[keep]
    if symmetric:
        src, dst = np.minimum(src, dst), np.maximum(src, dst)
    key, where = np.unique(src * graph.n + dst, return_inverse=True)
    total = np.bincount(where, w, len(key)).astype(np.float64)
    return key // graph.n, key % graph.n, total


def _net_rows(problem: MappingProblem) -> IntArray:
    """Return rows charged by their route tree."""
    graph = problem.graph
    pays = (graph.rate > 0) & (np.diff(graph.indptr) > 0)
    if not problem.aim.reach:
        pays &= graph.multicast
    return np.flatnonzero(pays)


def _nets(problem: MappingProblem, rows: IntArray, rate: IntArray) -> tuple[Net, ...]:
    """Return the nets of ``rows`` with whole rates; those whose rate rounds to 0 are left out."""
    graph = problem.graph
    out = []
    for i, r in zip(rows.tolist(), rate.tolist(), strict=True):
        source = int(graph.source[i])
        targets = graph.targets[graph.indptr[i] : graph.indptr[i + 1]].tolist()
        targets = tuple(v for v in targets if v != source)
        if r > 0 and targets:
            out.append(Net(source, targets, r))
    return tuple(out)
