"""The loads of a plan recomputed in plain Python from the definition in :mod:`nmsolve.hw.pipeline.stages`, without its code."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from nmsolve.model.pipeline.check import live_needs, memory_needs
from nmsolve.model.pipeline.goals import Batch, Energy
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem


def reevaluated_loads(problem: PipelineProblem, plan: PipelinePlan) -> list[float]:
    """Return the load of every stage: of its best number of replicas that fit, a group's time by their number."""
    if problem.groups.replicas == 1:
        return group_loads(problem, plan)
    needs = memory_needs(problem, plan.stage.tolist(), len(plan.cores))
    best = [math.inf] * len(needs)
    for many in range(1, min(problem.groups.replicas, int(plan.cores.max())) + 1):
        groups = [min(c // many, problem.largest_group) for c in plan.cores.tolist()]
        loads = group_loads(problem, PipelinePlan(plan.stage, np.maximum(groups, 1)))
        for s, (need, c, load) in enumerate(zip(needs, groups, loads, strict=True)):
            if c and (many == 1 or problem.memory is None or problem.streams or need <= c * problem.memory):
                best[s] = min(best[s], load / many)
    return best


def group_loads(problem: PipelineProblem, plan: PipelinePlan) -> list[float]:
    """Return the load of every stage of one group, layer by layer and tensor by tensor."""
    stage, cores = plan.stage.tolist(), plan.cores.tolist()
    compute: list[list[float]] = [[] for _ in cores]
    move: list[list[float]] = [[] for _ in cores]
    for layer, s in enumerate(stage):
        if cores[s]:
            compute[s].append(float(problem.time[layer, cores[s] - 1]))
        else:
            compute[s].append(math.inf if problem.host_time is None else float(problem.host_time[layer]))
    tensors = problem.tensors
    for t in range(tensors.count):
        users = tensors.targets[tensors.indptr[t] : tensors.indptr[t + 1]].tolist()
        home = stage[int(tensors.source[t])]
        away = {stage[u] for u in users} - {home}
        for s in away | ({home} if away else set()):
            if cores[s]:
                move[s].append(float(tensors.time[t]))
    off = reevaluated_offchip(problem, plan)
    side = [math.isqrt(max(1, c)) if problem.groups.border else 1 for c in cores]
    sums = [(math.fsum(a), math.fsum(b) / w, c) for a, b, w, c in zip(compute, move, side, off, strict=True)]
    return [max(parts) if problem.overlap else sum(parts) for parts in sums]


def reevaluated_value(problem: PipelineProblem, plan: PipelinePlan) -> float:
    """Return the objective: the largest load, when the last of a goal's micro-batches leaves the last stage, or the energy of
    one."""
    if isinstance(problem.goal, Energy):
        return math.fsum(reevaluated_energy(problem, plan, problem.goal))
    loads = reevaluated_loads(problem, plan)
    if not isinstance(problem.goal, Batch):
        return max(loads)
    worst = loads.index(max(loads))  # the others are passed once
    return math.fsum(loads[:worst]) + problem.goal.rounds * loads[worst] + math.fsum(loads[worst + 1 :])


def held_value(problem: PipelineProblem, plan: PipelinePlan) -> tuple[str, float, float] | None:
    """Return name and value of the goal that is held, and what it is held at; None if none is."""
    if problem.goal.held is None:
        return None
    goal, most = problem.goal.held
    return goal.name, reevaluated_value(replace(problem, goal=goal), plan), most


def reevaluated_energy(
    problem: PipelineProblem, plan: PipelinePlan, energy: Energy, one: PipelinePlan | None = None
) -> list[float]:
    """Return the energy of a micro-batch: for operations, transfer, exchange, off-chip memory and standing by.

    ``one`` : the plan of one replica of every stage, ``plan`` if there are no more.
    """
    one = one or plan
    stage, cores, tensors = plan.stage.tolist(), one.cores.tolist(), problem.tensors
    taken_in = []
    for t in range(tensors.count):
        home = stage[int(tensors.source[t])]
        away = {stage[u] for u in tensors.targets[tensors.indptr[t] : tensors.indptr[t + 1]].tolist()}
        taken_in.append(len(away - {home}) * float(tensors.volume[t]))
    exchanged = [float(energy.exchanged[layer, max(0, cores[s] - 1)]) for layer, s in enumerate(stage)]
    moved = sum(
        n * times for n, times in zip(reevaluated_stream(problem, one), _moves(problem, one), strict=True)
    )
    return [
        math.fsum(energy.layer.tolist()), math.fsum(taken_in) * energy.byte, math.fsum(exchanged) * energy.byte,
        moved * energy.offchip, max(reevaluated_loads(problem, plan)) * energy.power,
    ]  # fmt: skip


def reevaluated_offchip(problem: PipelineProblem, plan: PipelinePlan) -> list[float]:
    """Return the time of off-chip memory of every stage."""
    moved = zip(reevaluated_stream(problem, plan), _moves(problem, plan), plan.cores.tolist(), strict=True)
    byte = 0.0 if problem.offchip is None else problem.offchip.byte
    return [n * times * byte / max(1, c) for n, times, c in moved]


def _moves(problem: PipelineProblem, plan: PipelinePlan) -> list[int]:
    """Return how often every stage moves what does not fit: once, and again in every trip of its loops."""
    out = [1] * len(plan.cores)
    for s, trips in zip(plan.stage.tolist(), problem.trips.tolist(), strict=True):
        out[s] += trips
    return out


def reevaluated_stream(problem: PipelineProblem, plan: PipelinePlan) -> list[int]:
    """Return the bytes that every stage moves from and to off-chip memory in every run."""
    stage, cores = plan.stage.tolist(), plan.cores.tolist()
    out = [0] * len(cores)
    if problem.memory is None or not problem.streams:
        return out
    for s, live in enumerate(live_needs(problem, stage, len(cores))):
        weights = sum(int(w) for w, at in zip(problem.storage.tolist(), stage, strict=True) if at == s)
        room = cores[s] * int(problem.memory)
        resident = max(0, min(live, room))  # weights stay only in what live bytes leave free
        out[s] = weights - min(weights, room - resident) + 2 * (live - resident)
    return out
