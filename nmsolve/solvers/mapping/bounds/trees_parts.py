"""The parting bound of net objectives, with a weight for every terminal of every message.

The cores are alike, core p has the code ``sqrt(1/2) e_p``, and Y holds one code per node. With the pulls q of
:mod:`.trees_form`, ``sum_p a_p^2 = 2 |sum_v q_v y_v|^2``, so with L the Laplacian of the pairs

``cost / apart >= sum_i rate_i (2 sum_v q_v - 1) + trace(Y' A Y) - 1/2 sum t - rho drift``,
``A = L + diag t + rho ee'/n - 2 sum_i rate_i q_i q_i'``,

for every q, t and rho >= 0, and trace(Y'AY) is at least the sum of the smallest eigenvalues of A times the part sizes / 2,
falling (see :mod:`.parts`: one vector of sizes suffices). All of it is concave in (q, t, rho) together. At the best q a
message pulls each terminal by 1 / (terminals beside it), so that 30 targets on one core and one elsewhere count as two
cores; the equal weights that :mod:`.parts` gives its edges hardly see that.

Where a mapping is known, a bundle of cuts (:mod:`.bundle`) climbs, begun at what the mapping suggests: were it the best one, a
message would pull each terminal by 1 / (terminals on its core), and the shift would make up for what pulls take from a node.
Several scales of both are tried, and steps go on from the best. Without a mapping, or with too many pulls, subgradient steps do.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from nmsolve.hw.cost import core_distance, whole_costs
from nmsolve.model.bound import Bound, round_up
from nmsolve.model.mapping.features import LIMITS, takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.mapping.bounds.ascent import follow
from nmsolve.solvers.mapping.bounds.bound_context import UNLIMITED, BoundContext
from nmsolve.solvers.mapping.bounds.bundle import FEWEST_CUTS, MOST_NUMBERS, Bundle
from nmsolve.solvers.mapping.bounds.eigen import DENSE, Tracker, lower_eigenvalues, stated
from nmsolve.solvers.mapping.bounds.pairs import ShouldStop, pair_form, room_per_core
from nmsolve.solvers.mapping.bounds.parts import least_apart, refuses_parts
from nmsolve.solvers.mapping.bounds.trees_form import (
    Fixed,
    Nets,
    Pulled,
    nets_of,
    pull_degrees,
    pull_gradient,
)

#: Pulls that are tried first: these parts of what would be best if the mapping were the only one, levelled by EVEN in every
#: message; the shift is OWN of what the pulls of a core bring its nodes.
STARTS, EVEN, OWN = (0.5, 0.65, 0.8, 0.95), 0.4, 0.5
#: Steps of pulls are so much longer than the curvature of a message alone would have them.
LONGER = 5.0
#: Degree of the polynomial that follows the eigenvectors from step to step; vectors more than are used.
BUNDLE_DEGREE, SPARE = 6, 3


def fits(nets: Nets) -> bool:
    """Return whether cuts of all pulls and nodes are small enough to keep some of them."""
    return FEWEST_CUTS * (len(nets.terminals) + nets.n + 1) <= MOST_NUMBERS


class PullBundle:
    """A ``Climber`` of :mod:`.ascent` on pulls, shift and rho; ``core`` (n,) is the known mapping."""

    def __init__(self, fixed: Fixed, seed: int, core: IntArray) -> None:
        nets = fixed.nets
        self.fixed = fixed
        self.tracker = Tracker(nets.n, min(fixed.rank + SPARE, nets.n), seed, indicators(core), BUNDLE_DEGREE)
        self.starts = starts(nets, core)
        self.bundle: Bundle | None = None

    @property
    def best(self) -> float:
        """The best value so far, not yet certain."""
        return -np.inf if self.bundle is None else self.bundle.best

    @property
    def best_pull(self) -> FloatArray:
        """(terminals,) the pulls at the best point."""
        return self._centre()[: len(self.fixed.nets.terminals)]

    @property
    def best_shift(self) -> FloatArray:
        """(n,) the shift at the best point."""
        return self._centre()[len(self.fixed.nets.terminals) : -1]

    @property
    def best_rho(self) -> float:
        """Rho at the best point."""
        return float(self._centre()[-1])

    def _centre(self) -> FloatArray:
        return np.append(np.concatenate(self.starts[0]), 0.0) if self.bundle is None else self.bundle.centre

    @property
    def exhausted(self) -> bool:
        """True once no gain that matters is foretold."""
        return self.bundle is not None and self.bundle.exhausted

    def advance(self, upper: float, should_stop: ShouldStop) -> None:
        """Evaluate, keep cuts, go to the point that they foretell to be best; the first time, try all starts.

        ``upper`` is not looked at.
        """
        if self.bundle is None:
            values = [self._evaluate(pull, shift, 0.0, should_stop)[0] for pull, shift in self.starts]
            self.bundle = self._begun(*self.starts[int(np.argmax(values))])
        point, terminals = self.bundle.point, len(self.fixed.nets.terminals)
        pull, shift, rho = point[:terminals], point[terminals:-1], float(point[-1])
        value, lam, vectors = self._evaluate(pull, shift, rho, should_stop)
        self.bundle.judge(value)
        level = self.fixed.weights.copy()
        level[1:] = level[1:].mean() if len(level) > 1 else 0.0
        mixed = [self.fixed.weights, level]
        slope = np.array([self._slope(pull, vectors * np.sqrt(weights)) for weights in mixed])
        self.bundle.add(slope, value + np.array([float((w - self.fixed.weights) @ lam) for w in mixed]))
        self.bundle.advance()

    def _evaluate(
        self, pull: FloatArray, shift: FloatArray, rho: float, should_stop: ShouldStop
    ) -> tuple[float, FloatArray, FloatArray]:
        """Return the value at these multipliers, and the eigenpairs (rank,), (n, rank) that it is made of."""
        pairs = self.tracker.pairs(Pulled(self.fixed.nets, pull, shift, rho), should_stop)
        lam, vectors = (v[..., : self.fixed.rank] for v in pairs)
        return self.fixed.value(lam, pull, shift, rho), lam, vectors

    def _begun(self, pull: FloatArray, shift: FloatArray) -> Bundle:
        """Return a bundle that begins at this start; steps are scaled by the curvature that messages give."""
        nets = self.fixed.nets
        degree, total = pull_degrees(nets.n, nets.indptr, nets.terminals, pull, nets.rate)
        degree = degree + nets.laplacian.diagonal()
        bend = LONGER * 3.0 * pull / (np.repeat(total, nets.size) * np.repeat(nets.rate, nets.size))
        mean = float(degree.mean())
        scaling = np.concatenate([bend, 2 * (degree + 0.15 * mean), [2 * mean / nets.n]])
        return Bundle(np.append(np.concatenate([pull, shift]), 0.0), scaling)

    def _slope(self, pull: FloatArray, codes: FloatArray) -> FloatArray:
        """Return how the value changes with pulls, shift and rho where ``codes`` (n, rank) are the relaxed codes."""
        nets, codes = self.fixed.nets, np.ascontiguousarray(codes)
        by_pull = np.empty(len(pull))
        pull_gradient(nets.indptr, nets.terminals, pull, nets.rate, codes, by_pull)
        total = codes.sum(axis=0)
        by_rho = float(total @ total) / nets.n - self.fixed.drift
        return np.concatenate([by_pull, (codes * codes).sum(axis=1) - 0.5, [by_rho]])


def starts(nets: Nets, core: IntArray) -> list[tuple[FloatArray, FloatArray]]:
    """Return pulls (terminals,) and shifts (n,) to begin with; see the module's text."""
    net = np.repeat(np.arange(len(nets.rate)), nets.size)
    beside = np.unique(net * (int(core.max(initial=0)) + 1) + core[nets.terminals], return_inverse=True)[1]
    alone = 1.0 / np.bincount(beside)[beside] if len(beside) else np.zeros(0)
    level = (np.bincount(net, alone, len(nets.rate)) / np.maximum(1, nets.size))[net]
    pull = (1.0 - EVEN) * alone + EVEN * level
    brought = np.bincount(nets.terminals, 2.0 * nets.rate[net] * pull, nets.n) + nets.laplacian.diagonal()
    return [(part * pull, OWN * part * brought) for part in STARTS]


