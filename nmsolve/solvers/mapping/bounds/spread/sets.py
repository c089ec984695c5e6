"""Rows of sets: demands between pairs of a few nodes, which on a grid cost no less than the best placement of these nodes.

Every pair's demand is led along a tree of shortest paths from the earlier node; a set's row is made of such legs.

The grid that sets of nodes are placed on: no distance on the machine is shorter than the one there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nmsolve.hw.energy import line_values, step_value
from nmsolve.model.compiled import kernel
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import AnyArray, FloatArray, Int32Array, IntArray
from nmsolve.solvers.mapping.bounds.pairs import room_per_core
from nmsolve.solvers.mapping.bounds.split.form import least_clique
from nmsolve.solvers.mapping.bounds.spread.rows import Network, Rows, grow, new_tree

#: Most members of a set.
WIDEST = 16
#: Links that are not whole are rounded down to this part of the longer one.
PLACES = 2.0**-10


class Grid(NamedTuple):
    """An unbounded grid with at most this many rows and columns in use.

    Attributes
    ----------
    links : (4,) least link in x and in y in ``1 / scale``, rows, columns
    clique : (WIDEST + 1,) the least sum of distances between this many nodes, in ``1 / scale``
    scale : whole numbers per unit of distance, a power of two; ``step`` : paid by every pair on top of the grid
    """

    links: IntArray
    clique: IntArray
    scale: float
    step: float


def grid_of(problem: MappingProblem) -> Grid | None:
    """Return the grid below a machine's distances, or None: on a torus, with given distances, several nodes on a core."""
    machine = problem.machine
    if (
        machine.torus
        or machine.distance_matrix is not None
        or problem.aim.distance == "apart"
        or room_per_core(problem) > 1
    ):
        return None
    across, along, step = least_links(problem)
    if min(across, along) <= 0:
        return None
    whole = across == int(across) and along == int(along) and max(across, along) < 1 / PLACES
    scale = 1.0 if whole else float(2.0 ** -np.floor(np.log2(max(across, along) * PLACES)))
    links = int(across * scale), int(along * scale)
    sizes = range(3, 1 + min(WIDEST, problem.n, machine.size))
    clique = np.zeros(WIDEST + 1, np.int64)
    clique[3 : 3 + len(sizes)] = [int(least_clique(m, *links, machine.cols, machine.rows)) for m in sizes]
    return Grid(np.array([*links, machine.rows, machine.cols], np.int64), clique, scale, step)


def least_links(problem: MappingProblem) -> tuple[float, float, float]:
    """Return the least cost of a link in x and in y (of one line the other's), and what different cores pay on top of links."""
    machine, quantity = problem.machine, problem.aim.quantity
    wide, high = (float(line_values(machine, quantity, axis).min(initial=np.inf)) for axis in (1, 0))
    if not np.isfinite(min(wide, high)):
        return 0.0, 0.0, 0.0
    wide, high = (
        min(wide, np.inf if np.isfinite(wide) else high),
        min(high, np.inf if np.isfinite(high) else wide),
    )
    return wide, high, step_value(machine, quantity)


#: How many nodes around every member of a set may become the next one.
AROUND = 50


class Sets(NamedTuple):
    """Sets of up to WIDEST nodes.

    Attributes
    ----------
    node : (s, WIDEST) members, -1 beyond the last
    demand : (s, WIDEST, WIDEST) int16, above the diagonal: what is led from the earlier member to the later one, >= 0
    cost : (s,) whole numbers: no placement of these demands on the grid costs less
    worth : (s,) the same in units of the objective, steps added
    legs : (s, WIDEST) how many entries of the row every member's tree has; they follow one another
    """

    node: IntArray
    demand: AnyArray
    cost: IntArray
    worth: FloatArray
    legs: IntArray

    @classmethod
    def none(cls) -> Sets:
        """No sets."""
        wide = np.zeros((0, WIDEST), np.int64)
        return cls(wide, np.zeros((0, WIDEST, WIDEST), np.int16), np.zeros(0, np.int64), np.zeros(0), wide)

    def chosen(self, kept: AnyArray) -> Sets:
        """Return the sets that a mask or numbers keep."""
        parts: list[Any] = [part[kept] for part in self]
        return Sets(*parts)

    def joined(self, other: Sets) -> Sets:
        """Return these sets, then the others."""
        parts: list[Any] = [np.concatenate(pair) for pair in zip(self, other, strict=True)]  # type: ignore[arg-type]
        return Sets(*parts)


