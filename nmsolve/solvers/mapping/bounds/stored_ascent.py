"""The eigenvalue bounds of graphs on disk: the ascent of :mod:`.ascent` with two blocks of vectors and few passes.

Vectors are in single precision and filtered in place; scalar products are summed in double precision. The certificate is that
of graphs in memory: Ritz values, residuals, and a bound on the complement by random vectors (:mod:`.eigen`), here more of them,
as reading costs more than multiplying.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from nmsolve.model.bound import Bound
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import AnyArray, FloatArray, IntArray
from nmsolve.solvers.mapping.bounds.ascent import (
    SPARE,
    Laplacian,
    Spectral,
    SpectralAscent,
    certified_bound,
    climb,
    follow,
    laplacian_of,
)
from nmsolve.solvers.mapping.bounds.bound_context import BoundContext
from nmsolve.solvers.mapping.bounds.chebyshev import StoppedError
from nmsolve.solvers.mapping.bounds.eigen import DENSE, FRESH, LANES, NEAR, bordered_eigenvalues, stated
from nmsolve.solvers.mapping.bounds.nets import ChargedEdges
from nmsolve.solvers.mapping.bounds.pairs import ShouldStop
from nmsolve.solvers.mapping.bounds.stored import (
    CHUNK,
    Connections,
    StoredLaplacian,
    StoredShifted,
    held_bytes,
    products,
    turned,
)

#: States what stays fixed during the ascent, for a Laplacian.
Form = Callable[[Laplacian], Spectral | None]
#: Most vectors; enough where connections could not be held beside more; and numbers in all beyond which those are enough, too.
WIDTH, ENOUGH, NUMBERS = 5 * LANES, 3 * LANES, 1 << 23
#: Degree of the filter of a step, and of those before a certificate; at most this many of these.
DEGREE, SETTLING, PASSES = 12, 30, 3
#: Filters raise the smallest eigenvectors at most by e to this.
RAISED = 9.0
#: Random vectors, and a size: that all of their parts along one direction are smaller has probability < 2e-13.
VECTORS, SMALL = 8, 0.03
#: Steps, and part of the time, after which the first certificate is made: it takes longer than they do.
LATE = 1, 0.25
#: The proof ends with this many times the seconds of one of its passes left, and this part of the time.
ENDING, UNUSED = 4, 0.03
#: A certificate is exact for this part of the eigenvalues only, the smallest ones.
EXACT_PART = 0.65
#: Bytes per node of everything else, and bytes that must stay free.
NODE_BYTES, LEAST = 256, 24 << 20
#: Most connections of a shard that is decoded, and bytes of each.
SHARD, DECODED = 1 << 18, 24
#: Bytes of each while it is seen what it counts in its message.
CHARGED = 16


def stored_bounds(problem: MappingProblem, form: Form, context: BoundContext, rounds: int) -> Iterator[Bound]:
    """Ever better bounds of a graph on disk, by at most ``rounds`` steps, within the memory of ``context``."""
    graph: Connections = problem.graph
    began, of_messages = context.clock(), 0
    try:
        if problem.uses_nets:
            graph = ChargedEdges.of(problem, context.should_stop)
            of_messages = 8 * len(graph.share) + SHARD * CHARGED
        if problem.n <= DENSE:
            fixed = form(_small(graph, context.should_stop))
            if fixed is not None:
                yield from climb(fixed, context._replace(duals=None), rounds)
            return
        reading = SHARD * DECODED * (1 + context.workers) + of_messages
        free = context.memory()
        room = np.inf if free is None else free - LEAST - NODE_BYTES * graph.n
        most = (
            int(min((room - reading) / (8 * graph.n), 1e6)) // LANES * LANES
        )  # two blocks of single precision
        if most < 2 * LANES:
            return
        width = min(most, WIDTH if WIDTH * graph.n <= NUMBERS else ENOUGH)
        if held_bytes(graph) > room - max(reading, 8 * graph.n * width):
            width = min(width, ENOUGH)
        held = room - max(reading, 8 * graph.n * width)  # connections are read before there are vectors
        laplacian = StoredLaplacian.of(graph, context.workers, held, context.core, context.should_stop)
        fixed = form(laplacian)
        if fixed is None or not np.isfinite(laplacian.degree).all() or not laplacian.degree.any():
            return
        tracker = StoredTracker(laplacian, min(fixed.rank + SPARE, width - 5), context)
        ascent = SpectralAscent(fixed, context.seed, None, None, tracker)
        certify = partial(_certify, fixed, ascent, laplacian.order, context, began)
        yield from follow(ascent, certify, False, context.after(began), rounds, LATE)
    except (
        StoppedError,
        np.linalg.LinAlgError,
    ):  # the latter where numbers leave the range of single precision
        return


def _small(graph: Connections, should_stop: ShouldStop) -> Laplacian:
    """Return the Laplacian in memory of a graph of few nodes, whose matrix is no larger than a shard."""
    n = graph.n
    traffic = np.zeros((n, n))
    for rows in graph.blocks():
        if should_stop():
            raise StoppedError
        source = np.repeat(rows.source, np.diff(rows.indptr))
        np.add.at(traffic, (source, rows.targets), rows.weights)
    np.fill_diagonal(traffic, 0.0)
    traffic += traffic.T
    row, column = np.nonzero(traffic)
    return laplacian_of(n, row, column, traffic[row, column])


class StoredTracker:
    """Ritz pairs near the smallest eigenvalues of a Laplacian on disk that is shifted, from step to step.

    Attributes
    ----------
    vectors, other : (n, width) float32; what filters use is the other
    theta : (width,) Ritz values, rising; residual (width, width) the scalar products of their residuals
    """

    def __init__(self, laplacian: StoredLaplacian, count: int, context: BoundContext) -> None:
        n = laplacian.shape[0]
        self.count, self.seed = count, context.seed
        width = min(n, -(-(count + 5) // LANES) * LANES)
        rng = np.random.default_rng(context.seed)
        self.vectors: AnyArray = rng.standard_normal((n, width), np.float32)
        self.other: AnyArray = np.zeros_like(self.vectors)
        self.passes = FRESH
        if context.core is not None and len(np.unique(context.core)) <= DENSE:
            _smooth(laplacian, context.core[laplacian.order], self.vectors)
            self.passes = NEAR
        self.high = 0.0
        self.theta, self.residual = np.zeros(width), np.zeros((width, width))
        self.last: StoredShifted | None = None

    @property
    def block(self) -> AnyArray:
        """(n, width) the vectors."""
        return self.vectors

    @block.setter
    def block(self, vectors: AnyArray) -> None:
        """Go on from the vectors at hand, which are near: there is no room to keep those of earlier steps."""
        self.passes, self.last = NEAR, None

    def pairs(self, a: StoredShifted, should_stop: ShouldStop) -> tuple[FloatArray, AnyArray]:
        """Return (count,) Ritz values, rising, and (n, count) vectors. Raises StoppedError."""
        del should_stop  # the Laplacian asks
        for _ in range(self.passes):
            self.improve(a, DEGREE)
        self.passes = 1
        return self.theta[: self.count], self.vectors[:, : self.count]

    def improve(self, a: StoredShifted, degree: int) -> None:
        """Filter the block, make it orthonormal, turn it into Ritz vectors: ``degree`` passes and one. Raises StoppedError."""
        if self.last is None:
            self.high = a.largest(self.seed)
            self._ritz(a)
        elif self.last is not a:
            self.high = min(self.high + a.growth(self.last), a.ceiling())
        self.last = a
        low, least = float(self.theta[-1]), float(self.theta[0])
        if self.high > low:
            steep = float(np.arccosh(1 + 2 * (low - least) / (self.high - low)))
            degree = max(2, min(degree, int(RAISED / max(steep, 1e-300))))
            self.vectors, self.other = a.filtered(self.vectors, self.other, low, self.high, degree)
        self._ritz(a)

    def _ritz(self, a: StoredShifted) -> None:
        a.times(self.vectors, self.other)
        x, y = self.vectors, self.other
        gram, inside, image = products((x, x), (x, y), (y, y))
        size, axes = np.linalg.eigh(gram)
        whiten = axes / np.sqrt(np.maximum(size, 1e-13 * size[-1]))
        self.theta, turn = np.linalg.eigh(whiten.T @ (inside + inside.T) @ whiten / 2)
        turn = whiten @ turn
        turned(x, turn)
        residual = turn.T @ image @ turn - np.diag(self.theta**2)
        self.residual = (residual + residual.T) / 2


def _smooth(laplacian: StoredLaplacian, core: IntArray, block: AnyArray) -> None:
    """Overwrite the first vectors of ``block`` (n, b) with the smoothest ones that are constant on parts of ``core`` (n,)."""
    parts, of = np.unique(core, return_inverse=True)
    traffic = laplacian.between(of, len(parts))
    weight = 1.0 / np.sqrt(np.bincount(of))
    between = (np.diag(traffic.sum(axis=1)) - traffic) * weight[:, None] * weight
    known = (np.linalg.eigh(between)[1] * weight[:, None])[:, : block.shape[1]]
    for first in range(0, len(block), CHUNK):
        part = slice(first, first + CHUNK)
        block[part, : known.shape[1]] = (
            known[of[part]] + 1e-3 / np.sqrt(len(of)) * block[part, : known.shape[1]]
        )
    block[:, known.shape[1] :] /= np.sqrt(np.float32(len(of)))


def _certify(
    spectral: Spectral, ascent: SpectralAscent, order: IntArray, context: BoundContext, began: float
) -> Bound:
    """Return the bound at the ascent's best multipliers with certain eigenvalue bounds; node i is ``order[i]`` outside.

    Vectors improve while that changes much and leaves time for the proof, whose length follows from what is left then.
    """
    tracker = ascent.tracker
    assert isinstance(tracker, StoredTracker)
    a = spectral.operator(ascent.best_shift, ascent.best_rho)
    tracker.block = tracker.vectors
    before = np.inf
    for _ in range(PASSES):
        now = context.clock()
        tracker.improve(a, SETTLING)
        took, left = context.clock() - now, context.remaining(context.clock() - began)
        mean = float(tracker.theta[: tracker.count].mean())
        if left < 4 * took or before - mean < 0.01 * float(
            tracker.theta[tracker.count - 1] - tracker.theta[0]
        ):
            break
        before = mean
    last = context.clock()

    def late() -> bool:
        """Return whether there is no time for another pass; asked before each."""
        nonlocal last
        now, before = context.clock(), last
        last = now
        return context.remaining(now - began) < ENDING * (now - before) + UNUSED * min(context.seconds, 1e9)

    wanted = int(np.ceil(EXACT_PART * min(spectral.rank, tracker.count)))
    lam = lower_eigenvalues(a, tracker, wanted, context.seed, late)[: min(spectral.rank, tracker.count)]
    return certified_bound(spectral, stated(lam, spectral.n, tracker.high), a.shift, a.rho, order)


def lower_eigenvalues(
    a: StoredShifted, tracker: StoredTracker, wanted: int, seed: int, late: Callable[[], bool]
) -> FloatArray:
    """Return (width,) certain lower bounds, rising, on the smallest eigenvalues; the first ``wanted`` lose little.

    Where it gets ``late``, they lose more. Raises StoppedError.
    """
    theta, q = tracker.theta, tracker.vectors
    size, axes = np.linalg.eigh(tracker.residual)
    residual = (axes * np.sqrt(np.maximum(size, 0.0))).T
    low, high = float(theta[-1]), tracker.high
    spare = max(low - float(theta[wanted - 1]), 2e-3 * float(np.abs(theta).mean()), 1e-5 * (high - low))
    degree = int(np.log(2 * np.sqrt(len(q)) / SMALL) * np.sqrt((high - low) / (4 * spare))) + 10
    floor = low - complement_margin(a, q, low, high, degree, seed, late)
    rounding = 1e-12 * (abs(high) + abs(float(theta[0])))
    return bordered_eigenvalues(theta, residual, floor) - rounding


def complement_margin(
    a: StoredShifted,
    q: AnyArray,
    low: float,
    high: float,
    degree: int,
    seed: int,
    late: Callable[[], bool],
) -> float:
    """Return how far below ``low`` an eigenvalue of A on the complement of ``q`` (n, r) can be.

    The polynomial has this degree, or a lower one where it gets ``late``: any will do. Raises StoppedError.
    """
    now = np.random.default_rng(seed).standard_normal((len(q), VECTORS))
    _cleared(q, now)
    half, centre = (high - low) / 2, (high + low) / 2
    before, reached = np.zeros_like(now), 0
    while reached < degree and not (reached and late()):
        a.step(now, before, centre, (2 if reached else 1) / half)
        before, now = now, before
        _cleared(q, now)
        reached += 1
    norm = float(np.linalg.norm(now, axis=0).max())
    if not np.isfinite(norm):
        return float("inf")
    return float((np.cosh(np.arccosh(max(1.0, norm / SMALL)) / reached) - 1) * half)


def _cleared(q: AnyArray, x: FloatArray) -> None:
    """Take from ``x`` (n, b) what lies along the orthonormal ``q`` (n, r), in place."""
    (inside,) = products((q, x))
    for first in range(0, len(x), CHUNK):
        part = slice(first, first + CHUNK)
        x[part] -= q[part] @ inside
