"""The part of :mod:`.chain_bound` for training: from the last layer to the first, as what a stage keeps depends on those behind
it."""

from __future__ import annotations

import numpy as np

from nmsolve.model.pipeline.buffers import MADE
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import BoolArray, IntArray


def trained_possible(problem: PipelineProblem, ceiling: int, move: IntArray, live: IntArray) -> bool:
    """Return whether some chain keeps the ceiling (in ticks) on the loads and all limits.

    Parameters
    ----------
    move, live : (L + 1, L + 1) and (L, L + 1), by first layer and end of a run: ticks of its transfers, most bytes live at once
    """
    training, count, most = problem.training, problem.count, problem.largest_group
    assert training is not None
    limit = min(problem.stages, count, problem.cores)
    counted = problem.exact_stages or problem.use_all or limit < min(count, problem.cores)
    ordered = training.schedule == "1f1b"
    rows = limit if counted else min(limit, training.batches) if ordered else 1
    flights = (
        np.minimum(training.batches, np.arange(1, rows + 1)) if ordered else np.full(rows, training.batches)
    )
    never = problem.cores + 1
    need = np.full(
        (rows + 1, count + 1), never
    )  # by stages from a layer on; the last row: or more, if they are not counted
    need[0, count] = 0
    work, sides = prefix_sums(problem.ticks.time[:, :most]), through(problem)
    forward = prefix_sums(problem.ticks.forward[:, :most])
    weights = prefix_sums(problem.storage.astype(np.int64)[:, None])[:, 0]
    kept, entering = kept_tables(problem)
    for begin in range(count - 1, -1, -1):
        end = np.arange(begin + 1, count + 1)
        held = weights[end] - weights[begin] + live[begin, end]
        plain = held + flights[:, None] * kept[begin, end]
        again = held + kept[begin, end] + flights[:, None] * entering[begin, end]
        if not training.recompute:
            again = plain
        low = np.ones(plain.shape, np.int64)
        high = np.full(plain.shape, most + 1)
        while (low < high).any():  # all sizes below low are too small, high is not, or is C + 1
            cores = np.minimum((low + high) // 2, most)
            takes = work[end, cores - 1] - work[begin, cores - 1]
            more = forward[end, cores - 1] - forward[begin, cores - 1]
            room = np.full(cores.shape, np.inf) if problem.memory is None else cores * float(problem.memory)
            takes = np.where(plain <= room, takes, takes + more)
            moved = -(-move[begin, end] // sides[cores - 1])
            load = np.maximum(takes, moved) if problem.overlap else takes + moved
            fits = (load <= ceiling) & (np.minimum(plain, again) <= room)
            open_ = low < high
            low = np.where(open_ & ~fits, cores + 1, low)
            high = np.where(open_ & fits, cores, high)
        cores = np.where(high > most, never, high)
        before = need[:-1, end]
        if not counted:
            before[-1] = np.minimum(before[-1], need[-1, end])
        need[1:, begin] = np.minimum((before + cores).min(axis=1), never)
    allowed: BoolArray = np.ones(rows + 1, bool)
    if problem.exact_stages:
        allowed = np.arange(rows + 1) == problem.stages
    if problem.use_all:
        allowed &= np.arange(rows + 1) * most >= problem.cores
    return bool((need[allowed, 0] <= problem.cores).any())


def through(problem: PipelineProblem) -> IntArray:
    """Return (C,) cores of a group's side, or 1 where it moves data through one core: the largest s with s * s cores."""
    cores = np.arange(1, problem.largest_group + 1)
    if not problem.border:
        return np.ones(len(cores), np.int64)
    return np.searchsorted(np.arange(1, len(cores) + 2) ** 2, cores, side="right").astype(np.int64)


def kept_tables(problem: PipelineProblem) -> tuple[IntArray, IntArray]:
    """Return two (L + 1, L + 1) tables by begin and end of a run: bytes that its backward pass needs, and bytes that come in."""
    training, buffers, count = problem.training, problem.buffers, problem.count
    assert training is not None and buffers is not None
    needed = _met(
        count, buffers.size, training.indptr, training.layer, np.zeros(len(training.layer), np.int64)
    )
    inside = buffers.layer < count
    ends = np.concatenate([[0], np.cumsum(inside)])[buffers.indptr]
    return needed, _met(count, buffers.size, ends, buffers.layer[inside], buffers.made[inside])


def prefix_sums(values: IntArray) -> IntArray:
    """Return (L + 1, ...) sums over prefixes of (L, ...)."""
    return np.concatenate([np.zeros((1, *values.shape[1:]), np.int64), np.cumsum(values, axis=0)])


def _met(count: int, size: IntArray, indptr: IntArray, layer: IntArray, made: IntArray) -> IntArray:
    """Return (L + 1, L + 1) bytes of buffers with an event in [begin, end), but for those made in it: sums over rectangles.

    An event at x, the one before it at y (-1: none), brings the buffer into runs with y < begin <= x < end.
    """
    corners = np.zeros((count + 2, count + 2), np.int64)
    for b in range(len(size)):
        before = -1
        for e in range(indptr[b], indptr[b + 1]):
            x = int(layer[e])
            if not (e == indptr[b] and made[e] == MADE):
                corners[before + 1, x + 1] += size[b]
                corners[x + 1, x + 1] -= size[b]
            before = x
    # columns go on to the last end, so only rows are closed
    table: IntArray = np.cumsum(np.cumsum(corners, axis=0), axis=1)[:-1, :-1]
    return table
