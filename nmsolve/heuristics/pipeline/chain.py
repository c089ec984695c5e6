"""Exact partition of a chain of layers: the least largest load of a stage, with a probe that proves it.

The probe (research on chains of tasks: Nicol, Pinar and Aykanat; with groups, requirement M5.2) asks for one ceiling T how few
cores the first j layers need: ``G[j] = min over i of G[i] + least c with load(i, j, c) <= T``. Bisection over T, in whole
ticks, ends at a load that occurs, where the probe one tick lower fails: no plan of the chain is better. The loads need not be
monotone (tensors that skip stages), only their compute part is; it cuts the inner loop.

:class:`Room` asks without times: on how few cores, or how small ones, does a chain fit by live ranges?
"""

from __future__ import annotations

import math

import numpy as np

from nmsolve.heuristics.pipeline.chain_kernels import Limits, live_bytes, solve, transfers
from nmsolve.heuristics.pipeline.chain_loads import ANY_LOAD, Chain
from nmsolve.hw.pipeline.stages import objective
from nmsolve.model.compiled import kernel
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.pipeline.ticks import exponent_for, in_ticks, rooms_of
from nmsolve.model.types import BoolArray, IntArray, by_key


class ChainPartition:
    """A problem made ready for many orders of its layers. Not for use by several threads at once."""

    def __init__(self, problem: PipelineProblem) -> None:
        self.problem, self.limits = problem, Limits.of(problem)
        tensors, count = problem.tensors, problem.count
        source, target = tensors.pairs
        tensor = np.repeat(np.arange(tensors.count), np.diff(tensors.indptr))
        uses = np.unique(target[source != target] * max(1, tensors.count) + tensor[source != target])
        self._used = uses % max(1, tensors.count)
        self._used_at = np.searchsorted(uses // max(1, tensors.count), np.arange(count + 1))
        self._made_at, self._made = by_key(tensors.source, count)
        self._time = np.ascontiguousarray(problem.ticks.time[:, : problem.largest_group])
        sizes = np.arange(1.0, problem.largest_group + 1)
        self._least = (self._time * sizes).min(axis=1)
        if self.limits.hosts:
            ticks = problem.ticks
            self._least = np.where(ticks.impossible, self._least, np.minimum(self._least, ticks.host))
        self._move = np.empty((count, count + 1), np.int64)
        self._live, self._counted = np.empty((0, 0), np.int64), -1  # runs up to this ceiling are counted
        if problem.buffers is not None and problem.memory is not None:
            self._storage, self._memory = problem.storage.astype(np.int64), int(problem.memory)
            self._room = np.arange(1, problem.largest_group + 1) * self._memory
            self._live = np.empty((count, count + 1), np.int64)
        else:
            self._storage = in_ticks(problem.storage, exponent_for(float(problem.storage.sum())))
            self._memory, self._room = 0, rooms_of(problem.storage, problem.memory, problem.largest_group)

    def in_order(self, order: IntArray, fewest_stages: bool = False) -> tuple[PipelinePlan | None, float]:
        """Return the best plan whose stages are runs of ``order`` (L,), a permutation of the layers, and its value.

        None and inf if there is none. Of plans of equal value it takes one with few cores, or, with ``fewest_stages``, which
        takes longer, one with the fewest stages. Live ranges are those of the layers' own order, which is then the only one.
        """
        limits, chain = self.limits, self._chain(order)
        low, stages = self._solve(chain, limits.uncounted(), self._floor(float(chain.rest[0])))
        if low >= 0 and not limits.met_by(stages[:, 1]):
            low, stages = self._solve(
                chain, limits, low
            )  # what is impossible with any number of stages is so with this one
        if low < 0:
            return None, math.inf
        if fewest_stages:
            low, stages = self._solve(chain, limits._replace(rows=len(stages) + 1), low, (1.0,))
        plan = self.plan_of(chain, stages)
        return plan, objective(self.problem, plan)

    @property
    def uses(self) -> tuple[IntArray, IntArray]:
        """Tensors that every layer takes from others: layer l those at ``first[l]:first[l + 1]`` of the second array."""
        return self._used_at, self._used

    def whole(self) -> Chain:
        """Return the layers' own order with the transfers and live bytes of all runs."""
        chain = self._chain(np.arange(self.problem.count))
        self._fill(chain, ANY_LOAD)
        return chain

    def plan_of(self, chain: Chain, stages: IntArray) -> PipelinePlan:
        """Return the plan of (K, 2) first positions and cores of the stages of a chain."""
        stage = np.empty(self.problem.count, np.int64)
        stage[chain.order] = np.searchsorted(stages[:, 0], np.arange(len(stage)), side="right") - 1
        return PipelinePlan(stage, self._with_spare(stages[:, 1].copy()))

    def _chain(self, order: IntArray) -> Chain:
        problem, ticks = self.problem, self.problem.ticks
        rest = np.append(np.cumsum(self._least[order][::-1])[::-1], 0.0)
        return Chain(
            order, _prefix(self._time[order]), self._move, _prefix(self._storage[order]), self._live, self._room,
            self._memory, ticks.offchip if problem.streams else 0.0, _prefix(problem.trips),
            _prefix(ticks.host[order]), _prefix(ticks.impossible[order].astype(np.int64)), self._cuts(order),
            rest, problem.overlap, problem.groups.replicas, problem.groups.sides(problem.largest_group),
        )  # fmt: skip

    def _solve(
        self,
        chain: Chain,
        limits: Limits,
        low: int,
        factors: tuple[float, ...] = (1.05, 1.3, 2.5, 8.0, math.inf),
    ) -> tuple[int, IntArray]:
        """The least ceiling from ``low`` on, in ticks, and (K, 2) first positions and cores of its stages; -1 if there is none.

        Guesses are ``low`` times a factor, low ones first, so that long runs of layers need not be looked at.
        """
        stages = np.empty((self.problem.count, 2), np.int64)
        for factor in factors:
            ceiling = low if factor == 1 else int(min(ANY_LOAD, factor * max(low, 1)))
            self._fill(chain, min(ANY_LOAD, ceiling * self.problem.groups.replicas))
            found = solve(low, ceiling, chain, limits, stages)
            if found >= 0 or ceiling == ANY_LOAD:
                break
        return int(found), stages[stages[:, 0] >= 0][::-1]

    def _fill(self, chain: Chain, ceiling: int) -> None:
        """Compute transfers and live bytes of all runs whose layers keep the ceiling."""
        problem, tensors = self.problem, self.problem.tensors
        transfers(chain.order, tensors.source, problem.ticks.tensor, self._made_at, self._made, self._used_at,
                  self._used, chain.work, ceiling, self._move)  # fmt: skip
        if problem.buffers is not None and len(self._live) and ceiling > self._counted:
            live_bytes(chain.work, ceiling, *problem.buffers.arrays, self._live)
            self._counted = ceiling

    def _floor(self, work: float) -> int:
        """Return a load, in ticks, that no plan is below: the heaviest layer by its replicas, and all time by all cores."""
        least = self._time[:, -1]
        if self.limits.hosts:
            ticks = self.problem.ticks
            least = np.where(ticks.impossible, least, np.minimum(least, ticks.host))
        heaviest = -(-int(least.max()) // self.problem.groups.replicas)
        return max(heaviest, int(work / (self.limits.cores + self.limits.hosts) * (1 - 1e-9)))

    def _cuts(self, order: IntArray) -> BoolArray:
        """Return (L + 1,) positions where a stage may begin: not between layers that must share one."""
        count, together = self.problem.count, self.problem.together
        if together is None:
            return np.ones(count + 1, bool)
        place = np.flatnonzero(together[order] >= 0)
        classes, number = np.unique(together[order][place], return_inverse=True)
        first, last = np.full(len(classes), count), np.full(len(classes), -1)
        np.minimum.at(first, number, place)
        np.maximum.at(last, number, place)
        open_spans = np.zeros(count + 2, np.int64)
        np.add.at(open_spans, first + 1, 1)
        np.add.at(open_spans, last + 1, -1)
        cuts: BoolArray = np.cumsum(open_spans)[: count + 1] == 0
        return cuts

    def _with_spare(self, cores: IntArray) -> IntArray:
        """With ``use_all``, cores that the plan does not need go to the stages in turn, as far as groups may grow."""
        if self.problem.use_all:
            spare = self.problem.cores - int(cores.sum())
            for s in np.flatnonzero(cores > 0):
                extra = min(spare, self.problem.largest_stage - int(cores[s]))
                cores[s] += extra
                spare -= extra
        return cores


def _prefix(values: IntArray) -> IntArray:
    """Return sums over prefixes along axis 0, from the empty one on."""
    out = np.zeros((len(values) + 1, *values.shape[1:]), np.int64)
    np.cumsum(values, axis=0, out=out[1:])
    return out


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
