"""A second proof of the optimum of a chain, in plain NumPy: no plan of runs of layers has a load below a value.

Written from the definition of loads, apart from the solver: transfers of all runs from rectangles in the (begin, end) plane, then
for one ceiling the fewest cores per prefix, number of stages and number of hosts, for all begins of the last stage at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.check.pipeline.memory_rule import rooms_of, units_of
from nmsolve.model.pipeline.buffers import MADE
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.pipeline.ticks import Ticks
from nmsolve.model.types import BoolArray, FloatArray, IntArray


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
    move, allowed = transfer_table(problem), begins_and_ends(problem)
    memory, live = 0, None
    if problem.buffers is not None and problem.memory is not None:
        storage, memory, live = problem.storage.astype(np.int64), int(problem.memory), live_table(problem)
        rooms = np.arange(1, most + 1) * memory
    else:
        storage, rooms = units_of(problem), rooms_of(problem)
    work = prefix_sums(ticks.time[:, :most])
    never, sides = problem.cores + 1, through(problem)
    need = np.full((limit + 1 if counted else 1, hosts + 1, count + 1), never)
    need[0, 0, 0] = 0
    for end in np.flatnonzero(allowed)[1:]:
        begins = np.flatnonzero(allowed[:end])
        between = move[begins, end]
        held = np.cumsum(storage[:end][::-1])[::-1][begins]
        off = None
        if live is not None and problem.streams:
            trips = np.zeros(count, np.int64) if problem.turns is None else problem.turns
            moves: FloatArray = 1.0 + np.cumsum(trips[:end][::-1])[::-1][begins].astype(np.float64)
            off = _Stream(held, live[begins, end], memory, ticks.offchip * moves, problem.overlap)
        elif live is not None:
            held = held + live[begins, end]
        cores = np.full(len(begins), never)
        for replicas in range(
            1, min(problem.replicas, problem.cores) + 1
        ):  # each may take this many times as long
            longest = min(replicas * ceiling, 2**62)
            each = _least_cores(work, begins, end, _Ceiling(longest, between, sides, problem.overlap), off)
            if off is None:
                each = np.maximum(each, np.searchsorted(rooms, held) + 1)
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


class _Ceiling(NamedTuple):
    """On loads of runs with one end, (B,) ticks of their transfers over one core, (C,) cores that these pass at a time."""

    longest: int
    between: IntArray
    sides: IntArray
    overlap: bool

    def room(self, cores: IntArray) -> IntArray:
        """(B,) what is left for the rest on this many cores; -1 if the transfers alone take too long."""
        moved = -(-self.between // self.sides[cores - 1])
        return np.where(moved > self.longest, -1, self.longest if self.overlap else self.longest - moved)


class _Stream(NamedTuple):
    """Of the runs with one end: weights and most live bytes (B,), memory of a core, (B,) its ticks per byte that does not fit,
    trips included, and how loads add up."""

    weights: IntArray
    live: IntArray
    memory: int
    offchip: FloatArray
    overlap: bool

    def within(self, work: IntArray, cores: IntArray, room: IntArray) -> BoolArray:
        """(B,) whether work and what does not fit on this many cores, moved in every run, take at most ``room``."""
        space = cores * self.memory
        spilled = np.maximum(self.live - space, 0)
        read = self.weights - np.clip(space - self.live, 0, self.weights)
        time = ((read + 2 * spilled).astype(float) * self.offchip / cores).astype(np.int64)
        return np.asarray((np.maximum(work, time) if self.overlap else work + time) <= room)


def _least_cores(
    work: IntArray, begins: IntArray, end: int, ceiling: _Ceiling, stream: _Stream | None = None
) -> IntArray:
    """Return (B,) fewest cores with which the layers from each begin to ``end`` keep the ceiling; C + 1 if none do."""
    low, high = np.ones(len(begins), np.int64), np.full(len(begins), work.shape[1] + 1)
    while (low < high).any():  # all sizes below low are too small, high is not, or is C + 1
        middle = np.minimum((low + high) // 2, work.shape[1])
        takes, room = work[end, middle - 1] - work[begins, middle - 1], ceiling.room(middle)
        fits = takes <= room if stream is None else stream.within(takes, middle, room)
        low, high = (
            np.where(fits | (low >= high), low, middle + 1),
            np.where(fits, np.minimum(high, middle), high),
        )
    return high


def live_table(problem: PipelineProblem) -> IntArray:
    """Return (L, L + 1) most bytes live at once in every run [begin, end).

    At a layer x, a buffer that exists is live if the run made something of it by then, or if not, up to its next event in the
    run: a step in the begin (after the last that makes it) and in the end (after the next event). The table rises with the end.
    """
    count = problem.count
    table = np.zeros((count, count + 1), np.int64)
    if problem.buffers is None:
        return table
    size, indptr, layer, made = problem.buffers.arrays
    across: list[list[tuple[int, int, int]]] = [
        [] for _ in range(count)
    ]  # (next event, last that makes it, bytes)
    for b in range(len(size)):
        at, makes = layer[indptr[b] : indptr[b + 1]].tolist(), made[indptr[b] : indptr[b + 1]].tolist()
        maker, k = -1, 0
        for x in range(at[0] if makes[0] == MADE else 0, min(at[-1], count - 1) + 1):
            k += at[k] < x
            if at[k] == x and makes[k]:
                maker = x
            across[x].append((at[k], maker, int(size[b])))
    for x in range(count):
        always = np.zeros(x + 2, np.int64)  # by begin, as differences: begins up to the maker
        for _, maker, bytes_ in across[x]:
            always[0] += bytes_ if maker >= 0 else 0
            always[maker + 1] -= bytes_ if maker >= 0 else 0
        now = np.cumsum(always)[: x + 1]
        table[: x + 1, x + 1] = np.maximum(table[: x + 1, x + 1], now)
        for following, maker, bytes_ in sorted(across[x]):
            now[maker + 1 :] += bytes_
            if following < count:
                np.maximum(table[: x + 1, following + 1], now, out=table[: x + 1, following + 1])
    return np.maximum.accumulate(table, axis=1)


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


def through(problem: PipelineProblem) -> IntArray:
    """Return (C,) cores of a group's side, or 1 where it moves data through one core: the largest s with s * s cores."""
    cores = np.arange(1, problem.largest_group + 1)
    if not problem.border:
        return np.ones(len(cores), np.int64)
    return np.searchsorted(np.arange(1, len(cores) + 2) ** 2, cores, side="right").astype(np.int64)


