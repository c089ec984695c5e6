"""What method M5's policy sees: the last two borders of the stages, and how full stages there would be beside a target.

An episode goes along the chain from left to right (:mod:`.walk`). Stage A is the last one that is cut off, stage B holds the
layers after it, but for the very last layer, which lies on all cores that are left. Loads are parts of the target, the load that
no stage should exceed. How far a stage reaches is the most layers that keep the target; its *use* is the work of those layers on
one core, over what its cores could do in that time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.pipeline.intervals import Intervals, run_load
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import FloatArray, IntArray

#: Numbers that describe one stage, and that the policy sees: those of A and of B, and whether A and B touch.
PER_STAGE = 14
FEATURES = 2 * PER_STAGE + 1
#: Places among the numbers of a stage: its use with as many cores as now, the best one with more, and whether it has more layers
#: (1) or fewer (-1) than it can hold.
USE, LATER_USE, BEYOND = 6, 10, 13
#: No number is larger.
MOST = 4.0
#: Use of a stage that holds all layers that are left.
WHOLE = 2.0


class Reach(NamedTuple):
    """For a ``target`` in ticks: ``last[c, i]``, where layers ``order[i:last]`` end that keep it on c cores (i: none do); of the
    stages from i on the one of the best use: ``size`` cores, ``use``. Shapes (N + 1, L + 1), (L + 1,), (L + 1,)."""

    target: float
    last: IntArray
    size: IntArray
    use: FloatArray


class View(NamedTuple):
    """Where stage A ends and B ends (core ``a``, -1: no A; core ``b``), the first layer of both, their numbers of cores, and the
    cores from B's first on."""

    a: int
    b: int
    first_a: int
    first_b: int
    cores_a: int
    cores_b: int
    left: int


@kernel
def reach_of(runs: Intervals, cores: int, target: float) -> Reach:
    """Return how far stages reach. O(N L)."""
    count, groups = len(runs.order), runs.time.shape[0]
    last, use, size = (
        np.zeros((cores + 1, count + 1), np.int64),
        np.zeros(count + 1),
        np.ones(count + 1, np.int64),
    )
    for first in range(count + 1):
        top = first
        last[0, first] = first
        for c in range(1, cores + 1):
            used = min(c, groups)
            time, room = runs.time[used - 1], used * runs.memory
            while (
                top < count
                and time[top + 1] - time[first] <= target
                and runs.storage[top + 1] - runs.storage[first] <= room
            ):
                top += 1
            end = top
            while end > first and run_load(runs, first, end, used) > target:  # tensors may end further on
                end -= 1
            last[c, first] = end
            part = _use(runs, first, end, c, target)
            if part > use[first]:
                use[first], size[first] = part, c
    return Reach(target, last, size, use)


@plain
def _use(runs: Intervals, first: int, last: int, cores: int, target: float) -> float:
    return float((runs.time[0, last] - runs.time[0, first]) / (cores * target))


@plain
def view_of(state: IntArray) -> View:
    """Return the view of a state; ``b`` is -1 once the last group of cores has taken all layers that were left.

    Once the core before the last one has handed layers to the last one, these two are A and B.
    """
    cores, ends, at = len(state), np.int64(0), len(state) - 2
    a, b, before = -1, -1, -1
    while at >= 0 and ends < 3:
        if state[at] > 0:
            if ends == 0:
                b = at
            elif ends == 1:
                a = at
            else:
                before = at
            ends += 1
        at -= 1
    rest = state[cores - 1]
    if b == cores - 2 and rest > 1:
        before, a, b = a, b, cores - 1
        layers = rest
    elif rest > 1:
        a, b, layers = b, -1, rest
    else:
        layers = rest + (state[b] if b >= 0 else 0)
    total = np.int64(0)
    for core in range(cores):
        total += state[core]
    first_b = total - layers
    first_a = first_b - (state[a] if a >= 0 else 0)
    return View(a, b, first_a, first_b, a - before, b - a, cores - 1 - a)


@plain
def pressure(runs: Intervals, first: int, last: int, cores: int, target: float) -> float:
    """Load of a stage in parts of the target; storage in parts of its cores' memory if that is more. At most :data:`MOST`."""
    used = min(cores, runs.time.shape[0])
    part = run_load(runs, first, last, used) / target
    if runs.memory < np.inf:
        part = max(part, (runs.storage[last] - runs.storage[first]) / max(used * runs.memory, 1e-300))
    return float(min(part, MOST))


@plain
def _describe(
    runs: Intervals, reach: Reach, first: int, last: int, cores: int, left: int, out: FloatArray, at: int
) -> None:
    """Write what is seen of a stage from layer ``first`` to ``last`` on ``cores`` cores, ``left`` with those after it."""
    count, target = len(runs.order), reach.target
    out[at] = pressure(runs, first, last, cores, target)
    out[at + 1] = pressure(runs, first, min(last + 1, count), cores, target)
    out[at + 2] = pressure(runs, first, count, left, target)
    out[at + 3] = min(_use(runs, first, count, max(left, 1), target), MOST)
    out[at + 4] = cores / left
    out[at + 5] = np.log2(left) / 6
    best, later, two = 0.0, cores, 0.0
    for c in range(cores, left + 1):
        end = reach.last[c, first]
        if end == count:
            use = pair = WHOLE
        else:
            use = _use(runs, first, end, c, target)
            pair = (c * use + reach.size[end] * reach.use[end]) / (c + reach.size[end])
            if end == first:
                pair = 0.0
        if c == cores:
            out[at + 6], out[at + 7] = use, pair
            out[at + 8] = min(_use(runs, end, count, max(left - c, 1), target), MOST)
        else:
            if c == cores + 1:
                out[at + 9] = use
            two = max(two, pair)
            if use > best:
                best, later = use, c
    out[at + 10] = best
    out[at + 11] = (later - cores) / left
    out[at + 12] = two
    out[at + 13] = max(-1.0, min(1.0, float(last - reach.last[cores, first])))


@plain
def look(runs: Intervals, reach: Reach, view: View, out: FloatArray) -> None:
    """Write the (F,) numbers that the policy sees; those of A are 0 where it cannot exchange layers with B."""
    count, touch = len(runs.order), view.a >= 0 and view.cores_b == 1
    for k in range(len(out)):
        out[k] = 0.0
    out[2 * PER_STAGE] = 1.0 if touch else 0.0
    if touch:
        _describe(runs, reach, view.first_a, view.first_b, view.cores_a, view.cores_a + view.left, out, 0)
    _describe(
        runs,
        reach,
        view.first_b,
        count - (1 if view.left > 1 else 0),
        view.cores_b,
        view.left,
        out,
        PER_STAGE,
    )
