"""How far cores are apart in units of the objective, from the board as the walker builds it (docs/objectives.md).

Bounds and their re-checks take distances from different code: a mistake in the engines' form of them is no bound here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from nmsolve.check.walker import distances_from, mesh_links
from nmsolve.model.errors import InputError
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, read_only

#: Routes are looked for from this many cores at once, and on machines of at most 8,192: a table of these is half a GiB.
AT_ONCE, MOST_CORES = 256, 8192


@dataclass(frozen=True, eq=False)
class Distances:
    """Distances of ``rows`` by ``cols`` cores.

    Attributes
    ----------
    x, y : (cols,) and (rows,) where every column and row lies
    wrap_x, wrap_y : circumference of the torus, 0 if none
    step : what every pair of different cores pays once
    matrix : (P, P) all distances, step included, where these are no sums over rows and columns; else (0, 0)
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
        """True if distances are sums over rows and columns."""
        return not self.matrix.size

    @property
    def symmetric(self) -> bool:
        """True if both directions of every pair cost the same (links dead one way break this)."""
        return self.separable or bool((self.matrix == self.matrix.T).all())

    def dense(self) -> FloatArray:
        """(P, P) distances between all cores."""
        if not self.separable:
            return self.matrix
        across, along = _apart(self.x, self.wrap_x), _apart(self.y, self.wrap_y)
        size = self.rows * self.cols
        sums: FloatArray = (along[:, None, :, None] + across[None, :, None, :]).reshape(size, size)
        return sums + self.step * ~np.eye(size, dtype=bool)


def core_distances(problem: MappingProblem) -> Distances:
    """Return the distances that belong to the problem's objective; 1 between different cores for what only counts cores."""
    if problem.aim.distance == "apart":
        m, none = problem.machine, np.zeros((0, 0))
        return Distances(m.rows, m.cols, np.zeros(m.cols), np.zeros(m.rows), 0.0, 0.0, 1.0, none)
    return _measured(problem.machine, problem.aim.quantity)


@lru_cache(maxsize=64)
def line_costs(machine: Machine, quantity: str, axis: int) -> FloatArray:
    """Return (lines,) what crossing each line between rows (axis 0) or columns (axis 1) costs in ``hops`` or ``energy``.

    Entry ``i`` is between line ``i`` and ``i + 1``; a last one closes the torus. Dead links count as if they worked.
    """
    b = mesh_links(replace(machine, faulty_links=()), quantity)
    lines, stride, ahead = (machine.cols, 1, 0) if axis == 1 else (machine.rows, machine.cols, 2)
    cost: FloatArray = b.cost[np.arange(lines) * stride, ahead]
    return read_only(cost[np.isfinite(cost)])


@lru_cache(maxsize=64)
def step_cost(machine: Machine, quantity: str) -> float:
    """Return what a message to another core pays once: 0 ``hops``, ``energy`` (pJ) of the message and its first router."""
    return mesh_links(machine, quantity).once


@lru_cache(maxsize=4)  # of machines with dead links these are large
def _measured(machine: Machine, quantity: str) -> Distances:
    m, once = machine, step_cost(machine, quantity)
    matrix = np.zeros((0, 0))
    if m.distance_matrix is not None:
        matrix = _unit(m, quantity) * m.distance_matrix + once * ~np.eye(m.size, dtype=bool)
    elif m.faulty_links:
        matrix = _routed(m, quantity)
    if matrix.size:
        return Distances(m.rows, m.cols, np.zeros(m.cols), np.zeros(m.rows), 0.0, 0.0, 0.0, read_only(matrix))
    across, along = line_costs(m, quantity, 1), line_costs(m, quantity, 0)
    x, y = (np.concatenate([[0.0], np.cumsum(v[: n - 1])]) for v, n in ((across, m.cols), (along, m.rows)))
    wrap_x, wrap_y = (float(v.sum()) if len(v) == n else 0.0 for v, n in ((across, m.cols), (along, m.rows)))
    return Distances(m.rows, m.cols, read_only(x), read_only(y), wrap_x, wrap_y, once, matrix)


def _unit(machine: Machine, quantity: str) -> float:
    """Return one unit of given distances: a router and a horizontal link, or Jin et al.'s units; 1 for ``hops``."""
    if quantity == "hops":
        return 1.0
    figures = {k: f.value for k, f in machine.energy.items()}
    if not any(v > 0 for v in figures.values()):
        return 1.1
    return figures.get("router", 0.0) + figures.get("link_x", 0.0)


def _routed(machine: Machine, quantity: str) -> FloatArray:
    """Return the costs of cheapest routes over healthy links, by SciPy's Dijkstra; the largest where there is none, as no node
    may be there.

    Raises
    ------
    InputError : a machine of more cores than such distances are computed for
    """
    if machine.size > MOST_CORES:
        what = f"distances of {machine.size} cores with dead links"
        raise InputError(what, machine.name, f"at most {MOST_CORES} cores")
    b, cores = mesh_links(machine, quantity), np.arange(machine.size)
    out = np.concatenate([distances_from(b, cores[k : k + AT_ONCE]) for k in range(0, machine.size, AT_ONCE)])
    out[~np.isfinite(out)] = out[np.isfinite(out)].max()
    return out + b.once * ~np.eye(machine.size, dtype=bool)


def _apart(line: FloatArray, wrap: float) -> FloatArray:
    """Return (n, n) distances of rows or columns, the shorter way round on a torus."""
    out: FloatArray = np.abs(line[:, None] - line[None, :])
    return np.minimum(out, wrap - out) if wrap > 0 else out
