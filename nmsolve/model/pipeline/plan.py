"""The answer to a pipeline problem: the stage of every layer, and the cores of every stage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import IntArray


@dataclass(frozen=True, eq=False)
class PipelinePlan:
    """Decisions, nothing else.

    Attributes
    ----------
    stage : (L,) stage ``0..K - 1`` of every layer; data pass from lower to higher stages where the split asks for an order
    cores : (K,) cores of every stage's group; 0: the stage is a host
    """

    stage: IntArray
    cores: IntArray

    def packed(self, problem: PipelineProblem) -> IntArray:
        """As engines offer it: (L + slots,) stages, then cores, -1 where a stage is unused."""
        out = np.full(problem.count + problem.slots, -1, np.int64)
        out[: problem.count] = self.stage
        out[problem.count : problem.count + len(self.cores)] = self.cores
        return out

    @classmethod
    def unpacked(cls, problem: PipelineProblem, solution: IntArray) -> PipelinePlan:
        """Return the plan of a ``solution`` (L + slots,), as :meth:`packed` makes it; unused stages at its end are dropped."""
        cores = solution[problem.count :]
        return cls(np.array(solution[: problem.count]), np.array(cores[cores >= 0]))