@kernel
def grown(centres: IntArray, blur: FloatArray, net: Network) -> tuple[IntArray, FloatArray]:
    """Grow a set from every centre: always the node that is nearest to all members together.

    Returns
    -------
    members (c, WIDEST), -1 where nothing else is near; lengths (c, WIDEST, WIDEST) of shortest paths to later ones
    """
    n = len(net.indptr) - 1
    t = new_tree(n, 0)
    node = np.full((len(centres), WIDEST), -1, np.int64)
    length = np.zeros((len(centres), WIDEST, WIDEST))
    total, seen, met = np.zeros(n), np.zeros(n, np.int64), np.empty(n, np.int64)
    away = np.zeros((WIDEST, n))
    for c in range(len(centres)):
        new, known = centres[c], 0
        for size in range(WIDEST):
            node[c, size] = new
            for i in range(size):
                length[c, i, size] = away[i, new]
            seen[new] = -1
            best, nearest = np.inf, -1
            for i in range(1, grow(new, AROUND, net, t) + 1):
                v = t.order[i]
                if seen[v] == 0 and size == 0:
                    met[known] = v
                    known += 1
                if seen[v] == size:
                    seen[v] += 1
                    away[size, v] = -t.key[v]
                    total[v] += away[size, v]
                    if total[v] * blur[v] < best:
                        best, nearest = total[v] * blur[v], v
            if nearest < 0:
                break
            new = nearest
        for i in range(known):
            total[met[i]], seen[met[i]] = 0.0, 0
        seen[centres[c]] = 0
    return node, length


@kernel
def led(node: IntArray, demand: IntArray, net: Network) -> tuple[IntArray, IntArray, Int32Array, AnyArray]:
    """Lead demands (s, WIDEST, WIDEST) between members (s, WIDEST) along shortest paths: legs, indptr, edge, load of rows."""
    n = len(net.indptr) - 1
    t = new_tree(n, 0)
    legs, indptr = np.zeros(node.shape, np.int64), np.zeros(len(node) + 1, np.int64)
    room = len(node) * WIDEST * AROUND
    edge, load = np.empty(room, np.int32), np.empty(room, np.float32)
    below = np.zeros(n, np.int64)
    filled = 0
    for s in range(len(node)):
        for i in range(WIDEST):
            if demand[s, i, i + 1 :].sum() == 0:
                continue
            reached = grow(node[s, i], min(AROUND, n - 1), net, t)
            for j in range(i + 1, WIDEST):
                if demand[s, i, j] > 0 and t.rank[node[s, j]] < 0:
                    reached = grow(node[s, i], n - 1, net, t)
                    break
            if filled + reached > room:
                room = 2 * room + reached
                edge, load = _longer(edge, room), _longer(load, room)
            below[: reached + 1] = 0
            for j in range(i + 1, WIDEST):
                if demand[s, i, j] > 0:
                    below[t.rank[node[s, j]]] = demand[s, i, j]
            before = filled
            for k in range(reached, 0, -1):
                if below[k] > 0:
                    below[t.up[k]] += below[k]
                    edge[filled] = t.over[k]
                    load[filled] = below[k] if t.order[t.up[k]] < t.order[k] else -below[k]
                    filled += 1
            legs[s, i] = filled - before
        indptr[s + 1] = filled
    return legs, indptr, edge[:filled].copy(), load[:filled].copy()


@kernel
def _longer(array: AnyArray, length: int) -> AnyArray:
    """Return a longer array that begins the same."""
    out = np.empty(length, array.dtype)
    out[: len(array)] = array
    return out


def rows_of(node: IntArray, demand: IntArray, cost: IntArray, grid: Grid, net: Network) -> tuple[Rows, Sets]:
    """Return the rows of sets whose demands (s, WIDEST, WIDEST) cost at least so much (s,) on the grid, and the sets."""
    worth = cost / grid.scale + grid.step * demand.sum(axis=(1, 2))
    legs, indptr, edge, load = led(node, demand, net)
    rows = Rows(np.full(len(node), -1), np.zeros(len(node), np.int64), indptr, edge, load)
    return rows, Sets(node, demand.astype(np.int16), cost, worth, legs)


def cliques(
    node: IntArray, length: FloatArray, grid: Grid
) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Return of every grown set the first members that, as a clique, are most too near: members, demands, costs and ratios."""
    size = np.arange(1, WIDEST + 1)
    together = np.cumsum(length.sum(axis=1), axis=1)
    pairs = size * (size - 1) // 2
    worth = grid.clique[1:] / grid.scale + grid.step * pairs
    ratio = np.where((node >= 0) & (grid.clique[1:] > 0), together / np.maximum(worth, 1e-300), np.inf)
    best = ratio.argmin(axis=1)
    inside = size[None, :] - 1 <= best[:, None]
    members = np.where(inside, node, -1)
    demand = np.triu(inside[:, :, None] & inside[:, None, :], 1).astype(np.int64)
    return members, demand, grid.clique[best + 1], ratio[np.arange(len(node)), best]
