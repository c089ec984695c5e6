"""Compiled parts of the exact chain partition: transfers of all runs of layers, and the probe for one ceiling on the loads.

Positions, runs and ticks are those of :mod:`.chain_loads`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.pipeline.chain_loads import (
    Chain,
    least_cores,
    least_holding,
    least_replicated,
    replicated_load,
    times,
)
from nmsolve.model.basic_kernels import copy_to
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.pipeline.buffers import MADE
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import IntArray


class Limits(NamedTuple):
    """What a chain of stages must keep.

    Attributes
    ----------
    cores, hosts : at most
    rows : 1 + most stages if they must be counted, else 1
    least_stages, least_groups : at least; groups are stages that are no hosts
    """

    cores: int
    hosts: int
    rows: int
    least_stages: int
    least_groups: int

    @classmethod
    def of(cls, problem: PipelineProblem) -> Limits:
        """The limits of a problem. Cores never slow a stage down, so "use all" only asks for enough groups to hold them."""
        hosts = 0 if problem.host_time is None else min(problem.hosts, problem.count)
        cores, most = problem.cores, min(problem.stages, problem.count, problem.cores + hosts)
        if problem.largest_stage == 1 and not hosts and not problem.use_all:
            cores = most  # a stage is a core
        groups = -(-cores // problem.largest_stage) if problem.use_all else 0
        groups = 0 if groups == 1 and not hosts else groups
        stages = problem.stages if problem.exact_stages else 1
        counted = stages > 1 or groups > 0 or most < min(problem.count, cores + hosts)
        return cls(cores, hosts, most + 1 if counted else 1, stages, groups)

    def uncounted(self) -> Limits:
        """The same with any number of stages."""
        return Limits(self.cores, self.hosts, 1, 1, 0)

    def met_by(self, cores: IntArray) -> bool:
        """Return True if the number of stages with these cores is allowed."""
        groups = int((cores > 0).sum())
        return self.rows == 1 or (self.least_stages <= len(cores) < self.rows and groups >= self.least_groups)


@kernel
def transfers(
    order: IntArray,
    source: IntArray,
    time: IntArray,
    made_at: IntArray,
    made: IntArray,
    used_at: IntArray,
    used: IntArray,
    work: IntArray,
    ceiling: int,
    out: IntArray,
) -> None:
    """Fill ``out`` (L, L + 1): time of all tensors that come into or go out of the run [i, j), at [i, j] for j > i.

    Tensors made by layer l are ``made[made_at[l]:made_at[l + 1]]``, those it uses alike; sources may come after uses. A
    run that grows by one layer changes what that layer's tensors cost only: O(L * uses) for all runs. Runs whose layers alone
    take longer than ``ceiling`` on the largest group (``work``: see :class:`Chain`) are left out.
    """
    count, tensors = order.shape[0], source.shape[0]
    place = np.empty(count, np.int64)
    for x in range(count):
        place[order[x]] = x
    low, high = np.full(tensors, count, np.int64), np.full(tensors, -1, np.int64)  # first and last use
    before_use = np.empty(used.shape[0], np.int64)  # the use before this one
    before_source = np.full(tensors, -1, np.int64)  # the last use before the tensor is made
    for x in range(count):
        layer = order[x]
        for k in range(made_at[layer], made_at[layer + 1]):
            before_source[made[k]] = high[made[k]]
        for k in range(used_at[layer], used_at[layer + 1]):
            t = used[k]
            before_use[k] = high[t]
            high[t] = x
            if low[t] > x:
                low[t] = x
    for i in range(count):
        amount = np.int64(0)
        for x in range(i, count):
            if work[x + 1, -1] - work[i, -1] > ceiling:
                break
            layer = order[x]
            for k in range(made_at[layer], made_at[layer + 1]):
                t = made[k]
                if before_source[t] >= i:  # it came in so far
                    amount -= time[t]
                if low[t] < i or high[t] > x:
                    amount += time[t]
            for k in range(used_at[layer], used_at[layer + 1]):
                t = used[k]
                p = place[source[t]]
                if i <= p < x:  # it went out, to here at least
                    if low[t] >= i and high[t] <= x:
                        amount -= time[t]
                elif before_use[k] < i:
                    amount += time[t]
            out[i, x + 1] = amount


@kernel
def live_bytes(
    work: IntArray,
    ceiling: int,
    size: IntArray,
    indptr: IntArray,
    layer: IntArray,
    made: IntArray,
    out: IntArray,
) -> None:
    """Fill ``out`` (L, L + 1): most bytes live at once in the run [i, j), at [i, j) for j > i; the layers are in their own order.

    Buffers as in ``Buffers``. A run that grows by a layer keeps all that was live, and lets buffers with an event there live up
    to it: O(L^2) steps and those of buffers that come in and are used late. Runs are left out as in :func:`transfers`.
    """
    count, buffers = out.shape[0], size.shape[0]
    starts = np.zeros(count + 2, np.int64)  # events by layer
    for e in range(layer.shape[0]):
        starts[layer[e] + 1] += 1
    for x in range(count + 1):
        starts[x + 1] += starts[x]
    event, owner = np.empty(layer.shape[0], np.int64), np.empty(layer.shape[0], np.int64)
    fill = starts.copy()
    for b in range(buffers):
        for e in range(indptr[b], indptr[b + 1]):
            event[fill[layer[e]]], owner[fill[layer[e]]] = e, b
            fill[layer[e]] += 1
    live = np.empty(count, np.int64)
    until = np.empty(buffers, np.int64)  # it is live before this layer
    run = np.full(buffers, -1, np.int64)  # the first layer of the run that has met it
    kept = np.full(
        buffers, -1, np.int64
    )  # the same where it is made in the run and has events after the layer reached
    for i in range(count):
        always, most = np.int64(0), np.int64(0)  # of those kept, which are live at every layer from here on
        for x in range(i, count):
            if work[x + 1, -1] - work[i, -1] > ceiling:
                break
            live[x] = 0
            for k in range(starts[x], starts[x + 1]):
                e, b = event[k], owner[k]
                if kept[b] == i:
                    always -= size[b]
                    until[b] = x
                elif run[b] != i:
                    run[b], until[b] = i, x if e == indptr[b] and made[e] == MADE else i
                for y in range(until[b], x):
                    live[y] += size[b]
                    most = max(most, live[y])
                until[b] = x + 1
                live[x] += size[b]
                if (made[e] > 0 or kept[b] == i) and e + 1 < indptr[b + 1]:
                    kept[b] = i
                    always += size[b]
                    live[x] -= size[b]
                else:
                    kept[b] = -1
            live[x] += always
            most = max(most, live[x])
            out[i, x + 1] = most


@plain
def probe(
    ceiling: int, chain: Chain, limits: Limits, fewer_is_fine: bool, need: IntArray, origin: IntArray
) -> None:
    """Fewest cores for every prefix so that no load is above ``ceiling``: ``need[s, j]``, ``cores + 1`` if impossible.

    State ``s = stages * (hosts + 1) + hosts in use``; stages are counted up to ``limits.rows - 1``, or not at all if that is 0.
    ``origin`` (states, L + 1, 3): position and state where the last stage begins, and its cores.
    """
    work, storage, room = chain.work, chain.storage, chain.room
    host, stuck, cut = chain.host, chain.stuck, chain.cut
    live, streams, ranges = chain.live, chain.offchip > 0.0, chain.live.shape[0] > 0
    cores, hosts, rows = limits.cores, limits.hosts, limits.rows
    count, largest, replicas = work.shape[0] - 1, work.shape[1], chain.replicas
    no, wide, reach = cores + 1, hosts + 1, times(ceiling, replicas)
    need[:] = no
    need[0, 0] = 0
    for j in range(1, count + 1):
        if not cut[j]:
            continue
        for i in range(j - 1, -1, -1):
            low, on_group = 1, work[j, largest - 1] - work[i, largest - 1] <= reach
            if on_group and not streams:
                held = storage[j] - storage[i]
                if ranges:
                    held += live[i, j]
                low = least_holding(held, room)
                on_group = low <= largest
            on_host = hosts > 0 and stuck[j] == stuck[i] and host[j] - host[i] <= ceiling
            if not (on_group or on_host):
                break  # longer runs are heavier still
            if not cut[i]:
                continue
            for s in range(need.shape[0]):
                have = need[s, i]
                if have >= no:
                    continue
                to = s + wide if rows > 1 else s
                if to >= need.shape[0]:
                    continue
                if on_group:
                    high = min(largest * replicas, need[to, j] - 1 - have)
                    if replicas > 1:
                        c = least_replicated(i, j, low, high, ceiling, chain)
                    else:
                        c = least_cores(i, j, low, high, ceiling, chain)
                    if c <= high:
                        need[to, j] = have + c
                        origin[to, j, 0], origin[to, j, 1], origin[to, j, 2] = i, s, c
                if on_host and s % wide < hosts and have < need[to + 1, j]:
                    need[to + 1, j] = have
                    origin[to + 1, j, 0], origin[to + 1, j, 1], origin[to + 1, j, 2] = i, s, 0
        if j < count:
            _prune(j, ceiling, chain.rest[j], no, hosts, fewer_is_fine, need)


@plain
def _prune(
    j: int, ceiling: int, rest: float, no: int, hosts: int, fewer_is_fine: bool, need: IntArray
) -> None:
    """Drop states that leave too few cores and hosts for the rest, or need as many cores as one with fewer stages and hosts."""
    wide = hosts + 1
    for s in range(need.shape[0] - 1, -1, -1):  # states are compared with those below, not yet dropped
        if need[s, j] >= no:
            continue
        free = no - 1 - need[s, j] + hosts - s % wide
        if float(free) * float(ceiling) * (1.0 + 1e-9) < rest or (
            fewer_is_fine
            and (
                (s >= wide and need[s - wide, j] <= need[s, j])
                or (s % wide > 0 and need[s - 1, j] <= need[s, j])
            )
        ):
            need[s, j] = no


@plain
def heaviest(state: int, chain: Chain, origin: IntArray, stages: IntArray) -> int:
    """Read the plan that ends in ``state`` backwards into ``stages`` (L, 2), first position and cores per stage.

    Returns its largest load.
    """
    host = chain.host
    j, rows, worst = chain.work.shape[0] - 1, 0, 0
    while j > 0:
        i, before, c = origin[state, j, 0], origin[state, j, 1], origin[state, j, 2]
        if c > 0:
            worst = max(worst, replicated_load(i, j, c, chain))
        else:
            worst = max(worst, host[j] - host[i])
        stages[rows, 0], stages[rows, 1] = i, c
        rows += 1
        j, state = i, before
    stages[rows:, 0] = -1
    return worst


@plain
def chosen_state(need: IntArray, limits: Limits) -> int:
    """A complete plan with enough stages and groups, -1 if none: with fewest stages, or if they are not counted, cores."""
    hosts, best, least = limits.hosts, -1, limits.cores + 1
    for s in range(need.shape[0]):
        stages, on_hosts = s // (hosts + 1), s % (hosts + 1)
        if limits.rows > 1 and (stages < limits.least_stages or stages - on_hosts < limits.least_groups):
            continue
        if need[s, need.shape[1] - 1] < least:
            best, least = s, need[s, need.shape[1] - 1]
            if limits.rows > 1:
                break
    return best


@kernel
def solve(low: int, ceiling: int, chain: Chain, limits: Limits, stages: IntArray) -> int:
    """Least ceiling that a probe can keep, in ticks, and its plan in ``stages``; -1 if ``ceiling`` cannot be kept.

    ``low``: a ceiling below which nothing is possible. Bisection; every success jumps down to the largest load of the plan
    found, and once nothing new turns up the probe just below that load is tried, which ends the search when it fails.
    """
    count, states = chain.work.shape[0] - 1, limits.rows * (limits.hosts + 1)
    need, origin = np.empty((states, count + 1), np.int64), np.empty((states, count + 1, 3), np.int64)
    trial = np.empty_like(stages)
    fewer_is_fine = limits.least_stages <= 1 and limits.least_groups == 0
    high, failures = -1, 0
    while high < 0 or low < high:
        if high >= 0:
            ceiling = high - 1 if failures >= 4 else low + (high - low) // 2
        probe(ceiling, chain, limits, fewer_is_fine, need, origin)
        state = chosen_state(need, limits)
        if state >= 0:
            high, failures = heaviest(state, chain, origin, trial), 0
            for row in range(stages.shape[0]):
                copy_to(stages[row], trial[row])
        elif high < 0:
            return -1
        else:
            low, failures = ceiling + 1, failures + 1
    return high
