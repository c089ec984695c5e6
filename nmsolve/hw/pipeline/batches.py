"""How long a pipeline takes for several micro-batches, and how much of that is bubble."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.hw.pipeline.passes import training_passes
from nmsolve.hw.pipeline.to_graph import crossings
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import FloatArray


@dataclass(frozen=True)
class BatchTime:
    """B micro-batches through the whole pipeline.

    Attributes
    ----------
    batches : B
    total : time from the start of the first stage to the end of the last one
    steady : B times the slowest stage
    bubble : ``total - steady``, filling and draining the pipeline
    utilisation : part of all cores' time in which they work
    """

    batches: int
    total: float
    steady: float
    bubble: float
    utilisation: float

    @property
    def share(self) -> float:
        """The bubble's part of the time; ``(K - 1) / (B + K - 1)`` for a chain of K equal stages."""
        return self.bubble / self.total if self.total > 0 else 0.0


def batch_time(
    problem: PipelineProblem, plan: PipelinePlan, load: FloatArray, batches: int
) -> BatchTime | None:
    """Every stage takes one micro-batch after the other, each as soon as the stages before it are done with that one.

    Stage k ends micro-batch b at ``C(k, b) = t(k) + max(C(k, b - 1), max over stages p before k of C(p, b))``, so the whole
    takes the longest, over all stages m, of the longest path of stages through m plus ``(B - 1) t(m)``. For a chain that is the
    sum of all loads plus ``(B - 1)`` times the largest. In training B is that of a step, forward and backward
    (:mod:`.passes`).

    Parameters
    ----------
    load : (K,) time t of every stage for one micro-batch
    batches : B >= 1

    Returns
    -------
    BatchTime, or None where stages wait for each other in a circle (any split), or each have a part of a backward pass, which
    goes the other way: no stage can then take a micro-batch in one piece.
    """
    if problem.training is not None:
        batches = problem.training.batches
        total = training_passes(problem, plan).total
    else:
        edges = _edges(problem, plan)
        order = _order(problem, plan, edges)
        if order is None:
            return None
        before = _longest(order, edges, load)
        after = _longest(order[::-1], {(b, a) for a, b in edges}, load)
        total = float(np.max(before + after - load + (batches - 1) * load))
    steady = batches * float(load.max())
    cores = np.maximum(plan.cores, 0)
    work = batches * float((cores * load).sum())
    most = total * max(problem.cores, int(cores.sum()))
    return BatchTime(batches, total, steady, total - steady, work / most if most > 0 else 0.0)


def start_times(
    problem: PipelineProblem, plan: PipelinePlan, load: FloatArray, batches: int
) -> FloatArray | None:
    """Return (K, B) when every stage begins every micro-batch, by the rule of :func:`batch_time`; None as there."""
    edges = _edges(problem, plan)
    order = _order(problem, plan, edges)
    if order is None:
        return None
    before = _before(edges)
    start = np.zeros((len(load), batches))
    for b in range(batches):
        for k in order:
            free = start[k, b - 1] + load[k] if b else 0.0
            start[k, b] = max((start[p, b] + load[p] for p in before.get(k, ())), default=0.0)
            start[k, b] = max(start[k, b], free)
    return start


def _edges(problem: PipelineProblem, plan: PipelinePlan) -> set[tuple[int, int]]:
    """Return stages that send something, and those they send it to."""
    cross = crossings(problem, plan)
    return set(zip(cross.source.tolist(), cross.target.tolist(), strict=True))


def _order(problem: PipelineProblem, plan: PipelinePlan, edges: set[tuple[int, int]]) -> list[int] | None:
    """Return an order of the stages that every tensor goes along, or None."""
    if problem.backward is not None and problem.backward.any():
        return None
    return _topological(len(plan.cores), edges)


def _before(edges: set[tuple[int, int]]) -> dict[int, list[int]]:
    before: dict[int, list[int]] = {}
    for a, b in edges:
        before.setdefault(b, []).append(a)
    return before


def _topological(k: int, edges: set[tuple[int, int]]) -> list[int] | None:
    """Return stages in an order that every edge goes along, or None."""
    waits = [0] * k
    for _, b in edges:
        waits[b] += 1
    after = _before({(b, a) for a, b in edges})
    ready = [v for v in range(k) if not waits[v]]
    order = []
    while ready:
        v = ready.pop()
        order.append(v)
        for b in after.get(v, ()):
            waits[b] -= 1
            if not waits[b]:
                ready.append(b)
    return order if len(order) == k else None


def _longest(order: list[int], edges: set[tuple[int, int]], load: FloatArray) -> FloatArray:
    """Return (K,) longest path that ends with each stage, its own load included."""
    before = _before(edges)
    out = np.array(load, np.float64)
    for v in order:
        out[v] = load[v] + max((out[a] for a in before.get(v, ())), default=0.0)
    return out
