"""The state and the actions of method M5 (M5.3, M5.4), compiled.

The state ``arranged_core`` is an (N,) array: entry i says how many layers core i ends with; zeros before a non-zero entry are
cores of its group. The entries add up to L and the last one is not zero, so that every core belongs to a group.
"""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.pipeline.intervals import Intervals, run_load
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import FloatArray, IntArray

#: The four kinds: merge onto the later core, merge onto the earlier, last layer to the later, first layer to the earlier.
MERGE_LATER, MERGE_EARLIER, LAST_TO_LATER, FIRST_TO_EARLIER = range(4)


@plain
def act(state: IntArray, action: int, stages: int, most: int, inside: bool) -> int:
    """Take an action in place; the number of stages after it, or -1 if it does not apply and nothing has changed.

    Action ``kind * (N - 1) + i`` is of that kind between cores i and i + 1. ``stages`` is the number of stages before, ``most``
    how many there may be. Two cores of one group have nothing to pass to each other, as the method says; with ``inside`` the
    later one, if it holds the layers, may hand the first of them to the earlier, which splits the group. Without that a first
    group never becomes smaller.
    """
    pairs = len(state) - 1
    kind, i = action // pairs, action % pairs
    early, late = state[i], state[i + 1]
    final = i + 1 == pairs
    if kind == MERGE_LATER:
        if early == 0:
            return -1
        state[i], state[i + 1] = 0, early + late
        return stages - 1 if late > 0 else stages
    if kind == MERGE_EARLIER:
        if early == 0 or late == 0 or final:
            return -1
        state[i], state[i + 1] = early + late, 0
        return stages - 1
    if kind == LAST_TO_LATER:
        after = stages - (early == 1) + (late == 0)
        if early == 0 or after > most:
            return -1
        state[i], state[i + 1] = early - 1, late + 1
        return int(after)
    after = stages + (early == 0) - (late == 1)
    if late == 0 or (late == 1 and final) or (early == 0 and not inside) or after > most:
        return -1
    state[i], state[i + 1] = early + 1, late - 1
    return int(after)


@kernel
def worst(runs: Intervals, state: IntArray) -> FloatArray:
    """(5,) the largest load, compute time, storage per core and transfer time of any stage, and the 16-norm of the loads.

    Groups of more than C cores use C of them. The norm tells states with one largest load apart.
    """
    out = np.zeros(5)
    groups = runs.time.shape[0]
    top, compute, transfer = np.int64(0), np.int64(0), np.int64(0)
    first, begin = 0, 0
    for core in range(len(state)):
        if state[core] == 0:
            continue
        last, cores = first + state[core], min(core + 1 - begin, groups)
        top = max(top, run_load(runs, first, last, cores))
        compute = max(compute, runs.time[cores - 1, last] - runs.time[cores - 1, first])
        out[2] = max(out[2], (runs.storage[last] - runs.storage[first]) / cores)
        transfer = max(transfer, runs.transfer[first, last])
        first, begin = last, core + 1
    out[0], out[1], out[3] = top * runs.unit, compute * runs.unit, transfer * runs.unit
    if top > 0:
        first, begin, total = 0, 0, 0.0
        for core in range(len(state)):
            if state[core] > 0:
                last, cores = first + state[core], min(core + 1 - begin, groups)
                part = run_load(runs, first, last, cores) / top
                total += part**16
                first, begin = last, core + 1
        out[4] = out[0] * total ** (1 / 16)
    return out


@kernel
def own_paid(own: FloatArray, state: IntArray, groups: int) -> float:
    """The largest amount per core of any stage, added up over (k, L + 1) amounts that run up along the order of the layers."""
    out = 0.0
    for k in range(len(own)):
        first, begin, top = 0, 0, 0.0
        for core in range(len(state)):
            if state[core] > 0:
                last = first + state[core]
                top = max(top, (own[k, last] - own[k, first]) / min(core + 1 - begin, groups))
                first, begin = last, core + 1
        out += top
    return out


def arranged(stage_layers: IntArray, stage_cores: IntArray, cores: int) -> IntArray:
    """The state of stages with these numbers of layers and cores; cores that are left over join the last stage."""
    state = np.zeros(cores, np.int64)
    ends = np.cumsum(stage_cores)
    ends[-1] = cores
    state[ends - 1] = stage_layers
    return state


def even(layers: int, cores: int, stages: int) -> IntArray:
    """As many stages as there may be, layers and cores spread over them as evenly as whole numbers go."""
    k = min(layers, cores, stages)
    cuts = np.arange(k + 1)
    return arranged(np.diff(cuts * layers // k), np.diff(cuts * cores // k), cores)


def groups_of(state: IntArray, largest: int) -> tuple[IntArray, IntArray]:
    """(K,) layers and (K,) cores of the stages; groups of more than ``largest`` cores leave the others idle."""
    at = np.flatnonzero(state)
    return state[at], np.minimum(np.diff(at, prepend=-1), largest)
