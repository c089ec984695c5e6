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
from nmsolve.hw.energy import line_values, step_value
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray, FloatArray, IntArray
from nmsolve.solvers.mapping.recheck.parts import (
    CertificateError,
    all_distances,
    both_ways,
    distances,
    fits_with,
    numbers,
    usable_cores,
)

#: Most steps of the search; beyond them the certificate is refused, not believed.
MAX_STEPS = 50_000_000
#: Largest price a certificate may hold, in parts of the sum of all rates.
MAX_PRICE = 1e6


def recheck_cover(problem: MappingProblem, certificate: Mapping[str, Any]) -> float:
    """Least cost of a remote core x (sum of prices + cores x cheapest set - sum of rates)."""
    if problem.objective == "max-link":
        raise CertificateError("a covering bound says nothing about the load of a link")
    price = numbers(certificate, "price", problem.n)
    inside, rate = _nets(problem)
    whole = float(rate.sum())
    if np.abs(price).max(initial=0.0) > MAX_PRICE * (whole + 1.0):
        raise CertificateError("'price' holds a number beyond all rates")
    cores = usable_cores(problem)
    limit = problem.capacity.max(axis=0) if problem.cores else np.zeros(problem.sizes.shape[1], np.int64)
    room = fits_with(problem.sizes, limit, np.zeros_like(limit))
    least = max(0, problem.n - (len(cores) - 1) * room)
    if len(cores) == 0 or room < 1 or least > room:
        raise CertificateError("the nodes do not fit, there is nothing to bound")
    order = np.argsort(inside @ rate - price, kind="stable")
    low, steps = cheapest(inside[order], rate, price[order], room, least, MAX_STEPS)
    if steps < 0:
        raise CertificateError(f"'price' cannot be checked within {MAX_STEPS} steps")
    slack = 1e-12 * (whole + float(np.abs(price).sum())) * len(cores)
    return float(_least_apart(problem)) * (float(price.sum()) + len(cores) * float(low) - whole - slack)


def _nets(problem: MappingProblem) -> tuple[BoolArray, FloatArray]:
    """(n, nets) bool, which node is in which net; (nets,) rates. Messages as the objective charges them."""
    graph, sets, rates = problem.graph, [], []
    if (
        problem.objective in ("hops", "cut")
        or (problem.objective == "energy" and not graph.multicast.any())
        or (problem.objective == "multicast-hops" and not graph.multicast.any())
    ):
        traffic = both_ways(problem).tocoo()
        for a, b, w in zip(traffic.row.tolist(), traffic.col.tolist(), traffic.data.tolist(), strict=True):
            if a < b and w > 0:
                sets.append([a, b])
                rates.append(w)
    else:
        for i in range(graph.rows):
            s, part = int(graph.source[i]), slice(graph.indptr[i], graph.indptr[i + 1])
            if problem.objective == "connectivity" or graph.multicast[i]:
                sets.append([s, *graph.targets[part].tolist()])
                rates.append(float(graph.rate[i]))
                continue
            for t, w in zip(graph.targets[part].tolist(), graph.weights[part].tolist(), strict=True):
                sets.append([s, t])
                rates.append(w)
    inside = np.zeros((problem.n, len(sets)), bool)
    for m, pins in enumerate(sets):
        inside[pins, m] = True
    return inside, np.array(rates, np.float64)


def _least_apart(problem: MappingProblem) -> float:
    """What a remote core costs at least: the shortest distance, for trees the shortest link."""
    machine, quantity = problem.machine, "energy" if problem.objective == "energy" else "hops"
    trees = problem.objective in ("multicast-hops", "energy") and problem.graph.multicast.any()
    if trees and machine.distance_matrix is None:
        lines = np.concatenate([line_values(machine, quantity, axis) for axis in (0, 1)])
        return step_value(machine, quantity) + float(lines.min(initial=np.inf))
    d = all_distances(problem) if uses_nets(problem) else distances(problem)
    off = d[~np.eye(len(d), dtype=bool)]
    return float(off.min()) if len(off) else 0.0


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
