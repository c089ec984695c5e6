"""The rules of a plan checked in plain Python, as they are stated; no engine uses this."""

from __future__ import annotations

import math

from nmsolve.model.pipeline.buffers import MADE
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem


def plan_complaint(problem: PipelineProblem, plan: PipelinePlan) -> str | None:
    """Return the first rule that the plan breaks, with the names and numbers, or None."""
    if plan.stage.shape != (problem.count,) or plan.cores.ndim != 1:
        return f"stages of shape {plan.stage.shape} for {problem.count} layers"
    stage, cores = [int(s) for s in plan.stage], [int(c) for c in plan.cores]
    for rule in (_numbers, _groups, _memory, _together, _split):
        complaint = rule(problem, stage, cores)
        if complaint is not None:
            return complaint
    return None


def _numbers(problem: PipelineProblem, stage: list[int], cores: list[int]) -> str | None:
    """Stages are ``0..K - 1``, each holds a layer, and there are as many as asked."""
    for layer, s in enumerate(stage):
        if not 0 <= s < len(cores):
            return f"layer {problem.labels[layer]!r} is in stage {s} of {len(cores)}"
    empty = sorted(set(range(len(cores))) - set(stage))
    if empty:
        return f"stage {empty[0]} holds no layer"
    if len(cores) > problem.stages or (problem.exact_stages and len(cores) != problem.stages):
        return f"{len(cores)} stages, not {'' if problem.exact_stages else 'at most '}{problem.stages}"
    return None


def _groups(problem: PipelineProblem, stage: list[int], cores: list[int]) -> str | None:
    """Stages have 1 to C cores, up to R C with R replicas, and N together; the others are hosts that can run all they hold."""
    for s, c in enumerate(cores):
        if not 0 <= c <= problem.largest_stage:
            what = "group" if problem.groups.replicas == 1 else "stage"
            return f"stage {s} has {c} cores, a {what} has 1 to {problem.largest_stage}"
    if sum(cores) > problem.cores or (problem.use_all and sum(cores) != problem.cores):
        return f"{sum(cores)} cores in use, not {'' if problem.use_all else 'at most '}{problem.cores}"
    if cores.count(0) > problem.hosts:
        return f"{cores.count(0)} stages without cores, but {problem.hosts} hosts"
    for layer, s in enumerate(stage):
        on_host = cores[s] == 0
        if on_host and (problem.host_time is None or not math.isfinite(problem.host_time[layer])):
            return f"layer {problem.labels[layer]!r} cannot run on a host, stage {s}"
    return None


def _memory(problem: PipelineProblem, stage: list[int], cores: list[int]) -> str | None:
    """The layers of a group share its cores' memory evenly; no rule where off-chip memory takes the rest.

    Replicas need more, but how many there are is not decided before all is known to fit once.
    """
    if problem.memory is None or problem.streams:
        return None
    for s, (c, needed) in enumerate(zip(cores, memory_needs(problem, stage, len(cores)), strict=True)):
        c = min(c, problem.largest_group)
        if c and needed > c * problem.memory:
            return f"stage {s} needs {needed / c:,.6g} of memory per core, the limit is {problem.memory:,.6g}"
    return None


def memory_needs(problem: PipelineProblem, stage: list[int], count: int) -> list[float]:
    """Return what each of ``count`` stages needs of memory: the storage of its layers, and the most bytes live at once."""
    held: list[list[float]] = [[] for _ in range(count)]
    for layer, s in enumerate(stage):
        held[s].append(float(problem.storage[layer]))
    live = live_needs(problem, stage, count)
    return [math.fsum(own) + most for own, most in zip(held, live, strict=True)]


def live_needs(problem: PipelineProblem, stage: list[int], count: int) -> list[int]:
    """Return the most bytes live at once in each of ``count`` stages: at each layer in turn, everything that lives there."""
    if problem.buffers is None:
        return [0] * count
    size, indptr, at, made = (array.tolist() for array in problem.buffers.arrays)
    layers: list[list[int]] = [[] for _ in range(count)]
    for layer, s in enumerate(stage):
        layers[s].append(layer)
    lives: list[list[tuple[int, int, int]]] = [[] for _ in range(count)]
    last = [own[-1] if own else -1 for own in layers]
    for b, bytes_ in enumerate(size):
        begin, end = indptr[b], indptr[b + 1]
        only = {stage[layer] if layer < problem.count else -1 for layer in at[begin:end]}
        if len(only) == 1:  # all in one stage: it is sent nowhere
            (s,) = only
            if s >= 0:
                first = at[begin] if made[begin] == MADE else layers[s][0]
                lives[s].append((first, at[end - 1], bytes_))
            continue
        events = list(zip(at[begin:end], made[begin:end], strict=True))
        where = [stage[layer] if layer < problem.count else -1 for layer, _ in events]
        for s in set(where) - {-1}:
            own = [k for k, w in enumerate(where) if w == s]
            first = events[0][0] if where[0] == s and events[0][1] == MADE else layers[s][0]
            writes = [k for k in own if events[k][1]]
            sent = bool(writes) and any(w != s for w in where[writes[0] :])
            lives[s].append((first, last[s] if sent else events[own[-1]][0], bytes_))
    return [_most_at_once(found) for found in lives]


def _most_at_once(lives: list[tuple[int, int, int]]) -> int:
    """Return the largest sum of the third figures of all (first, last, bytes) that have a layer in common: interval sweep."""
    turns = sorted([(first, 1, b) for first, _, b in lives] + [(last + 1, 0, -b) for _, last, b in lives])
    now = most = 0
    for _, _, change in turns:  # at one layer, what has ended goes first
        now += change
        most = max(most, now)
    return most


def _together(problem: PipelineProblem, stage: list[int], cores: list[int]) -> str | None:
    """Layers with one number >= 0 share a stage."""
    first: dict[int, int] = {}
    for layer, number in enumerate([] if problem.together is None else problem.together.tolist()):
        if number >= 0 and stage[first.setdefault(number, layer)] != stage[layer]:
            a, b = problem.labels[first[number]], problem.labels[layer]
            return f"layers {a!r} and {b!r} must share a stage"
    return None


def _split(problem: PipelineProblem, stage: list[int], cores: list[int]) -> str | None:
    """Stages are runs of layers in their order (chain), or data pass from lower to higher stages only (contiguous)."""
    if problem.split == "chain":
        for layer in range(1, problem.count):
            if stage[layer] < stage[layer - 1]:
                return f"stage {stage[layer]} continues with {problem.labels[layer]!r} after stage {stage[layer - 1]}"
    if problem.split != "contiguous":
        return None
    source, target = problem.tensors.pairs
    for u, v in zip(source.tolist(), target.tolist(), strict=True):
        if stage[u] > stage[v]:
            return f"data of {problem.labels[u]!r} pass from stage {stage[u]} to stage {stage[v]}"
    return None
