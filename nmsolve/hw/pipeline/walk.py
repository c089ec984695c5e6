"""The loads of a plan recomputed in plain Python from the definition in :mod:`nmsolve.hw.pipeline.stages`, without its code."""

from __future__ import annotations

import math

from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem


def walked_loads(problem: PipelineProblem, plan: PipelinePlan) -> list[float]:
    """Return the load of every stage, layer by layer and tensor by tensor."""
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
    sums = [(math.fsum(a), math.fsum(b)) for a, b in zip(compute, move, strict=True)]
    return [max(a, b) if problem.overlap else a + b for a, b in sums]
