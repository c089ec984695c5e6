"""A known mapping as a complete hint: every variable gets the value that belongs to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.cpsat.distances import CpSatVariables
from nmsolve.solvers.mapping.exact.data import ExactData, Net
from nmsolve.solvers.mapping.exact.rules import NetVariables

if TYPE_CHECKING:
    from ortools.sat.python import cp_model


def hint_mapping(model: cp_model.CpModel, data: ExactData, v: CpSatVariables, core: IntArray) -> None:
    """Hint all variables from the mapping ``core`` (n,), already reflected into what the symmetry rows allow."""
    for u, xs in enumerate(v.x):
        for p, x in enumerate(xs):
            model.add_hint(x, int(core[u]) == p)
    row, col = np.divmod(core, len(data.x))
    for at, d, turn, wrap, where in (
        (v.column, v.dx, v.turn_x, data.wrap_x, data.x[col]),
        (v.row, v.dy, v.turn_y, data.wrap_y, data.y[row]),
    ):
        if at is None or d is None:
            continue
        for u in range(data.n):
            model.add_hint(at[u], int(where[u]))
        for e in range(data.edges):
            t = int(where[data.tail[e]] - where[data.head[e]])
            k = min((0, -1, 1), key=lambda k: abs(t + k * wrap)) if wrap else 0
            model.add_hint(d[e], abs(t + k * wrap))
            if turn is not None:
                model.add_hint(turn[e], k)
    for e in range(data.edges):
        p, q = int(core[data.tail[e]]), int(core[data.head[e]])
        if v.far is not None:
            model.add_hint(v.far[e], int(data.matrix[p, q]))
        if v.apart is not None:
            model.add_hint(v.apart[e], p != q)
    for net, nv in zip(data.nets, v.nets, strict=True):
        _hint_net(model, data, net, nv, core)


def _hint_net(model: cp_model.CpModel, data: ExactData, net: Net, nv: NetVariables, core: IntArray) -> None:
    here = {int(core[u]) for u in (net.source, *net.targets)}
    for p, present in enumerate(nv.present):
        model.add_hint(present, p in here)
    if not data.spans:
        return
    row, col = divmod(int(core[net.source]), len(data.x))
    ends = [divmod(p, len(data.x)) for p in here]
    low, high = min(c for _, c in ends), max(c for _, c in ends)
    for j, across in enumerate(nv.across):
        model.add_hint(across, min(low, col) <= j < max(high, col))
    for c, column in enumerate(nv.along):
        rows = [r for r, at in ends if at == c] + [row]
        for i, along in enumerate(column):
            model.add_hint(along, min(rows) <= i < max(rows))
