"""The joint bound: many nodes per core, parts not fixed, sizes free within the capacity.

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

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from time import monotonic

import numpy as np
from scipy.sparse import csr_array

from nmsolve.hw.cost import core_distance, uses_nets
from nmsolve.model.bound import Bound, round_up
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.mapping.bounds.chebyshev import Shifted, StoppedError
from nmsolve.solvers.mapping.bounds.codes import core_codes, with_step
from nmsolve.solvers.mapping.bounds.eigen import (
    DENSE,
    Tracker,
    lower_eigenvalues,
)
from nmsolve.solvers.mapping.bounds.pairs import PairForm, ShouldStop, never, pair_form, room_per_core

#: Most cores (the code of each is a row of a dense matrix).
MAX_CORES = 1024
#: Most eigenvalues computed; the rest count as the last of them.
MAX_EIGENVALUES = 40
#: More than are used: room for the error of the last one.
SPARE = 3
#: Work limit of the size enumeration: size vectors x (code lines)^3.
MAX_WORK = 6e8


def refuses_joint(problem: MappingProblem) -> str | None:
    """Why the bound cannot take the problem, or None."""
    if uses_nets(problem):
        return f"objective {problem.objective} charges messages by their route tree"
    if problem.machine.distance_matrix is not None:
        return "distances are given by a matrix"
    usable = int(problem.machine.usable.sum())
    if not 2 <= usable <= MAX_CORES:
        return f"{usable} usable cores (takes 2 to {MAX_CORES})"
    if room_per_core(problem) >= problem.n:
        return "all nodes may fit on one core"
    if room_per_core(problem) * usable < problem.n:
        return "the nodes do not fit"
    return None


@dataclass(frozen=True)
class Sizes:
    """The part sizes the bound has to hold for: ``vertices`` (v, k) whose hull contains all admissible ones."""

    vertices: FloatArray
    codes: FloatArray
    n: int

    def grams(self, which: IntArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues (v, lines), falling, of G(m), and (v,) n |c(m)|^2, of the vertices ``which``."""
        sigma, drift = [], []
        rows = self.vertices if which is None else self.vertices[which]
        for m in np.array_split(rows, max(1, len(rows) * self.codes.shape[1] ** 2 // 2_000_000)):
            gram = np.einsum("vp,pi,pj->vij", m, self.codes, self.codes, optimize=True)
            sigma.append(np.linalg.eigvalsh(gram)[:, ::-1])
            centre = m @ self.codes
            drift.append((centre**2).sum(axis=1) / self.n)
        return np.concatenate(sigma), np.concatenate(drift)


@dataclass(frozen=True)
class _Joint:
    """Everything that stays fixed during the ascent."""

    form: PairForm
    laplacian: csr_array
    sizes: Sizes
    sigma: FloatArray
    drift: FloatArray
    length: float
    rank: int

    def worst(self, lam: FloatArray, shift: FloatArray, rho: float) -> tuple[float, int]:
        """Least value over the size vertices for eigenvalue bounds ``lam``, and the vertex where it is."""
        padded = np.concatenate([lam, np.full(max(0, self.sigma.shape[1] - len(lam)), lam[-1])])
        value = self.sigma @ padded[: self.sigma.shape[1]] - rho * self.drift
        at = int(value.argmin())
        return float(value[at] - self.length * shift.sum()), at


def joint_bound(
    problem: MappingProblem,
    upper: float = np.inf,
    rounds: int = 60,
    should_stop: ShouldStop = never,
) -> Bound:
    """The last of :func:`joint_bounds`, or 0 where none was reached."""
    best = Bound(0.0, "joint", "full", {"method": "joint"})
    for bound in joint_bounds(problem, lambda: upper, rounds, should_stop):
        best = bound
    return best


def joint_bounds(
    problem: MappingProblem,
    upper: Callable[[], float],
    rounds: int = 200,
    should_stop: ShouldStop = never,
    seed: int = 0,
    seconds: float = np.inf,
) -> Iterator[Bound]:
    """Ever better joint bounds: certified after 12, 24, 48 ... steps (small graphs: 1, 2, 4 ...) and at the end.

    Parameters
    ----------
    upper : best known cost (inf if none); aims the step length only
    rounds : steps at most
    seed : of the random vectors (large graphs)
    seconds : wall time there is; the first certificate is made after a third of it at the latest, and a last one is
        begun while there is time to finish it
    """
    began = monotonic()
    joint = _prepare(problem)
    ascent = _Ascent(joint, seed)
    best, certified = 0.0, -np.inf
    due, cost = (1 if problem.n <= DENSE else 12), 0.0
    try:
        for step in range(1, rounds + 1):
            ascent.advance(upper(), should_stop)
            spent = monotonic() - began
            ending = step == rounds or ascent.exhausted or seconds - spent < 2.5 * cost
            if ascent.best > certified and (step >= due or ending or (cost == 0.0 and spent > seconds / 3)):
                due, certified = max(due, 2 * step), ascent.best
                bound = _certify(joint, ascent, seed, should_stop)
                cost = monotonic() - began - spent
                if bound.value > best:
                    best = bound.value
                    yield bound
            if ending or should_stop():
                return
    except StoppedError:
        return


def _prepare(problem: MappingProblem) -> _Joint:
    form = pair_form(problem)
    healthy = replace(problem, machine=replace(problem.machine, faulty_links=()))
    distance = core_distance(healthy) if problem.machine.faulty_links else form.distance
    codes = with_step(core_codes(distance, form.cores), distance.step)
    sizes = Sizes(
        size_vertices(problem.n, len(codes), room_per_core(problem), codes.shape[1]), codes, problem.n
    )
    sigma, drift = sizes.grams()
    degree = np.bincount(form.rows(), form.weights, form.n).astype(np.float64)
    off = csr_array((-form.weights, form.indices, form.indptr), shape=(form.n, form.n))
    from scipy.sparse import diags_array

    laplacian = csr_array(diags_array(degree) + off)
    laplacian.sort_indices()
    length = float((codes[0] ** 2).sum())
    rank = min(codes.shape[1], MAX_EIGENVALUES, problem.n)
    return _Joint(form, laplacian, sizes, sigma, drift, length, rank)


def size_vertices(n: int, cores: int, room: int, lines: int) -> FloatArray:
    """(v, cores) sizes whose convex hull holds every m with 0 <= m <= room and sum m = n.

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
    """(count, size) all subsets; of the complement where that is smaller to list."""
    return np.array(list(combinations(range(cores), size)), np.int64).reshape(-1, size)


def _certify(joint: _Joint, ascent: _Ascent, seed: int, should_stop: ShouldStop) -> Bound:
    """The bound at the ascent's best multipliers with certain eigenvalue bounds."""
    a = Shifted(joint.laplacian, ascent.best_shift, ascent.best_rho)
    _, vectors = ascent.tracker.settle(a, should_stop)
    lam = lower_eigenvalues(a, vectors, joint.rank, seed, should_stop)[: joint.rank]
    # A little is given away so that a re-check with other random vectors confirms it.
    lam = lam - 2e-4 * np.abs(lam).mean() * (joint.form.n > DENSE)
    value, _ = joint.worst(lam, a.shift, a.rho)
    form = joint.form
    value -= 1e-10 * (abs(value) + joint.length * np.abs(a.shift).sum())
    certificate = {"method": "joint", "shift": a.shift.copy(), "rho": a.rho, "eigenvalues": lam}
    return Bound(round_up(value, form.lattice > 0, form.lattice or 1.0), "joint", "full", certificate)


class _Ascent:
    """Subgradient ascent on shift and rho; degrees scale the steps."""

    def __init__(self, joint: _Joint, seed: int) -> None:
        self.joint = joint
        degree = joint.laplacian.diagonal()
        mean = max(float(degree.mean()), 1e-300)
        self.scaling = degree / mean + 0.15
        self.shift, self.rho = np.zeros(joint.form.n), 0.0
        self.best_shift, self.best_rho, self.best = self.shift, self.rho, -np.inf
        self.direction, self.rho_direction = np.zeros(joint.form.n), 0.0
        self.scale, self.stalled, self.returned = 1.0, 0, False
        self.tracker = Tracker(joint.form.n, min(joint.rank + SPARE, joint.form.n), seed)

    @property
    def exhausted(self) -> bool:
        """True once the steps have become too short to matter."""
        return self.scale < 0.01

    def advance(self, upper: float, should_stop: ShouldStop) -> None:
        """Evaluate, note the best, step; six steps without gain: back to the best, with half the step length."""
        joint = self.joint
        a = Shifted(joint.laplacian, self.shift, self.rho)
        lam, vectors = (v[..., : joint.rank] for v in self.tracker.pairs(a, should_stop))
        value, at = joint.worst(lam, self.shift, self.rho)
        if self.returned:  # the value noted there may have been too high: Ritz values are upper estimates
            self.best, self.returned = value, False
        elif value > self.best:
            self.best, self.best_shift, self.best_rho, self.stalled = value, self.shift, self.rho, 0
        else:
            self.stalled += 1
        if self.stalled >= 6:
            self.scale *= 0.5
            self._return()
        else:
            self._step(lam, vectors, at, value, min(upper, self.best + 0.3 * abs(self.best)))

    def _return(self) -> None:
        """Go back to the best multipliers, without momentum."""
        self.stalled, self.returned = 0, True
        self.shift, self.rho = self.best_shift, self.best_rho
        self.direction, self.rho_direction = np.zeros(len(self.shift)), 0.0

    def _step(self, lam: FloatArray, vectors: FloatArray, at: int, value: float, target: float) -> None:
        """Polyak step with momentum along the supergradient at size vertex ``at``."""
        joint = self.joint
        sigma = joint.sigma[at]
        weight = np.zeros(len(lam))
        weight[: len(sigma)] = sigma[: len(lam)]
        weight[-1] += sigma[len(lam) :].sum()
        gradient = (vectors * vectors) @ weight - joint.length
        rho_gradient = float(vectors.sum(axis=0) ** 2 @ weight) / joint.form.n - joint.drift[at]
        self.direction = self.scaling * gradient + 0.6 * self.direction
        self.rho_direction = rho_gradient / joint.form.n + 0.6 * self.rho_direction
        slope = float(self.direction @ gradient) + self.rho_direction * rho_gradient
        if slope <= 0:
            self._return()
            return
        length = self.scale * max(target - value, 0.01 * abs(self.best)) / slope
        self.shift = self.shift + length * self.direction
        self.rho = max(0.0, self.rho + length * self.rho_direction)
