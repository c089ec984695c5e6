"""What an engine may claim: no more than a re-check of its certificate proves.

Engines round with margins that fit ordinary problems. Where weights lie many powers of ten apart, large terms cancel in a
small bound, and what their rounding is charged in a re-check is more than such a margin. So there the engine asks first.
The re-check stays what it is; only the claim follows it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nmsolve.hw.cost import core_distance
from nmsolve.model.bound import Bound
from nmsolve.model.mapping.problem import MappingProblem

#: Bounds in which terms of both signs are summed in floating point.
CANCELLING = frozenset(
    (
        "projection", "split", "spread", "joint", "parts", "chessboard", "tree-parts", "slots", "link-load",
        "exchange",
    )
)  # fmt: skip
#: Asked are bounds below this part of all traffic at the largest distance.
SMALL_PART = 1e-2
#: Most nodes, and most cores, of problems that are asked about: there a re-check takes a moment.
MOST = 300


def claimable(problem: MappingProblem, bound: Bound) -> Bound | None:
    """Return the bound with a value that its certificate proves, or None if that proves nothing.

    Where a re-check proves less, as much again is kept back: what rounding it was charged, another machine's may differ by.
    """
    if bound.method not in CANCELLING or max(problem.n, problem.cores) > MOST or bound.scope != "full":
        return bound
    if not 0 < bound.value < SMALL_PART * _most(problem):
        return bound
    from nmsolve.check.mapping.recheck import check_bound

    found = check_bound(problem, bound)
    if found.ok:
        return bound
    value = found.value - (bound.value - found.value)
    return replace(bound, value=value) if np.isfinite(value) and value > 0 else None


def _most(problem: MappingProblem) -> float:
    """Return all traffic at the largest distance."""
    graph = problem.graph
    return max(1.0, core_distance(problem).farthest) * float(graph.weights.sum() + graph.rate.sum())
