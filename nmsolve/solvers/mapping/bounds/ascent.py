"""Ascent of the eigenvalue bounds for many nodes per core: multipliers that raise them, and certificates.

Both bounds (:mod:`.partition_placement`, :mod:`.parts`) have the form
``sum_i lambda_i(A) sigma_i(m) - omega sum t - rho drift(m)``, least over the vertices m of the admissible part sizes,
with A = L + diag t + rho ee'/n. Any t and rho >= 0 are valid; subgradient steps make them good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from scipy.sparse import csr_array, diags_array

from nmsolve.model.bound import Bound, round_up
from nmsolve.model.types import AnyArray, FloatArray, Int32Array, IntArray
from nmsolve.solvers.mapping.bounds.bound_context import CLOSE, BoundContext, Duals, predicted_multipliers
from nmsolve.solvers.mapping.bounds.chebyshev import Shifted, StoppedError
from nmsolve.solvers.mapping.bounds.eigen import DENSE, FRESH, Tracker, lower_eigenvalues, stated
from nmsolve.solvers.mapping.bounds.pairs import ShouldStop
from nmsolve.solvers.mapping.bounds.stored import StoredLaplacian, StoredShifted

#: Of symmetric traffic, in memory or on disk.
Laplacian = csr_array | StoredLaplacian
#: Most eigenvalues computed; the rest count as the last of them.
MAX_EIGENVALUES = 40
#: More than are used: room for the error of the last one.
SPARE = 3
#: The last certificate is begun while there is this many times the time that the one before took.
SURE = 1.75
#: The first one is not worth its time before this many steps, unless half of the time is over.
FEW = 4
#: On networks of more nodes time counts more than the last percent: no multipliers are predicted where eigenvectors begin near
#: by, and a certificate is exact for this part of the eigenvalues only, the smallest ones.
LARGE, EXACT_PART = 10_000, 0.75
#: A step that loses this part of the best value was far too long.
LOST = 0.5
#: Rows of vectors that are looked at at once.
ROWS = 1 << 16
#: Steps aim at least at this part of :attr:`Spectral.worth` above the best value, which may be 0 for long.
LEAST = 0.005


@dataclass(frozen=True)
class Spectral:
    """Everything that stays fixed during the ascent.

    Attributes
    ----------
    method : name of the bound
    laplacian : (n, n) of the symmetric traffic, in memory or on disk
    sigma : (v, lines) eigenvalues, falling, that belong to every size vertex
    drift : (v,) what rho is paid for at every size vertex
    length : omega, what every unit of shift costs
    lattice : the objective is a multiple of this; 0 if unknown
    """

    method: str
    laplacian: Any
    sigma: FloatArray
    drift: FloatArray
    length: float
    lattice: float

    @property
    def n(self) -> int:
        """Number of nodes."""
        return int(self.laplacian.shape[0])

    def numbered(self, order: IntArray) -> Spectral:
        """Return the same with node ``order[i]`` (n,) as node i."""
        laplacian = csr_array(self.laplacian[order][:, order])
        laplacian.sort_indices()
        return replace(self, laplacian=laplacian)

    def operator(self, shift: FloatArray, rho: float) -> Any:
        """Return the Laplacian with these multipliers, ``shift`` (n,)."""
        if isinstance(self.laplacian, StoredLaplacian):
            return StoredShifted(self.laplacian, shift, rho)
        return Shifted(self.laplacian, shift, rho)

    @property
    def rank(self) -> int:
        """Number of eigenvalues that are computed."""
        return int(min(self.sigma.shape[1], MAX_EIGENVALUES, self.n))

    @property
    def worth(self) -> float:
        """Cost if all traffic left its core for the least that this costs, about: what values are measured by."""
        apart = float((self.sigma.sum(axis=1) - self.drift).min())
        return max(apart, 0.0) * float(self.laplacian.diagonal().mean())

    def values(self, lam: FloatArray, shift: FloatArray, rho: float) -> FloatArray:
        """Return (v,) the value of every size vertex for eigenvalue bounds ``lam`` (count,); ``shift`` (n,), ``rho`` as given."""
        padded = np.concatenate([lam, np.full(max(0, self.sigma.shape[1] - len(lam)), lam[-1])])
        value = self.sigma @ padded[: self.sigma.shape[1]] - rho * self.drift
        return np.asarray(value - self.length * shift.sum(), np.float64)

    def worst(self, lam: FloatArray, shift: FloatArray, rho: float) -> tuple[float, int]:
        """Return the least of :meth:`values`, and the number of that vertex."""
        value = self.values(lam, shift, rho)
        at = int(value.argmin())
        return float(value[at]), at

    def weights(self, lam: FloatArray, at: int) -> FloatArray:
        """Return (count,) what each of the eigenvalues ``lam`` (count,) counts at size vertex ``at``."""
        sigma, out = self.sigma[at], np.zeros(len(lam))
        out[: len(sigma)] = sigma[: len(lam)]
        out[-1] += sigma[len(lam) :].sum()
        return out

    def slope(self, lam: FloatArray, vectors: FloatArray, at: int) -> tuple[FloatArray, float]:
        """Return the supergradient at size vertex ``at``: (n,) by the shift, and by rho.

        ``lam`` (count,) and ``vectors`` (n, count) are the eigenpairs of A.
        """
        weight = self.weights(lam, at)
        by_shift, sums = np.empty(self.n), np.zeros(len(lam))
        for first in range(0, self.n, ROWS):
            part = vectors[first : first + ROWS].astype(np.float64)
            by_shift[first : first + ROWS] = (part * part) @ weight - self.length
            sums += part.sum(axis=0)
        return by_shift, float(sums**2 @ weight) / self.n - float(self.drift[at])


def laplacian_of(n: int, row: IntArray, column: IntArray | Int32Array, weight: FloatArray) -> csr_array:
    """Return (n, n) Laplacian of symmetric traffic given by its entries (each pair twice)."""
    off = csr_array((-weight, (row, column)), shape=(n, n))
    out = csr_array(diags_array(np.bincount(row, weight, n).astype(np.float64)) + off)
    out.sort_indices()
    return out


def traffic_of(laplacian: csr_array) -> csr_array:
    """Return (n, n) the symmetric traffic that a Laplacian was made of."""
    traffic = csr_array(diags_array(laplacian.diagonal()) - laplacian)
    traffic.eliminate_zeros()
    return traffic


def climb(
    spectral: Spectral, context: BoundContext, rounds: int, begin: Begin | None = None
) -> Iterator[Bound]:
    """Ever better bounds: certified after 12, 24, 48 ... steps (small graphs: 1, 2, 4 ...) and at the end.

    The first certificate is made after a third of the context's time, but not before a few steps. ``rounds`` are steps at most.
    Nodes are numbered core by core of the context's mapping: neighbours are mostly near each other in memory then, which makes
    steps on 10^5 nodes twice as fast. ``begin`` makes another ascent than the usual one.
    """
    order, start = np.arange(spectral.n), None
    if context.core is not None and spectral.n > DENSE:
        order = np.argsort(context.core, kind="stable")
        spectral = spectral.numbered(order)
        if len(np.unique(context.core)) <= DENSE:
            start = smooth_parts(spectral.laplacian, context.core[order], spectral.rank + SPARE)
    duals = None if start is not None and spectral.n > LARGE else context.duals
    ascent: SpectralClimber
    if begin is None:
        ascent = SpectralAscent(spectral, context.seed, duals, start)
    else:
        ascent = begin(spectral, order, start)
    certify = partial(_certify, spectral, ascent, order, context)
    yield from follow(ascent, certify, spectral.n <= DENSE, context, rounds)


def smooth_parts(laplacian: csr_array, core: IntArray, count: int) -> FloatArray:
    """Return (n, at most ``count``) orthonormal vectors, constant on every part of ``core`` (n,), of the least ``x'Lx``."""
    parts, of = np.unique(core, return_inverse=True)
    weight = 1.0 / np.sqrt(np.bincount(of))[of]
    inside = csr_array((weight, (np.arange(len(of)), of)), shape=(len(of), len(parts)))
    between = (inside.T @ (laplacian @ inside)).toarray()
    out: FloatArray = inside @ np.linalg.eigh(between)[1][:, :count]
    return out


