"""Legs, trees and keys of a routing problem and the channels each may take: one input for the exact models.

A *leg* is the path of a flow to one of its targets, the *tree* of a flow is the union of its legs, a *key* is what a routing
table tells apart: the flow, the core that sends, or the core that receives; the links of a key are the union of its flows' trees.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import Any

import numpy as np

from nmsolve.hw.routing.order import Pairs, following, number_of, required_order, square_turns, turning
from nmsolve.model.links import link_ends
from nmsolve.model.routing.problem import RoutingProblem, hop_distances
from nmsolve.model.routing.routes import Routes
from nmsolve.model.routing.stage import RoutingStage, hang_up, leg_lengths, legs_of, working_channels
from nmsolve.model.types import IntArray
from nmsolve.solvers.search.scaling import OBJECTIVE_LIMIT, Scale, to_whole, whole_factor


@dataclass(frozen=True, eq=False)
class RouteData:
    """A routing problem as lists for models; ``tail`` and ``head`` (4 * P * V,) are the cores a channel leaves and reaches."""

    problem: RoutingProblem

    @cached_property
    def ends(self) -> IntArray:
        """(4 * P * V,) core that a channel leads to; -1: none."""
        return np.repeat(link_ends(self.problem.machine), self.problem.channels)

    @cached_property
    def working(self) -> IntArray:
        """Return (channels,) those that exist and work, rising."""
        return working_channels(self.problem)

    @cached_property
    def leg_flow(self) -> IntArray:
        """(T,) flow of every leg."""
        return legs_of(self.problem.flows)[0]

    @cached_property
    def longest(self) -> IntArray:
        """(T,) most links of every leg."""
        out: IntArray = leg_lengths(self.problem) + self.problem.detour
        return out

    @cached_property
    def legs(self) -> list[list[int]]:
        """Channels that every leg may take: those on a route from its source to its target that is not too long."""
        problem, flows = self.problem, self.problem.flows
        back = hop_distances(problem.machine)  # [to, from]
        tail, head = self.working // problem.channels // 4, self.ends[self.working]
        _, source = legs_of(flows)
        out = []
        for s, t, most in zip(source.tolist(), flows.targets.tolist(), self.longest.tolist(), strict=True):
            a, b = back[tail, s], back[t, head]
            fits = (a >= 0) & (b >= 0) & (a + 1 + b <= most) & (head != s) & (tail != t)
            out.append(self.working[fits].tolist())
        return out

    @cached_property
    def trees(self) -> list[list[int]]:
        """Channels that every flow may take."""
        indptr = self.problem.flows.indptr.tolist()
        return [sorted({c for k in range(a, b) for c in self.legs[k]}) for a, b in pairwise(indptr)]

    @cached_property
    def key_of(self) -> list[int]:
        """(F,) key of every flow: itself, its source core, or its target core."""
        flows = self.problem.flows
        if self.problem.form == "flow":
            return list(range(flows.count))
        cores = flows.source if self.problem.form == "source" else flows.targets
        _, where = np.unique(cores, return_inverse=True)
        return [int(k) for k in where]

    @cached_property
    def members(self) -> list[list[int]]:
        """Flows of every key."""
        out: list[list[int]] = [[] for _ in range(max(self.key_of, default=-1) + 1)]
        for f, key in enumerate(self.key_of):
            out[key].append(f)
        return out

    @cached_property
    def unions(self) -> list[list[int]]:
        """Channels that every key may take."""
        return [sorted({c for f in flows for c in self.trees[f]}) for flows in self.members]

    @cached_property
    def follow(self) -> Pairs:
        """All pairs (channel, next channel) without turning back; with given turns only allowed ones."""
        before, after = following(self.problem)
        if self.problem.turns is None:
            return before, after
        v = self.problem.channels
        ok = self.problem.turns.allowed[after // v // 4, before // v % 4, after // v % 4]
        return before[ok], after[ok]

    @cached_property
    def turns(self) -> list[tuple[int, int]]:
        """Pairs of channels that are 90-degree turns; empty if turns are given."""
        if self.problem.turns is not None:
            return []
        before, after = turning(self.problem)
        return list(zip(before.tolist(), after.tolist(), strict=True))

    @cached_property
    def required(self) -> list[tuple[int, int]]:
        """Pairs that must be in order whatever the routes."""
        before, after = required_order(self.problem)
        return list(zip(before.tolist(), after.tolist(), strict=True))

    @cached_property
    def squares(self) -> list[list[tuple[int, int]]]:
        """Four turns round every square, both ways; at most three can be in order (one channel per link)."""
        if self.problem.turns is not None or self.problem.channels > 1:
            return []
        before, after = square_turns(self.problem)
        return [list(zip(a, b, strict=True)) for a, b in zip(before.tolist(), after.tolist(), strict=True)]

    @cached_property
    def many(self) -> list[bool]:
        """(F,) whether a flow has more than one target."""
        return [bool(k > 1) for k in np.diff(self.problem.flows.indptr)]

    @cached_property
    def ending(self) -> list[set[int]]:
        """Cores where every key needs a table entry anyway: where its messages start or end (forms ``flow`` and ``source``)."""
        flows = self.problem.flows
        return [
            {int(flows.source[f]) for f in mine} | {int(t) for f in mine for t in flows.of(f)}
            for mine in self.members
        ]

    @cached_property
    def least_trees(self) -> IntArray:
        """(F,) a number of links that no tree of the flow goes below: the farthest target, or the number of targets."""
        flows = self.problem.flows
        if flows.count == 0:
            return np.zeros(0, np.int64)
        far = np.maximum.reduceat(leg_lengths(self.problem), flows.indptr[:-1])
        return np.maximum(far, np.diff(flows.indptr))

    @cached_property
    def rate(self) -> IntArray:
        """(F,) rates as whole numbers, see :attr:`scale`."""
        return to_whole(self.problem.flows.rate, *self._factor)

    @cached_property
    def _factor(self) -> tuple[float, bool]:
        sums = max(1, self.problem.flows.count) * max(1, len(self.working))
        return whole_factor(self.problem.flows.rate, OBJECTIVE_LIMIT / sums)

    def scale(self, name: str) -> Scale:
        """From the models' numbers to the objective ``name``."""
        if name in ("max-link", "total-link"):
            return Scale(*self._factor, self.problem.integral)
        return Scale(1.0, True, name != "reward")

    def meeting(self, channels: Iterable[int]) -> Iterator[tuple[tuple[int, int], bool]]:
        """Pairs of a key's channels that meet in a core and need not be in order anyway, each with whether it may be."""
        into, out = in_and_out(self, {c: c for c in channels})
        for p, before in into.items():
            for ab in product(before, out.get(p, [])):
                if ab not in self._free:
                    yield ab, ab in self._may_follow

    @cached_property
    def _may_follow(self) -> set[tuple[int, int]]:
        return set(zip(*(x.tolist() for x in self.follow), strict=True))

    @cached_property
    def _free(self) -> set[tuple[int, int]]:
        return set(self.required)

    @property
    def size(self) -> int:
        """Variables of legs and trees: what a model grows with."""
        return sum(map(len, self.legs)) + sum(len(t) for t, m in zip(self.trees, self.many, strict=True) if m)

    def routes(self, used: list[list[int]]) -> Routes:
        """Routes from the channels every flow takes, in any order; what does not hang together comes out as it is."""
        flow: list[int] = []
        channel: list[int] = []
        for f, mine in enumerate(used):
            by_tail: dict[int, list[int]] = {}
            for c in sorted(mine):
                by_tail.setdefault(c // self.problem.channels // 4, []).append(c)
            queue, seen = [int(self.problem.flows.source[f])], 0
            while seen < len(queue):
                for c in by_tail.pop(queue[seen], ()):
                    flow.append(f)
                    channel.append(c)
                    queue.append(int(self.ends[c]))
                seen += 1
        return hang_up(self.problem, np.array(flow, np.int64), np.array(channel, np.int64))

    def solution(
        self, stage: RoutingStage, used: list[list[int]], allowed: list[tuple[int, int]]
    ) -> IntArray:
        """Return (slots + channels,) the solution with these channels of every tree; numbers allow every turn of the model."""
        routes = self.routes(used)
        pairs = np.array(allowed, np.int64).reshape(-1, 2)
        number = number_of(self.problem, routes, (pairs[:, 0], pairs[:, 1]))
        if number is None:  # cannot be by the rules; the checker says what is wrong
            number = np.full(stage.channels, -1, np.int64)
        return stage.pack(routes, number)


def in_and_out(
    data: RouteData, variables: Mapping[int, Any]
) -> tuple[dict[int, list[Any]], dict[int, list[Any]]]:
    """By core: variables of the channels that enter it, and of those that leave it."""
    into: dict[int, list[Any]] = {}
    out: dict[int, list[Any]] = {}
    for c, x in variables.items():
        into.setdefault(int(data.ends[c]), []).append(x)
        out.setdefault(c // data.problem.channels // 4, []).append(x)
    return into, out
