"""Re-checks of the counting bounds: star, fan-out, Gilmore-Lawler. One node or message at a time, no shared code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from nmsolve.hw.cost import uses_nets
from nmsolve.hw.energy import line_values, step_value
from nmsolve.model.graph import READERS, Rows
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.mapping.recheck.parts import (
    CertificateError,
    all_distances,
    both_ways,
    distances,
    expect,
    fits_with,
    numbers,
    usable_cores,
)


def _slot_rows(problem: MappingProblem, d: FloatArray) -> FloatArray:
    """(k, k) distances of every core to itself (at most the nearest other), then to the others, rising."""
    k = len(d)
    off = d[~np.eye(k, dtype=bool)].reshape(k, k - 1)
    off = np.sort(off, axis=1)
    own = np.diag(d) if k == 1 else np.minimum(np.diag(d), off[:, 0])
    return np.column_stack([own, off])


def _limit(problem: MappingProblem) -> IntArray:
    limit: IntArray = problem.capacity.max(axis=0) if problem.cores else np.zeros(0, np.int64)
    return limit


def _slot_weights(problem: MappingProblem, u: int, partners: IntArray, weight: FloatArray) -> FloatArray:
    """Traffic of node u by slot when its partners sit as near as they fit, heaviest first."""
    sizes, limit = problem.sizes[partners], _limit(problem)
    own = fits_with(sizes, limit, problem.sizes[u])
    other = max(1, fits_with(sizes, limit, np.zeros_like(limit)))
    falling = np.sort(weight)[::-1]
    rest = falling[own:]
    return np.append(
        falling[:own].sum(), np.add.reduceat(rest, np.arange(0, len(rest), other)) if len(rest) else []
    )


def recheck_star(problem: MappingProblem, certificate: Mapping[str, Any]) -> float:
    """Half the sum over nodes of (traffic, falling) x (least distance of each slot over the node's domain, rising)."""
    expect(problem, "pairs", fewest=1)
    cores, w = usable_cores(problem), both_ways(problem)
    rows = _slot_rows(problem, distances(problem))
    least: dict[int, FloatArray] = {}
    total = 0.0
    for u in range(problem.n):
        part = slice(w.indptr[u], w.indptr[u + 1])
        if part.start == part.stop:
            continue
        domain = int(problem.domain_of[u])
        if domain not in least:
            mask = problem.domains[domain][cores]
            least[domain] = rows[mask].min(axis=0) if mask.any() else np.zeros(len(cores))
        by_slot = _slot_weights(problem, u, w.indices[part].astype(np.int64), w.data[part])
        near = least[domain][np.minimum(np.arange(len(by_slot)), len(cores) - 1)]
        total += float(by_slot @ near)
    return total / 2


def recheck_gilmore_lawler(problem: MappingProblem, certificate: Mapping[str, Any]) -> float:
    """Sum over nodes of the least (cost on a core - its price), plus room x the sum of the prices, all prices <= 0."""
    expect(problem, "pairs", fewest=1)
    cores, w = usable_cores(problem), both_ways(problem)
    price = numbers(certificate, "dual", len(cores))
    if price.max(initial=0.0) > 0:
        raise CertificateError(f"'dual' holds {price.max():.6g}; prices of cores must be <= 0")
    rows = _slot_rows(problem, distances(problem))
    room = min(problem.n, fits_with(problem.sizes, _limit(problem), np.zeros_like(_limit(problem))))
    total = room * float(price.sum())
    for u in range(problem.n):
        part = slice(w.indptr[u], w.indptr[u + 1])
        by_slot = _slot_weights(problem, u, w.indices[part].astype(np.int64), w.data[part])
        slots = np.minimum(np.arange(len(by_slot)), len(cores) - 1)
        cost = 0.5 * (rows[:, slots] @ by_slot)
        allowed = problem.domains[problem.domain_of[u]][cores]
        if allowed.any():
            total += float((cost - price)[allowed].min())
    return total


def recheck_fan_out(problem: MappingProblem, certificate: Mapping[str, Any]) -> float:
    """Sum over messages of rate x (what the least possible number of remote cores must cost).

    Messages that are paid edge by edge count their edges, the heaviest to the nearest cores.
    """
    expect(problem, fewest=1)
    limit, nets = _limit(problem), uses_nets(problem)
    d = all_distances(problem)
    least = _slot_rows(problem, np.minimum(d, d.T)).min(axis=0)
    quantity = "energy" if problem.objective == "energy" else "hops"
    step = step_value(problem.machine, quantity)
    plain = np.maximum(least - step * (np.arange(len(least)) > 0), 0.0)
    links = np.concatenate([line_values(problem.machine, quantity, axis) for axis in (0, 1)])
    total = 0.0
    for rows, i in _messages(problem):
        part = slice(rows.indptr[i], rows.indptr[i + 1])
        targets = rows.targets[part].astype(np.int64)
        own = fits_with(problem.sizes[targets], limit, problem.sizes[rows.source[i]])
        other = max(1, fits_with(problem.sizes[targets], limit, np.zeros_like(limit)))
        if not nets or (problem.objective != "connectivity" and not rows.multicast[i]):
            slot = 1 + (np.arange(len(targets)) - own) // other
            slot[:own] = 0
            falling = np.sort(rows.weights[part])[::-1]
            total += float(falling @ least[np.minimum(slot, len(least) - 1)])
            continue
        remote = min(-(-max(0, len(targets) - own) // other), len(least) - 1)
        if problem.objective == "connectivity":
            cost = float(remote)
        elif problem.machine.distance_matrix is not None:
            cost = step * remote + float(plain[1 : remote + 1].sum())
        else:
            shortest = links.min() if len(links) else 0.0
            cost = step * remote + max(remote * shortest, plain[remote])
        total += float(rows.rate[i]) * cost
    return total


def _messages(problem: MappingProblem) -> Iterator[tuple[Rows, int]]:
    """Every message that has a target: its block, and its number in the block."""
    for rows in problem.graph.blocks(READERS):
        for i in np.flatnonzero(np.diff(rows.indptr)).tolist():
            yield rows, i
