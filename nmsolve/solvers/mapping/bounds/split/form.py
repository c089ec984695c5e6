"""What stays fixed during the ascent of the split bound: traffic, distances, their spectrum, which rows are valid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.model.compiled import plain
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray, FloatArray
from nmsolve.solvers.mapping.bounds.pairs import PairForm, dense_traffic, pair_form
from nmsolve.solvers.mapping.bounds.projection import distance_spectrum

#: Largest clique that gets a row.
LARGEST_CLIQUE = 10


@dataclass(frozen=True)
class SplitForm:
    """A one-per-core problem padded with idle nodes to k nodes on k usable cores, without the constant step.

    Attributes
    ----------
    k : number of usable cores, and of nodes with the idle ones at the end
    traffic : (k, k) symmetric, zero diagonal
    distance : (k, k) symmetric, zero diagonal, the constant step taken out
    falling : (k, k-1) distances from every core to the others, falling
    reach : (k,) row sums of ``distance``
    mu : (r,) eigenvalues of V'DV that are not zero, rising
    base : what the step costs on every mapping (objective units, not doubled)
    forbidden : (k, k) node may not be on core; (0, 0) if every node may be anywhere
    detour : least of d_ac + d_cb - d_ab over all cores: 0 on meshes, the right-hand side of triangle rows
    embeddable : the distances are L1 distances (mesh or torus), so all hypermetric rows hold
    clique : (LARGEST_CLIQUE + 1,) least sum of distances inside any set of this many cores; 0 if not known
    lattice : the objective is a multiple of this; 0 if unknown
    """

    k: int
    traffic: FloatArray
    distance: FloatArray
    falling: FloatArray
    reach: FloatArray
    mu: FloatArray
    base: float
    forbidden: BoolArray
    detour: float
    embeddable: bool
    clique: FloatArray
    lattice: float


def split_form(problem: MappingProblem) -> SplitForm:
    """Bring a one-per-core problem into :class:`SplitForm`; O(k^3)."""
    pairs = pair_form(problem)
    k, d = len(pairs.cores), pairs.distance
    distance = pairs.plain_distances()
    off = distance[~np.eye(k, dtype=bool)].reshape(k, k - 1)
    forbidden = np.zeros((k, k), bool)
    forbidden[: problem.n] = ~problem.domains[problem.domain_of][:, pairs.cores]
    return SplitForm(
        k,
        dense_traffic(pairs),
        distance,
        np.ascontiguousarray(np.sort(off, axis=1)[:, ::-1]),
        distance.sum(axis=1),
        distance_spectrum(pairs),
        d.step * pairs.total,
        forbidden if forbidden.any() else np.zeros((0, 0), bool),
        0.0 if d.separable else least_detour(distance),
        d.separable,
        _clique_sums(pairs, distance),
        pairs.lattice,
    )


def _clique_sums(pairs: PairForm, distance: FloatArray) -> FloatArray:
    """Least sums of distances inside sets of 3 .. LARGEST_CLIQUE cores (0 where nothing is known)."""
    out = np.zeros(LARGEST_CLIQUE + 1)
    if len(distance) < 3:
        return out
    out[3] = least_triangle(distance)
    d = pairs.distance
    if d.separable and d.wrap_x <= 0 and d.wrap_y <= 0:
        across, along = least_gap(d.x), least_gap(d.y)
        for size in range(4, min(len(distance), LARGEST_CLIQUE) + 1):
            out[size] = least_clique(size, across, along, len(d.x), len(d.y))
    return out


def least_gap(position: FloatArray) -> float:
    """Least distance of neighbouring lines; 0 if there is one line only."""
    return float(np.diff(position).min()) if len(position) > 1 else 0.0


def least_clique(size: int, across: float, along: float, cols: int, rows: int) -> float:
    """Return the least sum of distances of ``size`` different cores of a large mesh, gaps between its lines being these.

    The sum of column distances depends on how many cores every column has, and is least if its columns are neighbours with
    the fullest ones in the middle; the same for rows. A set has this many cores in its columns and rows exactly if the
    rows' numbers are majorised by the conjugate of the columns' (Gale 1957, Ryser 1957), and its columns and rows may be
    put in any order. So the least over such pairs is exact: 4, 8, 16, 25, 38, 54, 72, 96 for sizes 3..10 and gaps 1.
    """
    parts = sorted((_line_sum(part), part) for part in _partitions(size, size))
    least = np.inf
    for x, columns in parts:
        most = np.cumsum([sum(c > level for c in columns) for level in range(size)])
        for y, lines in parts if len(columns) <= cols else ():
            cost = across * x + along * y
            if cost >= least:
                break
            if len(lines) <= rows and (np.cumsum(lines) <= most[: len(lines)]).all():
                least = cost
    return float(least)


def _partitions(total: int, most: int) -> list[tuple[int, ...]]:
    """Return all falling sequences of whole numbers from 1 to ``most`` that add up to ``total``."""
    if total == 0:
        return [()]
    return [
        (first, *rest)
        for first in range(min(total, most), 0, -1)
        for rest in _partitions(total - first, first)
    ]


def _line_sum(falling: tuple[int, ...]) -> float:
    """Least sum over pairs of |line difference| of members on neighbouring lines, this many on each, in any order.

    The fullest line is in the middle, the next ones left and right of it in turn (Hardy, Littlewood and Polya 1934,
    theorem 371). Every cut between lines is paid by each pair it separates: s (size - s) with s members before it.
    """
    line = [*falling[1::2][::-1], *falling[::2]]
    before = np.cumsum(line)[:-1]
    return float((before * (sum(falling) - before)).sum())


@plain
def least_triangle(distance: FloatArray) -> float:
    """Least sum of the three distances of three different cores."""
    k = len(distance)
    least = np.inf
    for a in range(k):
        for b in range(a + 1, k):
            nearest = np.inf
            for c in range(b + 1, k):
                nearest = min(nearest, distance[a, c] + distance[b, c])
            least = min(least, nearest + distance[a, b])
    return least


@plain
def least_detour(distance: FloatArray) -> float:
    """Least of d_ac + d_cb - d_ab over three different cores: negative if the triangle inequality fails."""
    k = len(distance)
    least = np.inf
    for a in range(k):
        for b in range(a + 1, k):
            nearest = np.inf
            for c in range(k):
                if c != a and c != b:
                    nearest = min(nearest, distance[a, c] + distance[b, c])
            least = min(least, nearest - distance[a, b])
    return least
