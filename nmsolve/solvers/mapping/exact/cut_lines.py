"""Distances in the MIP model of mapping.

Where CP-SAT counts positions, this model counts *cut lines*: ``left[u,j] = [column of u <= j]``. A pair's distance
along an axis is the weight of the lines between its nodes. Torus axes use positions and a turn, as CP-SAT does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.mapping.exact.data import ExactData
from nmsolve.solvers.mapping.exact.rules import Variables, net_variables, pairs_apart, places
from nmsolve.solvers.search.rows import MipRows


@dataclass(eq=False)
class Axis:
    """One axis of the board along which pairs pay for distance, in units of the objective's distance.

    Attributes
    ----------
    line_of : (P,) int64 line of every core
    gap : weight of the cut between line j and j + 1
    wrap : circumference, 0 if open
    left, cross : by node (pair) and cut: whether it lies before (crosses) it, from 0 to 1; open axes
    at, length, turn : by node (pair): position, distance and -1, 0 or 1 turns round; torus axes
    """

    line_of: IntArray
    gap: FloatArray
    wrap: float
    left: dict[Any, Any] = field(default_factory=dict)
    cross: dict[Any, Any] = field(default_factory=dict)
    at: dict[int, Any] = field(default_factory=dict)
    length: dict[int, Any] = field(default_factory=dict)
    turn: dict[int, Any] = field(default_factory=dict)

    @property
    def position(self) -> FloatArray:
        """Return (lines,) the position of every line."""
        out: FloatArray = np.concatenate([[0.0], np.cumsum(self.gap)])
        return out


@dataclass
class MipVariables(Variables):
    """All variables of the model; but for ``x`` and ``turn`` they are continuous, and whole wherever ``x`` is and cost pushes
    them down. ``flow[e,p,q]``: tail on p and head on q, ``far[e]``: distance of every pair, where a matrix gives it."""

    axes: list[Axis] = field(default_factory=list)
    flow: dict[Any, Any] = field(default_factory=dict)
    far: dict[int, Any] = field(default_factory=dict)


def make_variables(rows: MipRows, data: ExactData, x: list[list[Any]] | None = None) -> MipVariables:
    """Return the variables of ``data`` (no constraints yet); ``x`` if another model has the mapping's already."""
    nodes, cores, pairs = range(data.n), range(data.cores), range(data.edges)
    v = MipVariables(
        x or places(rows, data.n, data.cores), pairs_apart(rows, data), net_variables(rows, data), []
    )
    if data.matrix.shape[0]:
        v.flow = rows.binary("flow", [(e, p, q) for e in pairs for p in cores for q in cores], implied=True)
        v.far = rows.amounts("far", pairs, 0, float(data.matrix.max()) / data.distance_factor)
        v.distance = list(v.far.values())
        return v
    r, c = np.divmod(np.arange(data.cores), len(data.x))
    for name, line_of, line, wrap in (("x", c, data.x, data.wrap_x), ("y", r, data.y, data.wrap_y)):
        a = Axis(line_of, np.diff(line) / data.distance_factor, wrap / data.distance_factor)
        if a.gap.sum() <= 0:
            continue
        v.axes.append(a)
        if a.wrap:
            a.at = rows.amounts(f"at_{name}", nodes, 0, float(a.position[-1]))
            a.length = rows.amounts(f"length_{name}", pairs, 0, a.wrap)
            a.turn = rows.amounts(f"turn_{name}", pairs, -1, 1, whole=True)
        else:
            cuts = range(len(a.gap))
            a.left = rows.binary(f"left_{name}", [(u, j) for u in nodes for j in cuts], implied=True)
            a.cross = rows.binary(f"cross_{name}", [(e, j) for e in pairs for j in cuts], implied=True)
    step = data.step / data.distance_factor
    for e in pairs:
        along = (
            a.length[e] if a.wrap else rows.dot(a.gap, [a.cross[e, j] for j in range(len(a.gap))])
            for a in v.axes
        )
        v.distance.append(rows.total([*along, rows.dot([step], [1 if v.apart is None else v.apart[e]])]))
    return v


def cut_lines(rows: MipRows, data: ExactData, v: MipVariables) -> None:
    """On which side of a line a node is: ``left[u,j] = sum_{p on lines <= j} x[u,p]``.

    On a torus axis the position instead: ``at[u] = sum_p position[p] x[u,p]``.
    """
    for a in v.axes:
        for u, xs in enumerate(v.x):
            if a.wrap:
                rows.add(rows.dot(a.position[a.line_of], xs) == a.at[u])
                continue
            for j in range(len(a.gap)):
                here = rows.total(xs[p] for p in np.flatnonzero(a.line_of == j).tolist())
                rows.add(a.left[u, j] == (a.left[u, j - 1] if j else 0) + here)


def crossings(rows: MipRows, data: ExactData, v: MipVariables) -> None:
    """A pair crosses a line if it has one node on each side: ``cross[e,j] >= |left[u,j] - left[v,j]|``.

    On a torus axis ``length_e >= |at[u] - at[v] + turn_e * circumference|`` with turn in {-1, 0, 1}.
    """
    for a in v.axes:
        for e, (u, w) in enumerate(zip(data.tail.tolist(), data.head.tolist(), strict=True)):
            if a.wrap:
                t = a.at[u] - a.at[w] + a.wrap * a.turn[e]
                rows.add(a.length[e] >= t)
                rows.add(a.length[e] >= -t)
                continue
            for j in range(len(a.gap)):
                rows.add(a.cross[e, j] >= a.left[u, j] - a.left[w, j])
                rows.add(a.cross[e, j] >= a.left[w, j] - a.left[u, j])


def flows(rows: MipRows, data: ExactData, v: MipVariables) -> None:
    """Matrix distances: ``sum_q flow[e,p,q] = x[u,p]`` and ``sum_p flow[e,p,q] = x[v,q]`` for every pair e = (u, v).

    The flow is then 1 exactly at the pair's two cores, and ``far_e = sum_pq D[p,q] flow[e,p,q]``.
    """
    cores = range(data.cores)
    some = np.argwhere(data.matrix).tolist()
    for e in v.far:
        for p in cores:
            rows.add(sum(v.flow[e, p, q] for q in cores) == v.x[data.tail[e]][p])
            rows.add(sum(v.flow[e, q, p] for q in cores) == v.x[data.head[e]][p])
        cost = (float(data.matrix[p, q]) / data.distance_factor * v.flow[e, p, q] for p, q in some)
        rows.add(v.far[e] == sum(cost))


DISTANCES = (cut_lines, crossings, flows)
