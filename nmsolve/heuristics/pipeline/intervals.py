"""Loads of all runs of layers along one order, so that a search reads the load of a stage in one step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.model.compiled import inlined, kernel, plain
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import FloatArray, IntArray


class Intervals(NamedTuple):
    """Layers ``order[i:j]`` as a stage of ``c`` cores take ``time[c - 1, j] - time[c - 1, i]`` to compute and ``transfer[i, j]``
    to take in and give out tensors; they need ``storage[j] - storage[i]``. Times are in ticks of ``unit``, so sums are exact.

    Shapes: order (L,), time (C, L + 1), storage (L + 1,), transfer (L + 1, L + 1). ``memory`` is inf if there is no limit.
    """

    order: IntArray
    time: IntArray
    storage: FloatArray
    transfer: IntArray
    memory: float
    overlap: bool
    unit: float


def intervals_of(problem: PipelineProblem, order: IntArray) -> Intervals:
    """The tables of one order of the layers; tensors may go against it. O(L^2 + uses) time and memory."""
    count, groups, ticks, tensors = problem.count, problem.largest_group, problem.ticks, problem.tensors
    time = np.zeros((groups, count + 1), np.int64)
    np.cumsum(ticks.time[order, :groups].T, axis=1, out=time[:, 1:])
    storage = np.concatenate([[0.0], np.cumsum(problem.storage[order])])
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    transfer = _transfers(place, tensors.source, tensors.indptr, tensors.targets, ticks.tensor)
    memory = np.inf if problem.memory is None else problem.memory
    return Intervals(order, time, storage, transfer, memory, problem.overlap, ticks.seconds(1))


@kernel
def _transfers(
    place: IntArray, source: IntArray, indptr: IntArray, targets: IntArray, time: IntArray
) -> IntArray:
    """(L + 1, L + 1) transfer times, by differences over rectangles of (first, last + 1).

    A run pays for a tensor once if it holds the maker and not all users, and once if it holds a user and not the maker.
    """
    count = len(place)
    table = np.zeros((count + 2, count + 2), np.int64)
    for t in range(len(source)):
        p, cost = place[source[t]], time[t]
        users = np.sort(place[targets[indptr[t] : indptr[t + 1]]])
        if len(users) == 0:
            continue
        _add(table, 0, p, p + 1, count, cost)
        _add(table, 0, min(p, users[0]), max(p, users[-1]) + 1, count, -cost)
        last = -1
        for q in users:
            if q < p and q > last:
                _add(table, last + 1, q, q + 1, p, cost)
            elif q > p and q > last:
                _add(table, max(last, p) + 1, q, q + 1, count, cost)
            last = q
    for i in range(1, count + 1):
        for j in range(count + 1):
            table[i, j] += table[i - 1, j]
    for i in range(count + 1):
        for j in range(1, count + 1):
            table[i, j] += table[i, j - 1]
    return table[: count + 1, : count + 1].copy()


@inlined
def _add(table: IntArray, top: int, bottom: int, left: int, right: int, cost: int) -> None:
    """Add ``cost`` to rows ``top..bottom`` and columns ``left..right``."""
    if bottom < top or right < left:
        return
    table[top, left] += cost
    table[bottom + 1, left] -= cost
    table[top, right + 1] -= cost
    table[bottom + 1, right + 1] += cost


@plain
def run_load(runs: Intervals, first: int, last: int, cores: int) -> int:
    """Load in ticks of layers ``order[first:last]`` on ``cores`` cores (at least one, at most C)."""
    compute = runs.time[cores - 1, last] - runs.time[cores - 1, first]
    transfer = runs.transfer[first, last]
    return int(max(compute, transfer) if runs.overlap else compute + transfer)
