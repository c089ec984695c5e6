"""The partition-placement bound (engine ``joint``): many nodes per core, parts not fixed, sizes free within the capacity.

Give core p its code y_p (:mod:`.codes`), so that d(p, q) = |y_p - y_q|^2, and let Y hold one code row per node. With L
the Laplacian of the traffic, cost = trace(Y'LY). All codes have the same squared length omega, and e'Y = n c(m)' and
Y'Y = G(m) = sum_p m_p y_p y_p' depend on the part sizes m alone. So for every shift t and number rho, with
A = L + diag t + rho ee'/n,

``cost = trace(Y'AY) - omega sum t - rho n |c(m)|^2 >= sum_i lambda_i(A) sigma_i(G(m)) - omega sum t - rho n |c(m)|^2``,

lambda rising, sigma falling. The right-hand side is concave in m, so its least value over 0 <= m_p <= K, sum m = n is at
a vertex: full cores, empty cores and at most one in between. They are enumerated where few; otherwise the box is
relaxed (the missing nodes may be taken from fewer cores than their capacity allows), which keeps the bound valid.
Eigenvalues beyond the ones computed are replaced by the last one. Dead links only lengthen routes, so the healthy
mesh's codes serve. t and rho come from subgradient ascent; they and the eigenvalue bounds are the certificate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from math import comb

import numpy as np

from nmsolve.hw.cost import core_distance
from nmsolve.model.bound import Bound
from nmsolve.model.features import at_most
from nmsolve.model.mapping.features import LIMITS, takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.mapping.bounds.ascent import Laplacian, Spectral, climb, laplacian_of
from nmsolve.solvers.mapping.bounds.bound_context import UNLIMITED, BoundContext
from nmsolve.solvers.mapping.bounds.codes import core_codes, with_step
from nmsolve.solvers.mapping.bounds.pairs import crowded, pair_form, room_per_core, usable_cores
from nmsolve.solvers.mapping.bounds.stored_ascent import stored_bounds

#: Most cores (the code of each is a row of a dense matrix).
MAX_CORES = 1024
#: Work limit of the size enumeration: size vectors x (code lines)^3.
MAX_WORK = 6e8


#: Why the bound cannot take a problem, or None; with one node per core the projection bound is the better one.
refuses_partition_placement = takes(
    f"pairs disk {LIMITS} -single -matrix", at_most(MAX_CORES, usable_cores, "usable cores"), crowded
)


@dataclass(frozen=True)
class Sizes:
    """The part sizes the bound has to hold for: ``vertices`` (v, k) whose hull contains all admissible ones."""

    vertices: FloatArray
    codes: FloatArray
    n: int

    def grams(self) -> tuple[FloatArray, FloatArray]:
        """Return eigenvalues (v, lines), falling, of G(m), and (v,) n |c(m)|^2, of all vertices."""
        sigma, drift, rows = [], [], self.vertices
        for m in np.array_split(rows, max(1, len(rows) * self.codes.shape[1] ** 2 // 2_000_000)):
            gram = np.einsum("vp,pi,pj->vij", m, self.codes, self.codes, optimize=True)
            sigma.append(np.linalg.eigvalsh(gram)[:, ::-1])
            centre = m @ self.codes
            drift.append((centre**2).sum(axis=1) / self.n)
        return np.concatenate(sigma), np.concatenate(drift)


def partition_placement_bounds(
    problem: MappingProblem, context: BoundContext = UNLIMITED, rounds: int = 200
) -> Iterator[Bound]:
    """Yield ever better bounds, over at most ``rounds`` steps."""
    if problem.graph.on_disk:
        yield from stored_bounds(problem, partial(partition_placement_form, problem), context, rounds)
        return
    began = context.clock()
    spectral = partition_placement_form(problem)
    yield from climb(spectral, context.after(began), rounds)


def partition_placement_form(problem: MappingProblem, laplacian: Laplacian | None = None) -> Spectral:
    """Return what stays fixed while the bound's multipliers are tuned; ``laplacian`` is given if the graph is on disk."""
    form = pair_form(problem)
    healthy = replace(problem, machine=replace(problem.machine, faulty_links=()))
    distance = core_distance(healthy) if problem.machine.faulty_links else form.distance
    codes = with_step(core_codes(distance, form.cores), distance.step)
    vertices = size_vertices(problem.n, len(codes), room_per_core(problem), codes.shape[1])
    sigma, drift = Sizes(vertices, codes, problem.n).grams()
    if laplacian is None:
        laplacian = laplacian_of(form.n, form.rows(), form.indices, form.weights)
    return Spectral("joint", laplacian, sigma, drift, float((codes[0] ** 2).sum()), form.lattice)


def size_vertices(n: int, cores: int, room: int, lines: int) -> FloatArray:
    """Return (v, cores) sizes whose convex hull holds every m with 0 <= m <= room and sum m = n.

    The vertices of that set if they are few enough; else ``room - missing / j`` on j cores for the largest j that is
    few enough, which is a larger set (entries may be negative).
    """
    limit = max(cores, int(MAX_WORK / max(1, lines) ** 3))
    full, rest = divmod(n, room)
    exact = comb(cores, full) * (cores - full if rest else 1)
    if exact <= limit:
        chosen = _subsets(cores, full)
        out = np.zeros((len(chosen), cores))
        np.put_along_axis(out, chosen, float(room), axis=1)
        if rest:
            out = np.repeat(out, cores, axis=0)
            out[np.arange(len(out)), np.tile(np.arange(cores), len(chosen))] += rest
            out = out[out.max(axis=1) <= room]
        return out
    missing = cores * room - n
    j = max((i for i in (1, 2, 3) if i * room <= missing and comb(cores, i) <= limit), default=1)
    chosen = _subsets(cores, j)
    out = np.full((len(chosen), cores), float(room))
    np.put_along_axis(out, chosen, room - missing / j, axis=1)
    return out


def _subsets(cores: int, size: int) -> IntArray:
    """Return (count, size) all subsets; of the complement where that is smaller to list."""
    return np.array(list(combinations(range(cores), size)), np.int64).reshape(-1, size)
