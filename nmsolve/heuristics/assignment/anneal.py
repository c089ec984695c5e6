"""Annealing of assignments by the evaluator's own figures, compiled: units, orders, and which groups may be fused."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.assignment.compiled_values import MAKESPAN, Ground, State, ValueArrays, values
from nmsolve.heuristics.rng import below, uniform
from nmsolve.model.compiled import plain
from nmsolve.model.types import AnyArray, FloatArray


@plain
def anneal(
    g: Ground,
    now: State,
    best: State,
    trial: State,
    w: ValueArrays,
    rng: AnyArray,
    steps: int,
    hot: float,
    cold: float,
    level: FloatArray,
    result: FloatArray,
) -> None:
    """Try ``steps`` moves from state ``now``; ``best`` takes the best legal one, ``trial`` is overwritten.

    Parameters
    ----------
    hot, cold : costs that are accepted with probability 1/e at the beginning and at the end
    level : (2,) the cost of ``now`` and of ``best``; changed
    result : (2,) overwritten
    """
    _copy(now, trial)
    for step in range(steps):
        heat = hot * (cold / hot) ** (step / steps)
        if not _move(g, trial, rng):
            continue
        values(g, trial, w, result)
        worse = result[0] - level[0]
        if worse <= 0.0 or uniform(rng) < np.exp(-worse / heat):
            _copy(trial, now)
            level[0] = result[0]
            if result[1] == 1.0 and result[0] < level[1]:
                level[1] = result[0]
                _copy(trial, best)
        else:
            _copy(now, trial)


@plain
def _copy(a: State, b: State) -> None:
    """Make ``b`` equal to ``a``."""
    for i in range(len(a.unit)):
        b.unit[i], b.rank[i], b.order[i] = a.unit[i], a.rank[i], a.order[i]
    for k in range(len(a.allow)):
        b.allow[k] = a.allow[k]


@plain
def _move(g: Ground, s: State, rng: AnyArray) -> bool:
    """Change something at random; False if nothing changed."""
    draw = uniform(rng)
    if g.goal == MAKESPAN and draw < 0.25:
        return bool(_shift(g, s, rng))
    if len(s.allow) > 0 and draw < 0.35:
        k = below(rng, len(s.allow))
        s.allow[k] = 1 - s.allow[k]
        return True
    j = below(rng, g.time.shape[1])
    i = below(rng, len(s.unit))
    if draw < 0.5:
        return bool(_put(g, s, i, j))
    if draw < 0.6:
        other = below(rng, len(s.unit))
        a, b = s.unit[i], s.unit[other]
        return bool(_put(g, s, i, b)) and bool(_put(g, s, other, a))
    length = 1 + below(rng, 2 << below(rng, 7))
    changed = False
    if draw < 0.75:
        for r in range(s.rank[i], min(len(s.unit), s.rank[i] + length)):
            changed = bool(_put(g, s, s.order[r], j)) or changed
        return changed
    for _ in range(length):
        changed = bool(_put(g, s, i, j)) or changed
        tensors = g.made_at[i + 1] - g.made_at[i]
        if tensors == 0:
            break
        t = g.made[g.made_at[i] + below(rng, tensors)]
        users = g.users_at[t + 1] - g.users_at[t]
        if users == 0:
            break
        i = g.users[g.users_at[t] + below(rng, users)]
    return changed


@plain
def _put(g: Ground, s: State, i: int, j: int) -> bool:
    """Put the operators that share a unit with ``i`` on unit ``j``, if it can run them; False if that changes nothing."""
    if s.unit[i] == j:
        return False
    begin, end = g.operators_at[g.item[i]], g.operators_at[g.item[i] + 1]
    for e in range(begin, end):
        if g.time[g.operators[e], j] < 0:
            return False
    for e in range(begin, end):
        s.unit[g.operators[e]] = j
    return True


@plain
def _shift(g: Ground, s: State, rng: AnyArray) -> bool:
    """Move an operator to another place in the order, after all that it needs and before all that need it."""
    i = below(rng, len(s.unit))
    low, high, place = 0, len(s.unit) - 1, s.rank[i]
    for e in range(g.needs_at[i], g.needs_at[i + 1]):
        low = max(low, s.rank[g.source[g.needs[e]]] + 1)
    for e in range(g.made_at[i], g.made_at[i + 1]):
        t = g.made[e]
        for f in range(g.users_at[t], g.users_at[t + 1]):
            high = min(high, s.rank[g.users[f]] - 1)
    if high <= low:
        return False
    to = low + below(rng, high - low + 1)
    step = 1 if to > place else -1
    for r in range(place, to, step):
        s.order[r] = s.order[r + step]
        s.rank[s.order[r]] = r
    s.order[to] = i
    s.rank[i] = to
    return bool(to != place)
