"""The value of a pipeline plan: the load of every stage, recomputed from the plan alone.

A group of c cores takes ``compute`` = the sum of its layers' times on c cores, and ``transfer`` = the time of every tensor that
comes in from another stage plus that of every tensor that goes out to one, each tensor once. Its load is the sum of both, or
with ``overlap`` the larger. A host's load is the sum of its layers' host times. The objective is the largest load, or another
goal (:mod:`nmsolve.model.pipeline.goals`). Where stages may have replicas, which take micro-batches in turns, each has the number
with which its load is least.

A stage needs its layers' storage and, of a problem with buffers, the most bytes that are live while it runs. Where off-chip
memory takes what the cores cannot hold, moving it takes time, which counts as transfer does (with ``overlap`` apart from it).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from nmsolve.model.compiled import embedded, kernel
from nmsolve.model.pipeline.buffers import MADE
from nmsolve.model.pipeline.loads import StageLoads
from nmsolve.model.pipeline.objectives import EQUAL, LIMITS, goals_of, used
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import BoolArray, FloatArray, IntArray


def stage_loads(problem: PipelineProblem, plan: PipelinePlan) -> StageLoads:
    """The figures of every stage. The plan must have stages ``0..K - 1`` and group sizes up to C; else it may break any rule."""
    ticks, tensors, count = problem.ticks, problem.tensors, len(plan.cores)
    host = plan.cores == 0
    stuck = np.bincount(plan.stage, host[plan.stage] & ticks.impossible, count) > 0
    (tensor_out, stage_out), (tensor_in, stage_in) = _crossings(problem, plan)
    move_in = np.where(host, 0, _sums(stage_in, ticks.tensor[tensor_in], count))
    move_out = np.where(host, 0, _sums(stage_out, ticks.tensor[tensor_out], count))
    held, live = _float_sums(plan.stage, problem.storage, count), live_of(problem, plan)
    moves = 1 + _sums(plan.stage, problem.trips, count)

    def times(group: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Ticks of one group of these cores: compute, bytes moved off chip, the time of that, and the load."""
        layer = ticks.time[np.arange(problem.count), np.maximum(group, 1)[plan.stage] - 1]
        compute = _sums(plan.stage, np.where(host[plan.stage], ticks.host, layer), count)
        move = -(-(move_in + move_out) // sides[np.maximum(group, 1) - 1])
        streamed, off = np.zeros(count, np.int64), np.zeros(count, np.int64)
        for s, c in enumerate(group.tolist() if problem.streams else ()):
            streamed[s] = streamed_bytes(int(held[s]), int(live[s]), c * int(problem.memory or 0))
            off[s] = stream_ticks(streamed[s], ticks.offchip * float(moves[s]), max(1, c))
        load = np.maximum(np.maximum(compute, move), off) if problem.overlap else compute + move + off
        return compute, streamed, off, load

    largest = problem.time.shape[1]
    sides = problem.groups.sides(largest)
    many, group = np.ones(count, np.int64), np.minimum(plan.cores, largest)
    compute, streamed, off, load = times(group)
    for r in range(2, min(problem.groups.replicas, int(plan.cores.max())) + 1):
        each = np.minimum(plan.cores // r, largest)
        other = times(each)
        better = (each > 0) & _fit(problem, plan, each, live) & (-(-other[3] // r) < load)
        many, group = np.where(better, r, many), np.where(better, each, group)
        compute, streamed, off = (
            np.where(better, b, a) for a, b in zip((compute, streamed, off), other[:3], strict=True)
        )
        load = np.where(better, -(-other[3] // r), load)
    side = sides[np.maximum(group, 1) - 1]

    def seconds(each: IntArray) -> FloatArray:
        """Times of one group, per micro-batch."""
        out: FloatArray = np.ldexp(each.astype(float), -ticks.exponent) / many
        return out

    room = group * (problem.memory or 0.0)
    return StageLoads(
        cores=np.array(plan.cores),
        compute=np.where(stuck, np.inf, seconds(compute)),
        transfer_in=seconds(move_in) / side,
        transfer_out=seconds(move_out) / side,
        volume_in=_float_sums(stage_in, tensors.volume[tensor_in], count),
        volume_out=_float_sums(stage_out, tensors.volume[tensor_out], count),
        storage=many * (held + live),
        resident=many * (np.minimum(held + live, room) if problem.streams else held + live),
        live=many * live,
        streamed=streamed,
        offchip=seconds(off),
        moves=moves,
        replicas=many,
        group=group,
        load=np.where(stuck, np.inf, np.ldexp(load.astype(float), -ticks.exponent)),
    )


def _fit(problem: PipelineProblem, plan: PipelinePlan, group: IntArray, live: IntArray) -> BoolArray:
    """(K,) whether every stage fits on this many cores."""
    if problem.memory is None or problem.streams:
        return np.ones(len(group), bool)
    held = np.array([math.fsum(problem.storage[plan.stage == s]) for s in range(len(group))])
    return np.asarray(held + live <= group * problem.memory)


def live_of(problem: PipelineProblem, plan: PipelinePlan) -> IntArray:
    """(K,) most bytes that are live at once in every stage; 0 of a problem without buffers."""
    count = len(plan.cores)
    if problem.buffers is None:
        return np.zeros(count, np.int64)
    most: IntArray = live_peaks(plan.stage, count, *problem.buffers.arrays)
    return most


@embedded
def streamed_bytes(weights: int, live: int, room: int) -> int:
    """Bytes moved off chip in every run where ``room`` bytes are on chip: weights first, once; live bytes out and in again."""
    over = max(0, weights + live - room)
    return over + max(0, over - weights)


@embedded
def stream_ticks(moved: int, offchip: float, cores: int) -> int:
    """Ticks that ``cores`` take to move this many bytes; rounded alike everywhere, it falls with more cores."""
    return int(float(moved) * offchip / float(cores))


@kernel
def live_peaks(
    stage: IntArray, count: int, size: IntArray, indptr: IntArray, layer: IntArray, made: IntArray
) -> IntArray:
    """(count,) most live bytes of every stage; arrays as in ``Buffers``; what begins and ends is added up along all stages."""
    layers = stage.shape[0]
    begin = np.zeros(count + 1, np.int64)
    for k in range(layers):
        begin[stage[k] + 1] += 1
    for s in range(count):
        begin[s + 1] += begin[s]
    place, free = np.empty(layers, np.int64), begin[:count].copy()
    for k in range(layers):
        place[k] = free[stage[k]]
        free[stage[k]] += 1
    change = np.zeros(layers + 1, np.int64)
    seen = np.full(count, -1, np.int64)
    first, last = np.empty(count, np.int64), np.empty(count, np.int64)
    for b in range(size.shape[0]):
        for e in range(indptr[b], indptr[b + 1]):
            if layer[e] == layers:
                continue
            s = stage[layer[e]]
            if seen[s] != b:
                starts = e == indptr[b] and made[e] == MADE
                seen[s], first[s] = b, place[layer[e]] if starts else begin[s]
            last[s] = place[layer[e]]
        for e in range(
            indptr[b], indptr[b + 1]
        ):  # what a stage makes and another one needs is kept to its end
            if layer[e] < layers and made[e] > 0:
                s = stage[layer[e]]
                for f in range(e + 1, indptr[b + 1]):
                    if layer[f] == layers or stage[layer[f]] != s:
                        last[s] = begin[s + 1] - 1
        for e in range(indptr[b], indptr[b + 1]):
            if layer[e] < layers and seen[stage[layer[e]]] == b:
                s = stage[layer[e]]
                change[first[s]] += size[b]
                change[last[s] + 1] -= size[b]
                seen[s] = -1
    most, now = np.zeros(count, np.int64), np.int64(0)
    for s in range(count):
        for x in range(begin[s], begin[s + 1]):
            now += change[x]
            most[s] = max(most[s], now)
    return most


def all_objectives(problem: PipelineProblem, plan: PipelinePlan) -> dict[str, float]:
    """Return every objective of a legal plan by name: what the problem minimises, the period, and what can be limited."""
    values = {name: objective(replace(problem, goal=goal), plan) for name, goal in goals_of(problem).items()}
    return values | {name: float(used(problem, plan, name)) for name in LIMITS}


def held_complaint(problem: PipelineProblem, plan: PipelinePlan) -> str | None:
    """Return what the plan has too much of where another goal is held, or None."""
    if problem.goal.held is None:
        return None
    goal, most = problem.goal.held
    value = objective(replace(problem, goal=goal), plan)
    over = value > most * (1 + EQUAL * goal.adds_up)  # loads are exact, sums of floats are not
    return f"{goal.name} is {value:.10g}, held at {most:.10g}" if over else None


def objective(problem: PipelineProblem, plan: PipelinePlan) -> float:
    """What the problem minimises; inf if a layer is on a host that cannot run it."""
    if problem.goal.adds_up or problem.streams or not problem.groups.single:
        return problem.goal.value(plan.stage, stage_loads(problem, plan))
    ticks, tensors = problem.ticks, problem.tensors
    return ticks.seconds(
        int(
            largest_load(
                plan.stage, plan.cores, ticks.time, ticks.host, ticks.impossible,
                tensors.source, tensors.indptr, tensors.targets, ticks.tensor, problem.overlap,
            )
        )
    )  # fmt: skip


def _sums(group: IntArray, values: IntArray, count: int) -> IntArray:
    """(count,) exact sums of whole numbers by group."""
    out = np.zeros(count, np.int64)
    np.add.at(out, group, values)
    return out


def _float_sums(group: IntArray, values: FloatArray, count: int) -> FloatArray:
    """(count,) sums of floats by group."""
    return np.bincount(group, values, count).astype(np.float64)


def _crossings(
    problem: PipelineProblem, plan: PipelinePlan
) -> tuple[tuple[IntArray, IntArray], tuple[IntArray, IntArray]]:
    """(tensors, stages) of all that stages give out, and of all that they take in; each pair once."""
    tensors, count = problem.tensors, len(plan.cores)
    tensor = np.repeat(np.arange(tensors.count), np.diff(tensors.indptr))
    made, used = plan.stage[tensors.source[tensor]], plan.stage[tensors.targets]
    crosses = made != used
    out = np.unique(tensor[crosses] * count + made[crosses])
    into = np.unique(tensor[crosses] * count + used[crosses])
    return (out // count, out % count), (into // count, into % count)


@kernel
def largest_load(
    stage: IntArray,
    cores: IntArray,
    time: IntArray,
    host: IntArray,
    impossible: BoolArray,
    source: IntArray,
    indptr: IntArray,
    targets: IntArray,
    tensor: IntArray,
    overlap: bool,
) -> int:
    """The objective in ticks, for searches; -1 if a host cannot run a layer it holds. Arrays as in ``Ticks``, ``Tensors``."""
    count = cores.shape[0]
    compute, move = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for layer in range(stage.shape[0]):
        s = stage[layer]
        if cores[s] > 0:
            compute[s] += time[layer, cores[s] - 1]
        elif impossible[layer]:
            return -1
        else:
            compute[s] += host[layer]
    seen = np.full(count, -1, np.int64)
    for t in range(source.shape[0]):
        home = stage[source[t]]
        for k in range(indptr[t], indptr[t + 1]):
            s = stage[targets[k]]
            if s != home and seen[s] != t:
                seen[s] = t
                move[s] += tensor[t]
                if seen[home] != t:
                    seen[home] = t
                    move[home] += tensor[t]
    worst = 0
    for s in range(count):
        if cores[s] == 0:
            move[s] = 0
        worst = max(worst, max(compute[s], move[s]) if overlap else compute[s] + move[s])
    return worst
