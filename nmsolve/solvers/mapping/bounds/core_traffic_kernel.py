"""The cheapest set of nodes for one core, by branch and bound: the pricing problem of the core-traffic bound."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import AnyArray, FloatArray, IntArray

#: Sets whose possible gain is below this are not looked at; callers subtract it once per core.
MARGIN = 1e-9


class TrafficNets(NamedTuple):
    """The nets of a problem: CSR over nodes (``net_ptr``, ``nets``), ``pins`` and ``rate`` (nets,), ``unit`` (d0).

    ``parts`` cores, each with ``least`` to ``room`` nodes.
    """

    net_ptr: IntArray
    nets: IntArray
    pins: IntArray
    rate: FloatArray
    unit: float
    parts: int
    least: int
    room: int


@kernel
def cost_of(c: TrafficNets, member: IntArray, size: int, price: FloatArray) -> float:
    """``sum of the rates of nets that touch member[:size] - prices of its nodes``."""
    touch = np.zeros(len(c.rate), np.int64)
    total = 0.0
    for k in range(size):
        total = with_node(c, member[k], total, price, touch)
    return total


@kernel
def cheapest_set(
    c: TrafficNets, price: FloatArray, known: float, limit: int, member: IntArray
) -> tuple[float, int, int]:
    """Least cost of a set of nodes for a core, ``(cost, nodes of the tree, size)``; below ``known`` only.

    The set is left in ``member[:size]``; size -1 if none is below ``known``, whose cost is then returned. Nodes -1:
    the search would need more than ``limit`` nodes, and nothing is proved.

    Parameters
    ----------
    price : (n,) what every chosen node brings

    Notes
    -----
    Depth first, the most promising node in, then out. A net not yet touched charges each open node at least
    ``rate / min(places left, open nodes of the net)``: at most this number of open nodes can share it. The
    cheapest places-left of these charges less prices, where negative or needed, bound all that can follow.
    """
    n = len(price)
    touch, open_pins = np.zeros(len(c.rate), np.int64), c.pins.copy()
    state = np.zeros(n, np.int8)  # 0 open, 1 in, 2 out
    node, way = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int8)
    charge = np.zeros(n)
    best, best_size, depth, size, cost, tried = known, -1, 0, 0, 0.0, 0
    down = True
    while True:
        if down:
            tried += 1
            if tried > limit:
                return best, -1, best_size
            if size >= c.least and cost < best:
                best, best_size, k = cost, size, 0
                for u in range(n):
                    if state[u] == 1:
                        member[k] = u
                        k += 1
            first = _most_promising(c, size, best - cost, price, touch, open_pins, state, charge)
            if first >= 0:
                node[depth], way[depth] = first, 1
                depth += 1
                state[first] = 1
                size += 1
                cost = with_node(c, first, cost, price, touch)
            else:
                down = False
            continue
        if depth == 0:
            return best, tried, best_size
        depth -= 1
        u = node[depth]
        if way[depth] == 1:
            size -= 1
            cost = without_node(c, u, cost, price, touch)
            for j in range(c.net_ptr[u], c.net_ptr[u + 1]):
                open_pins[c.nets[j]] -= 1  # out for good: its nets have one open node fewer
            state[u], way[depth] = 2, 2
            depth += 1
            down = True
        else:
            state[u] = 0
            for j in range(c.net_ptr[u], c.net_ptr[u + 1]):
                open_pins[c.nets[j]] += 1


@plain
def with_node(c: TrafficNets, u: int, cost: float, price: FloatArray, touch: IntArray) -> float:
    """The cost once node ``u`` is in the set; ``touch`` (nets,) counts the chosen nodes of every net."""
    cost -= price[u]
    for j in range(c.net_ptr[u], c.net_ptr[u + 1]):
        if touch[c.nets[j]] == 0:
            cost += c.rate[c.nets[j]]
        touch[c.nets[j]] += 1
    return cost


@plain
def without_node(c: TrafficNets, u: int, cost: float, price: FloatArray, touch: IntArray) -> float:
    """The cost once node ``u`` is out of the set."""
    cost += price[u]
    for j in range(c.net_ptr[u], c.net_ptr[u + 1]):
        touch[c.nets[j]] -= 1
        if touch[c.nets[j]] == 0:
            cost -= c.rate[c.nets[j]]
    return cost


@plain
def _most_promising(
    c: TrafficNets, size: int, slack: float, price: FloatArray, touch: IntArray, open_pins: IntArray, state: AnyArray,
    charge: FloatArray,
) -> int:  # fmt: skip
    """The open node of the least charge, or -1 if none of the choices that make a set of ``size`` a whole one gains ``slack``."""
    left, needed = c.room - size, c.least - size
    if left <= 0:
        return -1
    count, first, low = 0, -1, np.inf
    for u in range(len(price)):
        if state[u] != 0:
            continue
        value = -price[u]
        for j in range(c.net_ptr[u], c.net_ptr[u + 1]):
            m = c.nets[j]
            if touch[m] == 0:
                value += c.rate[m] / min(left, open_pins[m])
        charge[count] = value
        count += 1
        if value < low:
            low, first = value, u
    if count < needed or _least_sum(charge, count, left, needed) >= slack - MARGIN:
        return -1
    return first


@plain
def _least_sum(charge: FloatArray, count: int, most: int, needed: int) -> float:
    """Sum of the least of ``charge[:count]``: the ``needed`` least ones, and up to ``most`` while negative."""
    total = 0.0
    for k in range(min(most, count)):
        b = k
        for i in range(k + 1, count):
            if charge[i] < charge[b]:
                b = i
        charge[k], charge[b] = charge[b], charge[k]
        if charge[k] >= 0.0 and k >= needed:
            break
        total += charge[k]
    return total
