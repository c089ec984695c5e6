"""Assignments and cost networks as sums of tables for :mod:`.tree`, stated without the engines' reduction."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from nmsolve.check.assignment.elimination import NEVER, Plan, Tables
from nmsolve.model.assignment.network import FORBIDDEN, CostNetwork
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.errors import CertificateError
from nmsolve.model.types import IntArray

#: Sums of costs stay below this, as do those of prices, and what one memory charges.
ROOM = 2**59
#: A least cost from here on means that everything is forbidden; all that a solution may cost and pay stays below.
HOPELESS = NEVER // 2
#: Rows of a certificate, and a decision: a variable and the places left to it.
Rows = Sequence[Sequence[int]]
Path = Sequence[tuple[int, frozenset[int]]]


class Stated(Protocol):
    """A problem as tables; no solution costs more than ``most``."""

    most: int

    def variable(self, number: int) -> int:
        """Return the variable of an operator or node; raises CertificateError if there is none."""

    def places(self, variable: int) -> frozenset[int]:
        """Return the units, or strategies, that it may take."""

    def alike(self, j: int, k: int) -> bool:
        """Return whether the problem is the same with two units exchanged."""

    def least(self, path: Path, multipliers: Rows, prices: Rows) -> int:
        """Return a lower bound in parts on solutions with these decisions; NEVER if there are none."""


class NetworkTables:
    """A cost network as it stands."""

    def __init__(self, network: CostNetwork, parts: int) -> None:
        self.network, self.parts = network, parts
        finite = network.cost[network.cost < FORBIDDEN], network.table[network.table < FORBIDDEN]
        if (sum(int(x.max(initial=0)) * len(x) for x in finite) + abs(network.constant)) * parts >= ROOM:
            raise CertificateError("costs are too large for this many parts")
        dearest = sum(int(x.astype(object).sum()) for x in finite)
        self.dearest, self.most = dearest * parts, dearest + max(0, network.constant)

    @cached_property
    def plan(self) -> Plan:
        """The order of elimination of all nodes."""
        network, tables = self.network, Tables(np.diff(self.network.ptr).tolist())
        for e, (u, v) in enumerate(network.ends.tolist()):
            table = network.tables(e)
            tables.add(u, v, np.where(table < FORBIDDEN, table * self.parts, NEVER))
        return Plan(tables)

    def variable(self, number: int) -> int:
        """The node."""
        if not 0 <= number < self.network.count:
            raise CertificateError(f"there is no node {number}")
        return number

    def places(self, variable: int) -> frozenset[int]:
        """All strategies."""
        return frozenset(range(int(self.network.ptr[variable + 1] - self.network.ptr[variable])))

    def alike(self, j: int, k: int) -> bool:
        """No strategies of different nodes are compared."""
        return False

    def least(self, path: Path, multipliers: Rows, prices: Rows) -> int:
        """Return the least cost with memory at these prices; there are no tensors that could be apart."""
        if prices:
            raise CertificateError("a network has no tensors with prices")
        network = self.network
        cost = np.where(network.cost < FORBIDDEN, network.cost * self.parts, NEVER)
        whole, given = _charges(
            multipliers, network.capacity, int(network.demand[:, 2].max(initial=0)), _most_held(network)
        )
        d, paid = network.demand, 0
        for m, charge in whole.items():
            own = d[d[:, 4] == m]
            charged = own[:, 3] * (charge[own[:, 2]] - charge[own[:, 1]])
            np.add.at(cost, own[:, 0], charged)
            paid += int(charged.astype(object).sum())
        _require_hope(self.dearest + paid)
        for node, some in path:
            for k in self.places(node) - some:
                cost[network.ptr[node] + k] = NEVER
        value = self.plan.least(np.split(np.minimum(cost, NEVER), network.ptr[1:-1]))
        return NEVER if value >= HOPELESS else value + network.constant * self.parts - given


def _require_hope(dearest: int) -> None:
    """Refuse what could make a solution that is allowed look as if it were not."""
    if dearest >= HOPELESS:
        raise CertificateError("costs, multipliers and prices add up to too much")


def _most_held(network: CostNetwork) -> IntArray:
    """Return (M,) all that is ever demanded of memories."""
    held = np.zeros(len(network.capacity))
    np.add.at(held, network.demand[:, 4], network.demand[:, 3].astype(float))
    return held.astype(np.int64)


def _charges(
    multipliers: Rows, capacity: np.ndarray, positions: int, most: IntArray
) -> tuple[dict[int, IntArray], int]:
    """Return by memory what a byte costs before every position (positions + 1,), and what all memories together give back."""
    by_memory: dict[int, dict[int, int]] = {}
    given = 0
    for m, position, amount in multipliers:
        if m >= len(capacity) or not np.isfinite(capacity[m]) or position >= positions:
            raise CertificateError(
                f"a multiplier for memory {m} at position {position}, where there is no limit"
            )
        own = by_memory.setdefault(m, {})
        own[position] = own.get(position, 0) + amount
        given += amount * int(np.floor(capacity[m]))
    for m, own in by_memory.items():
        if sum(own.values()) * max(1, int(most[m])) >= ROOM:
            raise CertificateError("multipliers are too large")
    out = {}
    for m, own in by_memory.items():
        charge = np.zeros(positions + 1, np.int64)
        for position, amount in own.items():
            charge[position + 1] = amount
        out[m] = np.cumsum(charge)
    return out, given


class StatedTables:
    """An assignment: operators that share a unit as one variable; units that cost more at the same site left out.

    Parameters
    ----------
    apart : rows of tensor and site that get prices
    light : rows of tensor and memory that no bytes are counted for
    charged : memories and positions at which bytes cost something in some case; others need no tables
    """

    def __init__(
        self, problem: AssignProblem, parts: int, apart: Rows, light: Rows, charged: set[tuple[int, int]]
    ) -> None:
        self.problem, self.parts = problem, parts
        self.charged = {m: np.array(sorted(at for n, at in charged if n == m)) for m, _ in charged}
        flows, u = problem.flows, problem.units
        self.run = (problem.energy if problem.objective == "energy" else problem.time).astype(np.int64)
        self.move = flows.energy if problem.objective == "energy" else flows.time
        gains = problem.groups.energy if problem.objective == "energy" else problem.groups.time
        self.most = int(self.run.max(axis=1).astype(object).sum()) + int(self.move.astype(object).sum())
        self.dearest = (self.most + int(gains.max(axis=1).astype(object).sum())) * parts
        if self.dearest >= ROOM:
            raise CertificateError("costs are too large for this many parts")
        for name, rows, most in (("site", apart, u.sites), ("memory", light, len(u.memories))):
            if any(t >= flows.count or where >= most for t, where in rows):
                raise CertificateError(f"a tensor or {name} that does not exist")
        self.apart = {(self._ends(t), s) for t, s in apart}
        self.light = {(t, m) for t, m in light}
        self.number: dict[int, int] = {}  # operator -> variable
        self._classes()

    def _ends(self, tensor: int) -> tuple[int, ...]:
        """Return maker and users of a tensor: those with the same ones move together."""
        return int(self.problem.flows.source[tensor]), *self.problem.flows.users(tensor).tolist()

    def _classes(self) -> None:
        """Number the variables of operators; their units, and what each costs."""
        problem, site = self.problem, self.problem.units.site
        together = [-1] * problem.count if problem.together is None else problem.together.tolist()
        first: dict[int, int] = {}
        members: list[list[int]] = []
        for i, number in enumerate(together):
            if number < 0 or number not in first:
                if number >= 0:
                    first[number] = len(members)
                self.number[i] = len(members)
                members.append([i])
            else:
                self.number[i] = first[number]
                members[first[number]].append(i)
        grouped = {self.number[i] for i in problem.groups.members.tolist()}
        self.possible: list[frozenset[int]] = []
        self.domain: list[IntArray] = []
        self.cost: list[IntArray] = []
        for c, own in enumerate(members):
            able = np.flatnonzero((self.run[own] >= 0).all(axis=0))
            if not len(able):
                raise CertificateError("no unit can run operators that must share one")
            whole = self.run[own].sum(axis=0)
            kept = able.tolist()
            if c not in grouped:
                least = {int(site[j]): j for j in sorted(kept, key=lambda j: -int(whole[j]))}
                kept = sorted(least.values())
            self.possible.append(frozenset(able.tolist()))
            self.domain.append(np.array(kept))
            self.cost.append(whole[kept] * self.parts)

    def variable(self, number: int) -> int:
        """The variable of an operator and those that share its unit."""
        if number not in self.number:
            raise CertificateError(f"there is no operator {number}")
        return self.number[number]

    def places(self, variable: int) -> frozenset[int]:
        """All units that can run it."""
        return self.possible[variable]

    def alike(self, j: int, k: int) -> bool:
        """Return whether exchanging two units, each alone at its site and its memory, changes nothing."""
        p, u = self.problem, self.problem.units
        if not (0 <= j < u.count and 0 <= k < u.count):
            return False
        a, b = int(u.site[j]), int(u.site[k])
        m, n = int(u.memory[a]), int(u.memory[b])
        lone = all((u.site == s).sum() == 1 for s in (a, b)) and (
            m == n or all((u.memory == x).sum() == 1 for x in (m, n))
        )
        swap = np.arange(u.sites)
        swap[[a, b]] = b, a
        moves = (p.flows.time, p.flows.energy)
        return bool(
            lone
            and u.capacity[m] == u.capacity[n]
            and all((x[:, j] == x[:, k]).all() for x in (p.time, p.energy, p.groups.time, p.groups.energy))
            and all((x == x[:, swap][:, :, swap]).all() for x in moves)
        )

    @cached_property
    def tables(self) -> Tables:
        """All tables; ``plan`` is made of them."""
        tables = Tables([len(x) for x in self.domain])
        self.more: list[IntArray] = []  # costs of the variables after those of operators
        self.constant = 0
        self._transfers(tables)
        self._fusion(tables)
        self._memory(tables)
        return tables

    @cached_property
    def plan(self) -> Plan:
        """The order of elimination."""
        return Plan(self.tables)

    def _new(self, tables: Tables, cost: IntArray) -> int:
        self.more.append(cost * self.parts)
        return tables.variable(len(cost))

    @cached_property
    def bundles(self) -> dict[tuple[int, ...], IntArray]:
        """(S, S) what moving all tensors of equal makers and users costs."""
        out: dict[tuple[int, ...], IntArray] = {}
        for t in range(self.problem.flows.count):
            ends = self._ends(t)
            out[ends] = out[ends] + self.move[t] if ends in out else self.move[t]
        return out

    def _transfers(self, tables: Tables) -> None:
        """Whoever asks for a tensor at a site makes it present there, which costs by where its maker is."""
        site = self.problem.units.site
        for ends, move in self.bundles.items():
            maker = self.number[ends[0]]
            users = sorted({self.number[i] for i in ends[1:]} - {maker})
            for s in range(self.problem.units.sites):
                cost = move[site[self.domain[maker]], s] * self.parts
                asks = [c for c in users if (site[self.domain[c]] == s).any()]
                if (ends, s) in self.apart or not cost.any() or not asks:
                    continue
                if len(asks) == 1:
                    there = site[self.domain[asks[0]]] == s
                    tables.add(maker, asks[0], np.where(there[None, :], cost[:, None], 0))
                    continue
                present = self._new(tables, np.zeros(2, np.int64))
                tables.add(maker, present, np.column_stack([np.zeros_like(cost), cost]))
                for c in asks:
                    there = site[self.domain[c]] == s
                    tables.add(
                        c,
                        present,
                        np.column_stack([np.where(there, NEVER, 0), np.zeros(len(there), np.int64)]),
                    )

    def _fusion(self, tables: Tables) -> None:
        """Every group is fused where its members are, or not at all; of groups with a common member only one."""
        groups = self.problem.groups
        gains = groups.energy if self.problem.objective == "energy" else groups.time
        fused: dict[int, list[int]] = {}
        for k in range(groups.count):
            own = groups.of(k).tolist()
            units = [
                j
                for j in np.flatnonzero(gains[k] > 0).tolist()
                if all(j in self.domain[self.number[i]] for i in own)
            ]
            if not units:
                continue
            most = int(gains[k].max())
            self.constant -= most * self.parts
            variable = self._new(tables, np.array([most, *(most - int(gains[k, j]) for j in units)]))
            for c in sorted({self.number[i] for i in own}):
                away = self.domain[c][:, None] != np.array(units)[None, :]
                tables.add(
                    c, variable, np.column_stack([np.zeros(len(away), np.int64), np.where(away, NEVER, 0)])
                )
            for rival in sorted({r for i in own for r in fused.get(i, [])}):
                both = np.zeros((tables.sizes[rival], tables.sizes[variable]), np.int64)
                both[1:, 1:] = NEVER
                tables.add(rival, variable, both)
            for i in own:
                fused.setdefault(i, []).append(variable)

    def _memory(self, tables: Tables) -> None:
        """A tensor is absent from a memory, or there until the last position at which one of its operators there needs it."""
        flows, units, count = self.problem.flows, self.problem.units, self.problem.count
        self.held: list[
            tuple[int, int, int, IntArray, IntArray]
        ] = []  # variable, tensor, memory, values, ends
        where = units.memory[units.site]
        for m, positions in self.charged.items():
            inside = [where[d] == m for d in self.domain]
            for t in range(flows.count):
                if (t, m) in self.light or not flows.bytes[t]:
                    continue
                ends: dict[int, int] = {}
                maker = int(flows.source[t])
                roles = [] if flows.kept[t] else [(maker, maker)]
                for e in range(int(flows.indptr[t]), int(flows.indptr[t + 1])):
                    last = count - 1 if flows.kept[t] else max(maker, int(flows.until[e]))
                    roles.append((int(flows.targets[e]), last))
                for i, last in roles:
                    c = self.number[i]
                    if inside[c].any():
                        ends[c] = max(ends.get(c, 0), last + 1)
                start = 0 if flows.kept[t] else int(flows.since[t])
                if not ((positions >= start) & (positions < max(ends.values(), default=0))).any():
                    continue
                if len(ends) == 1:
                    ((c, last),) = ends.items()
                    values = np.flatnonzero(inside[c])
                    self.held.append((c, t, m, values, np.full(len(values), last)))
                else:
                    stops = sorted(set(ends.values()))
                    variable = self._new(tables, np.zeros(len(stops) + 1, np.int64))
                    self.held.append((variable, t, m, np.arange(1, len(stops) + 1), np.array(stops)))
                    for c, last in ends.items():
                        short = np.arange(len(stops) + 1) <= stops.index(last)
                        tables.add(c, variable, np.where(inside[c][:, None] & short[None, :], NEVER, 0))

    def least(self, path: Path, multipliers: Rows, prices: Rows) -> int:
        """Return the least cost with memory and tensors that are apart at these prices."""
        flows, units, _ = self.problem.flows, self.problem.units, self.tables
        costs = [x.copy() for x in self.cost] + [x.copy() for x in self.more]
        size = np.full(len(units.memories), int(flows.bytes.astype(object).sum() * 1))
        whole, given = _charges(multipliers, units.capacity, self.problem.count, size)
        paid = sum(price for *_, price in prices)
        for variable, t, m, values, ends in self.held:
            if m in whole:
                start = 0 if flows.kept[t] else int(flows.since[t])
                charged = int(flows.bytes[t]) * (whole[m][ends] - whole[m][start])
                costs[variable][values] += charged
                paid += int(charged.max())
        _require_hope(self.dearest + paid)
        self._priced(prices, costs)
        for variable, some in path:
            barred = ~np.isin(self.domain[variable], sorted(some))
            costs[variable][barred] = NEVER
        value = self.plan.least(costs)
        return NEVER if value >= HOPELESS else value + self.constant - given

    def _priced(self, prices: Rows, costs: list[IntArray]) -> None:
        """Add what users of tensors that are apart pay, and take off what makers earn."""
        site = self.problem.units.site
        paid: dict[tuple[tuple[int, ...], int], int] = {}
        once: set[tuple[tuple[int, ...], int, int]] = set()
        if sum(row[3] for row in prices) >= ROOM:
            raise CertificateError("prices are too large")
        for t, user, s, price in prices:
            ends = self._ends(t) if t < self.problem.flows.count else ()
            if (ends, s) not in self.apart or user not in ends[1:] or (ends, user, s) in once:
                raise CertificateError(
                    f"a price of operator {user} for tensor {t} at site {s}, which is not to be paid"
                )
            once.add((ends, user, s))
            paid[ends, s] = paid.get((ends, s), 0) + price
            c = self.number[user]
            costs[c][site[self.domain[c]] == s] += price
        for (ends, s), all_pay in paid.items():
            c = self.number[ends[0]]
            dear = self.bundles[ends][site[self.domain[c]], s] * self.parts
            costs[c] -= np.maximum(0, all_pay - dear)