class Climber(Protocol):
    """An ascent on multipliers: ``best`` is the best value so far, not yet certain; ``exhausted`` that steps no longer matter."""

    @property
    def best(self) -> float:
        """The best value so far."""

    @property
    def exhausted(self) -> bool:
        """True once the steps have become too short to matter."""

    def advance(self, upper: float, should_stop: ShouldStop) -> None:
        """Evaluate, note the best, step. Raises StoppedError."""


class Pairs(Protocol):
    """Follows the eigenpairs of a matrix that changes little from call to call; see :class:`.eigen.Tracker`."""

    passes: int
    block: AnyArray

    def pairs(self, a: Any, should_stop: ShouldStop) -> tuple[FloatArray, AnyArray]:
        """Return Ritz values, rising, and orthonormal vectors. Raises StoppedError."""


class SpectralClimber(Climber, Protocol):
    """An ascent on shift and rho; ``best_block`` are the tracker's vectors at the best ones."""

    tracker: Pairs
    best_block: FloatArray

    @property
    def best_shift(self) -> FloatArray:
        """(n,) the best shift."""

    @property
    def best_rho(self) -> float:
        """The best rho."""


#: Makes an ascent from what stays fixed, the order (n,) in which it numbers the nodes, and vectors to begin with, if any.
Begin = Callable[[Spectral, IntArray, FloatArray | None], SpectralClimber]


