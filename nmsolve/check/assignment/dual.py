"""Bounds of ``dual`` recomputed from the network as stated, in whole numbers.

The certificate's steps are repeated, each after a look at the tables: strategies of a class of nodes that go with none of another
class are dropped; a class where one strategy at most goes with each of another class's (or that has only one left) is merged into
that class. What is left is a network of classes with the same least cost. Tables that are a sum of a cost per row and one per
column become costs.

For any prices >= 0 of bytes, a solution that keeps within all memories costs no less than its costs and the prices of its bytes,
less the prices of all there are. And whatever tables give to their nodes, or take from them, a sum of minima is no more than the
least sum. The recomputed bound is the sum of the least cost of every class and every table, less what the memories are paid.

With ``below``, a known cost, a certificate may go on: strategies of classes and entries of tables that cost so much beyond their
least that no solution cheaper than ``below`` takes them are forbidden, and ``then`` is a certificate about what is left; or two
of them, one for some strategies of the class in ``split`` and one for all others. Solutions cheaper than ``below`` cost no less
than what these prove, so the bound is that, or ``below``. A bound above all costs together says that there is no solution.

An assignment is checked as the network that :mod:`.network` states, by code that no engine uses. Not so :class:`Classes`: where
the engine closes a gap (``below``), it says which strategies and entries are left, and what a part proves, so a fault in it would
be in the claim and here. Tests hold such bounds against all assignments (tests/test_assign_dual.py, tests/differential).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from itertools import pairwise
from typing import Any

import numpy as np

from nmsolve.check.assignment.network import network_of
from nmsolve.check.rechecked import compared
from nmsolve.model import clock
from nmsolve.model.assignment.network import FORBIDDEN, CostNetwork, cost_range
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.bound import Bound, BoundCheck
from nmsolve.model.errors import CertificateError
from nmsolve.model.types import FloatArray, IntArray

#: No number may reach this, so that a few of them add up in 64 bits.
LARGEST = 2**61
#: What a forbidden entry has left.
NEVER = 2**62
#: Parts of a certificate that may follow each other.
DEEPEST = 300
#: Kinds of steps.
DROP, MERGE = 0, 1


def check(problem: AssignProblem | CostNetwork, bound: Bound, seconds: float) -> BoundCheck:
    """Recompute the bound; about ``seconds`` are used before it gives up.

    Raises
    ------
    CertificateError : the certificate is damaged, about another problem, or has too many parts for the time
    """
    end = clock.now() + seconds
    if isinstance(problem, CostNetwork):
        network = problem
    elif problem.objective in ("latency", "energy"):
        network = network_of(problem)
    else:
        raise CertificateError(f"messages bound sums of costs, not {problem.objective}")
    proved: float = proved_by(network, bound.certificate, end)
    most = cost_range(network)[1]
    if most < min(proved, FORBIDDEN):
        proved = math.inf  # more than everything costs: no solution keeps the rules
    return compared(bound, proved, f"messages and prices prove {proved:,}")


def proved_by(network: CostNetwork, certificate: Any, end: float = math.inf) -> int:
    """Return the bound that steps, prices and messages prove, if that is known by ``end``; see the module."""
    below = None if certificate.get("below") is None else _within(certificate, "below", -(2**60), 2**60)
    return _proved(Classes(network), certificate, below, end, 0)


def _proved(classes: Classes, part: Any, below: int | None, end: float, depth: int) -> int:
    """Return what one part of a certificate proves, no more than ``below``."""
    if clock.now() > end:
        raise CertificateError("it has more parts than could be recomputed in time")
    value = classes.advance(part, below)
    following = part.get("then")
    if below is None or value >= below or following is None:
        return value
    if depth >= DEEPEST:
        raise CertificateError(f"more than {DEEPEST} parts go on from each other")
    if isinstance(following, Mapping):
        return max(value, _proved(classes, following, below, end, depth + 1))
    if not isinstance(following, list) or len(following) != 2:
        raise CertificateError("what follows is no certificate, nor two of them")
    split = _lists(part.get("split"), "split")
    if len(split) != 1:
        raise CertificateError("split is not one list of a node and strategies of it")
    least = below
    for one, inside in zip(following, (True, False), strict=True):
        branch = classes.copy()
        branch.keep(split[0], inside)
        least = min(least, _proved(branch, one, below, end, depth + 1))
    return max(value, least)


def _within(certificate: Any, name: str, least: int, most: int) -> int:
    """Return a whole number of the certificate."""
    number = certificate.get(name) if isinstance(certificate, Mapping) else None
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or not least <= number <= most:
        raise CertificateError(f"{name} is {number!r:.40}, not a whole number {least}..{most}")
    return int(number)


class Classes:
    """Nodes merged so far: costs by strategy of a root, tables by pair of roots, and what members do.

    ``excess``: by root, what its strategies cost at least beyond what was proved last; ``room``: what they may, in parts. What
    is beyond the room is no more than one part beyond it there.
    """

    def __init__(self, network: CostNetwork) -> None:
        self.network = network
        at = network.ptr
        self.cost = [np.minimum(network.cost[a:b], FORBIDDEN) for a, b in pairwise(at)]
        self.near: list[dict[int, IntArray]] = [{} for _ in self.cost]
        self.root = list(range(network.count))
        self.merged: list[tuple[int, int, IntArray]] = []
        self.excess: dict[int, IntArray] = {}
        self.room = 0
        for e, (u, v) in enumerate(network.ends.tolist()):
            self._join(u, v, np.minimum(network.tables(e), FORBIDDEN))

    def _join(self, u: int, v: int, table: IntArray) -> None:
        """Add a table to the pair (u, v)."""
        known = self.near[u].get(v)
        table = table if known is None else np.minimum(known + table, FORBIDDEN)
        self.near[u][v], self.near[v][u] = table, table.T

    def class_of(self, node: int) -> int:
        """Return the root of a node's class."""
        if not 0 <= node < len(self.root):
            raise CertificateError(f"there is no node {node}")
        while self.root[node] != node:
            self.root[node] = self.root[self.root[node]]
            node = self.root[node]
        return node

    def step(self, kind: int, v: int, u: int) -> None:
        """Drop strategies of v's class, or merge it into that of u."""
        v, u = self.class_of(v), self.class_of(u)
        if kind not in (DROP, MERGE) or u == v:
            raise CertificateError(f"step {kind} of classes {v} and {u}")
        table = self.near[u].get(v, np.zeros((len(self.cost[u]), len(self.cost[v])), np.int64))
        allowed = (table < FORBIDDEN) & (self.cost[u] < FORBIDDEN)[:, None] & (self.cost[v] < FORBIDDEN)
        if kind == DROP:
            self.cost[v] = np.where(allowed.any(axis=0), self.cost[v], FORBIDDEN)
            return
        if (allowed.sum(axis=1) > 1).any():
            raise CertificateError(f"class {u} does not determine class {v}")
        partner = allowed.argmax(axis=1)
        joined = self.cost[u] + self.cost[v][partner] + table[np.arange(len(partner)), partner]
        self.cost[u] = np.where(allowed.any(axis=1), np.minimum(joined, FORBIDDEN), FORBIDDEN)
        for other, its in self.near[v].items():
            del self.near[other][v]
            if other != u:
                self._join(u, other, its[partner])
        self.near[v] = {}
        self.root[v] = u
        self.merged.append((v, u, partner))

    def copy(self) -> Classes:
        """Return the same, to go on from in another way."""
        other = copy(self)
        other.cost, other.root, other.merged = list(self.cost), list(self.root), list(self.merged)
        other.near = [dict(own) for own in self.near]
        return other

    def keep(self, split: list[int], inside: bool) -> None:
        """Forbid all strategies of a class but some, or these; ``split`` is a node of it and then the strategies."""
        root = self.class_of(split[0] if split else -1)
        chosen = np.isin(np.arange(len(self.cost[root])), split[1:])
        self.cost[root] = np.where(chosen == inside, self.cost[root], FORBIDDEN)

    def dead(self) -> bool:
        """Return whether no strategy of some class is left."""
        return any(r == i and not (self.cost[i] < FORBIDDEN).any() for i, r in enumerate(self.root))

    def advance(self, part: Any, below: int | None) -> int:
        """Return what a part proves of what is left, no more than ``below``; then forbid what no cheaper solution takes."""
        parts, finer = _within(part, "parts", 1, 2**40), _within(part, "finer", 0, 60)
        for kind, v, u in _rows(part.get("steps"), "steps").tolist():
            self.step(kind, v, u)
        if below is not None and self.dead():
            return below
        charge, paid = _charges(self.network, _rows(part.get("prices"), "prices"), finer)
        unary, rough = self._charged(parts, charge)
        rests = self._rests(unary, rough, parts, _lists(part.get("messages"), "messages"))
        total = sum(int(rest[rest < NEVER].min()) for rest in rests.values()) - paid
        total += sum(int(unary[r][self.cost[r] < FORBIDDEN].min()) for r in unary)
        value = -(-total // parts) + self.network.constant
        if below is None:
            return value
        if value < below:
            self._forbid(unary, rests, (below - 1 - self.network.constant) * parts - total)
        return min(value, below)

    def _rests(
        self,
        unary: dict[int, IntArray],
        rough: dict[int, FloatArray],
        parts: int,
        messages: list[list[int]],
    ) -> dict[tuple[int, int], IntArray]:
        """Return what tables of what is left keep, in parts, :data:`NEVER` if forbidden; what they give goes to ``unary``.

        Whole numbers of 64 bits that overflow on the way are right again where the sum is small; ``rough`` says that it is.
        """
        pairs = self._folded(unary, rough, parts)
        if len(messages) != len(pairs):
            raise CertificateError(f"{len(messages)} messages for {len(pairs)} tables")
        rests = {}
        for ((u, v), table), numbers in zip(sorted(pairs.items()), messages, strict=True):
            rows = np.flatnonzero(self.cost[u] < FORBIDDEN)
            columns = np.flatnonzero(self.cost[v] < FORBIDDEN)
            own = np.array(numbers, np.int64)
            if len(own) != len(rows) + len(columns):
                raise CertificateError(f"{len(own)} numbers in the message of classes {u} and {v}")
            unary[u][rows] += own[: len(rows)]
            unary[v][columns] += own[len(rows) :]
            rough[u][rows] += own[: len(rows)]
            rough[v][columns] += own[len(rows) :]
            fine = table < FORBIDDEN
            if not fine.any():
                raise CertificateError(f"nothing is allowed between classes {u} and {v}")
            _require_small(np.array([float(table[fine].max()) * parts + 2 * np.abs(own.astype(float)).max()]))
            left = np.where(fine, table, 0) * parts - own[: len(rows), None] - own[len(rows) :]
            rests[u, v] = np.where(fine, left, NEVER)
        for r, sums in rough.items():
            _require_small(sums[self.cost[r] < FORBIDDEN])
        return rests

    def _forbid(self, unary: dict[int, IntArray], rests: dict[tuple[int, int], IntArray], room: int) -> None:
        """Forbid what costs more than ``room`` >= 0 beyond the sum of all minima.

        In whole numbers: what is beyond the room counts as one part beyond it, so that sums stay small.
        """
        if room >= LARGEST:
            self.excess, self.room = {}, 0
            return
        far = room + 1
        own = {}
        for r, costs in unary.items():
            alive = self.cost[r] < FORBIDDEN
            own[r] = np.where(alive, np.minimum(costs - costs[alive].min(), far), far)
        more = {}
        for (u, v), rest in rests.items():
            extra = np.where(rest < NEVER, np.minimum(rest - rest.min(), far), far)
            more[u, v] = extra, extra.min(axis=1), extra.min(axis=0)
            for r, least in ((u, more[u, v][1]), (v, more[u, v][2])):
                alive = self.cost[r] < FORBIDDEN
                own[r][alive] = np.minimum(own[r][alive] + least, far)
        for (u, v), (extra, across, down) in more.items():
            rows, columns = self.cost[u] < FORBIDDEN, self.cost[v] < FORBIDDEN
            # where a strategy is too dear this is too little, but then the strategy itself is forbidden
            whole = extra + (own[u][rows] - across)[:, None] + (own[v][columns] - down)
            table = self.near[u][v].copy()
            table[np.ix_(rows, columns)] = np.where(whole <= room, table[np.ix_(rows, columns)], FORBIDDEN)
            self.near[u][v], self.near[v][u] = table, table.T
        self.excess, self.room = own, room
        for r, costs in own.items():
            self.cost[r] = np.where(costs <= room, self.cost[r], FORBIDDEN)

    def _charged(self, parts: int, charge: IntArray) -> tuple[dict[int, IntArray], dict[int, FloatArray]]:
        """Return costs with those of memory of every root's strategies, in parts, and the same in floats."""
        does = {r: np.arange(len(self.cost[r])) for r in range(len(self.root)) if self.root[r] == r}
        out = {r: np.where(self.cost[r] < FORBIDDEN, self.cost[r], 0) for r in does}
        rough = {r: own * float(parts) for r, own in out.items()}
        out = {r: own * parts for r, own in out.items()}
        for v, u, partner in reversed(self.merged):
            does[v] = partner[does[u]]
        for node, strategies in does.items():
            more, r = charge[self.network.ptr[node] + strategies], self.class_of(node)
            out[r] += more
            rough[r] += more
        for r, own in rough.items():
            if not (self.cost[r] < FORBIDDEN).any():
                raise CertificateError(f"no strategy of class {r} is left")
            _require_small(own[self.cost[r] < FORBIDDEN])
        return out, rough

    def _folded(
        self, unary: dict[int, IntArray], rough: dict[int, FloatArray], parts: int
    ) -> dict[tuple[int, int], IntArray]:
        """Return tables of what is left, by pair; sums of two costs go to ``unary``."""
        pairs = {}
        for u in unary:
            for v, whole in self.near[u].items():
                if u > v:
                    continue
                rows, columns = self.cost[u] < FORBIDDEN, self.cost[v] < FORBIDDEN
                table = whole[rows][:, columns]
                if (table < FORBIDDEN).all() and not (table - table[:, :1] - table[:1] + table[0, 0]).any():
                    for r, alive, costs in ((u, rows, table[:, 0]), (v, columns, table[0] - table[0, 0])):
                        unary[r][alive] += costs * parts
                        rough[r][alive] += costs * float(parts)
                else:
                    pairs[u, v] = table
        return pairs


def _require_small(numbers: FloatArray | IntArray, times: float = 1.0) -> None:
    """Refuse numbers that whole ones of 64 bits might not hold when a few are added up."""
    if float(np.abs(numbers.astype(np.float64)).max(initial=0)) * times >= LARGEST:
        raise CertificateError("the numbers are too large")


def _charges(network: CostNetwork, prices: IntArray, finer: int) -> tuple[IntArray, int]:
    """Return what the memory of every choice costs at least, and what all memories are paid at most, in parts.

    Rows of ``prices`` are memory, position, price; prices are finer than parts by this many bits.
    """
    charge, paid = np.zeros(len(network.cost), np.int64), 0
    memory, _, price = prices.T
    if len(prices) and (
        memory.min() < 0
        or memory.max() >= len(network.capacity)
        or price.min() < 0
        or not np.isfinite(network.capacity[memory]).all()
    ):
        raise CertificateError("prices are of memories with a limit, and never negative")
    d = network.demand
    _require_small(np.append(d[:, 3], 1), float(price.astype(np.float64).sum()))
    for m in np.unique(memory).tolist():
        own = prices[memory == m]
        own = own[np.argsort(own[:, 1], kind="stable")]
        upto = np.concatenate([[0], np.cumsum(own[:, 2])])
        rows = d[(d[:, 4] == m) & (d[:, 1] < d[:, 2])]
        held = upto[np.searchsorted(own[:, 1], rows[:, 2])] - upto[np.searchsorted(own[:, 1], rows[:, 1])]
        np.add.at(charge, rows[:, 0], (held * rows[:, 3]) >> finer)
        paid += math.floor(network.capacity[m]) * int(upto[-1])
    return charge, -(-paid >> finer)


def _rows(rows: Any, what: str) -> IntArray:
    """Return rows of three whole numbers."""
    lists = _lists(rows, what)
    if any(len(row) != 3 for row in lists):
        raise CertificateError(f"{what} are no rows of three whole numbers")
    return np.array(lists, np.int64).reshape(-1, 3)


def _lists(lists: Any, what: str) -> list[list[int]]:
    """Return lists of whole numbers of 64 bits."""
    if isinstance(lists, np.ndarray):
        lists = lists.tolist()
    fine = isinstance(lists, list) and all(
        isinstance(row, list) and all(type(x) is int and abs(x) < LARGEST for x in row) for row in lists
    )
    if not fine:
        raise CertificateError(f"{what} are no lists of whole numbers")
    return list(lists)
