"""The projection bound of Hadley, Rendl and Wolkowicz with a tuned diagonal, for one node per core.

Pad the traffic S with idle nodes to k = number of usable cores, add a diagonal shift t (free: the distance of a core
to itself is 0) and split permutations into the part along e = (1..1) and the part V orthogonal to it:

``2 cost >= <lambda(V'(S + diag t)V), mu(V'DV)>_- + 2/k <S e + t, D e>_- - (e'Se + e't)(e'De)/k^2``

``<a, b>_-`` is the least scalar product over all orders of b. On a mesh D is the squared Euclidean distance of unary
codes (one coordinate per line between rows or columns, scaled by the root of the line's weight), so V'DV has only
rows + columns - 2 non-zero eigenvalues, all negative, and only as many of the largest traffic eigenvalues count.
A constant ``step`` between different cores is taken out first: it is paid by all traffic.

The bound is concave in t: subgradient ascent with Polyak steps, stoppable at any time. t is the certificate. Lanczos
values only steer the ascent; what is reported comes from a dense eigen-decomposition of the shifted, projected
traffic, less a margin for its rounding error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nmsolve.model.bound import Bound, round_up
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray
from nmsolve.solvers.mapping.bounds.codes import core_codes
from nmsolve.solvers.mapping.bounds.guide import UNGUIDED, Guide
from nmsolve.solvers.mapping.bounds.pairs import PairForm, pair_form, refuses_pairs

#: Dense eigen-decompositions up to this many cores.
MAX_SIDE = 2048
#: Without a good mapping at hand the ascent aims at this part of a random placement's mean cost, or 10 % higher.
TARGET = 0.15
#: Supergradients below this part of the distances (both squared) are rounding, and a step along them would have any length.
FLAT = 1e-20
#: From this many cores on, the ascent takes eigenvectors from Lanczos.
LANCZOS_FROM = 400


def refuses_projection(problem: MappingProblem) -> str | None:
    """Why the bound cannot take the problem, or None."""
    reason = refuses_pairs(problem)
    if reason:
        return reason
    if not problem.one_per_core:
        return "cores can hold several nodes"
    usable = int(problem.machine.usable.sum())
    if not 2 <= usable <= MAX_SIDE or problem.n > usable:
        return f"{usable} usable cores (takes 2 to {MAX_SIDE}, no fewer than nodes)"
    return None


@dataclass(frozen=True)
class _Mesh:
    """Distances in the form the bound needs: ``mu`` (r,) non-zero eigenvalues of V'DV, ascending; ``reach`` (k,) = D e."""

    k: int
    mu: FloatArray
    reach: FloatArray
    base: float


def projection_bounds(problem: MappingProblem, guide: Guide = UNGUIDED, rounds: int = 300) -> Iterator[Bound]:
    """Ever better projection bounds: the first after one step, then whenever the number of steps (``rounds`` at most) doubles."""
    form = pair_form(problem)
    mesh = _mesh(form)
    traffic = _padded(form, mesh.k)
    best = -np.inf
    due = 1
    ascent = _Ascent(traffic, mesh)
    for step in range(1, rounds + 1):
        ascent.advance(guide.upper())
        stopping = guide.should_stop() or step == rounds or ascent.exhausted
        if step == due or stopping:
            due *= 2
            value = certified_value(traffic, ascent.best_shift, mesh)
            if value > best:
                best = value
                rounded = round_up(value, form.lattice > 0, form.lattice or 1.0)
                yield Bound(
                    rounded, "projection", "full", {"method": "projection", "shift": ascent.best_shift.copy()}
                )
        if stopping:
            return


def _mesh(form: PairForm) -> _Mesh:
    """Spectrum and row sums of the distances without the constant step."""
    k, d = len(form.cores), form.distance
    mu: FloatArray
    reach = np.concatenate([block.sum(axis=1) for _, block in form.blocks()]) - d.step * (k - 1)
    if d.separable:
        code = core_codes(d, form.cores)
        code = code - code.mean(axis=0)
        mu = -2.0 * np.linalg.eigvalsh(code.T @ code)[::-1]
    else:
        dense = np.concatenate([block for _, block in form.blocks()])
        dense -= d.step
        np.fill_diagonal(dense, 0.0)
        reach = dense.sum(axis=1)
        mu = np.sort(np.linalg.eigvalsh(project(dense)))
    keep = np.abs(mu) > 1e-13 * np.abs(mu).max(initial=0.0)
    return _Mesh(k, mu[keep], reach, form.distance.step * form.total)


def _padded(form: PairForm, k: int) -> FloatArray:
    """(k, k) dense traffic with idle nodes at the end."""
    traffic = np.zeros((k, k))
    traffic[form.rows(), form.indices] = form.weights
    return traffic


def project(a: FloatArray) -> FloatArray:
    """``V' a V`` (k-1, k-1) for the orthonormal complement V of (1..1) that a Householder reflection gives."""
    k = len(a)
    v = np.full(k, 1 / np.sqrt(k))
    v[0] += 1.0
    v *= np.sqrt(2.0) / np.linalg.norm(v)
    av = a @ v
    h = a - np.outer(av, v) - np.outer(v, av) + (v @ av) * np.outer(v, v)
    out: FloatArray = h[1:, 1:]
    return out


