"""Second implementation of the covering bound (docs/bounds.md): nets, least distance and cheapest set from scratch.

The cheapest set is found by another search than the finder's: sets grow in one fixed order of the nodes, and what can
still be gained is read off the nodes that come later in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numba as nb
import numpy as np

from nmsolve.hw.cost import uses_nets
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray, FloatArray, IntArray
from nmsolve.solvers.mapping.recheck.parts import (
    CertificateError,
    both_ways,
    expect,
    least_apart,
    numbers,
    room_of,
    usable_cores,
)

#: Most steps of the search; beyond them the certificate is refused, not believed.
MAX_STEPS = 50_000_000
#: Largest price a certificate may hold, in parts of the sum of all rates.
MAX_PRICE = 1e6


def recheck_cover(problem: MappingProblem, certificate: Mapping[str, Any]) -> float:
    """Least cost of a remote core x (sum of prices + cores x cheapest set - sum of rates)."""
    expect(problem)
    room = room_of(problem)
    price = numbers(certificate, "price", problem.n)
    inside, rate = _nets(problem)
    whole = float(rate.sum())
    if np.abs(price).max(initial=0.0) > MAX_PRICE * (whole + 1.0):
        raise CertificateError("'price' holds a number beyond all rates")
    cores = len(usable_cores(problem))
    least = max(0, problem.n - (cores - 1) * room)
    order = np.argsort(inside @ rate - price, kind="stable")
    low, steps = cheapest(inside[order], rate, price[order], room, least, MAX_STEPS)
    if steps < 0:
        raise CertificateError(f"'price' cannot be checked within {MAX_STEPS} steps")
    slack = 1e-12 * (whole + float(np.abs(price).sum())) * cores
    return least_apart(problem) * (float(price.sum()) + cores * float(low) - whole - slack)


def _nets(problem: MappingProblem) -> tuple[BoolArray, FloatArray]:
    """(n, nets) bool, which node is in which net; (nets,) rates. Messages as the objective charges them."""
    graph, nets = problem.graph, list[tuple[set[int], float]]()
    if uses_nets(problem):
        for i in range(graph.rows):
            s, part = int(graph.source[i]), slice(graph.indptr[i], graph.indptr[i + 1])
            if problem.objective == "connectivity" or graph.multicast[i]:
                nets.append(({s, *graph.targets[part].tolist()}, float(graph.rate[i])))
            else:
                weights = graph.weights[part].tolist()
                nets += [({s, t}, w) for t, w in zip(graph.targets[part].tolist(), weights, strict=True)]
    else:
        t = both_ways(problem).tocoo()
        entries = zip(t.row.tolist(), t.col.tolist(), t.data.tolist(), strict=True)
        nets = [({a, b}, w) for a, b, w in entries if a < b]
    # A node that talks to nobody costs nothing and must not count in the sets of its core.
    kept = [net for net in nets if len(net[0]) > 1]
    inside = np.zeros((problem.n, len(kept)), bool)
    for m, (pins, _) in enumerate(kept):
        inside[sorted(pins), m] = True
    return inside, np.array([rate for _, rate in kept], np.float64)


@nb.njit(cache=True, nogil=True)
def cheapest(
    inside: BoolArray, rate: FloatArray, price: FloatArray, room: int, least: int, most: int
) -> tuple[float, int]:
    """Least ``sum of rates touched - prices`` over sets of ``least`` to ``room`` nodes, and steps (-1: too many)."""
    n, many = inside.shape
    later = np.zeros((n + 1, many), np.int64)  # nodes of the net from this one on
    for u in range(n - 1, -1, -1):
        for m in range(many):
            later[u, m] = later[u + 1, m] + inside[u, m]
    chosen, at = np.full(room, -1, np.int64), 0
    touched = np.zeros((room + 1, many), np.bool_)
    cost = np.zeros(room + 1)
    best = 0.0 if least == 0 else np.inf
    steps, u = 0, 0
    while True:
        steps += 1
        if steps > most:
            return best, -1
        if (
            at < room
            and u < n
            and cost[at] + _promise(inside, rate, price, later[u], touched[at], u, room - at, least - at)
            < best
        ):
            chosen[at] = u
            cost[at + 1] = cost[at] - price[u]
            for m in range(many):
                touched[at + 1, m] = touched[at, m]
                if inside[u, m] and not touched[at, m]:
                    touched[at + 1, m] = True
                    cost[at + 1] += rate[m]
            at += 1
            u += 1
            if at >= least and cost[at] < best:
                best = cost[at]
            continue
        if at == 0:
            return best, steps
        at -= 1
        u = chosen[at] + 1


@nb.njit(cache=True, nogil=True)
def _promise(
    inside: BoolArray, rate: FloatArray, price: FloatArray, later: IntArray, touched: BoolArray, first: int,
    left: int, needed: int,
) -> float:  # fmt: skip
    """The least that up to ``left`` nodes from ``first`` on can add: each shares an untouched net with at most the rest."""
    n, many = inside.shape
    share = np.zeros(many)
    for m in range(many):
        if not touched[m] and later[m] > 0:
            share[m] = rate[m] / min(left, later[m])
    values = np.zeros(n - first)
    for u in range(first, n):
        values[u - first] = -price[u]
        for m in range(many):
            if inside[u, m]:
                values[u - first] += share[m]
    values.sort()
    total = 0.0
    for k in range(min(left, len(values))):
        if values[k] >= 0.0 and k >= needed:
            break
        total += values[k]
    return np.inf if len(values) < needed else total
