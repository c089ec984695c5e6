"""Assignments and cost networks as sums of tables for :mod:`.tree`, stated without the engines' reduction."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Sequence
from functools import cached_property

import numpy as np

from nmsolve.check.assignment.elimination import NEVER, Plan, Tables
from nmsolve.check.assignment.network import Statement
from nmsolve.model.assignment.network import FORBIDDEN, CostNetwork, cost_range
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.errors import CertificateError
from nmsolve.model.types import FloatArray, IntArray

#: Sums of costs stay below this, as do those of prices, and what one memory charges.
ROOM = 2**59
#: A least cost from here on means that everything is forbidden; all that a solution may cost and pay stays below.
HOPELESS = NEVER // 2
#: Rows of a certificate, and a decision: a variable and the places left to it.
Rows = Sequence[Sequence[int]]
Path = Sequence[tuple[int, frozenset[int]]]


class NetworkTables:
    """A cost network as it stands; no solution costs more than ``most``.

    Parameters
    ----------
    parts : that are one unit of cost
    apart : nodes of which no cost, table or demand is counted
    """

    def __init__(self, network: CostNetwork, parts: int, apart: Collection[int] = ()) -> None:
        self.network, self.parts, self.apart = network, parts, set(apart)
        self.most = cost_range(network)[1]
        self.dearest = (self.most + abs(network.constant)) * parts
        if self.dearest >= ROOM:
            raise CertificateError("costs are too large for this many parts")
        node = np.repeat(np.arange(network.count), np.diff(network.ptr))
        counted = ~np.isin(node, sorted(self.apart))
        self.cost = np.where(network.cost < FORBIDDEN, network.cost * self.parts, NEVER) * counted
        self.demand = network.demand[counted[network.demand[:, 0]]]
        asked = np.zeros((len(network.capacity), len(network.cost)))
        np.add.at(asked, (self.demand[:, 4], self.demand[:, 0]), self.demand[:, 3])
        #: (M,) all that a solution may ever demand of memories; the positions at which they may have multipliers
        self.held = np.maximum.reduceat(asked, network.ptr[:-1], axis=1).sum(axis=1)
        self.positions = int(network.demand[:, 2].max(initial=0))

    @cached_property
    def plan(self) -> Plan:
        """The order of elimination of all nodes."""
        network, tables = self.network, Tables(np.diff(self.network.ptr).tolist())
        for e, (u, v) in enumerate(network.ends.tolist()):
            if not self.apart & {u, v}:
                table = network.tables(e)
                tables.add(u, v, np.where(table < FORBIDDEN, table * self.parts, NEVER))
        return Plan(tables)

    def variable(self, number: int) -> int:
        """Return the node that a case means by a number.

        Raises
        ------
        CertificateError : there is none
        """
        if not 0 <= number < self.network.count:
            raise CertificateError(f"there is no node {number}")
        return number

    def places(self, variable: int) -> frozenset[int]:
        """Return what a node may take: strategies, or units."""
        return frozenset(range(int(self.network.ptr[variable + 1] - self.network.ptr[variable])))

    def names(self, variable: int) -> Sequence[int]:
        """Return what a case calls the strategies of a node, in their order."""
        return range(int(self.network.ptr[variable + 1] - self.network.ptr[variable]))

    def alike(self, j: int, k: int) -> bool:
        """Return whether the problem is the same with two units exchanged."""
        return False

    def least(self, path: Path, multipliers: Rows, prices: Rows) -> int:
        """Return the least cost in parts with these decisions, memory and nodes that are apart at these prices; NEVER if there
        are none."""
        network, cost, d = self.network, self.cost.copy(), self.demand
        whole, given = _charges(multipliers, network.capacity, self.positions, self.held)
        paid = sum(price for *_, price in prices)
        for m, charge in whole.items():
            own = d[d[:, 4] == m]
            np.add.at(cost, own[:, 0], own[:, 3] * (charge[own[:, 2]] - charge[own[:, 1]]))
            paid += int(charge[-1]) * math.ceil(self.held[m])
        if self.dearest + paid >= HOPELESS:  # else what is allowed could look as if it were not
            raise CertificateError("costs, multipliers and prices add up to too much")
        self._priced(prices, cost)
        for node, some in path:
            own = cost[network.ptr[node] : network.ptr[node + 1]]
            own[[name not in some for name in self.names(node)]] = NEVER
        value = self.plan.least(np.split(np.minimum(cost, NEVER), network.ptr[1:-1]))
        return NEVER if value >= HOPELESS else value + network.constant * self.parts - given

    def _priced(self, prices: Rows, cost: IntArray) -> None:
        """There are no tensors that could be apart."""
        if prices:
            raise CertificateError("a network has no tensors with prices")


def _charges(
    multipliers: Rows, capacity: FloatArray, positions: int, most: FloatArray
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
        if sum(own.values()) * max(1, math.ceil(most[m])) >= ROOM:
            raise CertificateError("multipliers are too large")
    out = {}
    for m, own in by_memory.items():
        charge = np.zeros(positions + 1, np.int64)
        for position, amount in own.items():
            charge[position + 1] = amount
        out[m] = np.cumsum(charge)
    return out, given


class StatedTables(NetworkTables):
    """An assignment by the network that :mod:`.network` states.

    Parameters
    ----------
    apart : rows of tensor and site that get prices
    light : rows of tensor and memory that no bytes are counted for
    charged : memories and positions at which bytes cost something in some case; others need no tables
    """

    def __init__(
        self, problem: AssignProblem, parts: int, apart: Rows, light: Rows, charged: set[tuple[int, int]]
    ) -> None:
        self.problem, self.stated = problem, Statement(problem)
        flows, u = problem.flows, problem.units
        for name, rows, most in (("site", apart, u.sites), ("memory", light, len(u.memories))):
            if any(t >= flows.count or where >= most for t, where in rows):
                raise CertificateError(f"a tensor or {name} that does not exist")
        paying, resident = {(self._ends(t), s) for t, s in apart}, self.stated.residency
        self.paying = {k: node for k, node in self.stated.presence.items() if k in paying}
        at: dict[int, list[int]] = {}
        for m, position in sorted(charged):
            at.setdefault(m, []).append(position)
        costly = {
            node
            for node, _, first, end, _, m in self.stated.demand
            if m in at and bisect_left(at[m], first) < bisect_left(at[m], end)
        }
        uncounted = {resident.get((m, t), -1) for t, m in light} | set(resident.values()) - costly
        super().__init__(self.stated.network(), parts, uncounted | set(self.paying.values()))
        self.held = np.full(len(u.memories), float(flows.bytes.astype(float).sum()))  # each tensor once
        self.positions = problem.count

    def _ends(self, tensor: int) -> tuple[int, ...]:
        """Return maker and users of a tensor: those with the same ones move together."""
        return int(self.problem.flows.source[tensor]), *self.stated.users[tensor]

    def variable(self, number: int) -> int:
        """The node of an operator and those that share its unit."""
        if not 0 <= number < self.problem.count:
            raise CertificateError(f"there is no operator {number}")
        return self.stated.node[number]

    def places(self, variable: int) -> frozenset[int]:
        """All units that can run it."""
        return frozenset(self.stated.able[variable])

    def names(self, variable: int) -> Sequence[int]:
        """Its units; not those for which others stand."""
        return self.stated.unit[variable]

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

    def _priced(self, prices: Rows, cost: IntArray) -> None:
        """Add what users of tensors that are apart pay, and take off what makers earn."""
        paid: dict[tuple[tuple[int, ...], int], int] = {}
        once: set[tuple[tuple[int, ...], int, int]] = set()
        if sum(row[3] for row in prices) >= ROOM:
            raise CertificateError("prices are too large")
        for t, user, s, price in prices:
            ends = self._ends(t) if t < self.problem.flows.count else ()
            if (ends, s) not in self.paying or user not in ends[1:] or (ends, user, s) in once:
                raise CertificateError(
                    f"a price of operator {user} for tensor {t} at site {s}, which is not to be paid"
                )
            once.add((ends, user, s))
            paid[ends, s] = paid.get((ends, s), 0) + price
            at, own = self._at(user, cost)
            own[at == s] += price
        for (ends, s), all_pay in paid.items():
            _, own = self._at(ends[0], cost)
            own -= np.maximum(0, all_pay - np.array(self.stated.sends(ends, s)) * self.parts)

    def _at(self, operator: int, cost: IntArray) -> tuple[IntArray, IntArray]:
        """Return the site of every strategy of an operator's node, and their costs, to be changed."""
        node, ptr = self.stated.node[operator], self.network.ptr
        return np.array(self.stated.at[node]), cost[ptr[node] : ptr[node + 1]]
