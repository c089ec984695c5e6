"""Distances in the CP-SAT model of mapping: positions of nodes, or cores one by one where a matrix gives them; and hints.

A known mapping is a complete hint: every variable gets the value that belongs to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.exact.data import ExactData, Net
from nmsolve.solvers.mapping.exact.rules import (
    NetVariables,
    Variables,
    hint_places,
    net_variables,
    pairs_apart,
    places,
)
from nmsolve.solvers.search.rows import CpSatRows


@dataclass
class CpSatVariables(Variables):
    """All variables of the model.

    Attributes
    ----------
    column, row : position of every node's column and row line; None where the axis costs nothing
    dx, dy : distance of every pair along the two axes, at least the true one; None as above
    turn_x, turn_y : on a torus, how many times (-1, 0, 1) the short way of a pair goes round; else None
    far : distance of every pair where a matrix gives it; None otherwise
    """

    column: list[Any] | None = None
    row: list[Any] | None = None
    dx: list[Any] | None = None
    dy: list[Any] | None = None
    turn_x: list[Any] | None = None
    turn_y: list[Any] | None = None
    far: list[Any] | None = None


def make_variables(rows: CpSatRows, data: ExactData, x: list[list[Any]] | None = None) -> CpSatVariables:
    """Return the variables of ``data`` (no constraints yet); ``x`` if the mapping's are there already."""

    def amounts(name: str, count: int, low: int, high: int) -> list[Any]:
        return list(rows.amounts(name, range(count), low, high).values())

    v = CpSatVariables(
        x or places(rows, data.n, data.cores), pairs_apart(rows, data), net_variables(rows, data), []
    )
    wide, high = (int(line[-1]) if data.edges else 0 for line in (data.x, data.y))
    if wide > 0:
        v.column = amounts("column", data.n, 0, wide)
        v.dx = amounts("dx", data.edges, 0, _farthest(wide, data.wrap_x))
        v.turn_x = amounts("turn_x", data.edges, -1, 1) if data.wrap_x else None
    if high > 0:
        v.row = amounts("row", data.n, 0, high)
        v.dy = amounts("dy", data.edges, 0, _farthest(high, data.wrap_y))
        v.turn_y = amounts("turn_y", data.edges, -1, 1) if data.wrap_y else None
    if data.matrix.shape[0]:
        v.far = amounts("far", data.edges, 0, int(data.matrix.max()))
        v.distance = v.far
        return v
    along = [d for d in (v.dx, v.dy) if d is not None]
    for e in range(data.edges):
        remote = 1 if v.apart is None else v.apart[e]
        v.distance.append(rows.dot([*[1] * len(along), data.step], [*(d[e] for d in along), remote]))
    return v


def _farthest(open_axis: int, wrap: int) -> int:
    """Return the largest distance along an axis: its length, or half its circumference on a torus."""
    return min(open_axis, wrap // 2) if wrap else open_axis


def positions(rows: CpSatRows, data: ExactData, v: CpSatVariables) -> None:
    """Where a node is: ``column[u] = sum_p X[col p] x[u,p]``, ``row[u] = sum_p Y[row p] x[u,p]``.

    X and Y are the positions of the board's lines, so dearer chip crossings are wider gaps.
    """
    r, c = np.divmod(np.arange(data.cores), len(data.x))
    for at, line in ((v.column, data.x[c]), (v.row, data.y[r])):
        if at is not None:
            for u, xs in enumerate(v.x):
                rows.add(rows.dot(line, xs) == at[u])


def axis_distances(rows: CpSatRows, data: ExactData, v: CpSatVariables) -> None:
    """Distance along an axis: ``dx_e >= |column[u] - column[v] + turn_e * circumference|``, the same for rows.

    On an open axis turn is 0. On a torus turn in {-1, 0, 1} chooses the shorter way round, because
    ``min_k |t + k C| = min(|t|, C - |t|)`` for ``|t| <= C``.
    """
    for at, d, turn, wrap in (
        (v.column, v.dx, v.turn_x, data.wrap_x),
        (v.row, v.dy, v.turn_y, data.wrap_y),
    ):
        if at is None or d is None:
            continue
        for e in range(data.edges):
            t = at[data.tail[e]] - at[data.head[e]]
            if turn is not None:
                t = t + wrap * turn[e]
            rows.add(d[e] >= t)
            rows.add(d[e] >= -t)


def matrix_distances(rows: CpSatRows, data: ExactData, v: CpSatVariables) -> None:
    """Distance from a matrix: ``x[u,p] = 1  implies  far_e >= sum_q D[p,q] x[v,q]`` for every core p."""
    if v.far is None:
        return
    for e in range(data.edges):
        tail, head = v.x[data.tail[e]], v.x[data.head[e]]
        for p in range(data.cores):
            rows.add_if(tail[p], rows.dot(data.matrix[p], head), v.far[e], np.inf)


DISTANCES = (positions, axis_distances, matrix_distances)


def hint_mapping(rows: CpSatRows, data: ExactData, v: CpSatVariables, core: IntArray) -> None:
    """Hint all variables from the mapping ``core`` (n,), already reflected into what the symmetry rows allow."""
    hint_places(rows, v.x, core)
    row, col = np.divmod(core, len(data.x))
    for at, d, turn, wrap, where in (
        (v.column, v.dx, v.turn_x, data.wrap_x, data.x[col]),
        (v.row, v.dy, v.turn_y, data.wrap_y, data.y[row]),
    ):
        if at is None or d is None:
            continue
        for u in range(data.n):
            rows.hint(at[u], int(where[u]))
        for e in range(data.edges):
            t = int(where[data.tail[e]] - where[data.head[e]])
            k = min((0, -1, 1), key=lambda k: abs(t + k * wrap)) if wrap else 0
            rows.hint(d[e], abs(t + k * wrap))
            if turn is not None:
                rows.hint(turn[e], k)
    for e in range(data.edges):
        p, q = int(core[data.tail[e]]), int(core[data.head[e]])
        if v.far is not None:
            rows.hint(v.far[e], int(data.matrix[p, q]))
        if v.apart is not None:
            rows.hint(v.apart[e], p != q)
    for net, nv in zip(data.nets, v.nets, strict=True):
        _hint_net(rows, data, net, nv, core)


def _hint_net(rows: CpSatRows, data: ExactData, net: Net, nv: NetVariables, core: IntArray) -> None:
    here = {int(core[u]) for u in (net.source, *net.targets)}
    for p, present in enumerate(nv.present):
        rows.hint(present, p in here)
    if not data.spans:
        return
    row, col = divmod(int(core[net.source]), len(data.x))
    ends = [divmod(p, len(data.x)) for p in here]
    low, high = min(c for _, c in ends), max(c for _, c in ends)
    for j, across in enumerate(nv.across):
        rows.hint(across, min(low, col) <= j < max(high, col))
    for c, column in enumerate(nv.along):
        lines = [r for r, at in ends if at == c] + [row]
        for i, along in enumerate(column):
            rows.hint(along, min(lines) <= i < max(lines))