def certified_value(traffic: FloatArray, shift: FloatArray, mesh: _Mesh) -> float:
    """The bound at one shift from a dense eigen-decomposition, less a margin for rounding (units of the objective)."""
    k, mu = mesh.k, mesh.mu
    a = traffic + np.diag(shift)
    lam = np.linalg.eigvalsh(project(a))
    paired = np.zeros(k - 1)
    paired[np.argsort(-_spread(mu, k - 1), kind="stable")] = lam
    quadratic = float((paired * _spread(mu, k - 1)).sum())
    load = a.sum(axis=1)
    linear = 2 / k * float(np.sort(load) @ np.sort(mesh.reach)[::-1])
    constant = load.sum() * mesh.reach.sum() / k**2
    eps = 8 * k * np.finfo(float).eps
    size = np.linalg.norm(a) * np.abs(mu).sum() + np.abs(lam).sum() * np.abs(mu).max(initial=0.0)
    margin = eps * (size + abs(linear) + abs(constant))
    return mesh.base + 0.5 * float(quadratic + linear - constant - margin)


def _spread(mu: FloatArray, length: int) -> FloatArray:
    """``mu`` filled up with zeros to ``length``."""
    return np.concatenate([mu, np.zeros(length - len(mu))])


class _Ascent:
    """Subgradient ascent on the diagonal shift; ``best_shift`` is the best by the (uncertified) value."""

    def __init__(self, traffic: FloatArray, mesh: _Mesh) -> None:
        self.traffic, self.mesh = traffic, mesh
        self.order = np.argsort(-mesh.reach, kind="stable")
        pairs = max(1, mesh.k * (mesh.k - 1))
        self.average = mesh.base + float(traffic.sum() * mesh.reach.sum()) / (2 * pairs)
        self.shift = np.zeros(mesh.k)
        self.best_shift = self.shift
        self.best = -np.inf
        self.direction = np.zeros(mesh.k)
        self.scale = 1.0
        self.stalled = 0
        self.start: FloatArray | None = None

    @property
    def exhausted(self) -> bool:
        """True once the steps have become too short to matter."""
        return self.scale < 1e-3

    def advance(self, upper: float) -> None:
        """Evaluate at the shift, note the best, and step."""
        value, gradient = self._evaluate(self.shift)
        if not np.isfinite(self.best) or value > self.best + 1e-7 * abs(self.best):
            self.best, self.best_shift, self.stalled = value, self.shift, 0
        else:
            self.stalled += 1
            if self.stalled >= 12:
                self.scale, self.stalled = self.scale * 0.6, 0
                self.shift, self.direction = self.best_shift, np.zeros(self.mesh.k)
                return
        gradient = gradient - gradient.mean()
        self.direction = gradient + 0.6 * self.direction
        target = min(upper, max(1.1 * self.best, TARGET * self.average))
        norm = float(self.direction @ self.direction)
        if norm > FLAT * float(self.mesh.reach @ self.mesh.reach):
            length = self.scale * max(target - value, 1e-3 * abs(self.best)) / norm
            self.shift = self.shift + length * self.direction

    def _evaluate(self, shift: FloatArray) -> tuple[float, FloatArray]:
        mesh, k = self.mesh, self.mesh.k
        load = self.traffic.sum(axis=1) + shift
        by_load = np.argsort(load, kind="stable")
        reach = np.empty(k)
        reach[by_load] = mesh.reach[self.order]
        lam, mu, vectors = self._extreme(shift)
        total = mesh.reach.sum()
        value = float(lam @ mu) + 2 / k * float(load @ reach) - load.sum() * total / k**2
        gradient = (vectors * vectors) @ mu + 2 / k * reach - total / k**2
        return mesh.base + 0.5 * value, 0.5 * gradient

    def _extreme(self, shift: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The traffic eigenvalues that meet a non-zero mu, those mu, and the (k, r) eigenvectors."""
        from scipy.linalg import eigh
        from scipy.sparse.linalg import LinearOperator, eigsh

        mesh, k = self.mesh, self.mesh.k
        a = self.traffic + np.diag(shift)
        r = len(mesh.mu)
        if r == 0:
            return mesh.mu, mesh.mu, np.zeros((k, 0))
        one_sided = bool((mesh.mu <= 0).all())
        if one_sided and k >= LANCZOS_FROM and 4 * r < k:
            low = 2.0 * np.abs(a).sum(axis=1).max()

            def apply(x: FloatArray) -> FloatArray:
                flat = x - x.mean()
                y = a @ flat
                out: FloatArray = y - y.mean() - low * x.mean()
                return out

            op = LinearOperator((k, k), matvec=apply, dtype=np.float64)
            start = np.cos(np.arange(k) * 1.7) if self.start is None else self.start
            lam, vectors = eigsh(op, r, which="LA", tol=1e-3, v0=start)
            order = np.argsort(lam)
            lam, vectors = lam[order], vectors[:, order]
            self.start = vectors.sum(axis=1)
            return lam, np.sort(mesh.mu)[::-1], vectors
        mean = a.mean(axis=0)
        a = a - mean - mean[:, None] + mean.mean() - 2.0 * np.abs(a).sum(axis=1).max() / k
        if one_sided and r < k - 1:
            lam, vectors = eigh(a, subset_by_index=(k - r, k - 1))
            return lam, np.sort(mesh.mu)[::-1], vectors
        lam, vectors = np.linalg.eigh(a)
        mu = np.sort(_spread(mesh.mu, k - 1))[::-1]
        return lam[1:], mu, vectors[:, 1:]
