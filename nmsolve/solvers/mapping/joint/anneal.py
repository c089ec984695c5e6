"""Annealing over mappings whose messages take best trees: each costs what the table says for its cores and where it starts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.common.room import Room, fits, put, room_of
from nmsolve.heuristics.rng import below, uniform
from nmsolve.model.compiled import kernel, plain, plain_callee
from nmsolve.model.types import AnyArray, FloatArray, IntArray, starts
from nmsolve.solvers.mapping.joint.problem import JointProblem


class TreeState(NamedTuple):
    """Messages as pins (``pin_ptr``, ``pins``, source among them) with ``rate`` and ``source``, and by node (``of_ptr``, ``of``);
    the table ``cost`` (2^P, P) by bit set of cores and core of the source; ``room``, who sits where, changes.
    """

    pin_ptr: IntArray
    pins: IntArray
    rate: FloatArray
    source: IntArray
    of_ptr: IntArray
    of: IntArray
    cost: FloatArray
    room: Room


def state_of(joint: JointProblem, cost: FloatArray, core: IntArray) -> TreeState:
    """The state of a legal mapping ``core`` (n,); ``cost`` (2^P, P), or (2^P,) if it is the same wherever a message starts."""
    problem, messages = joint.mapping, joint.messages
    sets = [sorted({m.source, *m.targets}) for m in messages]
    pins = np.array([u for s in sets for u in s], np.int64)
    length = np.array([len(s) for s in sets], np.int64)
    order = np.argsort(pins, kind="stable")
    of_ptr = starts(np.bincount(pins, minlength=problem.n))
    cost = np.ascontiguousarray(np.broadcast_to(cost.reshape(len(cost), -1), (len(cost), problem.cores)))
    return TreeState(
        starts(length), pins, joint.rate,
        np.array([m.source for m in messages], np.int64), of_ptr,
        np.repeat(np.arange(len(sets)), length)[order], cost, room_of(problem, core),
    )  # fmt: skip


@plain_callee
def cost_around(s: TreeState, u: int) -> float:
    """What the messages of node ``u`` cost."""
    total = 0.0
    for j in range(s.of_ptr[u], s.of_ptr[u + 1]):
        m, cores = s.of[j], 0
        for i in range(s.pin_ptr[m], s.pin_ptr[m + 1]):
            cores |= 1 << s.room.core[s.pins[i]]
        total += s.rate[m] * s.cost[cores, s.room.core[s.source[m]]]
    return total


@plain
def total_cost(s: TreeState) -> float:
    """What all messages cost."""
    total = 0.0
    for m in range(len(s.rate)):
        cores = 0
        for i in range(s.pin_ptr[m], s.pin_ptr[m + 1]):
            cores |= 1 << s.room.core[s.pins[i]]
        total += s.rate[m] * s.cost[cores, s.room.core[s.source[m]]]
    return total


@plain_callee
def _put(s: TreeState, u: int, q: int) -> float:
    """Move node ``u`` to core ``q``; the change of the cost."""
    before = cost_around(s, u)
    put(s.room, u, q)
    return float(cost_around(s, u) - before)


@kernel
def anneal(
    s: TreeState, now: float, hot: float, cold: float, tries: int, low: float, best: IntArray, rng: AnyArray
) -> tuple[float, float]:
    """``tries`` moves or swaps with temperatures from ``hot`` to ``cold``; the last cost and the least, kept in ``best``."""
    n, cores = len(s.room.core), len(s.room.capacity)
    for i in range(tries):
        heat = hot * (cold / hot) ** (i / tries)
        u, v = below(rng, n), below(rng, n)
        p, q = s.room.core[u], s.room.core[v]
        if uniform(rng) < 0.5:
            q, v = below(rng, cores), np.int64(-1)
        if q == p:
            continue
        if v < 0 and not fits(s.room, u, q, -1):
            continue
        if v >= 0 and not (fits(s.room, u, q, v) and fits(s.room, v, p, u)):
            continue
        change = _put(s, u, q)
        if v >= 0:
            change += _put(s, v, p)
        if change <= -heat * np.log(uniform(rng) + 1e-300):
            now += change
            if now < low - 1e-9 * abs(low):
                low = now
                best[:] = s.room.core
        else:
            if v >= 0:
                _put(s, v, q)
            _put(s, u, p)
    return now, low
