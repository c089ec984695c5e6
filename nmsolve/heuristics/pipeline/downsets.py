"""Exact partition of a branching network into contiguous stages: dynamic programming over downsets, between two bounds.

A contiguous plan is a chain of downsets, each with the stages so far (Tarnawski et al., NeurIPS 2020, tabulate the best load for
every downset and number of devices, over all pairs). Here a limit on loads is guessed, and a downset remembers the fewest
cores that reach it within the limit; only pairs are looked at whose work is within the limit and behind which the remaining
cores can be enough. A guess that fails is a lower bound, one that succeeds gives a plan; they close in on each other. All in
whole ticks, so that the end is exact.

Before, the same search along one topological order gives a plan to start from.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nmsolve.heuristics.pipeline.downset_kernels import FAR, Rules, States, fill_needs, run
from nmsolve.heuristics.pipeline.lattice import Lattice, bytes_per_downset, lattice_of, least_area
from nmsolve.heuristics.pipeline.poset import Poset, poset_of
from nmsolve.hw.pipeline.stages import largest_load
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.pipeline.ticks import rooms_of
from nmsolve.model.types import IntArray


def relief(problem: PipelineProblem, poset: Poset) -> float:
    """Return the most core-ticks of work that a tick of a host is worth; 0 without hosts."""
    area = least_area(poset)
    able = ~poset.impossible & (area > 0)
    if not problem.hosts or not able.any():
        return 0.0
    if (poset.host[able] == 0).any():
        return math.inf
    return float((area[able] / poset.host[able]).max())


def rules_of(problem: PipelineProblem, poset: Poset, limit: int) -> Rules:
    """Return what plans with loads up to ``limit`` ticks must obey."""
    area = int(least_area(poset).sum())
    worth = relief(problem, poset) * max(1, limit)
    groups = poset.time.shape[1]
    exact = problem.exact_stages or problem.use_all
    return Rules(
        limit=limit,
        relief=area if worth >= area else int(worth * (1 + 1e-9)) + 1,
        cores=problem.cores,
        stages=problem.stages,
        hosts=problem.hosts,
        room=rooms_of(problem.storage, problem.memory, groups),
        area=area,
        storage=int(poset.storage.sum()),
        overlap=problem.overlap,
        counted=exact or (groups > 1 and problem.stages < problem.cores + problem.hosts),
        exact=exact,
    )


def states_per_downset(problem: PipelineProblem, rules: Rules) -> int:
    """Return numbers of stages on cores, if they are told apart, times numbers of hosts."""
    most = min(problem.slots, problem.cores)
    return (most + 1 if rules.counted else 1) * (problem.hosts + 1)


def new_states(lattice: Lattice, rules: Rules, each: int) -> States:
    """Nothing reached but the empty downset, without a stage."""
    count = len(lattice.area)
    states = States(
        cores=np.full((count, each), FAR, np.int32),
        worst=np.zeros((count, each), np.int64),
        origin=np.full((count, each), -1, np.int32),
        group=np.zeros((count, each), np.int32),
        need=np.zeros((rules.hosts + 1, count), np.int32),
        found=np.empty(count, np.int64),
    )
    states.cores[lattice.sequence[0], 0] = 0
    return states


def plan_of(
    problem: PipelineProblem, poset: Poset, lattice: Lattice, rules: Rules, states: States
) -> PipelinePlan | None:
    """Return the plan behind the full downset, with cores left over given to the slowest stages; None if it was not reached."""
    row, empty = len(lattice.area) - 1, int(lattice.sequence[0])
    state = _final_state(problem, rules, states, row)
    if state < 0:
        return None
    stage = np.empty(poset.count, np.int64)
    cores: list[int] = []
    while row != empty:
        cores.append(int(states.group[row, state]))
        stage[_members(lattice, row, poset.count)] = -len(cores)
        row, state = int(states.origin[row, state]), _state_before(rules, state, cores[-1])
    stage += len(cores)
    groups = _widened(problem, poset, stage, np.array(cores[::-1], np.int64))
    return PipelinePlan(stage[poset.part], groups)


def _members(lattice: Lattice, row: int, parts: int) -> IntArray:
    number = np.arange(parts)
    bits = lattice.bits[number >> 6, row] >> (number & 63).astype(np.uint64)
    return np.flatnonzero(bits & np.uint64(1))


def _state_before(rules: Rules, state: int, cores: int) -> int:
    if cores == 0:
        return state - 1
    return state - (rules.hosts + 1) if rules.counted else state


def _final_state(problem: PipelineProblem, rules: Rules, states: States, row: int) -> int:
    """Return a state of the full downset that keeps the rules on numbers of stages and cores, with the fewest cores; -1: none."""
    best, width = -1, rules.hosts + 1
    for state, used in enumerate(states.cores[row].tolist()):
        groups, hosts = divmod(state, width)
        if used >= FAR or (problem.exact_stages and groups + hosts != problem.stages):
            continue
        if problem.use_all and groups * problem.largest_group < problem.cores:
            continue
        if best < 0 or used < states.cores[row, best]:
            best = state
    return best


def _widened(problem: PipelineProblem, poset: Poset, stage: IntArray, cores: IntArray) -> IntArray:
    """Group sizes with the remaining cores: each to the slowest stage as long as that helps, or as ``use_all`` asks."""
    spare = problem.cores - int(cores.sum())
    if poset.time.shape[1] == 1 or not spare:
        return cores
    compute = np.zeros((len(cores), poset.time.shape[1]), np.int64)
    np.add.at(compute, stage, poset.time)
    transfer = np.zeros(len(cores), np.int64)
    for m, weight in enumerate(poset.net_weight.tolist()):
        touched = np.unique(stage[poset.net_parts[poset.net_ptr[m] : poset.net_ptr[m + 1]]])
        if len(touched) > 1:
            transfer[touched] += weight

    def load(k: int) -> int:
        work, move = int(compute[k, cores[k] - 1]), int(transfer[k])
        return max(work, move) if problem.overlap else work + move

    cores = cores.copy()
    slowest = [(-load(k), k) for k in range(len(cores)) if cores[k]]
    heapq.heapify(slowest)
    while spare and slowest:
        _, k = heapq.heappop(slowest)
        if cores[k] < problem.largest_group:
            cores[k] += 1
            spare -= 1
            heapq.heappush(slowest, (-load(k), k))
        elif not problem.use_all:
            break
    return cores


#: Bytes that the downsets may take, unless the caller says otherwise.
MEMORY = 2**30
#: Pairs of downsets between two looks at the clock.
SLICE = 2_000_000
#: More ticks than any load.
ENDLESS = 2**62

News = Callable[[PipelinePlan | None, float], None]


def _silent(plan: PipelinePlan | None, bound: float) -> None:
    """Do nothing: there is no observer."""


def best_contiguous(
    problem: PipelineProblem,
    time_left: Callable[[], float],
    *,
    memory: int | None = None,
    news: News = _silent,
    note: Callable[[str], None] = lambda text: None,
) -> tuple[PipelinePlan | None, float, bool]:
    """Return the best plan among those the split (``contiguous`` or ``chain``) allows, or the best until time or memory ran out.

    Parameters
    ----------
    time_left : seconds that remain; asked about every tenth of a second
    memory : bytes that the downsets may take
    news : called with every better plan and every better bound
    note : called with the reason why the search stopped

    Returns
    -------
    the plan or None; a lower bound on the objective of all plans; whether the plan is the best one (with None: whether there is
    none, and then the bound is infinite). The bound is that of this split: plans of ``any`` split may be better.
    """
    search = _DownsetSearch(
        problem, poset_of(problem), time_left, MEMORY if memory is None else memory, news, note
    )
    complete = search.complete()
    if not complete:
        return search.plan, problem.ticks.seconds(search.proved), False
    if search.plan is None:
        return None, math.inf, True
    return search.plan, problem.ticks.seconds(search.high), True


class _Stopped(Exception):
    """Time or memory ran out."""


@dataclass
class _DownsetSearch:
    """Two bounds that close in, in ticks.

    ``proved``: no plan has a smaller load; ``low``: none of the order that is searched now has; ``high``: load of ``plan``, or
    ENDLESS; ``stride``: how far the next guess goes up while there is no plan.
    """

    problem: PipelineProblem
    poset: Poset
    time_left: Callable[[], float]
    memory: int
    news: News
    note: Callable[[str], None]
    plan: PipelinePlan | None = None
    proved: int = 0
    low: int = 0
    high: int = ENDLESS
    stride: int = 1

    def __post_init__(self) -> None:
        self.proved = self._least()

    def complete(self) -> bool:
        """Find the best plan; False if time or memory ran out before."""
        try:
            chain = self.poset.as_chain()
            if self.problem.split != "chain":
                self._close_in(chain, self._lattice(chain))
            if self.proved < self.high:
                self._close_in(self.poset, self._lattice(self.poset))
        except _Stopped as stop:
            self.note(str(stop))
            return False
        return True

    def _lattice(self, poset: Poset) -> Lattice:
        each = 20 * states_per_downset(self.problem, rules_of(self.problem, poset, 1)) + 4 * (
            self.problem.hosts + 1
        )
        room = max(2, self.memory // (bytes_per_downset(poset) + each))
        lattice, seen = lattice_of(self.problem, poset, room, self.time_left)
        if lattice is None:
            why = "no memory for more" if seen >= room else "then time was up"
            raise _Stopped(f"downsets: {seen:,} seen, {why}")
        return lattice

    def _close_in(self, poset: Poset, lattice: Lattice) -> None:
        """Guess until the bounds meet, or no plan is possible at all.

        After a guess half way, anything below the plan is asked for: if that fails, it was the last guess. If plans got better
        by small steps twice, half way again.
        """
        anything, small = False, 0
        self.low, self.stride = self.proved, 1
        while self.low < self.high:
            limit = self.high - 1 if anything and self.plan is not None else self._middle()
            gap, before = self.high - self.low, self.high
            plan = self._guess(poset, lattice, limit)
            if plan is not None:
                self.plan, self.high = plan, self._load(plan)
                small = small + 1 if 4 * (before - self.high) < gap else 0
                anything = small < 2
            elif limit >= self._most():
                return
            else:
                self.low = limit + 1
                self.stride *= 2
                anything, small = True, 0
            if poset is self.poset:
                self.proved = self.low
            elif plan is None:
                continue  # what fails for one order may go for another
            self.news(plan, self.problem.ticks.seconds(self.proved))

    def _middle(self) -> int:
        """Return the next guess: half way to the plan; without one by growing steps from the bound, as low guesses are cheap."""
        if self.plan is None:
            return min(self.low + (self.low // 10 + 1) * self.stride, self._most())
        return (self.low + self.high) // 2

    def _most(self) -> int:
        """No stage of any plan has more load than this."""
        return max(1, int(self.poset.time[:, 0].sum() + self.poset.host.sum() + self.poset.net_weight.sum()))

    def _least(self) -> int:
        """Return a lower bound by counting: the work shared by all, and the largest part."""
        problem, poset = self.problem, self.poset
        area, worth = int(least_area(poset).sum()), problem.hosts * relief(problem, poset)
        if worth:
            shared = int(area / (problem.cores + worth) * (1 - 1e-9))
        else:
            shared = -(-area // problem.cores)
        alone = poset.time[:, -1].copy()
        if problem.hosts:
            alone = np.where(poset.impossible, alone, np.minimum(alone, poset.host))
        return max(shared, int(alone.max()))

    def _guess(self, poset: Poset, lattice: Lattice, limit: int) -> PipelinePlan | None:
        """Return a plan whose loads are at most ``limit`` ticks, or None if there is none."""
        rules = rules_of(self.problem, poset, limit)
        states = new_states(lattice, rules, states_per_downset(self.problem, rules))
        fill_needs(lattice, rules, states.need)
        at = 0
        while at < len(lattice.area):
            if self.time_left() <= 0:
                raise _Stopped(f"downsets: {len(lattice.area):,} seen, time was up")
            at = run(lattice, rules, states, at, SLICE)
        return plan_of(self.problem, poset, lattice, rules, states)

    def _load(self, plan: PipelinePlan) -> int:
        ticks, tensors = self.problem.ticks, self.problem.tensors
        load = largest_load(
            plan.stage, plan.cores, ticks.time, ticks.host, ticks.impossible,
            tensors.source, tensors.indptr, tensors.targets, ticks.tensor, self.problem.overlap,
        )  # fmt: skip
        return int(load)
