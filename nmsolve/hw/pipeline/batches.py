"""How long a pipeline takes for several micro-batches, and how much of that is bubble; the timetable as a trace for Perfetto.

In the trace (also for chrome://tracing) every replica of a stage has a row, every micro-batch a span. It counts microseconds, so
times without a unit are taken for some.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nmsolve.hw.pipeline.stages import stage_loads
from nmsolve.hw.pipeline.to_graph import crossings
from nmsolve.model.compiled import kernel
from nmsolve.model.errors import InputError
from nmsolve.model.ordering import topological
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.trace_events import counter, named_rows, span, trace_text
from nmsolve.model.types import FloatArray, IntArray, starts

#: Most micro-batches that are gone through one by one.
MOST_BATCHES = 1_000_000


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
    problem: PipelineProblem,
    plan: PipelinePlan,
    load: FloatArray,
    batches: int,
    replicas: IntArray | None = None,
) -> BatchTime | None:
    """Every stage takes one micro-batch after the other, each as soon as the stages before it are done with that one.

    Stage k ends micro-batch b at ``C(k, b) = t(k) + max(C(k, b - 1), max over stages p before k of C(p, b))``, so the whole
    takes the longest, over all stages m, of the longest path of stages through m plus ``(B - 1) t(m)``. For a chain that is the
    sum of all loads plus ``(B - 1)`` times the largest.

    Parameters
    ----------
    load : (K,) time t of every stage for one micro-batch; of one with replicas, the time of a replica
    batches : B >= 1
    replicas : (K,) of every stage, None: one each. Stage k then waits for its micro-batch b - replicas[k], and all times are
        gone through one by one: B <= ``MOST_BATCHES``

    Returns
    -------
    BatchTime, or None where stages wait for each other in a circle (any split): no stage can then take a micro-batch in one
    piece.
    """
    found = _stages_in_order(problem, plan)
    if found is None:
        return None
    order, before, after = found
    if replicas is not None and replicas.max() > 1:
        if batches > MOST_BATCHES:
            what = f"the time of {batches:,} micro-batches with replicas"
            raise InputError(what, "--batches", f"at most {MOST_BATCHES:,}")
        sources = [before[k] for k in order]
        flat = np.array([p for own in sources for p in own], np.int64)
        total = float(
            last_ends(np.array(order), starts([*map(len, sources)]), flat, load, batches, replicas).max()
        )
    else:
        paths = _longest(order, before, load) + _longest(order[::-1], after, load)
        total = float(np.max(paths - load + (batches - 1) * load))
    per_batch = load if replicas is None else load / replicas
    steady = batches * float(per_batch.max())
    cores = np.maximum(plan.cores, 0)
    work = batches * float((cores * per_batch).sum())
    most = total * max(problem.cores, int(cores.sum()))
    return BatchTime(batches, total, steady, total - steady, work / most if most > 0 else 0.0)


def start_times(
    problem: PipelineProblem,
    plan: PipelinePlan,
    load: FloatArray,
    batches: int,
    replicas: IntArray | None = None,
) -> FloatArray | None:
    """Return (K, B) when every stage begins every micro-batch, by the rule of :func:`batch_time`; None as there."""
    found = _stages_in_order(problem, plan)
    if found is None:
        return None
    order, before, _ = found
    start = np.zeros((len(load), batches))
    many = np.ones(len(load), np.int64) if replicas is None else replicas
    for b in range(batches):
        for k in order:
            free = start[k, b - many[k]] + load[k] if b >= many[k] else 0.0
            start[k, b] = max((start[p, b] + load[p] for p in before[k]), default=0.0)
            start[k, b] = max(start[k, b], free)
    return start


@kernel
def last_ends(
    order: IntArray, indptr: IntArray, source: IntArray, load: FloatArray, batches: int, replicas: IntArray
) -> FloatArray:
    """(K,) ends of the last of ``batches`` micro-batches; ``order`` (K,) with the stages before each one as CSR."""
    stages = order.shape[0]
    free, end, last = np.zeros((stages, replicas.max())), np.zeros(stages), np.zeros(stages)
    for b in range(batches):
        for x in range(stages):
            k = order[x]
            turn = b % replicas[k]
            at = free[k, turn]
            for e in range(indptr[x], indptr[x + 1]):
                at = max(at, end[source[e]])
            end[k] = at + load[k]
            free[k, turn] = end[k]
            last[k] = max(last[k], end[k])
    return last


def _stages_in_order(
    problem: PipelineProblem, plan: PipelinePlan
) -> tuple[list[int], list[list[int]], list[list[int]]] | None:
    """Return stages in an order that every tensor goes along, and those before and after each; None if there is no such order."""
    cross, stages = crossings(problem, plan), range(len(plan.cores))
    before: list[list[int]] = [[] for _ in stages]
    after: list[list[int]] = [[] for _ in stages]
    for a, b in sorted(set(zip(cross.source.tolist(), cross.target.tolist(), strict=True))):
        before[b].append(a)
        after[a].append(b)
    order = topological(before)
    return None if len(order) < len(stages) else (order, before, after)


def _longest(order: list[int], before: list[list[int]], load: FloatArray) -> FloatArray:
    """Return (K,) longest path that ends with each stage, its own load included."""
    out = np.array(load, np.float64)
    for v in order:
        out[v] = load[v] + max((out[a] for a in before[v]), default=0.0)
    return out


#: Most spans of a trace; micro-batches beyond are left out, which the file says.
MOST_SPANS = 200_000
#: Microseconds of a unit of time.
MICROSECONDS = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
#: Numbers of the groups of rows.
STAGES, BUSY = 1, 2


def pipeline_trace(problem: PipelineProblem, plan: PipelinePlan, batches: int, unit: str = "") -> str | None:
    """Return the trace of ``batches`` micro-batches; a counter says how many stages work.

    Returns
    -------
    the file's text; None where stages wait for each other in a circle, so that there is no timetable
    """
    loads, scale = stage_loads(problem, plan), MICROSECONDS.get(unit, 1.0)
    replicas = np.maximum(loads.replicas, 1)
    shown = max(1, min(batches, MOST_SPANS // len(plan.cores)))
    own = loads.load * replicas
    start = start_times(problem, plan, own, shown, replicas)
    if start is None:
        return None
    first = np.concatenate([[0], np.cumsum(replicas)])
    rows = [
        f"stage {k}" + (f", replica {r}" if many > 1 else "")
        for k, many in enumerate(replicas.tolist())
        for r in range(many)
    ]
    events = named_rows([(STAGES, "stages", rows), (BUSY, "stages at work", ())])
    work: list[tuple[float, int]] = []
    for k, many in enumerate(replicas.tolist()):
        layers, cores = int((plan.stage == k).sum()), int(plan.cores[k])
        for b, at in enumerate(start[k].tolist()):
            when = at * scale, (at + float(own[k])) * scale
            args = {"micro-batch": b, "layers": layers, "cores": cores}
            events.append(span(f"{b}", "forward", (STAGES, int(first[k]) + b % many), when, args))
            work += [(when[0], 1), (when[1], -1)]
    events += _at_work(work)
    about = {
        "name": problem.name,
        "unit": unit or None,
        "micro-batches": batches,
        "shown": shown,
        "stages": len(plan.cores),
    }
    return trace_text(about, events)


def _at_work(changes: list[tuple[float, int]]) -> Iterator[dict[str, Any]]:
    """Yield the counter of what works at the same time, once for every moment at which it changes."""
    changes.sort()
    busy = 0
    for i, (at, more) in enumerate(changes):
        busy += more
        if i + 1 == len(changes) or changes[i + 1][0] > at:
            yield counter("at work", BUSY, at, {"stages": busy})
