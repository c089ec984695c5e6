"""The splittable-flow bound where its linear program is too large: lengths of links by subgradient steps.

For any lengths ``w >= 0`` of links, ``sum rate * (least length of a route) / sum w`` is a lower bound on the largest
load; the best lengths are the dual of the linear program. The loads of shortest routes are a subgradient; a step follows
them by Polyak's rule (1969) towards a value a little above the best so far. Links start as long as a power of their load
in good routes (that need not be free of deadlock), the gradient of a norm of the loads.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from nmsolve.heuristics.routing.negotiate import new_search, route_freely
from nmsolve.heuristics.routing.nets import mirror, nets_of
from nmsolve.model.bound import Bound
from nmsolve.model.engine import Context
from nmsolve.model.routing.features import takes
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.stage import RoutingStage
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.routing.flow_lengths import Demands, demands_of, evaluate, tree_shares, unicast_lengths

#: Power of the loads with which lengths begin.
START = 64.0
#: Lengths become whole numbers up to this.
UNIT = 10**7
#: Part of the old direction in a step; how far above the best value the steps aim, first and least, and when that halves.
MEMORY, AIM, LEAST, STALE = 0.9, 0.02, 1e-4, 80
#: Steps between two looks at the bound, how much better it must be to be offered, and most steps.
REPORT, BETTER, MOST = 200, 1.001, 6000


class PriceBound:
    """Bound on the largest load at sizes where the linear program does not end."""

    name = "price-bound"
    finds = "bounds"
    refuses = takes("+load")

    def run(self, stage: RoutingStage, context: Context) -> None:
        """Step until steps lead nowhere; offer bounds that are worth it on the way."""
        problem = stage.problem
        if not problem.flows.count or context.should_stop():
            return
        nets = nets_of(stage)
        search = new_search(nets, np.zeros(nets.ok.shape, bool), context.seed)
        if not route_freely(search, context.should_stop):
            return
        load = np.array(search.state.load)
        if nets.per_core:  # trees by destination are on the mirrored machine
            load = _turned_loads(problem, load)
        climb, offered = Climb(demands_of(problem), load, search.hottest), 0.0
        while climb.steps < MOST and climb.aim > LEAST and not context.should_stop():
            climb.step()
            if climb.steps % REPORT == 0 and climb.best > BETTER * offered:
                offered = climb.best
                context.raise_bound(proved(problem, climb.demands, climb.length))
        if climb.best > offered:
            context.raise_bound(proved(problem, climb.demands, climb.length))


def _turned_loads(problem: RoutingProblem, load: FloatArray) -> FloatArray:
    """Return loads (4 * P,) of the mirrored machine's links as loads of the machine's."""
    back = mirror(problem)[:: problem.channels] // problem.channels
    out: FloatArray = np.where(back >= 0, load[back], 0.0)
    return out


class Climb:
    """Subgradient steps. ``best`` is the best value so far, ``length`` (4 * P,) its lengths, which add up to 1."""

    def __init__(self, demands: Demands, load: FloatArray, above: float) -> None:
        self.demands, self.above = demands, above
        self._alive = demands.lead >= 0
        self.length = np.where(self._alive, (load / load.max()) ** START + 1e-6, 0.0)
        self.length /= self.length.sum()
        self._at, self._way = self.length.copy(), np.zeros(len(load))
        self._load = np.zeros(len(load))
        self.best, self.steps, self.aim, self._idle = 0.0, 0, AIM, 0

    def step(self) -> None:
        """Evaluate the present lengths, keep them if they are the best, and step on."""
        value = evaluate(self.demands, self._at, self._load)
        self.steps += 1
        self._idle += 1
        if value > self.best * (1 + 1e-6):
            self.best, self.length, self._idle = value, self._at.copy(), 0
        elif self._idle >= STALE:
            self.aim, self._idle = self.aim / 2, 0
            self._at, self._way = self.length.copy(), np.zeros(len(self._way))
            value = evaluate(self.demands, self._at, self._load)
        self._way = MEMORY * self._way + (1 - MEMORY) * np.where(self._alive, self._load - value, 0.0)
        target = min(self.above, self.best * (1 + self.aim))
        square = float(self._way @ self._way)
        if square <= 0.0 or target <= value:
            return
        at = np.maximum(0.0, self._at + (target - value) / square * self._way)
        if at.any():  # else the step left no length at all: the next one has another direction
            self._at = at / at.sum()


def proved(problem: RoutingProblem, demands: Demands, length: FloatArray) -> Bound:
    """Return the bound of ``length`` (links,), rounded to whole numbers, with its certificate.

    It is computed without rounding (:mod:`nmsolve.check.routing.recheck`).
    """
    whole = np.rint(length * (UNIT / length.max())).astype(np.int64)
    least = np.zeros(len(demands.source), np.int64)
    unicast_lengths(demands, whole, least)
    total = sum((Fraction(float(r)) * int(x) for r, x in zip(demands.rate, least, strict=True)), Fraction(0))
    shares: dict[str, Any] = {}
    many = np.flatnonzero(np.diff(problem.flows.indptr) > 1)
    for m, f in enumerate(many.tolist()):
        value, mine = _shares(problem, demands, m, f, whole)
        total += Fraction(float(demands.trate[m])) * value
        shares[str(f)] = mine
    certificate = {"method": "split-flow", "length": whole.tolist(), "shares": shares}
    bound = total / int(whole.sum())
    if problem.integral:
        return Bound(float(-(-bound.numerator // bound.denominator)), "split-flow", certificate=certificate)
    return Bound(float(bound) * (1 - 1e-12), "split-flow", certificate=certificate)


def _shares(
    problem: RoutingProblem, demands: Demands, m: int, f: int, whole: IntArray
) -> tuple[int, list[Any]]:
    """Return what multicast flow ``m`` (``f`` of the problem) is worth, and its shares in the order of its targets."""
    first, last = int(demands.legs[m]), int(demands.legs[m + 1])
    shares = np.zeros((last - first, len(whole)), np.int64)
    value = int(tree_shares(demands, m, whole, shares))
    row = {int(g): k for k, g in enumerate(demands.goals[demands.row[first:last]])}
    out = []
    for goal in problem.flows.of(f).tolist():
        part = shares[row[goal]]
        used = np.flatnonzero(part)
        out.append(list(zip(used.tolist(), part[used].tolist(), strict=True)))
    return value, out
