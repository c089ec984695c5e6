"""The engine ``threshold`` (M3.9): the first unit whose benefit is large enough, or whose cost is small enough."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nmsolve.heuristics.assignment.places import Items, MemoryProfile, no_network
from nmsolve.hw.assignment.evaluate import Terms, terms_of
from nmsolve.model.assignment.assignment import Assignment, assignment_complaint, fused_where_possible
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.engine import Context
from nmsolve.model.types import BoolArray, IntArray

#: Quantiles of all benefits and of all costs that are tried as thresholds.
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True)
class Limits:
    """Thresholds: least benefit and most cost, None: not asked for."""

    benefit: float | None
    cost: float | None
    words: str

    def passes(self, benefit: float, cost: float) -> bool:
        """Return whether an operator is accepted."""
        return (self.benefit is None or benefit >= self.benefit) and (self.cost is None or cost <= self.cost)


class Threshold:
    """Operators in their order, units in turn (accelerators first): the first that passes gets the operator.

    An operator passes on a unit if ``P(i, j) >= Th1`` (benefit), if ``C(i, j) <= Th2`` (cost), or if both hold: three variants.
    If it passes nowhere it is tried as one with the operator before it that it can be fused with: on that one's unit, where the
    two must pass by their mean benefit and cost, the transfer between them and the gain of fusion taken off. If nothing passes,
    the unit with the least cost gets it (variant benefit: that with the largest benefit). Units without room are left out.

    Thresholds are quantiles of all benefits and costs; every pair is tried, and the best assignment offered.

    Where the function library knows earlier runs (``problem.earlier``), the units that operators like these got come first in
    turn, those that they failed to get last.
    """

    name = "threshold"
    finds = "mappings"

    def refuses(self, problem: AssignProblem) -> str | None:
        """Return why it cannot take the problem, or None."""
        return no_network(problem)

    def run(self, problem: AssignProblem, context: Context) -> None:
        """Offer the best of all thresholds whenever it improves."""
        rule = _Rule(problem)
        tried: set[bytes] = set()
        for limits in thresholds(rule.terms):
            if context.should_stop():
                return
            unit = rule.mapping(limits)
            if unit is None or unit.tobytes() in tried:
                continue
            tried.add(unit.tobytes())
            answer = Assignment(unit, fused_where_possible(problem, unit), np.arange(problem.count))
            if assignment_complaint(problem, answer) is None:
                context.offer(answer.packed(problem), limits.words)
        if not tried:
            context.note("no threshold leaves every operator a memory that has room for it")


def thresholds(terms: Terms) -> Iterator[Limits]:
    """Yield the thresholds of the three variants."""
    benefits = np.quantile(terms.benefit[terms.possible], QUANTILES).tolist()
    costs = np.quantile(terms.cost[terms.possible], QUANTILES).tolist()
    for q, th1 in zip(QUANTILES, benefits, strict=True):
        yield Limits(th1, None, f"P >= {th1:.4g} (quantile {q:g})")
    for q, th2 in zip(QUANTILES, costs, strict=True):
        yield Limits(None, th2, f"C <= {th2:.4g} (quantile {q:g})")
    for q, th1 in zip(QUANTILES, benefits, strict=True):
        for r, th2 in zip(QUANTILES, costs, strict=True):
            yield Limits(th1, th2, f"P >= {th1:.4g} and C <= {th2:.4g} (quantiles {q:g}, {r:g})")


class _Rule:
    """Everything that all thresholds share."""

    def __init__(self, problem: AssignProblem) -> None:
        self.problem, self.terms, self.items = problem, terms_of(problem), Items(problem)
        own = self.items.members
        self.benefit = np.array([self.terms.benefit[k].sum(axis=0) / len(k) for k in own])
        self.cost = np.array([self.terms.cost[k].sum(axis=0) / len(k) for k in own])
        self.turn = self._turns(problem.earlier)
        self.before = self._before()

    def _turns(self, earlier: IntArray | None) -> IntArray:
        """Return (N, J) units in turn: what earlier runs got first, accelerators before hosts."""
        host = self.problem.units.host
        if earlier is None:
            return np.tile(np.argsort(host, kind="stable"), (self.items.count, 1))
        got = np.array([earlier[own].sum(axis=0) for own in self.items.members])
        return np.array([np.lexsort((host, -row)) for row in got])

    def _before(self) -> list[tuple[int, IntArray, IntArray]]:
        """Return (N,) per item the latest operator's item that it can be fused with, the gain (J,) and the transfer saved (J,).

        -1 if there is none.
        """
        problem, flows = self.problem, self.problem.flows
        zero = np.zeros(problem.units.count, np.int64)
        out = [(-1, zero, zero)] * self.items.count
        hosts = np.flatnonzero(problem.units.host)
        home = problem.units.site[hosts[0] if len(hosts) else 0]
        by_energy = problem.objective == "energy"
        moved = (flows.energy if by_energy else flows.time)[:, home][:, problem.units.site]
        gain = problem.groups.energy if by_energy else problem.groups.time
        made: dict[int, list[int]] = {}
        for t in range(flows.count):
            made.setdefault(int(flows.source[t]), []).append(t)
        for k in range(problem.groups.count):
            own = problem.groups.of(k).tolist()
            for a, b in pairwise(own):
                one, other = int(self.items.of[a]), int(self.items.of[b])
                if one < other:
                    between = [moved[t] for t in made.get(a, []) if b in flows.users(t)]
                    out[other] = (one, gain[k] // (len(own) - 1), sum(between, zero))
        return out

    def mapping(self, limits: Limits) -> IntArray | None:
        """Return (L,) the unit of every operator, None if memories leave one no place."""
        items, profile = self.items, MemoryProfile(self.items)
        unit = np.full(items.count, -1, np.int64)
        for k in range(items.count):
            able: BoolArray = items.possible[k].copy()
            if profile.limited:
                able &= [bool(able[j]) and profile.fits(k, j) for j in range(len(able))]
            if not able.any():
                return None
            unit[k] = self._choose(k, able, unit, limits)
            profile.place(k, int(unit[k]))
        return items.spread(unit)

    def _choose(self, k: int, able: BoolArray, unit: IntArray, limits: Limits) -> int:
        """Return the unit of an item, of those ``able`` (J,) to take it."""
        for j in self.turn[k].tolist():
            if able[j] and limits.passes(self.benefit[k, j], self.cost[k, j]):
                return int(j)
        previous, gain, saved = self.before[k]
        if previous >= 0 and able[unit[previous]]:
            j = int(unit[previous])
            benefit = (self.benefit[previous, j] + self.benefit[k, j] + gain[j]) / 2
            cost = (self.cost[previous, j] + self.cost[k, j] - gain[j] - saved[j]) / 2
            if limits.passes(benefit, cost):
                return j
        if limits.cost is None:
            return int(np.argmax(np.where(able, self.benefit[k], -np.inf)))
        return int(np.argmin(np.where(able, self.cost[k], np.inf)))
