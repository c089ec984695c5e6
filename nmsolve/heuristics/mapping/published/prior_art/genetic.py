"""A genetic algorithm for mappings after Ahuja, Orlin and Tiwari (2000), *A greedy genetic algorithm for the quadratic
assignment problem*, Computers & Operations Research 27:917-934.

Kept from it: swap path crossover (the child is the best mapping on a path of exchanges between two parents),
immigration when the population has become alike, tournament selection, and a local search for a share of the children.
"""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.published.prior_art.arena import (
    Arena,
    Mapping,
    assign,
    change,
    copied,
    descend,
    partner,
    send,
    shake,
)
from nmsolve.heuristics.rng import below, shuffle, uniform
from nmsolve.model.compiled import kernel
from nmsolve.model.types import AnyArray

#: Members of the population; share of children that are improved, and steps per node for that; share that mutate.
POPULATION, IMPROVED, STEPS_PER_NODE, MUTATED = 50, 0.2, 20, 0.2
#: Children in a row that were not taken in before the worse half is replaced by immigrants.
STALE = 100


class Genetic:
    """State of the method; :meth:`advance` makes one child and returns the best mapping so far."""

    def __init__(self, a: Arena, start: Mapping, rng: AnyArray) -> None:
        self._a, self._rng, self._n = a, rng, len(start.core)
        self._members = [copied(start)]
        self._stale = 0

    @property
    def best(self) -> Mapping:
        """The fittest member."""
        return self._members[self._by_cost()[0]]

    def advance(self) -> Mapping:
        """An immigrant while the population is not full, else a child of two tournament winners."""
        if len(self._members) < POPULATION:
            self._members.append(self._immigrant())
            return self.best
        child, path = copied(self._winner()), copied(self._members[0])
        _cross(self._a, child, self._winner(), path, self._rng)
        if uniform(self._rng) < MUTATED:
            shake(self._a, child, max(1, self._n // 20), self._rng)
        if uniform(self._rng) < IMPROVED:
            descend(self._a, child, STEPS_PER_NODE * self._n, self._rng)
        self._take_in(child)
        return self.best

    def _by_cost(self) -> list[int]:
        """Members from the best to the worst."""
        return sorted(range(len(self._members)), key=lambda i: float(self._members[i].cost[0]))

    def _winner(self) -> Mapping:
        one: Mapping = self._members[below(self._rng, POPULATION)]
        other: Mapping = self._members[below(self._rng, POPULATION)]
        return one if one.cost[0] <= other.cost[0] else other

    def _take_in(self, child: Mapping) -> None:
        """The child replaces the worst member if it is better and new; a stale population gets immigrants."""
        worst = self._by_cost()[-1]
        known = any(m.cost[0] == child.cost[0] and (m.core == child.core).all() for m in self._members)
        if child.cost[0] < self._members[worst].cost[0] and not known:
            self._members[worst], self._stale = child, 0
            return
        self._stale += 1
        if self._stale >= STALE:
            self._members = [self._members[i] for i in self._by_cost()[: POPULATION // 2]]
            self._stale = 0

    def _immigrant(self) -> Mapping:
        stranger = copied(self._members[0])
        shake(self._a, stranger, 4 * self._n, self._rng)
        descend(self._a, stranger, STEPS_PER_NODE * self._n, self._rng)
        return stranger


@kernel
def _cross(a: Arena, child: Mapping, goal: Mapping, path: Mapping, rng: AnyArray) -> None:
    """Swap path crossover: walk ``path`` from the first parent (given in ``child``) to the second, node by node in random
    order, each time sending a node where the goal has it; ``child`` becomes the best mapping on the inner half of the way.
    """
    assign(path, child)
    n = len(path.core)
    order = np.arange(n)
    shuffle(rng, order)
    apart = 0
    for u in range(n):
        if path.core[u] != goal.core[u]:
            apart += 1
    done, least = 0, np.inf
    for i in range(n):
        u = order[i]
        q = goal.core[u]
        if path.core[u] == q:
            continue
        v = partner(a, path, u, q, rng)
        if v == -2:
            continue
        send(a, path, u, q, v, change(a, path, u, q, v))
        done += 1
        if 4 * done >= apart and path.cost[0] < least:  # at least a quarter of the other parent
            least = path.cost[0]
            assign(child, path)
        if 4 * done >= 3 * apart:
            break