def follow(
    ascent: Climber,
    certify: Callable[[], Bound],
    small: bool,
    context: BoundContext,
    rounds: int,
    late_from: tuple[int, float] = (FEW, 1 / 3),
) -> Iterator[Bound]:
    """Drive an ascent and certify its best multipliers now and then; arguments as in :func:`climb`.

    ``certify`` makes the bound at the best multipliers (raises StoppedError); ``small`` if that is cheap. ``late_from``: steps
    and part of the time after which the first certificate is due.
    """
    began = context.clock()
    best, certified = 0.0, -np.inf
    due, cost = (1 if small else 12), 0.0
    try:
        for step in range(1, rounds + 1):
            ascent.advance(context.upper(), context.should_stop)
            spent = context.clock() - began
            left = context.remaining(spent)
            ending = step == rounds or ascent.exhausted or left < SURE * cost
            few, part = late_from
            late = cost == 0.0 and (spent > part * context.seconds if step >= few else spent > left)
            if ascent.best > certified and (step >= due or ending or late):
                due, certified = max(due, 2 * step), ascent.best
                bound = certify()
                cost = context.clock() - began - spent
                if bound.value > best:
                    best = bound.value
                    yield bound
            if ending or context.should_stop():
                return
    except StoppedError:
        return


def _certify(spectral: Spectral, ascent: SpectralClimber, order: IntArray, context: BoundContext) -> Bound:
    """Return the bound at the ascent's best multipliers with certain eigenvalue bounds; node i is ``order[i]`` outside."""
    a = Shifted(spectral.laplacian, ascent.best_shift, ascent.best_rho)
    assert isinstance(ascent.tracker, Tracker)
    ascent.tracker.block = ascent.best_block
    _, vectors = ascent.tracker.settle(a, context.should_stop)
    wanted = int(np.ceil(EXACT_PART * spectral.rank)) if spectral.n > LARGE else spectral.rank
    lam = lower_eigenvalues(a, vectors, wanted, context.seed, context.should_stop)[: spectral.rank]
    return certified_bound(spectral, stated(lam, spectral.n, ascent.tracker.high), a.shift, a.rho, order)


def certified_bound(
    spectral: Spectral, lam: FloatArray, at: FloatArray, rho: float, order: IntArray
) -> Bound:
    """Return the bound with eigenvalue bounds ``lam`` (count,), rising, of the matrix with shift ``at`` (n,) and ``rho``.

    Node i is ``order[i]`` outside.
    """
    value, _ = spectral.worst(lam, at, rho)
    value -= 1e-10 * (abs(value) + spectral.length * np.abs(at).sum())
    shift = np.empty(spectral.n)
    shift[order] = at
    certificate = {"method": spectral.method, "shift": shift, "rho": rho, "eigenvalues": lam}
    return Bound(
        round_up(value, spectral.lattice > 0, spectral.lattice or 1.0), spectral.method, "full", certificate
    )


