"""Re-checks of the counting bounds star and Gilmore-Lawler. One node at a time, no shared code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.mapping.recheck.parts import (
    CertificateError,
    both_ways,
    distances,
    expect,
    fits_with,
    limit_of,
    numbers,
    slot_rows,
    usable_cores,
)


def _slot_weights(problem: MappingProblem, u: int, partners: IntArray, weight: FloatArray) -> FloatArray:
    """Traffic of node u by slot when its partners sit as near as they fit, heaviest first."""
    sizes, limit = problem.sizes[partners], limit_of(problem)
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
    rows = slot_rows(distances(problem))
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
    rows = slot_rows(distances(problem))
    room = min(problem.n, fits_with(problem.sizes, limit_of(problem), np.zeros_like(limit_of(problem))))
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
