"""The fewest cores on which a chain fits by live ranges, whatever time it takes, and the least memory of a core."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nmsolve.heuristics.pipeline.chain_kernels import live_bytes
from nmsolve.heuristics.pipeline.chain_loads import ANY_LOAD
from nmsolve.heuristics.pipeline.training import kept_bytes
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
        self.training = problem.training
        if problem.training is not None:
            # all that is needed, whatever the memory: the tables are empty only without a limit
            self._kept, self._entering = kept_bytes(replace(problem, memory=0.0))
        self.stages = min(problem.stages, count)
        self.cut = np.ones(count + 1, bool)  # where a stage may begin
        for number in [] if problem.together is None else set(problem.together.tolist()) - {-1}:
            members = np.flatnonzero(problem.together == number)
            self.cut[members[0] + 1 : members[-1] + 1] = False

    def cores(self, memory: int) -> int:
        """Return the fewest cores of so much memory (> 0) on which some plan fits, in groups of any size."""
        counted = self.stages if self.stages < len(self.needs) else 0
        if self.training is not None:
            by_stage = self.training.schedule == "1f1b"
            batches, again = self.training.batches, self.training.recompute
            return int(
                _fewest_trained(
                    self.needs, self._kept, self._entering, memory, counted, batches, by_stage, again
                )
            )
        return int(_fewest(self.needs, self.cut, memory, counted))

    def memory(self, cores: int) -> int:
        """Return the least memory per core with which some plan fits on ``cores`` cores."""
        low, high = 1, max(1, int(self.needs[0, -1]))
        if self.training is not None:
            high += (self.training.batches + 1) * int(self._kept[0, -1] + self._entering.max())
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


@kernel
def _fewest_trained(
    needs: IntArray,
    kept: IntArray,
    entering: IntArray,
    memory: int,
    stages: int,
    batches: int,
    by_stage: bool,
    again: bool,
) -> int:
    """The same in training, from the last run to the first: what a run keeps depends on how many there are behind it.

    ``kept``, ``entering`` (L, L + 1) : bytes per micro-batch in flight; ``again`` : the second ones may do.
    """
    count = needs.shape[0]
    rows = stages if stages > 0 else min(batches, count) if by_stage else 1
    fewest = np.full((rows + 1, count + 1), -1, np.int64)
    fewest[0, count] = 0
    for i in range(count - 1, -1, -1):
        for j in range(i + 1, count + 1):
            for k in range(1, rows + 1):
                behind = fewest[k - 1, j]
                if k == rows and stages == 0 and fewest[k, j] >= 0 and (behind < 0 or fewest[k, j] < behind):
                    behind = fewest[k, j]
                if behind < 0:
                    continue
                flights = min(batches, k) if by_stage else batches
                need = flights * kept[i, j]
                if again:
                    need = min(need, kept[i, j] + flights * entering[i, j])
                total = behind + max(1, -(-(needs[i, j] + need) // memory))
                if fewest[k, i] < 0 or total < fewest[k, i]:
                    fewest[k, i] = total
    best = -1
    for k in range(1, rows + 1):
        if fewest[k, 0] >= 0 and (best < 0 or fewest[k, 0] < best):
            best = fewest[k, 0]
    return best
