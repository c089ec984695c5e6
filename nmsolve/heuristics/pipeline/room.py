"""The fewest cores on which a chain fits by live ranges, whatever time it takes, and the least memory of a core."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.pipeline.chain_kernels import live_bytes
from nmsolve.heuristics.pipeline.chain_loads import ANY_LOAD
from nmsolve.model.compiled import kernel
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import BoolArray, IntArray


class Room:
    """What every run of layers of a problem with buffers needs of memory."""

    def __init__(self, problem: PipelineProblem) -> None:
        assert problem.buffers is not None
        count = problem.count
        self.needs = np.zeros((count, count + 1), np.int64)
        live_bytes(np.zeros((count + 1, 1), np.int64), ANY_LOAD, *problem.buffers.arrays, self.needs)
        weights = np.concatenate([[0], np.cumsum(problem.storage.astype(np.int64))])
        self.needs += weights - weights[:-1, None]
        self.stages = min(problem.stages, count)
        self.cut = np.ones(count + 1, bool)  # where a stage may begin
        for number in [] if problem.together is None else set(problem.together.tolist()) - {-1}:
            members = np.flatnonzero(problem.together == number)
            self.cut[members[0] + 1 : members[-1] + 1] = False

    def cores(self, memory: int) -> int:
        """Return the fewest cores of so much memory (> 0) on which some plan fits, in groups of any size."""
        counted = self.stages if self.stages < len(self.needs) else 0
        return int(_fewest(self.needs, self.cut, memory, counted))

    def memory(self, cores: int) -> int:
        """Return the least memory per core with which some plan fits on ``cores`` cores."""
        low, high = 1, max(1, int(self.needs[0, -1]))
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.cores(middle) <= cores else (middle + 1, high)
        return low


@kernel
def _fewest(needs: IntArray, cut: BoolArray, memory: int, stages: int) -> int:
    """Return the fewest cores, at least one and ``ceil(need / memory)`` per run, of at most ``stages`` runs (0: any number)."""
    count = needs.shape[0]
    now, before = np.empty(count + 1, np.int64), np.empty(count + 1, np.int64)
    best, rounds = -1, max(1, stages)
    for k in range(count + 1):
        before[k] = -1 if k > 0 else 0
    for _ in range(rounds):
        now[0] = 0 if stages == 0 else -1
        for j in range(1, count + 1):
            now[j] = -1
            if not cut[j]:
                continue
            for i in range(j - 1, -1, -1):
                start = now[i] if stages == 0 else before[i]
                if start >= 0:
                    total = start + max(1, -(-needs[i, j] // memory))
                    if now[j] < 0 or total < now[j]:
                        now[j] = total
        if now[count] >= 0 and (best < 0 or now[count] < best):
            best = int(now[count])
        before[:] = now
    return best
