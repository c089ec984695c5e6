"""Bounds of ``dual`` recomputed from the network as stated, in whole numbers.

The certificate's steps are repeated, each after a look at the tables: strategies of a class of nodes that go with none of another
class are dropped; a class where one strategy at most goes with each of another class's (or that has only one left) is merged into
that class. What is left is a network of classes with the same least cost. Tables that are a sum of a cost per row and one per
column become costs.

For any prices >= 0 of bytes, a solution that keeps within all memories costs no less than its costs and the prices of its bytes,
less the prices of all there are. And whatever tables give to their nodes, or take from them, a sum of minima is no more than the
least sum. The recomputed bound is the sum of the least cost of every class and every table, less what the memories are paid.

An assignment is checked as the network of :mod:`nmsolve.model.assignment.reduction`.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from nmsolve.model.assignment.network import FORBIDDEN, CostNetwork
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.assignment.reduction import SUMS, reduced
from nmsolve.model.bound import Bound, BoundCheck
from nmsolve.model.errors import CertificateError
from nmsolve.model.types import FloatArray, IntArray

#: No number may reach this, so that a few of them add up in 64 bits.
LARGEST = 2.0**61
#: Kinds of steps.
DROP, MERGE = 0, 1


def check(problem: AssignProblem | CostNetwork, bound: Bound, seconds: float) -> BoundCheck:
    """Recompute the bound; ``seconds`` are not needed, as the work is about linear in the problem and the certificate.

    Raises
    ------
    CertificateError : the certificate is damaged, or about another problem
    """
    if not isinstance(problem, CostNetwork) and problem.objective not in SUMS:
        raise CertificateError(f"messages bound sums of costs, not {problem.objective}")
    network = reduced(problem).network
    proved = proved_by(network, bound.certificate)
    holds = math.isfinite(bound.value) and bound.value <= proved
    text = f"messages and prices prove {proved:,}"
    return BoundCheck(holds, float(proved), text if holds else f"{text}, the claim is {bound.value:,.17g}")


def proved_by(network: CostNetwork, certificate: Any) -> int:
    """Return the bound that steps, prices and messages prove; see the module."""
    parts, finer = _within(certificate, "parts", 1, 2**40), _within(certificate, "finer", 0, 60)
    classes = _Classes(network)
    for kind, v, u in _rows(certificate.get("steps"), "steps").tolist():
        classes.step(kind, v, u)
    messages = _lists(certificate.get("messages"), "messages")
    charge, paid = _charges(network, _rows(certificate.get("prices"), "prices"), finer)
    return -(-(classes.least(parts, charge, messages) - paid) // parts) + network.constant


def _within(certificate: Any, name: str, least: int, most: int) -> int:
    """Return a whole number of the certificate."""
    number = certificate.get(name)
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or not least <= number <= most:
        raise CertificateError(f"{name} is {number!r:.40}, not a whole number {least}..{most}")
    return int(number)


class _Classes:
    """Nodes merged so far: costs by strategy of a root, tables by pair of roots, and what members do."""

    def __init__(self, network: CostNetwork) -> None:
        self.network = network
        at = network.ptr
        self.cost = [np.minimum(network.cost[a:b], FORBIDDEN) for a, b in pairwise(at)]
        self.near: list[dict[int, IntArray]] = [{} for _ in self.cost]
        self.root = list(range(network.count))
        self.merged: list[tuple[int, int, IntArray]] = []
        for e, (u, v) in enumerate(network.ends.tolist()):
            self._join(u, v, np.minimum(network.tables(e), FORBIDDEN))

    def _join(self, u: int, v: int, table: IntArray) -> None:
        """Add a table to the pair (u, v)."""
        known = self.near[u].get(v)
        table = table if known is None else np.minimum(known + table, FORBIDDEN)
        self.near[u][v], self.near[v][u] = table, table.T

    def _class(self, node: int) -> int:
        if not 0 <= node < len(self.root):
            raise CertificateError(f"there is no node {node}")
        while self.root[node] != node:
            self.root[node] = self.root[self.root[node]]
            node = self.root[node]
        return node

    def step(self, kind: int, v: int, u: int) -> None:
        """Drop strategies of v's class, or merge it into that of u."""
        v, u = self._class(v), self._class(u)
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

    def least(self, parts: int, charge: IntArray, messages: list[list[int]]) -> int:
        """Return the sum of all minima, in whole parts; ``charge`` (choices,) is what their memory costs."""
        unary = self._charged(parts, charge)
        pairs = self._folded(unary, parts)
        rough = {r: own.astype(np.float64) for r, own in unary.items()}
        total = 0
        if len(messages) != len(pairs):
            raise CertificateError(f"{len(messages)} messages for {len(pairs)} tables")
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
            total += int(
                (np.where(fine, table, 0) * parts - own[: len(rows), None] - own[len(rows) :])[fine].min()
            )
        for sums in rough.values():
            _require_small(sums)
        return total + sum(int(unary[r][self.cost[r] < FORBIDDEN].min()) for r in unary)

    def _charged(self, parts: int, charge: IntArray) -> dict[int, IntArray]:
        """Return costs with those of memory of every root's strategies, in parts."""
        does = {r: np.arange(len(self.cost[r])) for r in range(len(self.root)) if self.root[r] == r}
        out = {r: np.where(self.cost[r] < FORBIDDEN, self.cost[r], 0) for r in does}
        rough = {r: own * float(parts) for r, own in out.items()}
        out = {r: own * parts for r, own in out.items()}
        for v, u, partner in reversed(self.merged):
            does[v] = partner[does[u]]
        for node, strategies in does.items():
            more, r = charge[self.network.ptr[node] + strategies], self._class(node)
            out[r] += more
            rough[r] += more
        for r, own in rough.items():
            if not (self.cost[r] < FORBIDDEN).any():
                raise CertificateError(f"no strategy of class {r} is left")
            _require_small(own)
        return out

    def _folded(self, unary: dict[int, IntArray], parts: int) -> dict[tuple[int, int], IntArray]:
        """Return tables of what is left, by pair; sums of two costs go to ``unary``."""
        pairs = {}
        for u in unary:
            for v, whole in self.near[u].items():
                if u > v:
                    continue
                rows, columns = self.cost[u] < FORBIDDEN, self.cost[v] < FORBIDDEN
                table = whole[rows][:, columns]
                if (table < FORBIDDEN).all() and not (table - table[:, :1] - table[:1] + table[0, 0]).any():
                    unary[u][rows] += table[:, 0] * parts
                    unary[v][columns] += (table[0] - table[0, 0]) * parts
                else:
                    pairs[u, v] = table
        return pairs


def _require_small(numbers: FloatArray | IntArray, times: float = 1.0) -> None:
    """Refuse numbers that whole ones of 64 bits might not hold when a few are added up."""
    if float(np.abs(numbers.astype(np.float64)).max(initial=0)) * times >= LARGEST:
        raise CertificateError("the numbers are too large")


def _charges(network: CostNetwork, prices: IntArray, finer: int) -> tuple[IntArray, int]:
    """Return what the memory of every choice costs at least, and what all memories are paid at most, in parts.

    Rows of ``prices`` are memory, position, price; prices are finer than parts by so many bits.
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
    _require_small(d[:, 3], float(price.astype(np.float64).sum()))
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
