"""What training knows and the policy does not: how few cores the rest of a chain needs, by dynamic programming."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.pipeline.actions import LAST_TO_LATER, MERGE_LATER
from nmsolve.heuristics.pipeline.intervals import Intervals
from nmsolve.learn.pipeline.policy import BACK, CHOICES, ON
from nmsolve.learn.pipeline.window import Reach, pressure
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import BoolArray, FloatArray, IntArray


@kernel
def needs_of(reach: Reach) -> FloatArray:
    """Return (L + 1,) the fewest cores that the layers from i on need; inf where no number is enough."""
    cores, count = reach.last.shape[0] - 1, reach.last.shape[1] - 1
    need = np.full(count + 1, np.inf)
    need[count] = 0.0
    for first in range(count - 1, -1, -1):
        for c in range(1, cores + 1):
            need[first] = min(need[first], _with(reach, need, first, c))
    return need


@plain
def _with(reach: Reach, need: FloatArray, first: int, cores: int) -> float:
    """Cores that are needed if a stage on ``cores`` of them holds all that it can: its own, and those of the layers after it."""
    end = reach.last[cores, first]
    return float(cores + need[end]) if end > first else np.inf


@kernel
def lessons(reach: Reach, need: FloatArray, views: IntArray) -> tuple[BoolArray, FloatArray]:
    """Return (T, C) the choices after which the fewest cores still suffice (none where no number does), and (T,) that number.

    It counts from stage A on where A and B touch, else from B on, as :func:`costs_of` does.
    """
    out, least = np.zeros((len(views), CHOICES), np.bool_), np.zeros(len(views))
    for t in range(len(views)):
        a, _, first_a, first_b, cores_a, cores_b, left = views[t]
        stop, grow = _with(reach, need, first_b, cores_b), np.inf
        for c in range(cores_b + 1, left + 1):
            grow = min(grow, _with(reach, need, first_b, c))
        least[t] = min(stop, grow)
        if a >= 0 and cores_b == 1:
            end = reach.last[cores_a, first_a]
            least[t] = _with(reach, need, first_a, cores_a)
            if end != first_b:
                out[t, ON if first_b > end else BACK] = True
                continue
        if min(stop, grow) < np.inf:
            out[t, LAST_TO_LATER], out[t, MERGE_LATER] = stop <= grow, grow <= stop
    return out, least


@kernel
def costs_of(runs: Intervals, reach: Reach, state: IntArray, views: IntArray) -> FloatArray:
    """Return (T,) the cores that stages of ``state`` need to keep the target: those from the layer on with which A or B began.

    A stage that no number of cores is enough for counts its own, as many times as its load exceeds the target.
    """
    count, top = len(runs.order), reach.last.shape[0] - 1
    price, first, begin = np.zeros(count + 1), 0, 0
    for core in range(len(state)):
        if state[core] == 0:
            continue
        end, cores = first + state[core], core + 1 - begin
        cost = cores * max(1.0, pressure(runs, first, end, cores, reach.target))
        for c in range(1, top + 1):
            if reach.last[c, first] >= end:
                cost = min(cost, float(c)) if c <= cores else max(cost, float(c))
                break
        price[end - 1] = cost
        first, begin = end, core + 1
    total = 0.0
    for i in range(count - 1, -1, -1):
        total += price[i]
        price[i] = total
    out = np.zeros(len(views))
    for t in range(len(views)):
        out[t] = price[views[t, 2] if views[t, 0] >= 0 and views[t, 5] == 1 else views[t, 3]]
    return out
