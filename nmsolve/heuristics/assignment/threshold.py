"""The engine ``threshold`` (M3.9): the first unit whose benefit is large enough, or whose cost is small enough."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from nmsolve.heuristics.assignment.places import Items, MemoryProfile, no_network
from nmsolve.hw.assignment.evaluate import Terms, efficiency_gain, terms_of
from nmsolve.model.assignment.assignment import Assignment, assignment_complaint, fused_where_possible
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.assignment.thresholds import Thresholds
from nmsolve.model.engine import Context
from nmsolve.model.types import IntArray

#: Quantiles of all benefits and of all costs that are tried as thresholds.
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


class Threshold:
    """Operators in their order, units in turn (accelerators first): the first that passes gets the operator.

    An operator passes on a unit if ``P(i, j) >= Th1`` (benefit), if ``C(i, j) <= Th2`` (cost), or if both hold: three variants.
    If it passes nowhere it is tried as one with the operator before it that it can be fused with: on that one's unit, where the
    two must pass by their mean benefit and cost as one operation, without the transfer between them and what fusion saves. If
    nothing passes, the unit with the least cost gets it (variant benefit: that with the largest benefit). Units without room are
    left out.

    The thresholds are those that the user states (``problem.thresholds``); else quantiles of all benefits and costs, of which
    every pair is tried, and the best assignment offered.

    Operators after it know what an operator got (M3.8): what it makes is brought from there, so that C(i, j) is not that of the
    report, where everything comes from the host; and the units that operators like these got come first in turn, those that they
    failed to get last, in this run and in the earlier ones of the function library (``problem.earlier``).
    """

    name = "threshold"
    finds = "mappings"

    def refuses(self, problem: AssignProblem) -> str | None:
        """Return why it cannot take the problem, or None."""
        return no_network(problem)

    def run(self, problem: AssignProblem, context: Context) -> None:
        """Offer what the stated thresholds give; without any the best of those tried, whenever it improves."""
        rule = _Rule(problem)
        tried: set[bytes] = set()
        stated = problem.thresholds
        for limits, words in (
            tried_thresholds(rule.terms) if stated is None else [(stated, f"{stated}, stated")]
        ):
            if context.should_stop():
                return
            unit = rule.mapping(limits)
            if unit is None or unit.tobytes() in tried:
                continue
            tried.add(unit.tobytes())
            answer = Assignment(unit, fused_where_possible(problem, unit), np.arange(problem.count))
            if assignment_complaint(problem, answer) is None:
                context.offer(answer.packed(problem), words)
        if not tried:
            context.note("no threshold leaves every operator a memory that has room for it")


def tried_thresholds(terms: Terms) -> Iterator[tuple[Thresholds, str]]:
    """Yield thresholds of the three variants, and what to call them."""
    benefits = np.quantile(terms.benefit[terms.possible], QUANTILES).tolist()
    costs = np.quantile(terms.cost[terms.possible], QUANTILES).tolist()
    for q, th1 in zip(QUANTILES, benefits, strict=True):
        yield (only := Thresholds(th1)), f"{only} (quantile {q:g})"
    for q, th2 in zip(QUANTILES, costs, strict=True):
        yield (only := Thresholds(None, th2)), f"{only} (quantile {q:g})"
    for q, th1 in zip(QUANTILES, benefits, strict=True):
        for r, th2 in zip(QUANTILES, costs, strict=True):
            yield (both := Thresholds(th1, th2)), f"{both} (quantiles {q:g}, {r:g})"


class _Rule:
    """Everything that all thresholds share."""

    def __init__(self, problem: AssignProblem) -> None:
        self.problem, self.terms, self.items = problem, terms_of(problem), Items(problem)
        own, terms = self.items.members, self.terms
        # numbers one by one: lists are several times as fast as arrays
        self.benefit: list[list[float]] = [(terms.benefit[k].sum(axis=0) / len(k)).tolist() for k in own]
        self.run: list[list[int]] = [terms.accumulated[k].sum(axis=0).tolist() for k in own]
        self.work: list[list[int]] = [terms.work[k].sum(axis=0).tolist() for k in own]
        self.run_here = [int(terms.accumulated[k, terms.reference[k]].sum()) for k in own]
        self.work_here = [int(terms.work[k, terms.reference[k]].sum()) for k in own]
        by_energy, flows, units = problem.objective == "energy", problem.flows, problem.units
        hosts = np.flatnonzero(units.host)
        self.home = int(units.site[hosts[0] if len(hosts) else 0])
        self.moved = flows.energy if by_energy else flows.time
        self.site: list[int] = units.site.tolist()
        self._rows: dict[tuple[int, int], list[int]] = {}
        self.gain = problem.groups.energy if by_energy else problem.groups.time
        self.uses = self._uses()
        self.before = self._before()
        self.alike, self.kinds = self._alike()
        none = np.zeros((problem.count, units.count), np.int64)
        earlier = none if problem.earlier is None else problem.earlier
        self.earlier: list[list[int]] = [earlier[k].sum(axis=0).tolist() for k in own]

    def brought(self, tensor: int, origin: int) -> list[int]:
        """Return (J,) what it costs to bring a tensor from a site to every unit."""
        if (tensor, origin) not in self._rows:
            self._rows[tensor, origin] = self.moved[tensor, origin, self.problem.units.site].tolist()
        return self._rows[tensor, origin]

    def _uses(self) -> list[list[tuple[int, int]]]:
        """Return (N,) per item the tensors that it gets from other items, each once, with the items that make them."""
        flows, of = self.problem.flows, self.items.of
        found: list[dict[int, int]] = [{} for _ in self.items.members]
        for t in np.flatnonzero(~flows.kept).tolist():
            maker = int(of[flows.source[t]])
            for i in flows.users(t).tolist():
                if of[i] != maker:
                    found[of[i]][t] = maker
        return [list(own.items()) for own in found]

    def _before(self) -> list[tuple[int, list[int]]]:
        """Return (N,) per item the latest operator's item that it can be fused with, -1 if there is none, and the gain (J,)."""
        groups = self.problem.groups
        out: list[tuple[int, list[int]]] = [(-1, [])] * self.items.count
        for k in range(groups.count):
            own = groups.of(k).tolist()
            for a, b in pairwise(own):
                one, other = int(self.items.of[a]), int(self.items.of[b])
                if one < other:
                    out[other] = (one, (self.gain[k] // (len(own) - 1)).tolist())
        return out

    def _alike(self) -> tuple[list[int], int]:
        """Return (N,) the number of every item's operation, and how many there are: alike are those of one type and cost."""
        seen: dict[tuple[object, ...], int] = {}
        kinds = self.problem.kinds
        names = [
            (*(kinds[i] for i in own), *run) for own, run in zip(self.items.members, self.run, strict=True)
        ]
        return [seen.setdefault(name, len(seen)) for name in names], len(seen)

    def mapping(self, limits: Thresholds) -> IntArray | None:
        """Return (L,) the unit of every operator, None if memories leave one no place."""
        items, profile, record = self.items, MemoryProfile(self.items), _Record(self)
        for k in range(items.count):
            able: list[bool] = items.possible[k].tolist()
            if profile.limited:
                able = [fine and profile.fits(k, j) for j, fine in enumerate(able)]
            if not any(able):
                return None
            cost = record.cost(k)
            j = self._choose(k, able, cost, record, limits)
            record.got(k, j, cost[j])
            profile.place(k, j)
        return items.spread(np.array(record.unit, np.int64))

    def _together(self, one: int, two: int, j: int, gain: int) -> float:
        """Return the benefit of two items on a unit as one operation, whose run is shorter by ``gain``."""
        work, here = self.work_here[one] + self.work_here[two], self.run_here[one] + self.run_here[two]
        run = self.run[one][j] + self.run[two][j] - gain
        saved = efficiency_gain(np.array(work), np.array(here), np.array(run))
        return float(saved) + work - self.work[one][j] - self.work[two][j]

    def _choose(
        self, k: int, able: list[bool], cost: list[float], record: _Record, limits: Thresholds
    ) -> int:
        """Return the unit of an item, of those ``able`` (J,) to take it, at these costs (J,)."""
        benefit = self.benefit[k]
        for j in record.turn(k):
            if not able[j]:
                continue
            if limits.passes(benefit[j], cost[j]):
                return j
            record.failed(k, j)
        previous, gain = self.before[k]
        if previous >= 0 and able[record.unit[previous]]:
            j = record.unit[previous]
            both = self._together(previous, k, j, gain[j]) / 2
            if limits.passes(both, (record.paid[previous] + cost[j] - gain[j]) / 2):
                return j
        units = [j for j, fine in enumerate(able) if fine]
        if limits.cost is None:
            return max(units, key=lambda j: benefit[j])
        return min(units, key=lambda j: cost[j])


class _Record:
    """What operators got so far, and failed to get, for those after them (M3.8).

    Attributes
    ----------
    unit : (N,) the unit that an item got, -1: not decided
    paid : (N,) its cost there
    verdict : (K, J) how often operations of a kind got a unit in this run, less how often they failed to get it
    """

    def __init__(self, rule: _Rule) -> None:
        self.rule, count = rule, rule.items.count
        self.host: list[bool] = rule.problem.units.host.tolist()
        self.unit, self.paid = [-1] * count, [0.0] * count
        self.verdict = [[0] * len(self.host) for _ in range(rule.kinds)]

    def cost(self, item: int) -> list[float]:
        """Return (J,) C(i, j): the run, and every tensor brought from where its maker is; from the first host if that is open."""
        rule = self.rule
        total = rule.run[item]
        for tensor, maker in rule.uses[item]:
            at = self.unit[maker]
            row = rule.brought(tensor, rule.site[at] if at >= 0 else rule.home)
            total = [a + b for a, b in zip(total, row, strict=True)]
        size = len(rule.items.members[item])
        return [value / size for value in total]

    def turn(self, item: int) -> list[int]:
        """Return the units in turn: what operations like it got most often first, accelerators before hosts."""
        rule = self.rule
        earlier, here = rule.earlier[item], self.verdict[rule.alike[item]]
        return sorted(range(len(here)), key=lambda j: (-earlier[j] - here[j], self.host[j]))

    def failed(self, item: int, unit: int) -> None:
        """Note that an item was not accepted by a unit."""
        self.verdict[self.rule.alike[item]][unit] -= 1

    def got(self, item: int, unit: int, cost: float) -> None:
        """Note that an item got a unit, and its cost there."""
        self.unit[item], self.paid[item] = unit, cost
        self.verdict[self.rule.alike[item]][unit] += 1
