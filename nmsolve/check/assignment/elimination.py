"""The least cost of a sum of small tables, by elimination with NumPy; shares no code with the engines."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

import numpy as np

from nmsolve.model.errors import CertificateError
from nmsolve.model.types import IntArray

#: Stands for "forbidden"; all sums of costs are below a half of it, and two of it fit a whole number.
NEVER = 2**61
#: Most entries of all tables together.
MOST = 1 << 26


@dataclass
class Tables:
    """Variables with their numbers of values, and tables of costs over pairs of them."""

    sizes: list[int] = field(default_factory=list)
    pairs: dict[tuple[int, int], IntArray] = field(default_factory=dict)

    def variable(self, size: int) -> int:
        """Add a variable; its number."""
        self.sizes.append(size)
        return len(self.sizes) - 1

    def add(self, u: int, v: int, table: IntArray) -> None:
        """Add a table (values of u, values of v) of costs up to :data:`NEVER`."""
        if u > v:
            u, v, table = v, u, table.T
        known = self.pairs.get((u, v))
        self.pairs[u, v] = table if known is None else np.minimum(known + table, NEVER)


class Plan:
    """An order of elimination of the variables of some tables, to be used with any costs of values."""

    def __init__(self, tables: Tables) -> None:
        near: list[set[int]] = [set() for _ in tables.sizes]
        for u, v in tables.pairs:
            near[u].add(v)
            near[v].add(u)
        self.order = _order(near, tables.sizes)
        place = {u: k for k, u in enumerate(self.order)}
        mine: list[list[tuple[int, IntArray]]] = [[] for _ in self.order]
        for (u, v), table in tables.pairs.items():
            first, second = (u, v) if place[u] < place[v] else (v, u)
            mine[place[first]].append((place[second], table if first == u else table.T))
        sizes = [tables.sizes[u] for u in self.order]
        self.scopes: list[list[int]] = []
        self.base: list[IntArray] = []
        receives: list[list[int]] = [[] for _ in self.order]
        self.receives = receives
        self.goal: list[int] = []
        for k in range(len(self.order)):
            others = {j for j, _ in mine[k]}.union(*(self.scopes[c] for c in receives[k])) - {k}
            scope = sorted(others)
            self.scopes.append(scope)
            self.goal.append(scope[0] if scope else -1)
            if scope:
                receives[scope[0]].append(k)
            base = np.zeros([sizes[k], *(sizes[j] for j in scope)], np.int64)
            for j, table in mine[k]:
                base = np.minimum(
                    base + table.reshape([sizes[k], *(sizes[j] if i == j else 1 for i in scope)]), NEVER
                )
            self.base.append(base)
        # what comes from c has an axis for every node of the receiver's table, of length 1 where it does not depend on it
        self.shape = [
            [sizes[i] if i in set(self.scopes[c]) else 1 for i in [self.goal[c], *self.scopes[self.goal[c]]]]
            if self.scopes[c]
            else []
            for c in range(len(self.order))
        ]

    def least(self, costs: list[IntArray]) -> int:
        """Return the least sum of tables and of the costs of every variable's values, or :data:`NEVER`."""
        passed: list[IntArray] = [np.zeros(0, np.int64)] * len(self.order)
        total = 0
        for k, u in enumerate(self.order):
            table = self.base[k] + costs[u].reshape([-1] + [1] * len(self.scopes[k]))
            for c in self.receives[k]:
                table = np.minimum(table, NEVER) + passed[c].reshape(self.shape[c])
                passed[c] = passed[c][:0]
            least = np.minimum(table.min(axis=0), NEVER)
            if self.scopes[k]:
                passed[k] = least
            else:
                total = min(total + int(least), NEVER)
        return total


def _order(near: list[set[int]], sizes: list[int]) -> list[int]:
    """Return an order in which the next variable is one whose elimination costs least; ``near`` is used up.

    Raises
    ------
    CertificateError : the tables would be too large
    """
    todo: dict[int, int] = {u: prod(sizes[v] for v in near[u]) * sizes[u] for u in range(len(sizes))}
    levels: dict[int, set[int]] = {}
    for u, weight in todo.items():
        levels.setdefault(weight, set()).add(u)
    order, entries = [], 0
    while todo:
        least = min(levels)
        u = levels[least].pop()
        if not levels[least]:
            del levels[least]
        del todo[u]
        entries += least
        if entries > MOST:
            raise CertificateError(f"to recompute it takes tables of more than {MOST:,} entries")
        order.append(u)
        for v in near[u]:
            near[v] |= near[u]
            near[v] -= {u, v}
        for v in near[u]:
            levels[todo[v]].discard(v)
            if not levels[todo[v]]:
                del levels[todo[v]]
            todo[v] = prod(sizes[w] for w in near[v]) * sizes[v]
            levels.setdefault(todo[v], set()).add(v)
    return order
