"""What the compiled downset search starts from, and the plan that it ends in."""

from __future__ import annotations

import heapq
import math

import numpy as np

from nmsolve.heuristics.pipeline.downset_kernels import FAR, Rules, States
from nmsolve.heuristics.pipeline.lattice import Lattice, least_area
from nmsolve.heuristics.pipeline.poset import Poset
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
