"""The splittable-flow bound where its linear program is too large: lengths of links by subgradient steps.

For any lengths ``w >= 0`` of links, ``sum rate * (least length of a route) / sum w`` is a lower bound on the largest
load; the best lengths are the dual of the linear program. The loads of shortest routes are a subgradient; a step follows
them by Polyak's rule (1969) towards a value a little above the best so far. Links start as long as a power of their load
in good routes (that need not be free of deadlock), the gradient of a norm of the loads.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from nmsolve.heuristics.routing.negotiate import new_search, route_freely
from nmsolve.heuristics.routing.nets import mirror, nets_of
from nmsolve.model.basic_kernels import copy_to
from nmsolve.model.bound import Bound
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.engine import Context
from nmsolve.model.links import link_ends, link_works
from nmsolve.model.routing.features import takes
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.stage import RoutingStage
from nmsolve.model.types import AnyArray, FloatArray, IntArray


class Demands(NamedTuple):
    """What has to be sent where, on links that work.

    Attributes
    ----------
    lead : (4 * P,) core that a link leads to, -1 where there is none
    goals : (R,) target cores; ``far`` (R, P) links that remain from a core, -1: no route; ``order`` (R, P) cores by ``far``
    first : (R + 1,) unicast flows to goal r are ``first[r]:first[r + 1]`` of ``source``, ``rate``
    root, trate : (M,) source core and rate of multicast flows; their legs are ``legs[m]:legs[m + 1]`` of ``row`` (goals by
        number, the farthest first)
    strict : True if only shortest routes are allowed
    """

    lead: IntArray
    goals: IntArray
    far: IntArray
    order: IntArray
    first: IntArray
    source: IntArray
    rate: FloatArray
    root: IntArray
    trate: FloatArray
    legs: IntArray
    row: IntArray
    strict: bool


def demands_of(problem: RoutingProblem) -> Demands:
    """The flows of a problem by target."""
    flows = problem.flows
    goals, far = problem.distances
    lead = np.where(link_works(problem.machine), link_ends(problem.machine), -1)
    size = np.diff(flows.indptr)
    row = np.searchsorted(goals, flows.targets)
    one, many = np.flatnonzero(size == 1), np.flatnonzero(size > 1)
    mine = row[flows.indptr[:-1][one]]
    by = np.argsort(mine, kind="stable")
    legs = np.concatenate([[0], np.cumsum(size[many])]).astype(np.int64)
    rows = []
    for f in many.tolist():
        some = row[flows.indptr[f] : flows.indptr[f + 1]]
        rows.append(some[np.argsort(-far[some, flows.source[f]], kind="stable")])
    unknown = np.where(far < 0, np.iinfo(np.int64).max, far)
    return Demands(
        lead, np.asarray(goals, np.int64), np.ascontiguousarray(far, np.int64), np.argsort(unknown, axis=1, kind="stable"),
        np.searchsorted(mine[by], np.arange(len(goals) + 1)).astype(np.int64), flows.source[one[by]].astype(np.int64),
        flows.rate[one[by]].astype(np.float64), flows.source[many].astype(np.int64), flows.rate[many].astype(np.float64), legs,
        np.concatenate([np.zeros(0, np.int64), *rows]).astype(np.int64), problem.detour == 0,
    )  # fmt: skip


@kernel
def remaining(d: Demands, r: int, length: AnyArray, dist: AnyArray) -> None:
    """``dist`` (P,): least length of a route from every core to goal ``r`` over links that routes may take.

    With detours over all links, however long the route: never more than the true least length.
    """
    reached = 0
    for i in range(d.order.shape[1]):
        reached += d.far[r, d.order[r, i]] >= 0
    big = length.sum() + 1
    for i in range(reached):
        dist[d.order[r, i]] = big
    dist[d.goals[r]] = 0
    changed = True
    while changed:
        changed = False
        for i in range(1, reached):
            u = d.order[r, i]
            best = dist[u]
            for link in range(4 * u, 4 * u + 4):
                v = d.lead[link]
                if v >= 0 and d.far[r, v] >= 0 and (not d.strict or d.far[r, v] < d.far[r, u]):
                    best = min(best, dist[v] + length[link])
            changed |= best < dist[u] and not d.strict
            dist[u] = best


@plain
def send(
    d: Demands, r: int, length: FloatArray, dist: FloatArray, inflow: FloatArray, load: FloatArray
) -> None:
    """Send ``inflow`` (P,) along shortest routes to goal ``r``, halved where two are as short; adds to ``load``."""
    for i in range(d.order.shape[1] - 1, 0, -1):
        u = d.order[r, i]
        if inflow[u] <= 0.0:
            continue
        ways, slack = 0, 1e-9 * dist[u]
        for turn in range(2):
            for link in range(4 * u, 4 * u + 4):
                v = d.lead[link]
                if v >= 0 and 0 <= d.far[r, v] < d.far[r, u] and dist[v] + length[link] <= dist[u] + slack:
                    if turn == 0:
                        ways += 1
                    else:
                        load[link] += inflow[u] / ways
                        inflow[v] += inflow[u] / ways
        inflow[u] = 0.0


@kernel
def evaluate(d: Demands, length: FloatArray, load: FloatArray) -> float:
    """``sum rate * least length``, and the loads of shortest routes (a subgradient of it) in ``load`` (4 * P,)."""
    cores, total = d.far.shape[1], 0.0
    load[:] = 0.0
    dist, inflow = np.empty(cores), np.zeros(cores)
    for r in range(len(d.goals)):
        if d.first[r] == d.first[r + 1]:
            continue
        remaining(d, r, length, dist)
        for k in range(d.first[r], d.first[r + 1]):
            total += d.rate[k] * dist[d.source[k]]
            inflow[d.source[k]] += d.rate[k]
        send(d, r, length, dist, inflow, load)
        inflow[:] = 0.0
    left, taken = np.empty_like(length), np.zeros_like(length)
    for m in range(len(d.root)):
        copy_to(left, length)
        taken[:] = 0.0
        for k in range(d.legs[m], d.legs[m + 1]):
            r = d.row[k]
            remaining(d, r, left, dist)
            total += d.trate[m] * dist[d.root[m]]
            inflow[d.root[m]] = 1.0
            send(d, r, left, dist, inflow, taken)
            inflow[:] = 0.0
            spend(d, r, dist, dist[d.root[m]], left, left)
        for link in range(len(length)):
            load[link] += d.trate[m] * min(1.0, taken[link])
    return total


@plain
def spend(d: Demands, r: int, dist: AnyArray, least: float, left: AnyArray, out: AnyArray) -> None:
    """Take from ``left`` what goal ``r`` needs so that no route to it from the source is shorter than ``least``.

    A link from u to v needs ``min(dist[u], least) - min(dist[v], least)`` of its length, if that is positive: along any route the
    needs add up to at least ``least``. What remains is written to ``out``.
    """
    for u in range(d.far.shape[1]):
        if d.far[r, u] < 0:
            continue
        for link in range(4 * u, 4 * u + 4):
            v = d.lead[link]
            if v >= 0 and d.far[r, v] >= 0 and (not d.strict or d.far[r, v] < d.far[r, u]):
                need = min(dist[u], least) - min(dist[v], least)
                if need > 0:
                    out[link] = left[link] - min(
                        need, left[link]
                    )  # rounding must not leave less than nothing


@kernel
def unicast_lengths(d: Demands, length: IntArray, out: IntArray) -> None:
    """(K,) least length of every unicast flow, in whole numbers."""
    dist = np.zeros(d.far.shape[1], np.int64)
    for r in range(len(d.goals)):
        if d.first[r] < d.first[r + 1]:
            remaining(d, r, length, dist)
            for k in range(d.first[r], d.first[r + 1]):
                out[k] = dist[d.source[k]]


@kernel
def tree_shares(d: Demands, m: int, length: IntArray, shares: IntArray) -> int:
    """``shares`` (legs, 4 * P): how multicast flow ``m`` divides the lengths of links among its legs; what they add up to."""
    dist, left, total = np.zeros(d.far.shape[1], np.int64), length.copy(), 0
    before = length.copy()
    for k in range(d.legs[m], d.legs[m + 1]):
        remaining(d, d.row[k], left, dist)
        total += dist[d.root[m]]
        copy_to(before, left)
        spend(d, d.row[k], dist, dist[d.root[m]], before, left)
        shares[k - d.legs[m]] = before - left
    return total


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
