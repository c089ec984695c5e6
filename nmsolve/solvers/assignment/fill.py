"""Assignments that keep limits of memory, from strategies that need not: memories are filled operator by operator.

Operators are taken in an order; the first one whose memory overflows is kept out of it, all before it stay where they are, and
the rest is solved anew by elimination. Large neighbourhoods are the same with most operators kept from the start.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.model.assignment.network import network_cost
from nmsolve.model.types import BoolArray, IntArray
from nmsolve.solvers.assignment.elimination import NEVER
from nmsolve.solvers.assignment.relaxation import Relaxation


class Filled(NamedTuple):
    """Strategies (N,) that keep all rules, and their cost."""

    cost: int
    strategy: IntArray


class Filler:
    """Repairs and improves strategies of one relaxation's network.

    Parameters
    ----------
    relaxation : whose tables are used; prices are replaced by decisions on which tensors are present where
    """

    def __init__(self, relaxation: Relaxation) -> None:
        self.relaxation, self.reduced = relaxation, relaxation.reduced
        network = self.reduced.network
        self.ptr, self.count = network.ptr, len(self.reduced.stand_in) or network.count
        self.owner = np.repeat(np.arange(network.count), np.diff(network.ptr))
        rows = relaxation.whole
        self.memory_of = np.full(len(network.cost), -1)  # where an operator's choice keeps its tensors
        problem = self.reduced.problem
        if problem is not None:
            unit = self.reduced.unit
            self.memory_of[: len(unit)] = problem.units.memory[problem.units.site[unit]]
        own = self.owner[rows.choice] < self.count
        self.own_choice, self.own_amount = rows.choice[own], rows.amount[own]
        self.own_first, self.own_last = rows.first[own], rows.last[own]
        #: most bytes that an operator demands for itself
        self.weight = np.zeros(self.count, np.int64)
        np.maximum.at(self.weight, self.owner[self.own_choice], self.own_amount)

    def used(self, strategy: IntArray, kept: BoolArray) -> IntArray:
        """Return (R,) what memories hold for the operators (nodes,) that are ``kept``."""
        needs, chosen = self.reduced.needs, np.zeros(self.ptr[-1], bool)
        operators = np.flatnonzero(kept)
        chosen[self.ptr[operators] + strategy[operators]] = True
        asked = needs[chosen[needs[:, 0]]]
        level = np.zeros(self.reduced.network.count, np.int64)
        np.maximum.at(level, asked[:, 1], asked[:, 2])
        aux = np.flatnonzero(level)
        chosen[self.ptr[aux] + level[aux]] = True
        return self.relaxation.whole.used(chosen)

    def overflow(self, strategy: IntArray, kept: BoolArray, order: IntArray) -> tuple[int, int] | None:
        """Return how many operators of an ``order`` fit together with those ``kept``, and the memory that the next overflows."""
        most = self.relaxation.whole.most

        def full(count: int) -> IntArray:
            with_them = kept.copy()
            with_them[order[:count]] = True
            return np.flatnonzero(self.used(strategy, with_them) > most)

        if not len(full(len(order))):
            return None
        low, high = 0, len(order)  # ``high`` overflow, ``low`` fit or are none
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if len(full(middle)) else (middle, high)
        return high - 1, int(self.relaxation.whole.memory[full(high)[0]])

    def filled(
        self,
        strategy: IntArray,
        kept: BoolArray,
        order: IntArray,
        memory_cost: IntArray,
        present: BoolArray,
        most: int = 400,
    ) -> Filled | None:
        """Return strategies that keep all limits, with the operators ``kept`` as they are; None if they are not found.

        Parameters
        ----------
        order : the other operators, in the order in which they are given room
        memory_cost : (choices,) added to costs, in parts: what memory costs
        present : (P,) which of the nodes that are taken apart are true
        most : eliminations
        """
        kept, barred = kept.copy(), np.zeros(self.ptr[-1], bool)
        for _ in range(most):
            used = self.used(strategy, kept)
            cost = self.costs(strategy, kept, memory_cost, present)
            cost[barred | self.too_large(used, kept)] = NEVER
            value, found = self.relaxation.elimination.best(cost)
            if value >= NEVER:
                return None
            strategy = self.completed(found)
            over = self.overflow(strategy, kept, order)
            if over is None:
                return Filled(network_cost(self.reduced.network, strategy), strategy)
            fit, memory = over
            kept[order[:fit]] = True
            node = int(order[fit])
            own = np.arange(self.ptr[node], self.ptr[node + 1])
            barred[own[self.memory_of[own] == memory]] = True
            barred[own[strategy[node]]] = True
            order = order[fit:]
        return None

    def completed(self, strategy: IntArray) -> IntArray:
        """Return the strategies with auxiliary nodes as cheap as the operators allow."""
        return self.reduced.lower(self.reduced.lift(strategy))

    def costs(
        self, strategy: IntArray, kept: BoolArray, memory_cost: IntArray, present: BoolArray
    ) -> IntArray:
        """Return (choices,) costs in parts; what operators ``kept`` do not choose is out of the question."""
        relaxation, prices = self.relaxation, self.relaxation.prices
        cost = relaxation.elimination.cost + memory_cost
        paid = present[prices.earn_of]
        np.add.at(cost, prices.earn_choice[paid], prices.earn_cost[paid])
        cost[prices.pay_choice[~present[prices.of[prices.pay_price]]]] = NEVER
        operators = np.flatnonzero(kept)
        others = np.zeros(len(cost), bool)
        others[: self.ptr[self.count]] = kept[self.owner[: self.ptr[self.count]]]
        others[self.ptr[operators] + strategy[operators]] = False
        cost[others | (relaxation.elimination.cost >= NEVER)] = NEVER
        return cost

    def too_large(self, used: IntArray, kept: BoolArray) -> BoolArray:
        """Return (choices,) which choices demand more than is left beside ``used``, those of operators ``kept`` aside."""
        out = np.zeros(self.ptr[-1], bool)
        if not len(self.own_choice):
            return out
        bounds = np.column_stack([self.own_first, self.own_last]).reshape(-1)
        peak = np.maximum.reduceat(np.append(used, 0), bounds)[::2]
        short = peak + self.own_amount > self.relaxation.whole.most[self.own_first]
        out[self.own_choice[short & ~kept[self.owner[self.own_choice]]]] = True
        return out

    def needed(self, strategy: IntArray) -> BoolArray:
        """Return (P,) which of the nodes taken apart operators ask for."""
        prices, chosen = self.relaxation.prices, self.relaxation.chosen(strategy)
        present = np.zeros(len(prices.node), bool)
        np.logical_or.at(present, prices.of[prices.pay_price], chosen[prices.pay_choice])
        return present