def prefix_sums(values: IntArray) -> IntArray:
    """Return (L + 1, ...) sums over prefixes of (L, ...)."""
    return np.concatenate([np.zeros((1, *values.shape[1:]), np.int64), np.cumsum(values, axis=0)])


def begins_and_ends(problem: PipelineProblem) -> BoolArray:
    """Return (L + 1,) positions where a stage may begin or end."""
    allowed = np.ones(problem.count + 1, bool)
    if problem.together is not None:
        for number in set(problem.together[problem.together >= 0].tolist()):
            members = np.flatnonzero(problem.together == number)
            allowed[members[0] + 1 : members[-1] + 1] = False
    return allowed


def transfer_table(problem: PipelineProblem) -> IntArray:
    """Return (L + 1, L + 1) time of all tensors that come into or go out of the run [begin, end).

    A tensor made at p goes out of runs with begin <= p < end <= its last use, and comes into those with p < begin that
    hold a use: for every use u and the one before it v (or p), into those with v < begin <= u < end.
    """
    corners = np.zeros((problem.count + 2, problem.count + 2), np.int64)

    def add(first: int, last: int, low: int, high: int, time: int) -> None:
        """Rows ``first..last`` and columns ``low..high``."""
        corners[first, low] += time
        corners[last + 1, low] -= time
        corners[first, high + 1] -= time
        corners[last + 1, high + 1] += time

    tensors = problem.tensors
    for t, (source, time) in enumerate(
        zip(tensors.source.tolist(), problem.ticks.tensor.tolist(), strict=True)
    ):
        uses = sorted(set(tensors.targets[tensors.indptr[t] : tensors.indptr[t + 1]].tolist()))
        before = source
        for use in uses:
            add(before + 1, use, use + 1, problem.count, time)
            before = use
        if uses:
            add(0, source, source + 1, uses[-1], time)
    table: IntArray = np.cumsum(np.cumsum(corners, axis=0), axis=1)[:-1, :-1]
    return table
