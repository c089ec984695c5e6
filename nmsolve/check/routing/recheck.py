"""Bounds on routes recomputed from their certificates alone, in whole numbers and fractions; no solver, no code of the engines.

*split-flow*: give every link a length >= 0. A flow of rate r loads the links of its route or tree with r each, so the loads times
the lengths add up to at least ``sum r * (least length of a route or tree)``; and to at most the largest load times the sum of the
lengths. The quotient is a lower bound on the largest load; the best lengths are the dual of the splittable-flow LP.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from nmsolve.check.foreign import foreign_recheck, unknown_method
from nmsolve.check.reward import Flow, exchange_loss
from nmsolve.model.bound import Bound, BoundCheck
from nmsolve.model.links import link_ends, link_works
from nmsolve.model.routing.problem import RoutingProblem, hop_distances

Lengths = Mapping[int, int]


#: Methods whose bounds are recomputed here, and engines of whose bounds only their word is left.
RECHECKED, WORDS = ("split-flow", "counting"), ("route-cpsat", "route-mip")
#: What a reward, a sum of floats, may be off by, relatively.
FLOATS = Fraction(1, 10**10)


class BadCertificate(ValueError):
    """A certificate that proves nothing, and why."""


def recheck_split_flow(problem: RoutingProblem, certificate: Mapping[str, Any]) -> Fraction:
    """Return the bound on ``max-link`` that lengths of links prove.

    Parameters
    ----------
    certificate : ``length``: 4 * P whole numbers >= 0. ``shares`` (multicast flows only, optional): for a flow (as text) one list
        of ``(link, length)`` per target; the shares of a link may not exceed its length. The least length of the tree is then at
        least the sum over targets of the shortest routes by their shares; without shares the longest of the shortest routes by
        ``length``.

    Raises
    ------
    BadCertificate : wrong shape, negative or all-zero lengths, shares above the length
    """
    length = _whole(certificate.get("length"), 4 * problem.machine.size)
    total = sum(length)
    if total <= 0:
        raise BadCertificate("all lengths are 0")
    shares = certificate.get("shares", {})
    if not isinstance(shares, dict):
        raise BadCertificate("the shares are not an object")
    graph = _Graph(problem)
    by_link = dict(enumerate(length))
    weighted = Fraction(0)
    for f in range(problem.flows.count):
        source, goals = int(problem.flows.source[f]), problem.flows.of(f).tolist()
        mine = shares.get(str(f)) if len(goals) > 1 else None
        if mine is None:
            least = max(graph.shortest(source, t, by_link) for t in goals)
        else:
            least = sum(
                graph.shortest(source, t, part)
                for t, part in zip(goals, _parts(mine, goals, length), strict=True)
            )
        weighted += Fraction(float(problem.flows.rate[f])) * least
    return weighted / total


def counted(problem: RoutingProblem, name: str) -> Fraction:
    """Return what counting alone says that objective ``name`` cannot go below.

    ``max-link``: what a core sends or receives, spread evenly over its links; ``total-link``: every flow needs as many links as
    its farthest target is away, and one per target; ``turns``: each way round a square of four cores one turn must be prohibited
    (one channel per link), or those that are given; ``reward``: no prohibited turn at all.
    """
    if name == "max-link":
        return max(_through_links(problem), default=Fraction(0))
    if name == "total-link":
        return _least_total(problem)
    if problem.turns is not None:
        turns = problem.turns.prohibited(problem.machine)
    else:
        turns = _squares(problem) if problem.channels == 1 else 0
    if name == "turns":
        return Fraction(turns)
    sent: dict[Flow, float] = {}
    for f in range(problem.flows.count):
        flow = (int(problem.flows.source[f]), tuple(problem.flows.of(f).tolist()))
        sent[flow] = sent.get(flow, 0.0) + float(problem.flows.rate[f])
    loss = Fraction(exchange_loss(sent, problem.machine))
    return max(Fraction(0), loss * (1 - FLOATS))


def check_routing_bound(problem: RoutingProblem, objective: str, bound: Bound) -> BoundCheck:
    """Re-check a bound on one objective of a routing problem from its certificate.

    Bounds of solvers that leave only a status are *trusted*, and the text says that they rest on the solver's word; no
    other word counts. A bound on a later objective holds for routes that are as good in all objectives before it.
    """
    if not 0 <= bound.value < math.inf or bound.scope != "full":
        return BoundCheck(False, math.nan, f"{bound.value} ({bound.scope[:20]}) is not a bound of all routes")
    if bound.method not in (*RECHECKED, *WORDS):
        found = foreign_recheck("routing", bound, (problem, objective))
        return found or BoundCheck(False, math.nan, unknown_method(bound.method))
    if bound.value == 0:
        return BoundCheck(True, 0.0, "no objective is below 0")
    if bound.method in WORDS:
        status = str(bound.certificate.get("status", "none"))[:40]
        text = f"rests on the word of {bound.method} (status {status}); nothing here can be recomputed"
        return BoundCheck(True, bound.value, text, bound.method)
    try:
        if bound.method == "counting":
            value = counted(problem, objective)
        elif objective == "max-link":
            value = recheck_split_flow(problem, bound.certificate)
        else:
            raise BadCertificate(f"splittable flows bound the largest load, not {objective}")
    except BadCertificate as broken:
        return BoundCheck(False, math.nan, f"certificate of {bound.method}: {broken}")
    exact = Fraction(-(-value.numerator // value.denominator)) if whole_values(problem, objective) else value
    proved = float(exact)
    if Fraction(proved) > exact:
        proved = math.nextafter(proved, 0.0)
    if bound.value > proved:
        text = f"the certificate proves only {proved:.10g}, the claim is {bound.value:.10g}"
        return BoundCheck(False, proved, text)
    return BoundCheck(True, proved, f"recomputed from the certificate: {proved:.10g}")


def whole_values(problem: RoutingProblem, objective: str) -> bool:
    """Return whether the objective is a whole number whatever the routes: a number of turns, or sums of whole rates."""
    rates = problem.flows.rate
    exact = bool((np.floor(rates) == rates).all()) and float(rates.sum()) < 2.0**53
    return objective == "turns" or (objective != "reward" and exact)


class _Graph:
    """Working links by the core they leave, and how far cores are apart."""

    def __init__(self, problem: RoutingProblem) -> None:
        works, ends = link_works(problem.machine), link_ends(problem.machine)
        self.out: list[list[tuple[int, int]]] = [[] for _ in range(problem.machine.size)]
        for link in np.flatnonzero(works).tolist():
            self.out[link // 4].append((link, int(ends[link])))
        self.far = hop_distances(problem.machine).tolist()  # [to][from]
        self.detour = problem.detour

    def shortest(self, source: int, goal: int, length: Lengths) -> int:
        """Return the least length of a route over links that routes from ``source`` to ``goal`` may take (Dijkstra 1959)."""
        most = self.far[goal][source] + self.detour
        if self.far[goal][source] < 0:
            raise BadCertificate(f"there is no route from core {source} to core {goal}")
        heap, done = [(0, source)], set()
        while heap:
            d, core = heapq.heappop(heap)
            if core == goal:
                return d
            if core in done:
                continue
            done.add(core)
            for link, end in self.out[core]:
                away, left = self.far[core][source], self.far[goal][end]
                if end not in done and away >= 0 and left >= 0 and away + 1 + left <= most:
                    heapq.heappush(heap, (d + length.get(link, 0), end))
        raise BadCertificate(f"no route from core {source} to core {goal} is short enough")


def _whole(values: Any, count: int) -> list[int]:
    if not isinstance(values, list | tuple | np.ndarray) or len(values) != count:
        raise BadCertificate(f"the lengths are not {count} numbers")
    return [_whole_number(x, "length") for x in values]


def _whole_number(value: Any, what: str) -> int:
    """Return a whole number from 0 to 1e300."""
    if isinstance(value, np.generic):
        value = value.item()
    fine = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1e300
    if not fine or value != int(value):
        raise BadCertificate(f"a {what} is {str(value)[:40]}, not a whole number from 0 to 1e300")
    return int(value)


def _parts(mine: Any, goals: list[int], length: list[int]) -> list[Lengths]:
    """Return shares as one mapping per target, after a look that no link is shared out more than once."""
    if not isinstance(mine, list) or len(mine) != len(goals):
        raise BadCertificate("a multicast flow has shares for another number of targets")
    used: dict[int, int] = {}
    parts: list[Lengths] = []
    for part in mine:
        one: dict[int, int] = {}
        for pair in part if isinstance(part, list) else [part]:
            if not isinstance(pair, list | tuple | np.ndarray) or len(pair) != 2:
                raise BadCertificate("a share is not a link and a number")
            link, share = _whole_number(pair[0], "link"), _whole_number(pair[1], "share")
            if link >= len(length):
                raise BadCertificate(f"a share is of link {link}, there are {len(length)}")
            one[link] = one.get(link, 0) + share
            used[link] = used.get(link, 0) + share
        parts.append(one)
    if any(total > length[link] for link, total in used.items()):
        raise BadCertificate("the shares of a link are more than its length")
    return parts


def _through_links(problem: RoutingProblem) -> list[Fraction]:
    works, ends = link_works(problem.machine), link_ends(problem.machine)
    flows, size = problem.flows, problem.machine.size
    links = np.flatnonzero(works)
    leaves = np.bincount(links // 4, minlength=size).tolist()
    enters = np.bincount(ends[links], minlength=size).tolist()
    rates, unit = _whole_rates(problem)
    sent, taken = [0] * size, [0] * size
    for source, goals, rate in zip(flows.source.tolist(), _goals(problem), rates, strict=True):
        sent[source] += rate
        for t in goals:
            taken[t] += rate
    out = [Fraction(r, unit * n) for r, n in zip(sent, leaves, strict=True) if n]
    return out + [Fraction(r, unit * n) for r, n in zip(taken, enters, strict=True) if n]


def _least_total(problem: RoutingProblem) -> Fraction:
    goals, distances = problem.distances
    far = dict(zip(goals.tolist(), distances.tolist(), strict=True))
    rates, unit = _whole_rates(problem)
    out = 0
    for source, mine, rate in zip(problem.flows.source.tolist(), _goals(problem), rates, strict=True):
        out += rate * max(max(far[t][source] for t in mine), len(mine))
    return Fraction(out, unit)


def _whole_rates(problem: RoutingProblem) -> tuple[list[int], int]:
    """Return the rates of all flows in units of 1/``unit``, in which they are whole numbers, and ``unit``."""
    parts = [rate.as_integer_ratio() for rate in problem.flows.rate.tolist()]
    unit = max((below for _, below in parts), default=1)  # all are powers of two
    return [above * (unit // below) for above, below in parts], unit


def _goals(problem: RoutingProblem) -> list[list[int]]:
    """Return the targets of every flow."""
    targets = problem.flows.targets.tolist()
    return [targets[a:b] for a, b in pairwise(problem.flows.indptr.tolist())]


def _squares(problem: RoutingProblem) -> int:
    """Return cycles of four links round four neighbouring cores, counted both ways."""
    works, ends = link_works(problem.machine), link_ends(problem.machine)
    count = 0
    for ways in ((0, 2, 1, 3), (0, 3, 1, 2)):
        for core in range(problem.machine.size):
            at = core
            for way in ways:
                at = int(ends[4 * at + way]) if at >= 0 and works[4 * at + way] else -1
            count += at == core
    return count
