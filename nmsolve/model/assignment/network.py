"""A cost network: nodes choose one of a few strategies each, nodes and pairs of nodes cost, and memory is limited over time.

This is the form in which sums of costs are solved. An assignment becomes one (:mod:`nmsolve.model.assignment.reduction`), and the
instances of the ASPLOS / EuroSys 2025 contest on intra-operator parallelism (iopddl) are networks as they stand.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.types import BoolArray, FloatArray, IntArray, within

#: A cost that stands for "forbidden", as in the contest's files; all others add up to less.
FORBIDDEN = 10**18


@dataclass(frozen=True, eq=False)
class CostNetwork:
    """N nodes with S_i strategies each, E pairs with a table, D demands of memory.

    Attributes
    ----------
    name : for people
    ptr : (N + 1,) where the strategies of every node begin in ``cost``; a position there is a *choice*
    cost : (ptr[-1],) whole numbers >= 0; :data:`FORBIDDEN` or more: never
    ends : (E, 2) the nodes of every pair, different; several pairs may join the same nodes
    table_ptr : (E + 1,) where tables begin; table e is (S of ``ends[e, 0]``, S of ``ends[e, 1]``), row by row
    table : (table_ptr[-1],) whole numbers >= 0; :data:`FORBIDDEN` or more: never together
    demand : (D, 5) int64: choice, first position, position after the last, amount, memory
    capacity : (M,) what every memory holds at any position, inf where there is no limit
    constant : added to every solution's cost; may be negative if no solution's cost is
    """

    name: str
    ptr: IntArray
    cost: IntArray
    ends: IntArray
    table_ptr: IntArray
    table: IntArray
    demand: IntArray
    capacity: FloatArray
    constant: int = 0

    def __post_init__(self) -> None:
        sizes = np.diff(self.ptr)
        if not len(sizes) or (sizes < 1).any() or self.ptr[0] != 0 or self.ptr[-1] != len(self.cost):
            raise InputError(
                "a node without strategies", self.name, "at least one node, and strategies for each"
            )
        if self.ends.shape != (len(self.table_ptr) - 1, 2) or not within(self.ends, len(sizes)):
            raise InputError("pairs of nodes that do not exist", self.name, f"0..{len(sizes) - 1}")
        if (self.ends[:, 0] == self.ends[:, 1]).any():
            raise InputError("a node is paired with itself", self.name, "two different nodes")
        if (np.diff(self.table_ptr) != sizes[self.ends[:, 0]] * sizes[self.ends[:, 1]]).any():
            raise InputError("a table of the wrong size", self.name, "a cost for every two strategies")
        if len(self.table) != self.table_ptr[-1] or (self.table < 0).any() or (self.cost < 0).any():
            raise InputError("a negative or missing cost", self.name, "whole numbers >= 0")
        d = self.demand
        if (
            d.ndim != 2
            or d.shape[1] != 5
            or not within(d[:, 0], len(self.cost))
            or not within(d[:, 4], len(self.capacity))
        ):
            raise InputError(
                "demands of memory that fit nothing",
                self.name,
                "(D, 5) choices, positions, amounts, memories",
            )
        if (d[:, 3] < 0).any() or (d[:, 1] > d[:, 2]).any():
            raise InputError("a demand that is negative or ends before it begins", self.name, "amounts >= 0")
        finite = [float(a[a < FORBIDDEN].astype(float).sum()) for a in (self.cost, self.table)]
        if sum(finite) >= 2**62:
            raise InputError(f"costs add up to {sum(finite):.3g}", self.name, f"less than {2.0**62:.3g}")

    @property
    def count(self) -> int:
        """N."""
        return len(self.ptr) - 1

    @property
    def limited(self) -> bool:
        """Whether some memory has a limit that something demands."""
        return bool(np.isfinite(self.capacity[self.demand[:, 4]]).any())

    def tables(self, pair: int) -> IntArray:
        """Return (S_u, S_v) costs of a pair."""
        u, v = self.ends[pair]
        flat = self.table[self.table_ptr[pair] : self.table_ptr[pair + 1]]
        return flat.reshape(self.ptr[u + 1] - self.ptr[u], self.ptr[v + 1] - self.ptr[v])

    @cached_property
    def content_hash(self) -> str:
        """Hexadecimal SHA-256 of everything that decides what the problem is."""
        h = hashlib.sha256(repr(self.constant).encode())
        for array in (self.ptr, self.cost, self.ends, self.table_ptr, self.table, self.demand, self.capacity):
            h.update(repr((array.shape, array.dtype.str)).encode() + array.tobytes())
        return h.hexdigest()


def network_cost(network: CostNetwork, strategy: IntArray) -> int:
    """Return what a solution (N,) costs; at least :data:`FORBIDDEN` if it takes a forbidden choice."""
    at = network.ptr[:-1] + strategy
    u, v = network.ends.T
    flat = network.table_ptr[:-1] + strategy[u] * np.diff(network.ptr)[v] + strategy[v]
    chosen = np.concatenate([network.cost[at], network.table[flat]])
    if (chosen >= FORBIDDEN).any():
        return FORBIDDEN
    return int(chosen.sum()) + network.constant


def cost_range(network: CostNetwork) -> tuple[int, int]:
    """Return what no solution costs less than, and what none exceeds: all least, and all largest allowed costs added up."""
    least = most = network.constant
    starts = network.table_ptr[:-1][np.diff(network.table_ptr) > 0]
    for values, begins in ((network.cost, network.ptr[:-1]), (network.table, starts)):
        if len(begins):
            finite = np.where(values < FORBIDDEN, values, 0)
            least += sum(np.minimum.reduceat(finite, begins).tolist())
            most += sum(np.maximum.reduceat(finite, begins).tolist())
    return least, most


def network_complaint(network: CostNetwork, strategy: IntArray) -> str | None:
    """Return the first rule that a solution breaks, or None; accepts any shape and values."""
    sizes = np.diff(network.ptr)
    if strategy.shape != (network.count,) or (strategy < 0).any() or (strategy >= sizes).any():
        return f"not one strategy for each of {network.count} nodes"
    if network_cost(network, strategy) >= FORBIDDEN:
        return "a strategy, or two of them together, are forbidden"
    for memory, most in enumerate(network.capacity):
        peak, position = peak_of(network, strategy, memory)
        if peak > most:
            return f"memory {memory} holds {peak:,} at position {position}, the limit is {most:,.0f}"
    return None


def peak_of(network: CostNetwork, strategy: IntArray, memory: int) -> tuple[int, int]:
    """Return the most that a memory holds under a solution (N,), and the first position at which it does."""
    chosen: BoolArray = np.zeros(len(network.cost), bool)
    chosen[network.ptr[:-1] + strategy] = True
    d = network.demand[chosen[network.demand[:, 0]] & (network.demand[:, 4] == memory)]
    d = d[d[:, 1] < d[:, 2]]
    if not len(d):
        return 0, 0
    when, change = np.concatenate([d[:, 1], d[:, 2]]), np.concatenate([d[:, 3], -d[:, 3]])
    times, place = np.unique(when, return_inverse=True)
    held = np.zeros(len(times), np.int64)
    np.add.at(held, place, change)
    held = np.cumsum(held)
    top = int(held.argmax())
    return int(held[top]), int(times[top])
