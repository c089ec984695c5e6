"""Ascent of the parting bound of net objectives by a bundle of cuts (:mod:`.bundle`), begun at what a known mapping suggests.

Were the mapping the best one, a message would pull each terminal by 1 / (terminals on its core), and the shift would make up
for what these pulls take from a node. Several scales of both are tried, and steps go on from the best.
"""

from __future__ import annotations

import numpy as np

from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.mapping.bounds.bundle import FEWEST_CUTS, MOST_NUMBERS, Bundle
from nmsolve.solvers.mapping.bounds.eigen import Tracker
from nmsolve.solvers.mapping.bounds.pairs import ShouldStop
from nmsolve.solvers.mapping.bounds.trees_form import Fixed, Nets, Pulled, pull_degrees, pull_gradient

#: Pulls that are tried first: these parts of what would be best if the mapping were the only one, levelled by EVEN in every
#: message; the shift is OWN of what the pulls of a core bring its nodes.
STARTS, EVEN, OWN = (0.5, 0.65, 0.8, 0.95), 0.4, 0.5
#: Steps of pulls are so much longer than the curvature of a message alone would have them.
LONGER = 5.0
#: Degree of the polynomial that follows the eigenvectors from step to step; vectors more than are used.
DEGREE, SPARE = 6, 3


def fits(nets: Nets) -> bool:
    """Return whether cuts of all pulls and nodes are small enough to keep some of them."""
    return FEWEST_CUTS * (len(nets.terminals) + nets.n + 1) <= MOST_NUMBERS


class PullBundle:
    """A ``Climber`` of :mod:`.ascent` on pulls, shift and rho; ``core`` (n,) is the known mapping."""

    def __init__(self, fixed: Fixed, seed: int, core: IntArray) -> None:
        nets = fixed.nets
        self.fixed = fixed
        self.tracker = Tracker(nets.n, min(fixed.rank + SPARE, nets.n), seed, indicators(core), DEGREE)
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
