"""Annealing of orders and modes of schedules by the evaluator's own figures, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.rng import below, uniform
from nmsolve.heuristics.schedule.budgets import repair
from nmsolve.heuristics.schedule.decode import (
    BUSY,
    FREE,
    LATE,
    MAKESPAN,
    OVER,
    DecoderArrays,
    Ground,
    State,
    decode,
)
from nmsolve.heuristics.schedule.shift import shift_starts
from nmsolve.heuristics.schedule.windows import Window, cost_between, decode_window, open_window
from nmsolve.model.compiled import plain
from nmsolve.model.types import AnyArray, FloatArray, IntArray

#: Kinds of moves: another mode; another place in the order; both; modes near those of the sources for a window of a network;
#: modes chosen by the decoder for such a window, or for a unit and a time; loads where nothing must be loaded, or not;
#: another mode, and its item for all or some that can use it; its own item for another that can use it.
MODE, PLACE, BOTH, NEAR, WINDOW, UNIT, LOAD, SHARE, JOIN = range(9)
#: Of these, what leaves modes to the decoder, which knows no budgets.
FREEING = (WINDOW, UNIT)


@plain
def cost_of(g: Ground, w: DecoderArrays, worth: float) -> float:
    """Return what a schedule costs: its objective, and more where deadlines, ceilings or budgets are broken."""
    cost = float(w.value[g.goal])
    if g.goal == MAKESPAN:
        cost += 0.05 * w.value[BUSY] / max(1, len(w.free))
    excess = 0.0
    if w.value[LATE] > 0:
        excess += 0.01 + w.value[LATE] / (1.0 + w.value[MAKESPAN])
    for k in range(len(g.limit)):
        if w.value[k] > g.limit[k]:
            excess += 0.01 + (w.value[k] - g.limit[k]) / (1.0 + g.limit[k])
    if w.value[OVER] > 0:
        excess += 0.01 + 1e-6 * w.value[OVER]
    return cost + 4.0 * worth * excess


@plain
def legal(g: Ground, w: DecoderArrays) -> bool:
    """Return whether deadlines, ceilings and budgets are kept."""
    fine = w.value[LATE] == 0 and w.value[OVER] == 0
    for k in range(len(g.limit)):
        fine = fine and w.value[k] <= g.limit[k]
    return bool(fine)


class Annealing(NamedTuple):
    """State of simulated annealing.

    ``now``, ``best``, ``trial``: states, the last overwritten; ``at`` (2, P): start of every process in ``now``, and what it
    waits for; ``level`` (4,): costs of ``now`` and ``best``, sum and number of what worse, but legal moves cost; ``tally`` (9,
    2): tries and gains of every kind of move; ``rng``: random numbers.
    """

    now: State
    best: State
    trial: State
    at: IntArray
    level: FloatArray
    tally: FloatArray
    rng: AnyArray


class Manner(NamedTuple):
    """How a search goes on.

    ``odds`` (9,): how likely each kind of move is, summed up; ``price`` (5,), ``taste``: what modes cost that the decoder
    chooses; ``worth``: scale of the cost of broken rules; ``rounds`` of moving starts about.
    """

    odds: FloatArray
    price: FloatArray
    taste: FloatArray
    worth: float
    rounds: int


@plain
def anneal(
    g: Ground,
    x: Annealing,
    w: DecoderArrays,
    v: Window,
    how: Manner,
    low: int,
    high: int,
    steps: int,
    hot: float,
    cold: float,
) -> None:
    """Try ``steps`` moves; costs of ``hot`` at the beginning and ``cold`` at the end are accepted with probability 1/e.

    Processes at places ``low`` to ``high - 1`` of the order are moved. If these are not all, costs are those of the window ``v``,
    which was opened with this state.
    """
    whole = high - low == len(x.now.order)
    copy(x.now, x.trial, 0, len(x.now.order))
    for step in range(steps):
        heat = hot * (cold / hot) ** (step / steps)
        draw, kind = uniform(x.rng), 0
        while kind < len(how.odds) - 1 and draw >= how.odds[kind]:
            kind += 1
        if not _move(g, x.trial, x.at, x.rng, kind, low, high):
            continue
        if len(g.budget) > 0:
            repair(g.first, g.use, g.budget, x.trial.mode, w.spent, x.rng)
        if whole:
            decode(g, x.trial, w, how.price, how.taste)
            if how.rounds > 0:
                shift_starts(g, x.trial.order, w, how.rounds)
            cost, fine = cost_of(g, w, how.worth), legal(g, w)
        else:
            decode_window(g, x.trial, w, v, low, high, how.price, how.taste)
            cost, fine = cost_between(g, x.trial, w, v, low, high, how.worth), True
        x.tally[kind, 0] += 1
        worse = cost - x.level[0]
        if fine and worse > 0.0:
            x.level[2] += worse
            x.level[3] += 1.0
        if worse <= 0.0 or uniform(x.rng) < np.exp(-worse / heat):
            x.tally[kind, 1] += worse < 0.0
            for i in range(low, high):
                p = x.trial.order[i]
                x.trial.mode[p] = w.mode[p]
                x.at[0, p], x.at[1, p] = w.start[p], w.why[p]
            copy(x.trial, x.now, low, high)
            x.level[0] = cost
            if fine and cost < x.level[1]:
                x.level[1] = cost
                copy(x.trial, x.best, low, high)
        else:
            copy(x.now, x.trial, low, high)


@plain
def look(g: Ground, s: State, w: DecoderArrays, v: Window, how: Manner, low: int, high: int) -> float:
    """Return what the places ``low`` to ``high - 1`` of a state cost between what is around them."""
    open_window(g, s, w, v, low, high, how.price, how.taste)
    decode_window(g, s, w, v, low, high, how.price, how.taste)
    return float(cost_between(g, s, w, v, low, high, how.worth))


@plain
def copy(a: State, b: State, low: int, high: int) -> None:
    """Make ``b`` equal to ``a`` at these places of the order, and the processes there."""
    for i in range(low, high):
        p = a.order[i]
        b.order[i], b.rank[p], b.mode[p], b.fresh[p] = p, i, a.mode[p], a.fresh[p]


@plain
def _move(g: Ground, s: State, at: IntArray, rng: AnyArray, kind: int, low: int, high: int) -> bool:
    """Change something at these places; False if nothing changed."""
    p = s.order[low + below(rng, high - low)]
    if g.goal == MAKESPAN and high - low == len(s.order) and uniform(rng) < 0.8:
        p = _critical(g, s, at, rng)
    if kind == MODE:
        return bool(_other_mode(g, s, p, rng))
    if kind == PLACE:
        return bool(_shift(g, s, p, rng, low, high))
    if kind == BOTH:
        changed = bool(_other_mode(g, s, p, rng))
        return bool(_shift(g, s, p, rng, low, high)) or changed
    if kind == LOAD:
        if g.item[s.mode[p]] < 0:
            return False
        s.fresh[p] = 1 - s.fresh[p]
        return True
    if kind in (SHARE, JOIN):
        return bool(_share(g, s, p, kind, rng, low, high))
    length = 1 + below(rng, 2 << below(rng, 4))
    if kind == UNIT:
        return bool(_clear(g, s, p, length, rng, high))
    changed = False
    for _ in range(length):
        if kind == NEAR:
            changed = bool(_nearest(g, s, p)) or changed
        else:
            s.mode[p] = FREE
            changed = True
        outs = g.out_at[p + 1] - g.out_at[p]
        if outs == 0:
            break
        p = g.target[g.out[g.out_at[p] + below(rng, outs)]]
        if s.rank[p] >= high:
            break
    return changed


@plain
def _clear(g: Ground, s: State, p: int, length: int, rng: AnyArray, high: int) -> bool:
    """Leave to the decoder where ``length`` processes run that use a unit of ``p``, from ``p`` on."""
    k = g.unit_set[s.mode[p]]
    if k < 0:
        return False
    u = g.members[g.members_at[k] + below(rng, g.members_at[k + 1] - g.members_at[k])]
    for i in range(s.rank[p], high):
        q = s.order[i]
        if length > 0 and g.first[q + 1] - g.first[q] > 1 and _on(g, s.mode[q], u):
            s.mode[q] = FREE
            length -= 1
    return True


@plain
def _critical(g: Ground, s: State, at: IntArray, rng: AnyArray) -> int:
    """Return a process on a way that makes the makespan."""
    last, end = 0, -1
    for p in range(len(s.order)):
        if at[0, p] + g.span[s.mode[p]] > end:
            last, end = p, at[0, p] + g.span[s.mode[p]]
    chosen, seen, p = last, 0, last
    while p >= 0:
        seen += 1
        if below(rng, seen) == 0:
            chosen = p
        p = at[1, p]
    return int(chosen)


@plain
def _on(g: Ground, m: int, u: int) -> bool:
    """Return whether a mode takes a unit."""
    if m < 0 or g.unit_set[m] < 0:
        return False
    found = False
    for j in range(g.members_at[g.unit_set[m]], g.members_at[g.unit_set[m] + 1]):
        found = found or g.members[j] == u
    return bool(found)


@plain
def _other_mode(g: Ground, s: State, p: int, rng: AnyArray) -> bool:
    """Choose another mode at random."""
    count = g.first[p + 1] - g.first[p]
    if count < 2:
        return False
    m = g.first[p] + below(rng, count - 1)
    if m >= s.mode[p]:
        m += 1
    s.mode[p] = m
    s.fresh[p] = 0
    return True


@plain
def _share(g: Ground, s: State, p: int, kind: int, rng: AnyArray, low: int, high: int) -> bool:
    """Let others use the item of a process, which takes another mode before if ``kind`` is :data:`SHARE`."""
    changed = False
    if kind == SHARE:
        changed = bool(_other_mode(g, s, p, rng))
    d = g.item[s.mode[p]]
    if d < 0:
        return changed
    begin, end = g.users_at[d], g.users_at[d + 1]
    all_of_them = kind == SHARE and below(rng, 2) == 0
    one = begin + below(rng, end - begin)
    for j in range(begin, end):
        q = g.process[g.users[j]]
        if s.mode[q] == g.users[j] or q == p or s.rank[q] < low or s.rank[q] >= high:
            continue
        if all_of_them or j == one or (kind == SHARE and below(rng, 2) == 0):
            s.mode[q] = g.users[j]
            s.fresh[q] = 0
            changed = True
    return changed


@plain
def _nearest(g: Ground, s: State, p: int) -> bool:
    """Choose the mode whose units are nearest to those of the first source, the one with least energy among these."""
    if g.into_at[p + 1] == g.into_at[p]:
        return False
    source = g.unit_set[s.mode[g.source[g.into[g.into_at[p]]]]]
    if source < 0:
        return False
    best, hops = -1, 0
    for m in range(g.first[p], g.first[p + 1]):
        k = g.unit_set[m]
        if k < 0:
            continue
        far = g.hops[source, k]
        if best < 0 or far < hops or (far == hops and g.energy[m] < g.energy[best]):
            best, hops = m, far
    if best < 0 or best == s.mode[p]:
        return False
    s.mode[p] = best
    s.fresh[p] = 0
    return True


@plain
def _shift(g: Ground, s: State, p: int, rng: AnyArray, low: int, high: int) -> bool:
    """Move a process to another place in the order, after all that it needs and before all that need it."""
    high, place = high - 1, s.rank[p]
    for j in range(g.into_at[p], g.into_at[p + 1]):
        low = max(low, s.rank[g.source[g.into[j]]] + 1)
    for j in range(g.out_at[p], g.out_at[p + 1]):
        high = min(high, s.rank[g.target[g.out[j]]] - 1)
    if high <= low:
        return False
    far = 1 + below(rng, 2 << below(rng, 10))
    to = min(high, place + far) if below(rng, 2) == 0 else max(low, place - far)
    step = 1 if to > place else -1
    for r in range(place, to, step):
        s.order[r] = s.order[r + step]
        s.rank[s.order[r]] = r
    s.order[to] = p
    s.rank[p] = to
    return bool(to != place)