def indicators(core: IntArray) -> FloatArray:
    """Return (n, parts) one column per part, 1 on its nodes; the largest parts first."""
    of = np.unique(core, return_inverse=True)[1]
    order = np.argsort(-np.bincount(of), kind="stable")
    return np.asarray(of[:, None] == order[None, :], np.float64)


METHOD = "tree-parts"
#: Degree of the polynomial that follows the eigenvectors from step to step.
DEGREE = 8
#: At first a message is assumed to reach this many cores.
CORES = 1.2
#: Steps aim at least at this part of the way to the best known cost.
AMBITION = 0.1
#: Decimal places of the pulls in a certificate.
PLACES = 5


#: Why the bound cannot take a problem, or None.
refuses_tree_parts = takes(f"trees reach {LIMITS}", refuses_parts)


def tree_parts_bounds(
    problem: MappingProblem, context: BoundContext = UNLIMITED, rounds: int = 300
) -> Iterator[Bound]:
    """Ever better bounds, by at most ``rounds`` steps; eigenvectors start from the parts of the context's mapping."""
    apart = least_apart(problem, pair_form(problem))
    if apart <= 0:
        return
    room = room_per_core(problem)
    full, rest = divmod(problem.n, room)
    sizes = np.array([room] * full + [rest] * (rest > 0), np.float64)
    whole = whole_costs(problem, core_distance(problem))
    drift = float((sizes**2).sum()) / (2 * problem.n)
    fixed = Fixed(nets_of(problem), sizes / 2, drift, apart, float(whole))
    ascent: _Ascent | PullBundle
    if context.core is not None and fits(fixed.nets):
        ascent = PullBundle(fixed, context.seed, context.core)
    else:
        ascent = _Ascent(fixed, context.seed, context.core)
    goal = context._replace(upper=lambda: context.upper() / apart)
    yield from follow(ascent, partial(_certify, fixed, ascent, context), problem.n <= DENSE, goal, rounds)


