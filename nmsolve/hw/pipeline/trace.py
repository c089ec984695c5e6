"""A pipeline's timetable as a trace for Perfetto and chrome://tracing: a row per replica of a stage, a span per micro-batch.

Times are those of :mod:`.batches`; a trace counts microseconds, so times without a unit are taken for some.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from nmsolve.hw.pipeline.batches import start_times
from nmsolve.hw.pipeline.stages import stage_loads
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.trace_events import counter, named_rows, span, trace_text

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
