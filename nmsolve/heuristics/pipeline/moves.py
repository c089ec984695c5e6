"""Annealing by moves of single layers between stages, with loads kept up to date, compiled.

A move costs what the tensors at the layer cost: every tensor counts its users per stage, so a stage knows whether it pays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.model.basic_kernels import copy_to
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.pipeline.merged import Merged
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.types import FloatArray, IntArray, by_key


class Ground(NamedTuple):
    """A merged problem in flat arrays. Times in units of the largest load of the plan a search starts from, host times inf where
    impossible; ``users`` (by tensor), ``made`` and ``used`` (tensors by layer), ``next`` and ``previous`` (layers of the order by
    layer) are CSR, their starts end in ``_at``."""

    time: FloatArray
    host: FloatArray
    storage: FloatArray
    source: IntArray
    tensor: FloatArray
    users_at: IntArray
    users: IntArray
    made_at: IntArray
    made: IntArray
    used_at: IntArray
    used: IntArray
    next_at: IntArray
    next: IntArray
    previous_at: IntArray
    previous: IntArray
    memory: float
    most: int
    overlap: bool
    keep_all: bool


class PlanState(NamedTuple):
    """``stage`` (L,); ``cores``, ``size``, sums ``compute``, ``move``, ``held`` (K,); ``inside`` (T, K) users.

    Empty stages may be there; only the cores of others count.
    """

    stage: IntArray
    cores: IntArray
    size: IntArray
    compute: FloatArray
    move: FloatArray
    held: FloatArray
    inside: IntArray


def ground_of(merged: Merged, unit: float) -> Ground:
    """The arrays of a search whose loads are counted in ``unit``."""
    small = merged.problem
    tensors = small.tensors
    user = tensors.targets
    number = np.repeat(np.arange(tensors.count), np.diff(tensors.indptr))
    host = np.full(small.count, np.inf) if small.host_time is None else small.host_time
    made_at, made = _rows(tensors.source, np.arange(tensors.count), small.count)
    used_at, used = _rows(user, number, small.count)
    next_at, following = _rows(merged.before, merged.after, small.count)
    previous_at, previous = _rows(merged.after, merged.before, small.count)
    return Ground(
        small.time / unit, host / unit, small.storage, tensors.source, tensors.time / unit, tensors.indptr, tensors.targets,
        made_at, made, used_at, used, next_at, following, previous_at, previous,
        np.inf if small.memory is None else small.memory, small.cores, small.overlap, small.exact_stages or small.use_all,
    )  # fmt: skip


def _rows(key: IntArray, value: IntArray, count: int) -> tuple[IntArray, IntArray]:
    """Values by key as CSR."""
    ptr, by = by_key(key, count)
    return ptr, value[by].astype(np.int64)


def state_of(ground: Ground, plan: PipelinePlan) -> PlanState:
    """The state of a plan of the merged problem."""
    k = len(plan.cores)
    state = PlanState(
        plan.stage.copy(), plan.cores.copy(), np.bincount(plan.stage, minlength=k), np.zeros(k), np.zeros(k), np.zeros(k),
        np.zeros((len(ground.source), k), np.int64),
    )  # fmt: skip
    _fill(ground, state)
    return state


@plain
def _fill(g: Ground, s: PlanState) -> None:
    for layer in range(len(s.stage)):
        _compute(g, s, layer, s.stage[layer], 1.0)
    for t in range(len(g.source)):
        home = s.stage[g.source[t]]
        out = False
        for e in range(g.users_at[t], g.users_at[t + 1]):
            k = s.stage[g.users[e]]
            s.inside[t, k] += 1
            if k != home:
                out = True
                if s.inside[t, k] == 1:
                    s.move[k] += g.tensor[t]
        if out:
            s.move[home] += g.tensor[t]


@plain
def _compute(g: Ground, s: PlanState, layer: int, k: int, sign: float) -> None:
    cores = s.cores[k]
    s.compute[k] += sign * (g.time[layer, cores - 1] if cores > 0 else g.host[layer])
    s.held[k] += sign * g.storage[layer]


@plain
def _pays(g: Ground, s: PlanState, t: int, sign: float) -> None:
    """Add what all stages pay for tensor ``t`` to their sums, or take it away."""
    home, out = s.stage[g.source[t]], False
    row = s.inside[t]
    for e in range(g.users_at[t], g.users_at[t + 1]):
        k = s.stage[g.users[e]]
        if k == home:
            continue
        out = True
        if row[k] > 0:  # first user of this stage: pay once, and mark the row until the end
            s.move[k] += sign * g.tensor[t]
            row[k] = -row[k]
    for e in range(g.users_at[t], g.users_at[t + 1]):
        k = s.stage[g.users[e]]
        if row[k] < 0:
            row[k] = -row[k]
    if out:
        s.move[home] += sign * g.tensor[t]


@plain
def shift(g: Ground, s: PlanState, layer: int, to: int) -> None:
    """Move a layer to another stage."""
    a = s.stage[layer]
    for e in range(g.made_at[layer], g.made_at[layer + 1]):
        _pays(g, s, g.made[e], -1.0)
    for e in range(g.used_at[layer], g.used_at[layer + 1]):
        _pays(g, s, g.used[e], -1.0)
    _compute(g, s, layer, a, -1.0)
    _compute(g, s, layer, to, 1.0)
    s.size[a] -= 1
    s.size[to] += 1
    s.stage[layer] = to
    for e in range(g.used_at[layer], g.used_at[layer + 1]):
        t = g.used[e]
        s.inside[t, a] -= 1
        s.inside[t, to] += 1
        _pays(g, s, t, 1.0)
    for e in range(g.made_at[layer], g.made_at[layer + 1]):
        _pays(g, s, g.made[e], 1.0)


@plain
def load(g: Ground, s: PlanState, k: int) -> float:
    """Load of stage ``k``."""
    if s.cores[k] == 0:
        return float(s.compute[k])
    return float(max(s.compute[k], s.move[k]) if g.overlap else s.compute[k] + s.move[k])


@plain
def energy(g: Ground, s: PlanState, out: FloatArray) -> None:
    """Write the largest load, inf where memory is too small, and the sum of the loads' 12th powers.

    A stage too large for its memory counts as heavier by the same factor, plus one.
    """
    out[0], out[1] = 0.0, 0.0
    for k in range(len(s.cores)):
        x = load(g, s, k)
        if s.cores[k] > 0 and s.held[k] > g.memory * s.cores[k]:
            out[0] = np.inf
            x = (x + 1.0) * s.held[k] / (g.memory * s.cores[k]) if g.memory > 0 else np.inf
        out[0] = max(out[0], x)
        out[1] += x**12


@kernel
def goal(g: Ground, s: PlanState, layer: int, rng: np.random.Generator) -> int:
    """A stage to move a layer to: that of a neighbour by data mostly, else any; -1 if the order or the host forbids it."""
    k = int(rng.random() * len(s.cores))
    if rng.random() < 0.8:
        made = g.made_at[layer + 1] - g.made_at[layer]
        used = g.used_at[layer + 1] - g.used_at[layer]
        if made + used > 0:
            e = int(rng.random() * (made + used))
            if e < made:
                t = g.made[g.made_at[layer] + e]
                k = s.stage[g.users[g.users_at[t] + int(rng.random() * (g.users_at[t + 1] - g.users_at[t]))]]
            else:
                k = s.stage[g.source[g.used[g.used_at[layer] + e - made]]]
    a = s.stage[layer]
    if k == a or (g.keep_all and s.size[a] == 1):
        return -1
    if not may_move(g, s, layer, k):
        return -1
    return k


@kernel
def anneal(
    g: Ground,
    s: PlanState,
    best: IntArray,
    best_cores: IntArray,
    known: float,
    hot: float,
    cold: float,
    steps: int,
    rng: np.random.Generator,
) -> float:
    """Moves, swaps and passed cores from temperature ``hot`` to ``cold`` (relative changes of energy).

    ``best`` (L,) and ``best_cores`` (K,) take the best state below ``known``; its largest load is returned, ``known`` if none.
    """
    layers = len(s.stage)
    now, new = np.zeros(2), np.zeros(2)
    energy(g, s, now)
    for step in range(steps):
        heat = hot * (cold / hot) ** (step / steps)
        kind = rng.random()
        if kind < 0.1 and g.time.shape[1] > 1:
            if not _pass_core(g, s, now, new, heat, rng):
                continue
        else:
            layer = int(rng.random() * layers)
            to = goal(g, s, layer, rng)
            if to < 0:
                continue
            a, other = s.stage[layer], -1
            if s.size[to] == 0 and s.cores[to] > 1:
                s.cores[to] = 1
            shift(g, s, layer, to)
            if kind > 0.75:  # and something back, if the order lets it
                other = int(rng.random() * layers)
                if s.stage[other] != to or other == layer or not may_move(g, s, other, a):
                    other = -1
                else:
                    shift(g, s, other, a)
            energy(g, s, new)
            if not _taken(now, new, heat, rng):
                if other >= 0:
                    shift(g, s, other, to)
                shift(g, s, layer, a)
                continue
        now[0], now[1] = new[0], new[1]
        if now[0] < known * (1 - 1e-12):
            known = now[0]
            copy_to(best, s.stage)
            copy_to(best_cores, s.cores)
    return known


@plain
def may_move(g: Ground, s: PlanState, layer: int, k: int) -> bool:
    """May the layer move to stage ``k``? An empty stage takes one core, which must be free."""
    if s.size[k] == 0 and s.cores[k] > 0:
        a = s.stage[layer]
        if _in_use(s) + 1 - (s.cores[a] if s.size[a] == 1 else 0) > g.most:
            return False
    if s.cores[k] == 0 and g.host[layer] == np.inf:
        return False
    for e in range(g.next_at[layer], g.next_at[layer + 1]):
        if s.stage[g.next[e]] < k:
            return False
    for e in range(g.previous_at[layer], g.previous_at[layer + 1]):  # noqa: SIM110, compiled
        if s.stage[g.previous[e]] > k:
            return False
    return True


@kernel
def _taken(now: FloatArray, new: FloatArray, heat: float, rng: np.random.Generator) -> bool:
    """Metropolis (1953) on the relative change of the sum of powers."""
    if new[1] <= now[1]:
        return True
    change = (new[1] / now[1]) ** (1 / 12) - 1.0
    return bool(rng.random() < np.exp(-change / heat))


@kernel
def _pass_core(
    g: Ground, s: PlanState, now: FloatArray, new: FloatArray, heat: float, rng: np.random.Generator
) -> bool:
    """One core from a group, or an idle one, to another group; False if nothing has changed."""
    a, b = int(rng.random() * len(s.cores)), int(rng.random() * len(s.cores))
    idle = a == b or s.size[a] == 0
    if s.size[b] == 0 or s.cores[b] == 0 or s.cores[b] >= g.time.shape[1] or (not idle and s.cores[a] <= 1):
        return False
    if idle and _in_use(s) >= g.most:
        return False
    if not idle:
        _regroup(g, s, a, s.cores[a] - 1)
    _regroup(g, s, b, s.cores[b] + 1)
    energy(g, s, new)
    if _taken(now, new, heat, rng):
        return True
    if not idle:
        _regroup(g, s, a, s.cores[a] + 1)
    _regroup(g, s, b, s.cores[b] - 1)
    return False


@plain
def _in_use(s: PlanState) -> int:
    """Cores of stages that hold something."""
    out = 0
    for k in range(len(s.cores)):
        if s.size[k] > 0:
            out += s.cores[k]
    return out


@plain
def _regroup(g: Ground, s: PlanState, k: int, cores: int) -> None:
    s.cores[k] = cores
    s.compute[k] = 0.0
    for layer in range(len(s.stage)):
        if s.stage[layer] == k:
            s.compute[k] += g.time[layer, cores - 1]
