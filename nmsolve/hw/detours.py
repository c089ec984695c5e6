"""Shortest routes around dead links, and the distance matrices that follow from them.

On a healthy mesh distances have a closed form (:mod:`nmsolve.hw.cost`) and routes are XY. With dead links
every core gets a *route tree*: a shortest route to every other core, chosen so that it is the XY route
wherever that is still a shortest one. Ties are broken by the last move, in the order south, north, east,
west.
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from nmsolve.hw.energy import line_values, step_value, unit_value
from nmsolve.model.compiled import plain
from nmsolve.model.errors import InputError
from nmsolve.model.links import link_ends
from nmsolve.model.machine import Machine
from nmsolve.model.types import FloatArray, Int32Array, IntArray, frozen

#: Above this many cores the quadratic tables would not fit in a few hundred megabytes.
MATRIX_LIMIT = 8192
#: Moves by direction number: east, west, south, north.
EAST, WEST, SOUTH, NORTH = range(4)


@dataclass(frozen=True, eq=False)
class RouteTrees:
    """Shortest routes from every core.

    Attributes
    ----------
    dist : (P, P) float64, sum of link weights from row to column (largest finite value where there is no
        route: one of the two cores then is not usable)
    before : (P, P) int32, ``before[p, q]`` is the core just before ``q`` on the route from ``p``; ``q``
        itself if ``p == q`` or there is no route
    """

    dist: FloatArray
    before: Int32Array


_TREES: WeakKeyDictionary[Machine, dict[str, RouteTrees]] = WeakKeyDictionary()


def link_weights(machine: Machine, quantity: str = "hops") -> FloatArray:
    """(4 * P,) float64: weight of the directed link leaving core ``p`` in direction ``d``, at ``4 * p + d``.

    Directions are 0 east, 1 west, 2 south, 3 north. ``inf`` where there is no link or it is dead.
    ``quantity`` is ``hops`` (link weights), ``energy`` (pJ) or ``latency`` (ns).
    """
    wx, wy = line_values(machine, quantity, 1), line_values(machine, quantity, 0)
    rows, cols = machine.rows, machine.cols
    out = np.full((rows, cols, 4), np.inf)
    if machine.distance_matrix is None:
        out[:, : cols - 1, EAST] = wx[None, : cols - 1]
        out[:, 1:, WEST] = wx[None, : cols - 1]
        out[: rows - 1, :, SOUTH] = wy[: rows - 1, None]
        out[1:, :, NORTH] = wy[: rows - 1, None]
        if len(wx) == cols:
            out[:, -1, EAST] = out[:, 0, WEST] = wx[-1]
        if len(wy) == rows:
            out[-1, :, SOUTH] = out[0, :, NORTH] = wy[-1]
    flat = out.reshape(-1)
    nbr = link_ends(machine)
    for a, b in machine.faulty_links:
        for d in range(4):
            if nbr[4 * a + d] == b:
                flat[4 * a + d] = np.inf
    return flat


def route_trees(machine: Machine, quantity: str = "hops") -> RouteTrees:
    """Shortest routes round the dead links of a mesh, measured in ``quantity``; kept for the machine's
    lifetime.

    Raises
    ------
    InputError : more than 8192 cores; a link of no cost (routes would be arbitrary)
    """
    kept = _TREES.setdefault(machine, {})
    if quantity not in kept:
        kept[quantity] = _build_trees(machine, quantity)
    return kept[quantity]


def _build_trees(machine: Machine, quantity: str) -> RouteTrees:
    if machine.size > MATRIX_LIMIT:
        raise InputError(
            f"{machine.size} cores with faulty links",
            machine.name,
            f"at most {MATRIX_LIMIT} cores where links are faulty (detours need a table of all pairs)",
        )
    weights, ends = link_weights(machine, quantity), link_ends(machine)
    if np.isfinite(weights).any() and weights.min() <= 0:
        raise InputError(f"a link costs 0 {quantity}", machine.name, "more than 0 where links are faulty")
    size = machine.size
    dist = np.empty((size, size))
    before = np.empty((size, size), np.int32)
    chunk = max(1, 2**20 // size)
    for first in range(0, size, chunk):
        _trees_from(first, min(first + chunk, size), machine.rows, machine.cols, weights, ends, dist, before)
    finite = np.isfinite(dist)
    dist[~finite] = dist[finite].max(initial=0.0)
    return RouteTrees(frozen(dist), frozen(before))


@plain
def _trees_from(
    first: int,
    last: int,
    rows: int,
    cols: int,
    weights: FloatArray,
    ends: IntArray,
    dist: FloatArray,
    before: Int32Array,
) -> None:
    """Fill rows ``first:last`` of both tables by sweeping the mesh in four orders until nothing improves."""
    inf = np.inf
    for s in range(first, last):
        d = dist[s]
        d[:] = inf
        d[s] = 0.0
        changed = True
        while changed:
            changed = False
            for order in range(4):
                for i in range(rows):
                    r = i if order < 2 else rows - 1 - i
                    for j in range(cols):
                        p = r * cols + (j if order % 2 == 0 else cols - 1 - j)
                        best = d[p]
                        for k in range(4):
                            v = ends[4 * p + k]  # its opposite link leads from v to p
                            if v >= 0:
                                reach = d[v] + weights[4 * v + (k ^ 1)]
                                if reach < best:
                                    best = reach
                        if best < d[p]:
                            d[p] = best
                            changed = True
        for q in range(rows * cols):
            before[s, q] = q
            if q == s or d[q] == inf:
                continue
            slack = 1e-9 * d[q]
            for move in (2, 3, 0, 1):  # south, north, east, west: vertical moves come last on an XY route
                v = ends[4 * q + (move ^ 1)]
                if v >= 0 and d[v] + weights[4 * v + move] <= d[q] + slack:
                    before[s, q] = v
                    break


def distance_matrix(machine: Machine, quantity: str) -> FloatArray:
    """(P, P) float64: what a message from row to column costs.

    ``hops``: weight of a shortest route round the dead links, or the machine's own matrix. ``energy`` (``latency``):
    pJ (ns) of the cheapest route plus what a message pays once between different cores; on a machine given by a matrix,
    every unit of distance is charged one router and one ``link_x``.

    With links that are dead in one direction only, the matrix is not symmetric.

    Raises
    ------
    InputError : a mesh of more than 8192 cores with dead links
    """
    apart = ~np.eye(machine.size, dtype=bool)
    given, step = machine.distance_matrix, step_value(machine, quantity)
    if given is None:
        dist = route_trees(machine, quantity).dist
        return dist if quantity == "hops" else dist + step * apart
    return given if quantity == "hops" else unit_value(machine, quantity) * given + step * apart
