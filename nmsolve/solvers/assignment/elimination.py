"""Cost networks made ready for elimination: what is impossible or decided left out, pairs merged, an order of small width.

A node is eliminated by a table over its neighbours that are left, which then become neighbours of one another (a tree
decomposition). The order takes the node with the smallest table first, or the one that joins the fewest neighbours anew: the
better of the two orders.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np

from nmsolve.model.assignment.network import FORBIDDEN, CostNetwork
from nmsolve.model.compiled import plain
from nmsolve.model.types import BoolArray, IntArray

#: Stands for "forbidden"; two of them fit a whole number. All costs and their sums are less.
NEVER = 2**61


class Buckets(NamedTuple):
    """Nodes in the order in which they are eliminated, each with a table over its later neighbours and, last, itself.

    Attributes
    ----------
    sizes : (B,) strategies of every bucket's own node
    scope_ptr, scope : CSR of the buckets of the later neighbours (not the own one)
    scope_sizes : (len(scope),) their strategies
    choice_ptr, choice : CSR of the choices of the network that own strategies are
    base_ptr, base : costs of pairs, by tables row by row; at most :data:`NEVER`
    message_ptr : (B + 1,) where what a bucket passes on begins, a table over its scope
    child_ptr, child : CSR of the buckets that pass on to a bucket
    stride_ptr, stride : per entry of ``child``: what a step of each node of the receiver's scope, then of its own, is there
    """

    sizes: IntArray
    scope_ptr: IntArray
    scope: IntArray
    scope_sizes: IntArray
    choice_ptr: IntArray
    choice: IntArray
    base_ptr: IntArray
    base: IntArray
    message_ptr: IntArray
    child_ptr: IntArray
    child: IntArray
    stride_ptr: IntArray
    stride: IntArray


class Room(NamedTuple):
    """Where an elimination works: ``message`` and ``best`` (message_ptr[-1],), ``table`` (largest,), ``digit`` (widest,)."""

    message: IntArray
    best: IntArray
    table: IntArray
    digit: IntArray


@plain
def forward(b: Buckets, cost: IntArray, room: Room) -> int:
    """Return the least of base costs and of ``cost`` (choices,), or :data:`NEVER`; what is best is left in ``room``."""
    total = 0
    for k in range(len(b.sizes)):
        own, start = b.sizes[k], b.base_ptr[k]
        rows = (b.base_ptr[k + 1] - start) // own
        at = b.choice_ptr[k]
        for r in range(rows):
            for s in range(own):
                value = b.base[start + r * own + s] + cost[b.choice[at + s]]
                room.table[r * own + s] = value if value < NEVER else NEVER
        for c in range(b.child_ptr[k], b.child_ptr[k + 1]):
            _receive(b, k, c, rows, room)
        for r in range(rows):
            least, which = room.table[r * own], 0
            for s in range(1, own):
                if room.table[r * own + s] < least:
                    least, which = room.table[r * own + s], s
            room.message[b.message_ptr[k] + r] = least
            room.best[b.message_ptr[k] + r] = which
        if b.scope_ptr[k] == b.scope_ptr[k + 1]:
            total = min(total + room.message[b.message_ptr[k]], NEVER)
    return total


@plain
def _receive(b: Buckets, k: int, c: int, rows: int, room: Room) -> None:
    """Add the message of entry ``c`` of the children to the table of bucket ``k``."""
    first, wide, own = b.scope_ptr[k], b.scope_ptr[k + 1] - b.scope_ptr[k], b.sizes[k]
    steps, place = b.stride_ptr[c], b.message_ptr[b.child[c]]
    last = b.stride[steps + wide]
    for i in range(wide):
        room.digit[i] = 0
    for r in range(rows):
        for s in range(own):
            value = room.table[r * own + s] + room.message[place + s * last]
            room.table[r * own + s] = value if value < NEVER else NEVER
        i = wide - 1
        while i >= 0:
            room.digit[i] += 1
            place += b.stride[steps + i]
            if room.digit[i] < b.scope_sizes[first + i]:
                break
            place -= b.stride[steps + i] * room.digit[i]
            room.digit[i] = 0
            i -= 1


@plain
def backward(b: Buckets, room: Room, strategy: IntArray) -> None:
    """Write the strategies (B,) of the buckets' own nodes that have the least cost."""
    for k in range(len(b.sizes) - 1, -1, -1):
        row = 0
        for i in range(b.scope_ptr[k], b.scope_ptr[k + 1]):
            row = row * b.scope_sizes[i] + strategy[b.scope[i]]
        strategy[k] = room.best[b.message_ptr[k] + row]


