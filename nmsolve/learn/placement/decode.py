"""From scores to a placement: the assignment of largest total score (a linear assignment problem), not greedy collisions."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import AnyArray, FloatArray, IntArray

#: Most entries of an assignment problem; larger ones are rounded node by node.
MOST_ENTRIES = 2**22
#: Score of a core that a node may not use, far below all others.
BARRED = -1e12


def decoded(problem: MappingProblem, x: FloatArray, y: FloatArray, capacity: FloatArray) -> IntArray:
    """Return (n,) cores, not necessarily legal: the engine repairs what capacities of several resources or sides forbid.

    A core is repeated as a slot for every node of mean size that it holds. Where that is too large, every node gets its best core
    and the repair moves what does not fit.

    Parameters
    ----------
    x, y : (n, cols) and (n, rows) scores of lines; a core's score is the sum
    capacity : (rows, cols) nodes of mean size that cores hold
    """
    n, cols = len(x), x.shape[1]
    slots = np.minimum(np.floor(capacity.ravel() + 1e-9), n).astype(np.int64)
    core = np.repeat(np.arange(len(slots)), slots)
    if n <= len(core) and n * len(core) <= MOST_ENTRIES:
        score = x[:, core % cols] + y[:, core // cols]
        if len(problem.domains) > 1:
            score = np.where(problem.domains[problem.domain_of][:, core], score, BARRED)
        return np.asarray(core[linear_sum_assignment(score, maximize=True)[1]])
    return _rounded(problem, x, y)


def _rounded(problem: MappingProblem, x: FloatArray, y: FloatArray) -> IntArray:
    """Return (n,) every node's best core, in pieces that fit in memory."""
    out = np.empty(len(x), np.int64)
    step = max(1, MOST_ENTRIES // problem.cores)
    for begin in range(0, len(x), step):
        part: AnyArray = (y[begin : begin + step, :, None] + x[begin : begin + step, None, :]).reshape(
            -1, problem.cores
        )
        allowed = problem.domains[problem.domain_of[begin : begin + step]]
        out[begin : begin + step] = np.where(allowed, part, BARRED).argmax(axis=1)
    return out
