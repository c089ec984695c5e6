"""What runs of a chain's layers take on groups of cores, for second proofs, in plain NumPy: written from the definition of loads.

What a stage model adds to the time of a run stands here once: transfers through one core or a side of the group, memory by sums
or by live ranges, and off-chip memory for what does not fit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.check.pipeline.memory_rule import rooms_of, units_of
from nmsolve.model.pipeline.buffers import MADE
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import BoolArray, FloatArray, IntArray

#: No load: the run does not fit on these cores.
NONE = 2**62


class Runs(NamedTuple):
    """Runs [begin, end) of layers, arrays of one shape: time of their transfers over one core, what they hold, their most live
    bytes, and how often what does not fit is moved."""

    begin: IntArray
    end: IntArray
    move: IntArray
    held: IntArray
    live: IntArray
    moves: FloatArray


class Intervals:
    """The runs of a problem's layers in their own order, and their loads in ticks."""

    def __init__(self, problem: PipelineProblem) -> None:
        self.problem, most = problem, problem.largest_group
        self.work = prefix_sums(problem.ticks.time[:, :most])
        self.move, self.sides = transfer_table(problem), _sides(problem)
        self.trips, self.streams = prefix_sums(problem.trips), problem.streams
        if problem.buffers is not None and problem.memory is not None:
            self.held, self.live = prefix_sums(problem.storage.astype(np.int64)), live_table(problem)
            self.rooms = np.arange(1, most + 1) * int(problem.memory)
        else:
            self.held, self.rooms = prefix_sums(units_of(problem)), rooms_of(problem)
            self.live = np.zeros((problem.count, problem.count + 1), np.int64)

    def runs(self, begin: IntArray, end: IntArray) -> Runs:
        """Runs with these begins and ends, which broadcast."""
        held, moves = (
            self.held[end] - self.held[begin],
            1.0 + (self.trips[end] - self.trips[begin]).astype(float),
        )
        return Runs(begin, end, self.move[begin, end], held, self.live[begin, end], moves)

    def loads(self, runs: Runs, cores: IntArray) -> IntArray:
        """Load of every run on this many cores, which broadcast; ``NONE`` where it does not fit."""
        compute = self.work[runs.end, cores - 1] - self.work[runs.begin, cores - 1]
        move = -(-runs.move // self.sides[cores - 1])
        off = np.zeros(1, np.int64)
        if self.streams:
            each = self.problem.ticks.offchip * runs.moves
            off = (self.moved(runs, cores).astype(float) * each / cores).astype(np.int64)
        overlap = self.problem.overlap
        load: IntArray = np.maximum(np.maximum(compute, move), off) if overlap else compute + move + off
        return load if self.streams else np.where(runs.held + runs.live <= self.rooms[cores - 1], load, NONE)

    def moved(self, runs: Runs, cores: IntArray) -> IntArray:
        """Bytes that the cores cannot hold: weights once, in what live bytes leave free, and live bytes twice."""
        rooms = self.rooms[cores - 1]
        read = runs.held - np.clip(rooms - runs.live, 0, runs.held)
        return np.asarray(read + 2 * np.maximum(runs.live - rooms, 0))

    def least_cores(self, runs: Runs, ceiling: int) -> IntArray:
        """(B,) fewest cores with which every run keeps the ceiling; C + 1 if none do. Loads do not rise with the cores."""
        most, ceiling = self.work.shape[1], min(ceiling, NONE - 1)
        low, high = np.ones(len(runs.begin), np.int64), np.full(len(runs.begin), most + 1)
        while (low < high).any():  # all sizes below low are too small, high is not, or is C + 1
            middle = np.minimum((low + high) // 2, most)
            fits = self.loads(runs, middle) <= ceiling
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
    assert problem.buffers is not None
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


def _sides(problem: PipelineProblem) -> IntArray:
    """Return (C,) cores of a group's side, or 1 where it moves data through one core: the largest s with s * s cores."""
    cores = np.arange(1, problem.largest_group + 1)
    if not problem.groups.border:
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