class SpectralAscent:
    """Subgradient ascent on shift and rho; degrees scale the steps."""

    def __init__(
        self,
        spectral: Spectral,
        seed: int,
        duals: Duals | None = None,
        start: FloatArray | None = None,
        tracker: Pairs | None = None,
    ) -> None:
        self.spectral = spectral
        degree = spectral.laplacian.diagonal()
        mean = max(float(degree.mean()), 1e-300)
        self.scaling = degree / mean + 0.15
        self.shift, self.rho = np.zeros(spectral.n), 0.0
        self.best_shift, self.best_rho, self.best = self.shift, self.rho, -np.inf
        self.direction, self.rho_direction = np.zeros(spectral.n), 0.0
        self.scale, self.stalled, self.returned = 1.0, 0, False
        self.tracker: Pairs = tracker or Tracker(
            spectral.n, min(spectral.rank + SPARE, spectral.n), seed, start
        )
        self.least_step = LEAST * spectral.worth
        self.duals = duals
        self.best_block = self.tracker.block
        #: while a prediction is tried: where the usual ascent would go on
        self.aside: tuple[FloatArray, float, FloatArray, float] | None = None

    @property
    def exhausted(self) -> bool:
        """True once the steps have become too short to matter."""
        return self.scale < 0.01

    def advance(self, upper: float, should_stop: ShouldStop) -> None:
        """Evaluate, note the best, step; six steps without gain or one far too long: back to the best, with half the length."""
        spectral = self.spectral
        a = spectral.operator(self.shift, self.rho)
        lam, vectors = (v[..., : spectral.rank] for v in self.tracker.pairs(a, should_stop))
        value, at = spectral.worst(lam, self.shift, self.rho)
        if self.aside is not None:
            aside, self.aside = self.aside, None
            if not value > self.best:
                self.shift, self.rho, self.direction, self.rho_direction = aside
                self.tracker.passes = FRESH
                return
            self.scale = CLOSE
        if self.returned:  # the value noted there may have been too high: Ritz values are upper estimates
            self.best, self.returned = value, False
        elif value > self.best:
            self.best, self.best_shift, self.best_rho, self.stalled = value, self.shift, self.rho, 0
            self.best_block = self.tracker.block
        else:
            self.stalled += 1
        if self.stalled >= 6 or value < self.best - LOST * abs(self.best):
            self.scale *= 0.5
            self.least_step *= 0.01  # where nothing is near what all traffic costs, it aims too high
            self._return()
        else:
            rise = max(0.3 * abs(self.best), self.least_step)
            self._step(lam, vectors, at, value, min(upper, self.best + rise))
        if self.duals is not None:
            self._jump(self.duals, spectral.slope(lam, vectors, at)[0])

    def _jump(self, duals: Duals, slope: FloatArray) -> None:
        """Go on from predicted multipliers if the next step finds them better, else as before; ``slope`` (n,) at 0."""
        spectral, self.duals = self.spectral, None
        found = predicted_multipliers(duals, traffic_of(spectral.laplacian), slope, spectral.rank)
        if found is not None:
            self.aside = (self.shift, self.rho, self.direction, self.rho_direction)
            self.shift, self.rho = found
            self.direction, self.rho_direction = np.zeros(len(self.shift)), 0.0
            self.tracker.passes = FRESH

    def _return(self) -> None:
        """Go back to the best multipliers and their eigenvectors, without momentum."""
        self.stalled, self.returned = 0, True
        self.tracker.block = self.best_block
        self.shift, self.rho = self.best_shift, self.best_rho
        self.direction, self.rho_direction = np.zeros(len(self.shift)), 0.0

    def _step(self, lam: FloatArray, vectors: FloatArray, at: int, value: float, target: float) -> None:
        """Make a Polyak step with momentum along the supergradient at size vertex ``at``."""
        spectral = self.spectral
        gradient, rho_gradient = spectral.slope(lam, vectors, at)
        self.direction = self.scaling * gradient + 0.6 * self.direction
        self.rho_direction = rho_gradient / spectral.n + 0.6 * self.rho_direction
        slope = float(self.direction @ gradient) + self.rho_direction * rho_gradient
        if slope <= 0:
            self._return()
            return
        length = self.scale * max(target - value, 0.01 * abs(self.best)) / slope
        self.shift = self.shift + length * self.direction
        self.rho = max(0.0, self.rho + length * self.rho_direction)
