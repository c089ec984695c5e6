"""Compiled parts of the exact chain partition: transfers of all runs of layers, and the probe for one ceiling on the loads.

Positions ``0..L - 1`` count layers along the order at hand; the run ``[i, j)`` holds positions i to j - 1. All times are ticks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.hw.pipeline.stages import stream_ticks, streamed_bytes
from nmsolve.model.basic_kernels import copy_to
from nmsolve.model.compiled import kernel, plain_callee
from nmsolve.model.pipeline.buffers import MADE
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import BoolArray, FloatArray, IntArray

#: A ceiling above every load: sums of ticks stay below 2^62.
ANY_LOAD = 2**62


class Limits(NamedTuple):
    """What a chain of stages must keep.

    Attributes
    ----------
    cores, hosts : at most
    rows : 1 + most stages if they must be counted, else 1
    least_stages, least_groups : at least; groups are stages that are no hosts
    endless : stages are only counted as their number decides what one keeps (training); the last row is that many or more
    """

    cores: int
    hosts: int
    rows: int
    least_stages: int
    least_groups: int
    endless: bool

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
        return cls(cores, hosts, most + 1 if counted else 1, stages, groups, False)

    def uncounted(self, flights: int = 1) -> Limits:
        """The same with any number of stages; ``flights``: most micro-batches in flight, one more with every stage."""
        return Limits(self.cores, self.hosts, flights + 1 if flights > 1 else 1, 1, 0, flights > 1)

    def met_by(self, cores: IntArray) -> bool:
        """Return True if the number of stages with these cores is allowed."""
        groups = int((cores > 0).sum())
        return (
            self.rows == 1
            or self.endless
            or (self.least_stages <= len(cores) < self.rows and groups >= self.least_groups)
        )


class Chain(NamedTuple):
    """One order of the layers; in training from the last to the first, as what a stage keeps depends on how many follow it.

    Attributes
    ----------
    order : (L,) the layers
    work : (L + 1, C) time on groups of every size; storage, host, stuck : (L + 1,); all are sums over prefixes
    move : (L, L + 1) what :func:`transfers` fills
    live : (L, L + 1) most bytes live at once, what :func:`live_bytes` fills; of shape (0, 0) if none are counted
    room : (C,) most storage of a group of every size, live bytes included
    memory : bytes of a core, where there is off-chip memory
    offchip : ticks in which a core moves a byte beyond that; 0: nothing may be beyond it
    turns : (L + 1,) sums over prefixes of the trips of loops that begin there
    cut : (L + 1,) where a stage may begin
    forward : (L + 1, C) time of forward passes, sums over prefixes
    kept, entering : (L, L + 1) bytes that a run keeps of a micro-batch in flight, in training; of shape (0, 0) without
    batches : most micro-batches in flight
    by_stage : there are no more of them than stages from the one at hand on
    recompute : what does not fit may run forward again
    rest : (L + 1,) time of cores and hosts that the layers from a position on need at least
    overlap : whether a group moves data while it computes
    replicas : most replicas of a stage, which take micro-batches in turns
    side : (C,) cores that a group of every size moves data through at a time
    """

    order: IntArray
    work: IntArray
    move: IntArray
    storage: IntArray
    live: IntArray
    room: IntArray
    memory: int
    offchip: float
    turns: IntArray
    host: IntArray
    stuck: IntArray
    cut: BoolArray
    forward: IntArray
    kept: IntArray
    entering: IntArray
    batches: int
    by_stage: bool
    recompute: bool
    rest: FloatArray
    overlap: bool
    replicas: int
    side: IntArray


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


@plain_callee
def run_load(compute: int, move: int, overlap: bool) -> int:
    """The load of a group from its two parts."""
    return max(compute, move) if overlap else compute + move


@plain_callee
def crossing(i: int, j: int, cores: int, chain: Chain) -> int:
    """Ticks in which a group of so many cores takes in and gives out what crosses the borders of the run [i, j)."""
    side = chain.side[cores - 1]
    ticks: int = (chain.move[i, j] + side - 1) // side
    return ticks


@plain_callee
def group_load(i: int, j: int, cores: int, chain: Chain) -> int:
    """The load of the run [i, j) on so many cores that hold it; it does not rise with them."""
    compute = chain.work[j, cores - 1] - chain.work[i, cores - 1]
    load: int = run_load(compute, crossing(i, j, cores, chain), chain.overlap)
    return load


@plain_callee
def least_cores(i: int, j: int, low: int, high: int, ceiling: int, chain: Chain) -> int:
    """Fewest cores from ``low`` to ``high`` with which the run [i, j) keeps the ceiling; ``high + 1`` if even ``high`` do not."""
    if low > high or group_load(i, j, high, chain) > ceiling:
        return high + 1
    while low < high:
        middle = (low + high) // 2
        if group_load(i, j, middle, chain) <= ceiling:
            high = middle
        else:
            low = middle + 1
    return low


@plain_callee
def least_holding(held: int, room: IntArray) -> int:
    """Fewest cores with room for so much; more than there are room for if none have."""
    # no fewer hold it: c cores have c times the room of one, but for rounding
    cores = max(1, held // (room[0] + 1)) if room[0] > 1024 else 1
    while cores <= room.shape[0] and held > room[cores - 1]:
        cores += 1
    return cores


@plain_callee
def streamed_load(i: int, j: int, cores: int, chain: Chain) -> int:
    """The load of the run [i, j) on so many cores, off-chip memory included; it does not rise with them."""
    moved = streamed_bytes(chain.storage[j] - chain.storage[i], chain.live[i, j], cores * chain.memory)
    turns = 1 + chain.turns[j] - chain.turns[i]
    offchip: int = stream_ticks(moved, chain.offchip * float(turns), cores)
    compute: int = chain.work[j, cores - 1] - chain.work[i, cores - 1]
    move: int = crossing(i, j, cores, chain)
    return max(compute, max(move, offchip)) if chain.overlap else compute + move + offchip


@plain_callee
def least_streamed(i: int, j: int, low: int, high: int, ceiling: int, chain: Chain) -> int:
    """As :func:`least_cores`, with off-chip memory."""
    if low > high or streamed_load(i, j, high, chain) > ceiling:
        return high + 1
    while low < high:
        middle = (low + high) // 2
        if streamed_load(i, j, middle, chain) <= ceiling:
            high = middle
        else:
            low = middle + 1
    return low


@plain_callee
def least_replicated(i: int, j: int, high: int, ceiling: int, held: int, chain: Chain) -> int:
    """As :func:`least_cores`, over all numbers of replicas; ``held``: what a replica needs to hold, with off-chip memory 0.

    r replicas keep the ceiling if one of them takes at most r times as long.
    """
    best, largest = high + 1, chain.room.shape[0]
    least = least_holding(held, chain.room)
    for r in range(1, chain.replicas + 1):
        top = min(largest, (best - 1) // r)
        if least > top:
            break
        if chain.offchip > 0.0:
            c = least_streamed(i, j, 1, top, times(ceiling, r), chain)
        else:
            c = least_cores(i, j, least, top, times(ceiling, r), chain)
        if c <= top:
            best = r * c
    return best if best <= high else high + 1


@plain_callee
def replicated_load(i: int, j: int, cores: int, chain: Chain) -> int:
    """The load of the run [i, j) on so many cores, with the best number of replicas."""
    held = chain.storage[j] - chain.storage[i]
    if chain.live.shape[0] > 0:
        held += chain.live[i, j]
    best, largest = ANY_LOAD, chain.room.shape[0]
    for r in range(1, min(chain.replicas, cores) + 1):
        c = min(largest, cores // r)
        if chain.offchip > 0.0:
            load = streamed_load(i, j, c, chain)
        elif held > chain.room[c - 1]:
            break
        else:
            load = group_load(i, j, c, chain)
        best = min(best, (load + r - 1) // r)
    return best


@plain_callee
def times(ceiling: int, factor: int) -> int:
    """So many ceilings, at most ``ANY_LOAD``."""
    return ANY_LOAD if ceiling >= ANY_LOAD // factor else ceiling * factor


@plain_callee
def trained_load(i: int, j: int, cores: int, stage: int, chain: Chain) -> int:
    """The load of the run [i, j) on so many cores in training, as stage number ``stage`` from the end, from 1 on; ``ANY_LOAD`` if
    what it keeps does not fit. It does not rise with the cores."""
    held = chain.storage[j] - chain.storage[i] + chain.live[i, j]
    flights = min(chain.batches, max(1, stage)) if chain.by_stage else chain.batches
    compute = chain.work[j, cores - 1] - chain.work[i, cores - 1]
    if held + flights * chain.kept[i, j] > chain.room[cores - 1]:
        if not chain.recompute or (
            held + chain.kept[i, j] + flights * chain.entering[i, j] > chain.room[cores - 1]
        ):
            return ANY_LOAD
        compute += chain.forward[j, cores - 1] - chain.forward[i, cores - 1]
    load: int = run_load(compute, crossing(i, j, cores, chain), chain.overlap)
    return load


@plain_callee
def least_trained(i: int, j: int, low: int, high: int, ceiling: int, stage: int, chain: Chain) -> int:
    """As :func:`least_cores`, in training."""
    if low > high or trained_load(i, j, high, stage, chain) > min(ceiling, ANY_LOAD - 1):
        return high + 1
    while low < high:
        middle = (low + high) // 2
        if trained_load(i, j, middle, stage, chain) <= min(ceiling, ANY_LOAD - 1):
            high = middle
        else:
            low = middle + 1
    return low


@plain_callee
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
    trains = chain.kept.shape[0] > 0
    cores, hosts, rows = limits.cores, limits.hosts, limits.rows
    count, largest, replicas = work.shape[0] - 1, work.shape[1], chain.replicas
    no, wide, reach = cores + 1, hosts + 1, times(ceiling, replicas)
    need[:] = no
    need[0, 0] = 0
    for j in range(1, count + 1):
        if not cut[j]:
            continue
        for i in range(j - 1, -1, -1):
            low, held, on_group = 1, 0, work[j, largest - 1] - work[i, largest - 1] <= reach
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
                    if not limits.endless:
                        continue
                    to = s
                if on_group:
                    high = min(largest * replicas, need[to, j] - 1 - have)
                    if replicas > 1:
                        c = least_replicated(i, j, high, ceiling, held, chain)
                    elif streams:
                        c = least_streamed(i, j, low, high, ceiling, chain)
                    elif trains:
                        c = least_trained(i, j, low, high, ceiling, to // wide, chain)
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


@plain_callee
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


@plain_callee
def heaviest(state: int, chain: Chain, origin: IntArray, stages: IntArray) -> int:
    """Read the plan that ends in ``state`` backwards into ``stages`` (L, 2), first position and cores per stage.

    Returns its largest load.
    """
    host = chain.host
    j, rows, worst = chain.work.shape[0] - 1, 0, 0
    while j > 0:
        i, before, c = origin[state, j, 0], origin[state, j, 1], origin[state, j, 2]
        if c > 0:
            if chain.replicas > 1:
                worst = max(worst, replicated_load(i, j, c, chain))
            elif chain.offchip > 0.0:
                worst = max(worst, streamed_load(i, j, c, chain))
            elif chain.kept.shape[0] > 0:  # then there are no hosts, and a state is a number of stages
                worst = max(worst, trained_load(i, j, c, state, chain))
            else:
                worst = max(worst, group_load(i, j, c, chain))
        else:
            worst = max(worst, host[j] - host[i])
        stages[rows, 0], stages[rows, 1] = i, c
        rows += 1
        j, state = i, before
    stages[rows:, 0] = -1
    return worst


@plain_callee
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
