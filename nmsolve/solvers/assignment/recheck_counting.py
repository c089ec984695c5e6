"""The bounds of :mod:`.bounds` recomputed from their certificates in whole numbers, by other code."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from nmsolve.model.assignment.network import CostNetwork
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.bound import Bound, BoundCheck
from nmsolve.model.errors import CertificateError

#: Weights are below this.
MOST_WEIGHT = 2**62


def check(problem: AssignProblem | CostNetwork, bound: Bound, seconds: float) -> BoundCheck:
    """Return whether the certificate proves the bound.

    Raises
    ------
    CertificateError : it does not fit the problem
    """
    if isinstance(problem, CostNetwork):
        raise CertificateError("counting is for assignments, not for cost networks")
    kind, objective = bound.certificate.get("kind"), problem.objective
    value: float
    if kind == "sum" and objective in ("latency", "energy"):
        value = _sum(_least(problem, objective == "energy"))
    elif kind == "load" and objective in ("load", "makespan"):
        value = _load(_least(problem, False), _weights(problem, bound.certificate))
    elif kind == "path" and objective == "makespan":
        value = _longest(problem)
    else:
        raise CertificateError(f"kind {str(kind)[:40]!r} says nothing about {objective}")
    text = f"recomputed: {value:,.0f}, claimed {bound.value:,.10g}"
    return BoundCheck(bound.value <= value, float(value), text)


def _weights(problem: AssignProblem, certificate: Mapping[str, Any]) -> list[int]:
    weights = certificate.get("weights")
    if not isinstance(weights, list) or len(weights) != problem.units.count:
        raise CertificateError(f"weights must be {problem.units.count} whole numbers")
    if any(isinstance(w, bool) or not isinstance(w, int) or not 0 <= w < MOST_WEIGHT for w in weights):
        raise CertificateError("weights must be whole numbers >= 0")
    if not any(weights):
        raise CertificateError("a weight must be positive")
    return weights


def _least(problem: AssignProblem, energy: bool) -> list[dict[int, int]]:
    """By item: what it costs at least on every unit that can take all of its operators, gains of groups shared out."""
    run, gain = (problem.energy, problem.groups.energy) if energy else (problem.time, problem.groups.time)
    members = [problem.groups.of(k).tolist() for k in range(problem.groups.count)]
    mates: dict[int, list[int]] = {}
    for i in range(problem.count):
        number = -1 if problem.together is None else int(problem.together[i])
        mates.setdefault(number if number >= 0 else -2 - i, []).append(i)
    lost: dict[tuple[int, int], int] = {}
    for k, own in enumerate(members):
        for j in range(problem.units.count):
            costs = [int(run[i, j]) for i in own]
            if gain[k, j] and min(costs) >= 0 and sum(costs):
                for i, cost in zip(own, costs, strict=True):
                    share = -(-int(gain[k, j]) * cost // sum(costs))
                    lost[i, j] = max(lost.get((i, j), 0), share)
    out = []
    for own in mates.values():
        able = [j for j in range(problem.units.count) if all(problem.time[i, j] >= 0 for i in own)]
        out.append({j: sum(max(0, int(run[i, j]) - lost.get((i, j), 0)) for i in own) for j in able})
    return out


def _sum(least: list[dict[int, int]]) -> float:
    return sum(min(costs.values()) for costs in least) if all(least) else math.inf


def _load(least: list[dict[int, int]], weights: list[int]) -> float:
    if not all(least):
        return math.inf
    work = sum(min(weights[j] * cost for j, cost in costs.items()) for costs in least)
    return max(-(-work // sum(weights)), max(min(costs.values()) for costs in least))


def _longest(problem: AssignProblem) -> float:
    """The longest path, joined where all operators are before or after one."""
    return _Paths(problem).longest()


class _Paths:
    """What waits for what, by dictionaries."""

    def __init__(self, problem: AssignProblem) -> None:
        self.problem = problem
        self.waits: dict[int, list[tuple[int, int]]] = {i: [] for i in range(problem.count)}
        flows = problem.flows
        for t in range(flows.count):
            for u in flows.users(t).tolist():
                if u > flows.source[t]:
                    self.waits[u].append((int(flows.source[t]), t))
        self.own = [problem.groups.of(k).tolist() for k in range(problem.groups.count)]
        self.site = problem.units.site.tolist()

    def cuts(self) -> list[int]:
        """Operators that all others are before or after, and that part no group."""
        count = self.problem.count
        before: list[set[int]] = []
        for i in range(count):
            before.append(set().union(*({p} | before[p] for p, _ in self.waits[i])))
        after = [0] * count
        for some in before:
            for p in some:
                after[p] += 1
        return [
            i
            for i in range(count)
            if len(before[i]) + after[i] == count - 1 and not any(own[0] <= i < own[-1] for own in self.own)
        ]

    def longest(self) -> float:
        """Go from cut to cut: the least end on every unit of a cut, from that of the one before."""
        now: dict[int, float] | None = None
        last, start = -1, 0
        for cut in self.cuts():
            ends = {a: self._ends(range(start, cut + 1), last, a) for a in ([-1] if now is None else now)}
            then: dict[int, float] = {}
            for a, end in ends.items():
                for j, value in end[cut].items():
                    total = value + (0 if now is None else now[a])
                    then[j] = min(then.get(j, math.inf), total)
            now, last, start = then, cut, cut + 1
        if start == self.problem.count and now is not None:
            return min(now.values(), default=math.inf)
        inner = {i for own in self.own for i in own[:-1]}
        best = math.inf
        for a in [-1] if now is None else list(now):
            end = self._ends(range(start, self.problem.count), last, a)
            longest = max(
                (min(end[i].values(), default=math.inf) for i in end if i not in inner and i >= start),
                default=0,
            )
            best = min(best, longest + (0 if now is None else now[a]))
        return best

    def _ends(self, block: range, cut: int, unit: int) -> dict[int, dict[int, float]]:
        """By operator and unit, when it ends at least, alone or as the last of a group, if the cut ended on a unit at 0."""
        problem = self.problem
        done: dict[int, dict[int, float]] = {} if cut < 0 else {cut: {unit: 0}}
        for i in block:
            found: dict[int, float] = {}
            for j in range(problem.units.count):
                if problem.time[i, j] >= 0:
                    found[j] = self._arrival(i, j, set(), done) + int(problem.time[i, j])
                for k, own in enumerate(self.own):
                    gains = problem.groups.time[k, j] > 0 or problem.groups.energy[k, j] > 0
                    if own[-1] == i and gains and own[0] in block:
                        whole = int(problem.time[own, j].sum()) - int(problem.groups.time[k, j])
                        ready = max(self._arrival(m, j, set(own), done) for m in own)
                        found[j] = min(found.get(j, math.inf), ready + whole)
            done[i] = found
        return done

    def _arrival(self, i: int, j: int, apart: set[int], done: dict[int, dict[int, float]]) -> float:
        """When all that operator i waits for can be on unit j."""
        table, ready = self.problem.flows.time, 0.0
        for p, t in self.waits[i]:
            if p in done and p not in apart:
                came = [end + int(table[t, self.site[a], self.site[j]]) for a, end in done[p].items()]
                ready = max(ready, min(came, default=math.inf))
        return ready
