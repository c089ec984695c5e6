"""Re-check of neighbour counting. One node at a time, no shared code.

Whole data give exact sums. Otherwise distances are rounded down, and every sum of products of numbers >= 0 loses what its
roundings can have added (docs/bounds.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum
from typing import Any

import numpy as np

from nmsolve.check.mapping.bounds.parts import (
    both_ways,
    distances,
    expect,
    fits_with,
    limit_of,
    lowered,
    parallel,
    slot_rows,
    usable_cores,
)
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray


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
