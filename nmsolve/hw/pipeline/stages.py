"""The value of a pipeline plan: the load of every stage, recomputed from the plan alone.

A group of c cores takes ``compute`` = the sum of its layers' times on c cores, and ``transfer`` = the time of every tensor that
comes in from another stage plus that of every tensor that goes out to one, each tensor once. Its load is the sum of both, or
with ``overlap`` the larger. A host's load is the sum of its layers' host times. The objective is the largest load, or the time
of a batch of B micro-batches through all stages, one after the other: the sum of all loads plus B - 1 times the largest; or the
energy of a micro-batch (:func:`energy_parts`). Where stages may have replicas, which take micro-batches in turns, each has the
number with which its load is least.

A stage needs its layers' storage and, of a problem with buffers, the most bytes that are live while it runs. Where off-chip
memory takes what the cores cannot hold, moving it takes time, which counts as transfer does (with ``overlap`` apart from it).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from nmsolve.model.compiled import embedded, kernel
from nmsolve.model.pipeline.buffers import MADE
from nmsolve.model.pipeline.energy import Energy, EnergyParts
from nmsolve.model.pipeline.objectives import LIMITS, PERIOD, minimised, used
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class StageLoads:
    """Figures per stage, (K,) each, in the problem's units.

    Attributes
    ----------
    cores : of the group; 0: a host
    compute : time of the layers (inf: a layer cannot run on this host)
    transfer_in, transfer_out : time of tensors from and to other stages; 0 for hosts
    volume_in, volume_out : their volume; for hosts too
    storage : what the stage needs of memory, on all of its cores together: that of its layers, and ``live``
    resident : the part of ``storage`` that lies on the cores, all of it unless there is off-chip memory
    live : most bytes live at once
    streamed, offchip : bytes moved from and to off-chip memory in every run, and the time of that
    replicas, group : groups of a stage that take micro-batches in turns, and the cores of each (0: a host). Times are per
        micro-batch, so those of a group by their number; storage and live bytes are those of all
    load : see the module
    """

    cores: IntArray
    compute: FloatArray
    transfer_in: FloatArray
    transfer_out: FloatArray
    volume_in: FloatArray
    volume_out: FloatArray
    storage: FloatArray
    resident: FloatArray
    live: IntArray
    streamed: IntArray
    offchip: FloatArray
    replicas: IntArray
    group: IntArray
    load: FloatArray


def stage_loads(problem: PipelineProblem, plan: PipelinePlan) -> StageLoads:
    """The figures of every stage. The plan must have stages ``0..K - 1`` and group sizes up to C; else it may break any rule."""
    ticks, tensors, count = problem.ticks, problem.tensors, len(plan.cores)
    host = plan.cores == 0
    on_host = host[plan.stage]
    stuck = np.bincount(plan.stage, on_host & ticks.impossible, count) > 0
    (tensor_out, stage_out), (tensor_in, stage_in) = _crossings(problem, plan)
    move_in = np.where(host, 0, _sums(stage_in, ticks.tensor[tensor_in], count))
    move_out = np.where(host, 0, _sums(stage_out, ticks.tensor[tensor_out], count))
    held, live = _float_sums(plan.stage, problem.storage, count), live_of(problem, plan)
    many = _best_replicas(problem, plan, move_in + move_out, live)
    group = np.minimum(plan.cores // many, problem.time.shape[1])
    side = problem.sides[np.clip(group, 1, problem.largest_group) - 1]
    move = -(-(move_in + move_out) // side)
    per_layer = ticks.time[np.arange(problem.count), np.maximum(group, 1)[plan.stage] - 1]
    compute = _sums(plan.stage, np.where(on_host, ticks.host, per_layer), count)
    streamed = np.zeros(count, np.int64)
    offchip = np.zeros(count, np.int64)
    if problem.streams:
        turns = moves_of(problem, plan)
        for s, c in enumerate(group.tolist()):
            streamed[s] = streamed_bytes(int(held[s]), int(live[s]), c * int(problem.memory or 0))
            offchip[s] = stream_ticks(streamed[s], ticks.offchip * float(turns[s]), c)
    load = np.maximum(np.maximum(compute, move), offchip) if problem.overlap else compute + move + offchip
    load = -(-load // many)

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
        offchip=seconds(offchip),
        replicas=many,
        group=group,
        load=np.where(stuck, np.inf, np.ldexp(load.astype(float), -ticks.exponent)),
    )


def _best_replicas(problem: PipelineProblem, plan: PipelinePlan, move: IntArray, live: IntArray) -> IntArray:
    """(K,) replicas of every stage that fit and make its load least, the fewest of those; 1 if none fit.

    ``move``, ``live`` (K,) : ticks of transfer over one core, and most bytes live in it.
    """
    out, ticks, largest = np.ones(len(plan.cores), np.int64), problem.ticks, problem.largest_group
    if problem.replicas == 1:
        return out
    turns = moves_of(problem, plan)
    for s, c in enumerate(plan.cores.tolist()):
        inner = plan.stage == s
        many = np.arange(1, min(problem.replicas, c) + 1)
        group = np.minimum(c // many, largest)
        own, held = ticks.time[inner].sum(axis=0)[group - 1], math.fsum(problem.storage[inner])
        off: IntArray = np.zeros(len(many), np.int64)
        if problem.streams:
            off_bytes = [
                streamed_bytes(int(held), int(live[s]), g * int(problem.memory or 0)) for g in group.tolist()
            ]
            each = zip(off_bytes, group.tolist(), strict=True)
            off = np.array([stream_ticks(m, ticks.offchip * float(turns[s]), g) for m, g in each], np.int64)
        moved = -(-move[s] // problem.sides[group - 1])
        load = np.maximum(np.maximum(own, moved), off) if problem.overlap else own + moved + off
        load = -(-load // many)
        if problem.memory is not None and not problem.streams:
            load[(held + live[s] > group * problem.memory) & (many > 1)] = np.iinfo(np.int64).max
        out[s] = many[load.argmin()]
    return out


def live_of(problem: PipelineProblem, plan: PipelinePlan) -> IntArray:
    """(K,) most bytes that are live at once in every stage; 0 of a problem without buffers."""
    count = len(plan.cores)
    if problem.buffers is None:
        return np.zeros(count, np.int64)
    most: IntArray = live_peaks(plan.stage, count, *problem.buffers.arrays)
    return most


def moves_of(problem: PipelineProblem, plan: PipelinePlan) -> IntArray:
    """(K,) how often every stage moves in one run what it moves off chip: once, and once in every trip of its loops."""
    out = np.ones(len(plan.cores), np.int64)
    if problem.turns is not None:
        np.add.at(out, plan.stage, problem.turns)
    return out


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
    plain = replace(problem, rounds=None, energy=None)
    values = {minimised(problem): objective(problem, plan), PERIOD: objective(plain, plan)}
    return values | {name: float(used(problem, plan, name)) for name in LIMITS}


def objective(problem: PipelineProblem, plan: PipelinePlan) -> float:
    """The largest load of a stage, the time of a batch or the energy; inf if a layer is on a host that cannot run it."""
    if problem.energy is not None:
        return energy_parts(problem, plan, problem.energy).total
    if problem.rounds is not None:
        load = stage_loads(problem, plan).load
        return math.fsum(load) + (problem.rounds - 1) * float(load.max())
    if problem.streams or problem.replicas > 1 or problem.border:
        return float(stage_loads(problem, plan).load.max())
    ticks, tensors = problem.ticks, problem.tensors
    return ticks.seconds(
        int(
            largest_load(
                plan.stage, plan.cores, ticks.time, ticks.host, ticks.impossible,
                tensors.source, tensors.indptr, tensors.targets, ticks.tensor, problem.overlap,
            )
        )
    )  # fmt: skip


def energy_parts(problem: PipelineProblem, plan: PipelinePlan, energy: Energy) -> EnergyParts:
    """The energy of a micro-batch in the steady state, by parts; all cores of the machine have power for one period."""
    loads = stage_loads(problem, plan)
    own = np.maximum(loads.group, 1)[plan.stage] - 1
    return EnergyParts(
        math.fsum(energy.layer),
        energy.byte * math.fsum(loads.volume_in),
        energy.byte * math.fsum(energy.exchanged[np.arange(problem.count), own]),
        energy.offchip * float((loads.streamed * moves_of(problem, plan)).sum()),
        energy.power * float(loads.load.max()),
    )


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
