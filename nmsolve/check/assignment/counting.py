"""The bounds of :mod:`nmsolve.solvers.assignment.bounds` recomputed from their certificates in whole numbers, by other code."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

from nmsolve.check.assignment.network import classes_of
from nmsolve.model.assignment.network import CostNetwork
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.bound import Bound, BoundCheck, float_below
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
    kind = kind if isinstance(kind, str) else f"{kind}"  # a list of a file is an array here
    value: float
    if kind == "sum" and objective in ("latency", "energy"):
        value = _sum(_least(problem, objective == "energy"))
    elif kind == "load" and objective in ("load", "makespan"):
        value = _load(_least(problem, False), _weights(problem, bound.certificate))
    elif kind == "path" and objective == "makespan":
        value = _Paths(problem, bound.certificate).longest()
    else:
        raise CertificateError(f"kind {kind[:40]!r} says nothing about {objective}")
    text = f"recomputed: {value:,.0f}, claimed {bound.value:,.10g}"
    return BoundCheck(bound.value <= value, float_below(value), text)


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
    lost: dict[tuple[int, int], int] = {}
    for k, own in enumerate(members):
        for j in range(problem.units.count):
            costs = [int(run[i, j]) for i in own]
            if gain[k, j] and min(costs) >= 0 and sum(costs):
                for i, cost in zip(own, costs, strict=True):
                    share = -(-int(gain[k, j]) * cost // sum(costs))
                    lost[i, j] = max(lost.get((i, j), 0), share)
    out = []
    for own in classes_of(problem.together, problem.count):
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


class _Paths:
    """What waits for what, by dictionaries, and the blocks between the cuts of a certificate."""

    def __init__(self, problem: AssignProblem, certificate: Mapping[str, Any]) -> None:
        self.problem = problem
        self.waits: dict[int, list[tuple[int, int]]] = {i: [] for i in range(problem.count)}
        flows = problem.flows
        for t in range(flows.count):
            for u in flows.users(t).tolist():
                if u > flows.source[t]:
                    self.waits[u].append((int(flows.source[t]), t))
        self.own = [problem.groups.of(k).tolist() for k in range(problem.groups.count)]
        self.site = problem.units.site.tolist()
        self.cuts = self._cuts(certificate)
        self.blocks = self._blocks()

    def _cuts(self, certificate: Mapping[str, Any]) -> list[int]:
        cuts, count = certificate.get("cuts"), self.problem.count
        if not isinstance(cuts, list) or any(isinstance(c, bool) or not isinstance(c, int) for c in cuts):
            raise CertificateError("cuts must be a list of operators")
        if any(not 0 <= c < count for c in cuts) or sorted(set(cuts)) != cuts:
            raise CertificateError(f"cuts must be operators below {count}, rising")
        return cuts

    def _blocks(self) -> list[list[int]]:
        """Operators after one cut and before the next one, and that one; after the last cut what is after it.

        Raises
        ------
        CertificateError : a cut that is not before the next one, a group that is in a block in part only
        """
        before: list[set[int]] = []
        for i in range(self.problem.count):
            before.append(set().union(*({p} | before[p] for p, _ in self.waits[i])))
        if any(c not in before[d] for c, d in itertools.pairwise(self.cuts)):
            raise CertificateError("every cut must be before the next one")
        out, first = [], -1
        for last in [*self.cuts, self.problem.count]:
            reach = range(self.problem.count) if last == self.problem.count else sorted({last} | before[last])
            out.append([i for i in reach if first < 0 or first in before[i]])
            first = last
        number = {i: n for n, block in enumerate(out) for i in block}
        if any(len({number.get(i) for i in own}) > 1 for own in self.own):
            raise CertificateError("a cut parts a group")
        return out

    def longest(self) -> float:
        """Go from cut to cut: the least end on every unit of a cut, from that of the one before."""
        now: dict[int, float] = {-1: 0}
        inner = {i for own in self.own for i in own[:-1]}
        first = -1
        for cut, block in zip([*self.cuts, None], self.blocks, strict=True):
            then: dict[int, float] = {}
            for a, since in now.items():
                ends = self._ends(block, first, a)
                if cut is None:
                    last = [min(ends[i].values(), default=math.inf) for i in block if i not in inner]
                    ends[-1], cut_now = {-1: max(last, default=0)}, -1
                else:
                    cut_now = cut
                for j, value in ends[cut_now].items():
                    then[j] = min(then.get(j, math.inf), value + since)
            now, first = then, -1 if cut is None else cut
        return min(now.values(), default=math.inf)

    def _ends(self, block: list[int], cut: int, unit: int) -> dict[int, dict[int, float]]:
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
        """When all that operator i waits for can be on unit j; a whole number, or inf."""
        table = self.problem.flows.time
        ready: float = 0
        for p, t in self.waits[i]:
            if p in done and p not in apart:
                came = [end + int(table[t, self.site[a], self.site[j]]) for a, end in done[p].items()]
                ready = max(ready, min(came, default=math.inf))
        return ready
