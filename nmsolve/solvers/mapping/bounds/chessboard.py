"""The parting bound on a chessboard: cores of one colour are two links apart.

A mesh is a chessboard: neighbours differ in colour, so that two cores of one colour are farther apart than the least distance
``apart`` of two cores, ``apart (1 + theta)`` at least. With r = ceil(n / K) parts let T be the r fullest cores. Give all cores
codes with inner products C, 1/2 of every core with itself and 0 of two cores, except in a colour of T: from the fullest core
on, two and two have ``-theta / 2``. Of an odd number the last three have ``-theta (1 - 2 THIRD^2) / 2`` for the two fuller
ones and ``-theta THIRD / 2`` for these with the last, as three directions in a plane have. C is positive semidefinite and
``1 - 2 C_pq <= d(p, q) / apart``. So the formula of :mod:`.partition_placement` holds, for each way of colouring T, and it is
concave in the part sizes m. These obey ``K >= m_p >= tau >= m_q``, p in T (fullest first in every colour) and q not. All
vertices of that set are listed: some cores of each colour are full, the rest of T and j others hold the same, the others
nothing. Three or four parts are the common case: chips with few large cores.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nmsolve.model.bound import Bound
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.mapping.bounds.ascent import Spectral, climb, laplacian_of
from nmsolve.solvers.mapping.bounds.bound_context import BoundContext
from nmsolve.solvers.mapping.bounds.bundle import BundleAscent
from nmsolve.solvers.mapping.bounds.pairs import PairForm, pair_form, room_per_core

METHOD = "chessboard"
#: With fewer parts there may be none of one colour; with more, few of them are neighbours of one colour.
LEAST_PARTS, MOST_PARTS = 3, 6
#: Cosine of the angle between the last of three codes and the reverse of each other; part of the bound's definition.
THIRD = 0.25
#: Eigenvalues that count one by one; later ones count as the last of these.
RANK = 20
#: The first shift takes this part of what a mapping pays for each node, and the first rho is this part of the mean degree.
FIRST_SHIFT, FIRST_RHO = 0.65, 0.58


def chessboard_bounds(
    problem: MappingProblem, spectral: Spectral, context: BoundContext, rounds: int
) -> Iterator[Bound]:
    """Ever better bounds of :func:`chessboard_form`, by at most ``rounds`` steps."""
    began = context.clock()
    shift, rho = first_multipliers(problem, spectral, context)

    def begin(numbered: Spectral, order: IntArray, start: FloatArray | None) -> BundleAscent:
        return BundleAscent(numbered, context.seed, shift[order], rho, start)

    yield from climb(spectral, context.after(began), rounds, begin)


def chessboard_form(problem: MappingProblem) -> Spectral | None:
    """Return what stays fixed while multipliers are tuned; None where colours say nothing."""
    room = room_per_core(problem)
    parts = -(-problem.n // room)
    if problem.uses_nets or problem.machine.distance_matrix is not None:
        return None
    if not LEAST_PARTS <= parts <= MOST_PARTS or parts > int(problem.machine.usable.sum()):
        return None
    form = pair_form(problem)
    apart, theta = colour_distances(form)
    if not (apart > 0 and theta > 0):
        return None
    sigma, drift = size_vertices(problem.n, room, len(form.cores), theta)
    laplacian = laplacian_of(form.n, form.rows(), form.indices, form.weights)
    return Spectral(METHOD, laplacian, apart * sigma, apart * drift, apart / 2, form.lattice)


def colour_distances(form: PairForm) -> tuple[float, float]:
    """Return the least distance of two cores, and by what part of it two of one colour are farther apart, 1 at most."""
    row, column = np.divmod(form.cores, form.distance.cols)
    colour = (row + column) % 2
    apart, alike = np.inf, np.inf
    for which, block in form.blocks():
        block[np.arange(len(which)), which] = np.inf
        apart = min(apart, float(block.min()))
        alike = min(alike, float(block[colour[which][:, None] == colour[None, :]].min(initial=np.inf)))
    if not 0 < apart < np.inf:
        return 0.0, 0.0
    return apart, min(1.0, alike / apart - 1.0)


def size_vertices(n: int, room: int, cores: int, theta: float) -> tuple[FloatArray, FloatArray]:
    """Return (v, RANK) eigenvalues, falling, what is beyond added to the last, and (v,) what rho is paid for; of all vertices."""
    parts = -(-n // room)
    sigma, drift = [], []
    for a, b, full_a, full_b in _colourings(parts):
        full = full_a + full_b
        others = np.arange(cores - parts + 1)
        level = (n - full * room) / (parts - full + others)
        both = [
            _colour(count, filled, level, room, theta)
            for count, filled in ((a, full_a), (b, full_b))
            if count
        ]
        outside = np.where(np.arange(RANK) < others[:, None], level[:, None] / 2, 0.0)
        found = np.sort(np.concatenate([*(values for values, _ in both), outside], axis=1))[:, ::-1][:, :RANK]
        found[:, -1] = n / 2 - found[:, :-1].sum(axis=1)
        sigma.append(found)
        drift.append((sum(paid for _, paid in both) + others * level**2 / 2) / n)
    return np.concatenate(sigma), np.concatenate(drift)


def _colourings(parts: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield how many of the parts have each colour, the more frequent one first, and how many of each are full; never all."""
    for a in range(-(-parts // 2), parts + 1):
        for full_a in range(a + 1):
            for full_b in range(parts - a + 1):
                if full_a + full_b < parts:
                    yield a, parts - a, full_a, full_b


def _colour(
    count: int, full: int, level: FloatArray, room: int, theta: float
) -> tuple[FloatArray, FloatArray]:
    """Return (v, count) eigenvalues of one colour of T, ``full`` cores of it being full and the others at ``level`` (v,), and
    (v,) m'Cm."""
    sizes = np.where(np.arange(count) < full, float(room), level[:, None])
    codes = colour_codes(count, theta)
    root = np.sqrt(sizes)
    sigma = np.linalg.eigvalsh(root[:, :, None] * codes * root[:, None, :]).astype(np.float64)
    paid: FloatArray = np.einsum("vp,pq,vq->v", sizes, codes, sizes)
    return sigma, paid


def colour_codes(count: int, theta: float) -> FloatArray:
    """Return (count, count) inner products of the codes of one colour of T, the fullest core first."""
    codes = 0.5 * np.eye(count)
    pairs = count // 2 if count % 2 == 0 else (count - 3) // 2
    for first in range(0, 2 * pairs, 2):
        codes[first, first + 1] = codes[first + 1, first] = -theta / 2
    if count % 2 and count > 1:
        one, two, last = count - 3, count - 2, count - 1
        codes[one, two] = codes[two, one] = -theta * (1 - 2 * THIRD**2) / 2
        codes[[one, two], last] = codes[last, [one, two]] = -theta * THIRD / 2
    return codes


def first_multipliers(
    problem: MappingProblem, spectral: Spectral, context: BoundContext
) -> tuple[FloatArray, float]:
    """Return (n,) shift and rho to begin with: at the optimum a node's shift falls by what it pays, up to its core's price."""
    form = pair_form(problem)
    degree = spectral.laplacian.diagonal()
    rho = FIRST_RHO * float(degree.mean())
    if context.core is None:
        return -FIRST_SHIFT * degree * (1.0 - room_per_core(problem) / problem.n), rho
    _, theta = colour_distances(form)
    row, column = np.divmod(context.core, form.distance.cols)
    colour, u, v = (row + column) % 2, form.rows(), form.indices
    away = np.where(colour[u] == colour[v], 1.0 + theta, 1.0) * (context.core[u] != context.core[v])
    pays: FloatArray = np.bincount(u, form.weights * away, form.n).astype(np.float64)
    return -FIRST_SHIFT * pays, rho
