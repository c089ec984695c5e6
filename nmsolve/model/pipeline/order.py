"""Which layers must not come after which others: the rules of ``chain`` and ``contiguous``."""

from __future__ import annotations

import numpy as np

from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import IntArray


def ordered_pairs(problem: PipelineProblem) -> tuple[IntArray, IntArray]:
    """Return (P,) and (P,) layers: the stage of the first must not be later than that of the second.

    ``chain``: consecutive layers. ``contiguous``: source and target of every use of a tensor. ``any``: no pairs.
    """
    if problem.split == "any":
        none = np.empty(0, np.int64)
        return none, none
    if problem.split == "chain":
        layers = np.arange(problem.count, dtype=np.int64)
        return layers[:-1], layers[1:]
    source, target = (np.asarray(ends, np.int64) for ends in problem.tensors.pairs)
    return source, target
