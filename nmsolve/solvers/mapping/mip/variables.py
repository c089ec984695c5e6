"""Variables of the Pyomo model of mapping.

Where CP-SAT counts positions, this twin counts *cut lines*: ``left[u,j] = [column of u <= j]``. A pair's distance
along an axis is the weight of the lines between its nodes. Torus axes use positions and a turn, as CP-SAT does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.mapping.exact.data import ExactData
from nmsolve.solvers.mapping.exact.rows import wants_links


@dataclass(frozen=True, eq=False)
class Axis:
    """One axis of the board.

    Attributes
    ----------
    name : ``x`` (columns) or ``y`` (rows)
    line_of : (P,) int64 line of every core
    gap : weight of the cut between line j and j + 1
    wrap : circumference, 0 if open
    """

    name: str
    line_of: IntArray
    gap: FloatArray
    wrap: float

    @property
    def position(self) -> FloatArray:
        """Position of every line."""
        out: FloatArray = np.concatenate([[0.0], np.cumsum(self.gap)])
        return out


def axes(data: ExactData) -> list[Axis]:
    """The axes along which pairs pay for distance, in units of the objective's distance."""
    r, c = np.divmod(np.arange(data.cores), len(data.x))
    f = data.distance_factor
    both = (
        Axis("x", c, np.diff(data.x) / f, data.wrap_x / f),
        Axis("y", r, np.diff(data.y) / f, data.wrap_y / f),
    )
    return [a for a in both if a.gap.sum() > 0]


def add_variables(model: Any, data: ExactData, x: Any = None) -> None:
    """Create the variables in the Pyomo ``model``; ``x`` if another model has the mapping's already.

    ``x[u,p]`` binary: node u is on core p. ``left_a[u,j]`` in [0,1]: u is on line <= j of axis a. ``cross_a[e,j]``
    >= 0: pair e crosses the cut after line j. ``at_a[u]``, ``length_a[e]``, ``turn_a[e]``: position, distance and
    turns on a torus axis. ``apart[e]`` in [0,1]: on different cores. ``flow[e,p,q]`` in [0,1]: tail on p and head
    on q, and ``far[e]`` (matrix distances). ``present[i,p]``, ``across[i,j]``, ``along[i,c,j]`` >= 0: nets, as for CP-SAT.
    All but ``x`` and ``turn`` are continuous; they are whole wherever ``x`` is and cost pushes them down.
    """
    import pyomo.environ as pyo

    nodes, cores, pairs = range(data.n), range(data.cores), range(data.edges)
    unit = (0.0, 1.0)
    if x is None:
        model.x = pyo.Var(nodes, cores, domain=pyo.Binary)
    else:
        model.x = pyo.Reference(x)
    for a in axes(data):
        cuts = range(len(a.gap))
        if a.wrap:
            model.add_component(f"at_{a.name}", pyo.Var(nodes, bounds=(0, float(a.position[-1]))))
            model.add_component(f"length_{a.name}", pyo.Var(pairs, bounds=(0, a.wrap)))
            model.add_component(f"turn_{a.name}", pyo.Var(pairs, domain=pyo.Integers, bounds=(-1, 1)))
        if data.edges and not a.wrap:
            model.add_component(f"cross_{a.name}", pyo.Var(pairs, cuts, bounds=unit))
        if not a.wrap:
            model.add_component(f"left_{a.name}", pyo.Var(nodes, cuts, bounds=unit))
    if wants_links(data):
        model.apart = pyo.Var(pairs, bounds=unit)
    if data.matrix.shape[0]:
        model.flow = pyo.Var(pairs, cores, cores, bounds=unit)
        model.far = pyo.Var(pairs, bounds=(0, float(data.matrix.max()) / data.distance_factor))
    if data.nets:
        nets = range(len(data.nets))
        model.present = pyo.Var(nets, cores, bounds=unit)
        if data.spans:
            rows, cols = len(data.y), len(data.x)
            model.across = pyo.Var(nets, range(cols - 1), bounds=unit)
            model.along = pyo.Var(nets, range(cols), range(rows - 1), bounds=unit)


def pair_distance(model: Any, data: ExactData, e: int) -> Any:
    """The distance of pair ``e`` as a linear expression, in units of the objective's distance."""
    f = data.distance_factor
    if data.matrix.shape[0]:
        return model.far[e]
    total: Any = 0.0
    for a in axes(data):
        if a.wrap:
            total = total + getattr(model, f"length_{a.name}")[e]
        else:
            cross = getattr(model, f"cross_{a.name}")
            total = total + sum(float(g) * cross[e, j] for j, g in enumerate(a.gap))
    if data.step:
        total = total + data.step / f * (model.apart[e] if hasattr(model, "apart") else 1.0)
    return total