def _certify(fixed: Fixed, ascent: _Ascent | PullBundle, context: BoundContext) -> Bound:
    """Return the bound at the ascent's best multipliers, pulls rounded, with certain eigenvalue bounds."""
    pull = np.round(ascent.best_pull, PLACES)
    a = Pulled(fixed.nets, pull, ascent.best_shift, ascent.best_rho)
    _, vectors = ascent.tracker.settle(a, context.should_stop)
    lam = lower_eigenvalues(a, vectors, fixed.rank, context.seed, context.should_stop)[: fixed.rank]
    lam = stated(lam, fixed.nets.n, ascent.tracker.high)
    value = fixed.value(lam, pull, a.shift, a.rho)
    scale = (
        abs(value)
        + np.abs(a.shift).sum()
        + 2 * float((np.repeat(fixed.nets.rate, fixed.nets.size) * pull).sum())
    )
    value = (value - 1e-10 * float(scale)) * fixed.apart
    certificate = {"method": METHOD, "shift": a.shift.copy(), "rho": a.rho, "eigenvalues": lam, "pulls": pull}
    return Bound(round_up(value, fixed.lattice > 0, fixed.lattice or 1.0), METHOD, "full", certificate)


class _Ascent:
    """Subgradient ascent on pulls, shift and rho; each is scaled by the curvature that a message gives it."""

    def __init__(self, fixed: Fixed, seed: int, core: IntArray | None) -> None:
        nets = fixed.nets
        self.fixed = fixed
        self.floor = np.repeat(1e-4 / np.maximum(1, nets.size), nets.size)
        self.pull = np.repeat(CORES / np.maximum(1, nets.size), nets.size)
        self.row_rate = np.repeat(nets.rate, nets.size)
        self.shift, self.rho = self._degrees(self.pull)[0], 0.0
        self.best, self.best_pull, self.best_shift, self.best_rho = -np.inf, self.pull, self.shift, self.rho
        self.least_step = 0.05 * float(nets.rate.sum() + nets.laplacian.diagonal().sum() / 2)
        self.scale, self.stalled, self.returned = 1.0, 0, False
        start = None if core is None else indicators(core)
        self.tracker = Tracker(nets.n, min(fixed.rank + SPARE, nets.n), seed, start, DEGREE)
        self._forget()

    def _degrees(self, pull: FloatArray) -> tuple[FloatArray, FloatArray]:
        nets = self.fixed.nets
        degree, total = pull_degrees(nets.n, nets.indptr, nets.terminals, pull, nets.rate)
        return degree, total

    def _forget(self) -> None:
        """Drop the momentum."""
        self.pull_way, self.shift_way, self.rho_way = np.zeros_like(self.pull), np.zeros_like(self.shift), 0.0

    @property
    def exhausted(self) -> bool:
        """True once the steps have become too short to matter."""
        return self.scale < 2e-3

    def advance(self, upper: float, should_stop: ShouldStop) -> None:
        """Evaluate, note the best, step; four steps without gain: back to the best, with shorter steps."""
        fixed = self.fixed
        a = Pulled(fixed.nets, self.pull, self.shift, self.rho)
        lam, vectors = (v[..., : fixed.rank] for v in self.tracker.pairs(a, should_stop))
        value = fixed.value(lam, self.pull, self.shift, self.rho)
        if self.returned:  # the value noted there may have been too high: Ritz values are upper estimates
            self.best, self.returned = value, False
        elif value > self.best + 1e-9 * abs(value):
            self.best, self.stalled = value, 0
            self.best_pull, self.best_shift, self.best_rho = self.pull, self.shift, self.rho
        else:
            self.stalled += 1
        if self.stalled >= 4:
            self.scale, self.stalled, self.returned = 0.6 * self.scale, 0, True
            self.pull, self.shift, self.rho = self.best_pull, self.best_shift, self.best_rho
            self._forget()
        else:
            hope = AMBITION * (upper - self.best) if np.isfinite(upper) else 0.0
            target = min(upper, self.best + max(0.3 * abs(self.best), self.least_step, hope))
            self._step(lam, np.ascontiguousarray(vectors), value, target)

    def _step(self, lam: FloatArray, vectors: FloatArray, value: float, target: float) -> None:
        """Make a Polyak step with momentum towards ``target``."""
        fixed, nets = self.fixed, self.fixed.nets
        codes = vectors * np.sqrt(fixed.weights)
        pull_up = np.empty_like(self.pull)
        pull_gradient(nets.indptr, nets.terminals, self.pull, nets.rate, codes, pull_up)
        shift_up = (codes * codes).sum(axis=1) - 0.5
        rho_up = float(codes.sum(axis=0) @ codes.sum(axis=0)) / nets.n - fixed.drift
        degree, total = self._degrees(self.pull)
        degree = degree + nets.laplacian.diagonal()
        bend = 3.0 * self.pull / (np.repeat(total, nets.size) * self.row_rate)
        self.pull_way = bend * pull_up + 0.6 * self.pull_way
        self.shift_way = 2 * (degree + 0.15 * degree.mean()) * shift_up + 0.6 * self.shift_way
        self.rho_way = 2 * float(degree.mean()) * rho_up / nets.n + 0.6 * self.rho_way
        slope = float(self.pull_way @ pull_up + self.shift_way @ shift_up) + self.rho_way * rho_up
        if slope <= 0:
            self._forget()
            return
        length = self.scale * max(target - value, 0.0) / slope
        change = np.clip(length * self.pull_way, -0.5 * self.pull, self.pull)
        self.pull = np.maximum(self.pull + change, self.floor)
        self.shift = self.shift + length * self.shift_way
        self.rho = max(0.0, self.rho + length * self.rho_way)
