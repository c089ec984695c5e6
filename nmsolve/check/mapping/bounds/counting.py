"""Re-checks of neighbour counting and the Gilmore-Lawler bound. One node at a time, no shared code.

Whole data give exact sums. Otherwise distances are rounded down, and every sum of products of numbers >= 0 loses what its
roundings can have added; prices, which may be of any size, are charged for by their own magnitudes (docs/bounds.md).
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
    distances,
    expect,
    fits_with,
    limit_of,
    lowered,
    numbers,
    parallel,
    slot_rows,
    usable_cores,
)
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray

#: Prices of cores go down to this many times the cost that no mapping exceeds; the best ones need no more than once it.
MOST_PRICE = 10.0


def _slot_weights(problem: MappingProblem, u: int, partners: IntArray, weight: FloatArray) -> FloatArray:
    """Return traffic of node u by slot when its partners sit as near as they fit, heaviest first."""
    sizes, limit = problem.sizes[partners], limit_of(problem)
    own = fits_with(sizes, limit, problem.sizes[u])
    other = max(1, fits_with(sizes, limit, np.zeros_like(limit)))
    falling = np.sort(weight)[::-1]
    rest = falling[own:]
    return np.append(
        falling[:own].sum(), np.add.reduceat(rest, np.arange(0, len(rest), other)) if len(rest) else []
    )


def recheck_neighbours(problem: MappingProblem, certificate: Mapping[str, Any]) -> float:
    """Return half the sum over nodes of (traffic, falling) x (least distance of each slot over the node's domain, rising)."""
    expect(problem, "pairs", fewest=1)
    cores, w = usable_cores(problem), both_ways(problem)
    rows = slot_rows(distances(problem, down=True))
    least: dict[int, FloatArray] = {}
    every, most = [], 0
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
        every.append(float(by_slot @ near))
        most = max(most, part.stop - part.start)
    return lowered(problem, fsum(every) / 2, 2 * most + parallel(problem))


def recheck_gilmore_lawler(problem: MappingProblem, certificate: Mapping[str, Any]) -> float:
    """Return the sum over nodes of the least (cost on a core - its price), plus room x the sum of the prices, all prices <= 0.

    Raises
    ------
    CertificateError : the certificate lacks prices, or holds some that are positive or absurdly low
    """
    expect(problem, "pairs", fewest=1)
    cores, w = usable_cores(problem), both_ways(problem)
    price = numbers(certificate, "dual", len(cores))
    if price.max(initial=0.0) > 0:
        raise CertificateError(f"'dual' holds {price.max():.6g}; prices of cores must be <= 0")
    rows = slot_rows(distances(problem, down=True))
    dearest = MOST_PRICE * float(w.sum()) / 2 * float(rows.max(initial=0.0))
    if price.min(initial=0.0) < -dearest:
        raise CertificateError(
            f"'dual' holds {price.min():.6g}; no price need be below {-dearest:.6g}, {MOST_PRICE:g} times what any mapping costs"
        )
    room = min(problem.n, fits_with(problem.sizes, limit_of(problem), np.zeros_like(limit_of(problem))))
    every = []
    for u in range(problem.n):
        part = slice(w.indptr[u], w.indptr[u + 1])
        by_slot = _slot_weights(problem, u, w.indices[part].astype(np.int64), w.data[part])
        slots = np.minimum(np.arange(len(by_slot)), len(cores) - 1)
        cost = 0.5 * (rows[:, slots] @ by_slot)
        cost *= 1.0 - (2 * (part.stop - part.start) + parallel(problem) + 2) * EPS
        allowed = problem.domains[problem.domain_of[u]][cores]
        if allowed.any():
            left = (cost - price)[allowed]  # both >= 0, so the sum is right to within EPS of itself
            every.append(float((left - EPS * left).min()))
    kept, paid = fsum(every), room * fsum(price)
    return kept + paid - 4 * EPS * (abs(kept) + abs(paid))