#: Most entries of all tables together.
LARGEST = 1 << 24
#: Nodes between two questions whether time is up.
STEPS = 64


@dataclass(frozen=True, eq=False)
class Elimination:
    """A network ready for elimination with any costs of choices.

    Attributes
    ----------
    network : the network
    cost : (choices,) of every choice, pairs with decided nodes included; :data:`NEVER` for what is impossible
    constant : what every solution costs in addition
    strategy : (N,) of nodes that are decided; those of others are filled in
    node : (B,) node of every bucket
    buckets : see there
    """

    network: CostNetwork
    cost: IntArray
    constant: int
    strategy: IntArray
    node: IntArray
    buckets: Buckets
    room: Room

    @property
    def entries(self) -> int:
        """Of all tables together: the work of one elimination."""
        return len(self.buckets.base)

    def best(self, cost: IntArray) -> tuple[int, IntArray]:
        """Return the least cost of the network with these costs of choices (choices,), constant aside, and strategies (N,).

        ``cost`` is below :data:`NEVER` where a choice is possible and at least that where it is not. If there is no solution the
        least cost is :data:`NEVER`, and the strategies mean nothing.
        """
        value = int(forward(self.buckets, cost, self.room))
        found = np.zeros(len(self.node), np.int64)
        backward(self.buckets, self.room, found)
        strategy = self.strategy.copy()
        strategy[self.node] = (
            self.buckets.choice[self.buckets.choice_ptr[:-1] + found] - self.network.ptr[self.node]
        )
        decided = np.setdiff1d(np.arange(self.network.count), self.node)
        value += int(cost[self.network.ptr[decided] + strategy[decided]].sum())
        return (NEVER if value >= NEVER // 2 else value), strategy


class _Entries:
    """All entries of all tables: the pair, and the choices of both ends."""

    def __init__(self, network: CostNetwork) -> None:
        sizes = np.diff(network.ptr)
        u, v = network.ends.T
        lengths = np.diff(network.table_ptr)
        self.pair = np.repeat(np.arange(len(lengths)), lengths)
        flat = np.arange(len(self.pair)) - network.table_ptr[self.pair]
        wide = sizes[v][self.pair]
        self.row = network.ptr[u][self.pair] + flat // np.maximum(wide, 1)
        self.column = network.ptr[v][self.pair] + flat % np.maximum(wide, 1)
        self.row_at = network.table_ptr[self.pair] + flat // np.maximum(wide, 1)  # unique for pair and row
        self.column_at = network.table_ptr[self.pair] + flat % np.maximum(wide, 1)


def possible_choices(network: CostNetwork) -> BoolArray:
    """Return (choices,) what is left when choices go that are forbidden, or forbidden with all that a neighbour has left."""
    allowed: BoolArray = network.cost < FORBIDDEN
    entries, fine = _Entries(network), network.table < FORBIDDEN
    while True:
        alive = fine & allowed[entries.row] & allowed[entries.column]
        before = allowed.sum()
        for at, choice in ((entries.row_at, entries.row), (entries.column_at, entries.column)):
            supported = np.zeros(len(network.table), bool)
            supported[at[alive]] = True
            allowed[choice[~supported[at]]] = False
        if allowed.sum() == before:
            return allowed


def never() -> bool:
    """Time is never up."""
    return False


def elimination_of(
    network: CostNetwork, factor: int = 1, most: int = LARGEST, stop: Callable[[], bool] = never
) -> Elimination | str:
    """Return a network ready for elimination, or why its tables would be too large (more than ``most`` entries together).

    Parameters
    ----------
    factor : all costs are multiplied by this
    stop : whether time is up; then no order is found
    """
    allowed = possible_choices(network)
    left = np.add.reduceat(allowed.astype(np.int64), network.ptr[:-1])
    if (left == 0).any():
        return "a node has no strategy that its neighbours allow"
    entries = _Entries(network)
    cost = np.where(allowed, np.where(allowed, network.cost, 0) * factor, NEVER)
    value = np.where(network.table < FORBIDDEN, network.table * factor, NEVER)
    alive = allowed[entries.row] & allowed[entries.column]
    single = left == 1
    u, v = network.ends.T
    for ours, theirs, choice in ((v, u, entries.row), (u, v, entries.column)):
        decided = (single[ours] & ~single[theirs])[entries.pair] & alive
        np.add.at(cost, choice[decided], value[decided])
    constant = network.constant * factor + int(value[alive & (single[u] & single[v])[entries.pair]].sum())
    strategy = np.zeros(network.count, np.int64)
    at = np.flatnonzero(allowed)
    owner = np.repeat(np.arange(network.count), np.diff(network.ptr))[at]
    strategy[owner[single[owner]]] = (at - network.ptr[owner])[single[owner]]
    tables = _tables(network, value, allowed, single)
    sizes = {int(i): int(left[i]) for i in np.flatnonzero(~single)}
    order = _order(sizes, tables, most, stop)
    if order is None:
        return "time is up" if stop() else f"tables of more than {most:,} entries"
    buckets, room = _buckets(network, order, sizes, tables, allowed)
    return Elimination(network, cost, constant, strategy, np.array(order, np.int64), buckets, room)


def _tables(
    network: CostNetwork, value: IntArray, allowed: BoolArray, single: BoolArray
) -> dict[tuple[int, int], IntArray]:
    """Return the sum of all tables of two undecided nodes, smaller number first, of what is possible; none of zeros."""
    out: dict[tuple[int, int], IntArray] = {}
    ptr, start = network.ptr.tolist(), network.table_ptr.tolist()
    kept = [np.flatnonzero(allowed[ptr[i] : ptr[i + 1]]) for i in range(network.count)]
    for e, (u, v) in enumerate(network.ends.tolist()):
        if single[u] or single[v]:
            continue
        table = value[start[e] : start[e + 1]].reshape(ptr[u + 1] - ptr[u], -1)
        table = table[kept[u][:, None], kept[v]]
        key = (u, v) if u < v else (v, u)
        table = table if u < v else table.T
        out[key] = np.minimum(out[key] + table, NEVER) if key in out else table
    return {key: table for key, table in out.items() if table.any()}


def _order(
    sizes: dict[int, int], tables: dict[tuple[int, int], IntArray], most: int, stop: Callable[[], bool]
) -> list[int] | None:
    """Return the better of two orders of elimination, or None if both need more than ``most`` entries, or time."""

    def smallest(i: int, near: dict[int, set[int]]) -> tuple[float, float]:
        return float(prod(sizes[k] for k in near[i]) * sizes[i]), 0.0

    def fewest(i: int, near: dict[int, set[int]]) -> tuple[float, float]:
        around = near[i]
        joined = sum(len(around & near[k]) for k in around)
        return float(len(around) * (len(around) - 1) - joined), float(prod(sizes[k] for k in around))

    best: list[int] | None = None
    for rule in (smallest, fewest):
        found = _greedy(sizes, tables, rule, most, stop)
        if found is not None:
            best, most = found
    return best


def _greedy(
    sizes: dict[int, int],
    tables: dict[tuple[int, int], IntArray],
    rule: Callable[[int, dict[int, set[int]]], tuple[float, float]],
    most: int,
    stop: Callable[[], bool],
) -> tuple[list[int], int] | None:
    """Return the order in which a rule's least node comes first, and its entries; None from ``most`` on, or if time is up."""
    near: dict[int, set[int]] = {i: set() for i in sizes}
    for u, v in tables:
        near[u].add(v)
        near[v].add(u)
    rank = {i: rule(i, near) for i in sizes}
    heap = [(*rank[i], i) for i in sizes]
    heapq.heapify(heap)
    order, entries = list[int](), 0
    while heap:
        *worth, i = heapq.heappop(heap)
        if i not in rank or tuple(worth) != rank[i]:
            continue
        del rank[i]
        around = near.pop(i)
        entries += prod(sizes[k] for k in around) * sizes[i]
        if entries >= most or (len(order) % STEPS == 0 and stop()):
            return None
        order.append(i)
        for k in around:
            near[k] |= around
            near[k] -= {i, k}
        for k in around:
            new = rule(k, near)
            if new != rank[k]:
                rank[k] = new
                heapq.heappush(heap, (*new, k))
    return order, entries


def _buckets(
    network: CostNetwork,
    order: list[int],
    sizes: dict[int, int],
    tables: dict[tuple[int, int], IntArray],
    allowed: BoolArray,
) -> tuple[Buckets, Room]:
    """Return the tables of an order of elimination."""
    place = {i: k for k, i in enumerate(order)}
    own: list[list[tuple[int, IntArray]]] = [[] for _ in order]  # tables of the bucket eliminated first
    for (u, v), table in tables.items():
        first, second = (u, v) if place[u] < place[v] else (v, u)
        own[place[first]].append((place[second], table if first == v else table.T))
    wide = [sizes[i] for i in order]
    scopes: list[list[int]] = []
    children: list[list[int]] = [[] for _ in order]
    base, strides = [], []
    for k in range(len(order)):
        scope = sorted({j for j, _ in own[k]} | {j for c in children[k] for j in scopes[c] if j != k})
        scopes.append(scope)
        if scope:
            children[scope[0]].append(k)
        table = np.zeros([wide[j] for j in scope] + [wide[k]], np.int64)
        for j, part in own[k]:
            shape = [1] * (len(scope) + 1)
            shape[scope.index(j)], shape[-1] = part.shape
            table += part.reshape(shape)
            np.minimum(table, NEVER, out=table)
        base.append(table.reshape(-1))
    for k, scope in enumerate(scopes):
        for c in children[k]:
            step, of = 1, {}
            for j in reversed(scopes[c]):
                of[j], step = step, step * wide[j]
            strides.append(np.array([of.get(j, 0) for j in [*scope, k]], np.int64))
    rows = [prod(wide[j] for j in scope) for scope in scopes]
    ptr = network.ptr
    choices = [np.flatnonzero(allowed[ptr[i] : ptr[i + 1]]) + ptr[i] for i in order]
    buckets = Buckets(
        np.array(wide, np.int64), _starts(scopes), _flat(scopes),
        np.array([wide[j] for scope in scopes for j in scope], np.int64),
        _starts(choices), _flat(choices), _starts(base), _flat(base), np.concatenate([[0], np.cumsum(rows)]).astype(np.int64),
        _starts(children), _flat(children), _starts(strides), _flat(strides),
    )  # fmt: skip
    message = np.zeros(max(1, sum(rows)), np.int64)
    largest = max((len(x) for x in base), default=1)
    widest = max((len(x) for x in scopes), default=0)
    room = Room(message, np.zeros_like(message), np.zeros(largest, np.int64), np.zeros(widest + 1, np.int64))
    return buckets, room


def _starts(parts: list[list[int]] | list[IntArray]) -> IntArray:
    return np.concatenate([[0], np.cumsum([len(x) for x in parts])]).astype(np.int64)


def _flat(parts: list[list[int]] | list[IntArray]) -> IntArray:
    return np.concatenate([*parts, np.zeros(0, np.int64)]).astype(np.int64)


def apart_for(
    network: CostNetwork, removable: BoolArray, widest: int, stop: Callable[[], bool] = never
) -> BoolArray:
    """Return (N,) some of the ``removable`` nodes without which tables have about ``widest`` entries at most, if time allows.

    Nodes are eliminated by smallest tables; where one is too large, the node with most neighbours is taken out of it.
    """
    allowed = possible_choices(network)
    left = np.add.reduceat(allowed.astype(np.int64), network.ptr[:-1])
    value = np.where(network.table < FORBIDDEN, network.table, NEVER)
    tables = _tables(network, value, allowed, left == 1)
    sizes = {int(i): int(left[i]) for i in np.flatnonzero(left > 1)}
    near: dict[int, set[int]] = {i: set() for i in sizes}
    for u, v in tables:
        near[u].add(v)
        near[v].add(u)
    many = {i: len(near[i]) for i in near}
    rank = {i: prod(sizes[k] for k in near[i]) * sizes[i] for i in sizes}
    heap = [(rank[i], i) for i in sizes]
    heapq.heapify(heap)
    apart: BoolArray = np.zeros(network.count, bool)
    while heap and not (len(rank) % STEPS == 0 and stop()):
        worth, i = heapq.heappop(heap)
        if i not in rank or worth != rank[i]:
            continue
        out = i
        if worth > widest:
            out = max((k for k in near[i] | {i} if removable[k]), key=lambda k: (many[k], -k), default=i)
            apart[out] = removable[out]
        around = near.pop(out)
        del rank[out]
        for k in around:
            near[k] |= around if not apart[out] else set()
            near[k] -= {out, k}
        for k in around:
            rank[k] = prod(sizes[m] for m in near[k]) * sizes[k]
            heapq.heappush(heap, (rank[k], k))
    return apart
