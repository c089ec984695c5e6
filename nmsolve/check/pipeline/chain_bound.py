"""A second proof of the optimum of a chain, in plain NumPy: no plan of runs of layers has a load below a value.

Apart from the solver: for one ceiling the fewest cores per prefix, number of stages and number of hosts, for all begins of the
last stage at once (:mod:`.intervals`).
"""

from __future__ import annotations

import numpy as np

from nmsolve.check.pipeline.intervals import Intervals, begins_and_ends
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.pipeline.ticks import Ticks
from nmsolve.model.types import BoolArray


def chain_bound_holds(problem: PipelineProblem, value: float) -> bool:
    """Return whether no plan whose stages are runs of consecutive layers has an objective below ``value``; inf: there is no plan.

    True proves the bound for the split ``chain``. Takes O(L^2 log C) steps, times the number of stages where that is limited.
    """
    ceiling = last_below(problem.ticks, value)
    return ceiling < 0 or not _possible(problem, ceiling)


def period_at_least(problem: PipelineProblem, ticks: int) -> bool:
    """Return whether every chain of stages that keeps the rules has a largest load of this many ticks."""
    return ticks <= 0 or not _possible(problem, ticks - 1)


def last_below(ticks: Ticks, value: float) -> int:
    """Return the most ticks whose time, as a float, is below ``value``; -1 if none."""
    low, high = -1, 2**62
    while low < high:  # low is below value (or -1), high + 1 is not
        middle = (low + high + 1) // 2
        low, high = (middle, high) if ticks.seconds(middle) < value else (low, middle - 1)
    return low


def _possible(problem: PipelineProblem, ceiling: int) -> bool:
    """Return whether some plan keeps the ceiling on the loads and all limits."""
    count, ticks, most = problem.count, problem.ticks, problem.largest_group
    hosts = 0 if problem.host_time is None else problem.hosts
    limit = min(problem.stages, count, problem.cores + hosts)
    counted = problem.exact_stages or problem.use_all or limit < min(count, problem.cores + hosts)
    intervals, allowed, never = Intervals(problem), begins_and_ends(problem), problem.cores + 1
    need = np.full((limit + 1 if counted else 1, hosts + 1, count + 1), never)
    need[0, 0, 0] = 0
    for end in np.flatnonzero(allowed)[1:]:
        begins = np.flatnonzero(allowed[:end])
        runs, cores = intervals.runs(begins, end), np.full(len(begins), never)
        for replicas in range(1, min(problem.groups.replicas, problem.cores) + 1):
            each = intervals.least_cores(runs, replicas * ceiling)  # each may take this many times as long
            cores = np.where(each <= most, np.minimum(cores, replicas * each), cores)
        host_load = np.cumsum(ticks.host[:end][::-1])[::-1][begins]
        stuck = np.cumsum(ticks.impossible[:end][::-1])[::-1][begins] > 0
        on_host = (host_load <= ceiling) & ~stuck
        before = need[:, :, begins]
        reached = np.minimum((before + cores).min(axis=2), never)
        free = np.where(on_host, before, never).min(axis=2)
        reached[:, 1:] = np.minimum(reached[:, 1:], free[:, :-1])
        need[1 if counted else 0 :, :, end] = reached[:-1] if counted else reached
    return bool((need[:, :, count][enough(problem, need.shape[0], hosts)] <= problem.cores).any())


def enough(problem: PipelineProblem, rows: int, hosts: int) -> BoolArray:
    """(rows, hosts + 1) bool: numbers of stages and of hosts that a complete plan may have; all if stages are not counted."""
    if rows == 1:
        return np.ones((rows, hosts + 1), bool)
    stages, on_hosts = np.indices((rows, hosts + 1))
    groups = stages - on_hosts
    fine = (stages == problem.stages) if problem.exact_stages else np.ones(stages.shape, bool)
    if problem.use_all:  # more cores never hurt, so the cores fit if the groups can hold them
        fine &= groups * problem.largest_stage >= problem.cores
    return np.asarray(fine)
