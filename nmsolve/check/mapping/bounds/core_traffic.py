"""Second implementation of the core-traffic bound (docs/bounds.md): nets, least distance and cheapest set from scratch.

The cheapest set is found by another search than the finder's: sets grow in one fixed order of the nodes, and what can
still be gained is read off the nodes that come later in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum
from typing import Any

import numpy as np

from nmsolve.check.mapping.bounds.parts import (
    EPS,
    CertificateError,
    both_ways,
    expect,
    least_apart,
    lowered,
    numbers,
    parallel,
    room_of,
    usable_cores,
)
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray, FloatArray, IntArray

#: Most work of the search, steps x (nodes + pins); beyond it the certificate is refused, not believed.
MAX_WORK = 1e10
#: Largest price a certificate may hold, in parts of the sum of all rates.
MAX_PRICE = 1e6


def recheck_core_traffic(problem: MappingProblem, certificate: Mapping[str, Any]) -> float:
    """Least cost of a remote core x (sum of prices + cores x cheapest set - sum of rates)."""
    expect(problem)
    room = room_of(problem)
    price = numbers(certificate, "price", problem.n)
    inside, rate = _nets(problem)
    whole = fsum(rate)
    if np.abs(price).max(initial=0.0) > MAX_PRICE * whole:
        raise CertificateError(f"'price' holds a number above {MAX_PRICE:g} times all rates")
    cores = len(usable_cores(problem))
    least = max(0, problem.n - (cores - 1) * room)
    order = np.argsort(
        -price, kind="stable"
    )  # the dearest first: any other order takes up to 300 times the steps
    node, nets = np.nonzero(inside[order])
    ptr = np.searchsorted(node, np.arange(problem.n + 1))
    most = int(MAX_WORK / (problem.n + len(nets)))
    low, steps = cheapest(ptr, nets, rate, price[order], room, least, most)
    if steps < 0:
        raise CertificateError(f"'price' cannot be checked within {most} steps")
    # A set's cost, and the promise that drops it, go through at most this many additions of numbers that sum to ``size``.
    size = whole + fsum(np.abs(price))
    roundings = (room + 2) * (int(np.diff(ptr).max(initial=0)) + 3) + 8
    slack = (2 * cores * roundings + 4 * (cores + 2)) * EPS * size
    value = fsum(price) + cores * float(low) - whole - slack
    return lowered(problem, least_apart(problem) * max(0.0, value), parallel(problem) + 4)


def _nets(problem: MappingProblem) -> tuple[BoolArray, FloatArray]:
    """(n, nets) bool, which node is in which net; (nets,) rates. Messages as the objective charges them."""
    graph, nets = problem.graph, list[tuple[set[int], float]]()
    if problem.uses_nets:
        for i in range(graph.rows):
            s, part = int(graph.source[i]), slice(graph.indptr[i], graph.indptr[i + 1])
            if problem.aim.reach or graph.multicast[i]:
                nets.append(({s, *graph.targets[part].tolist()}, float(graph.rate[i])))
            else:
                weights = graph.weights[part].tolist()
                nets += [({s, t}, w) for t, w in zip(graph.targets[part].tolist(), weights, strict=True)]
    else:
        t = both_ways(problem).tocoo()
        entries = zip(t.row.tolist(), t.col.tolist(), t.data.tolist(), strict=True)
        nets = [({a, b}, w) for a, b, w in entries if a < b]
    # A node that talks to no other costs nothing and must not count in the sets of its core.
    kept = [net for net in nets if len(net[0]) > 1]
    inside = np.zeros((problem.n, len(kept)), bool)
    for m, (pins, _) in enumerate(kept):
        inside[sorted(pins), m] = True
    return inside, np.array([rate for _, rate in kept], np.float64)


@kernel
def cheapest(
    ptr: IntArray, nets: IntArray, rate: FloatArray, price: FloatArray, room: int, least: int, most: int
) -> tuple[float, int]:
    """Least ``sum of rates touched - prices`` over sets of ``least`` to ``room`` nodes, and steps (-1: too many).

    ``ptr`` (n + 1,), ``nets``: the nets of every node, CSR. Sets are built in the fixed order of the nodes.
    """
    n, many = len(price), len(rate)
    later = np.zeros((n + 1, many), np.int64)  # nodes of the net from this one on
    for u in range(n - 1, -1, -1):
        later[u] = later[u + 1]
        for j in range(ptr[u], ptr[u + 1]):
            later[u, nets[j]] += 1
    chosen, at = np.full(room, -1, np.int64), 0
    touched = np.zeros(many, np.int64)
    cost, low = np.zeros(room + 1), np.zeros(room)
    best = 0.0 if least == 0 else np.inf
    steps, u = 0, 0
    while True:
        steps += 1
        if steps > most:
            return best, -1
        if (
            at < room
            and u < n
            and cost[at] + _promise(ptr, nets, rate, price, later[u], touched, u, room - at, least - at, low)
            < best
        ):
            chosen[at] = u
            cost[at + 1] = cost[at] - price[u]
            for j in range(ptr[u], ptr[u + 1]):
                if touched[nets[j]] == 0:
                    cost[at + 1] += rate[nets[j]]
                touched[nets[j]] += 1
            at += 1
            u += 1
            if at >= least and cost[at] < best:
                best = cost[at]
            continue
        if at == 0:
            return best, steps
        at -= 1
        for j in range(ptr[chosen[at]], ptr[chosen[at] + 1]):
            touched[nets[j]] -= 1
        u = chosen[at] + 1


@plain
def _promise(
    ptr: IntArray, nets: IntArray, rate: FloatArray, price: FloatArray, later: IntArray, touched: IntArray, first: int,
    left: int, needed: int, low: FloatArray,
) -> float:  # fmt: skip
    """The least that up to ``left`` nodes from ``first`` on can add: each shares an untouched net with at most the rest.

    ``low`` (>= left,) is work space: the least charges, rising.
    """
    n, held = len(price), 0
    if n - first < needed:
        return np.inf
    for u in range(first, n):
        value = -price[u]
        for j in range(ptr[u], ptr[u + 1]):
            if touched[nets[j]] == 0:
                value += rate[nets[j]] / min(left, later[nets[j]])
        if held == left and value >= low[held - 1]:
            continue
        k = held if held < left else held - 1
        held = k + 1
        while k > 0 and low[k - 1] > value:
            low[k] = low[k - 1]
            k -= 1
        low[k] = value
    total = 0.0
    for k in range(held):
        if low[k] >= 0.0 and k >= needed:
            break
        total += low[k]
    return total
