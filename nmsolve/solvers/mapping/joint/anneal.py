"""Annealing over mappings whose messages take best trees: each costs what the table says for its cores and where it starts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.common.metropolis import always, metropolis
from nmsolve.heuristics.mapping.common.room import Room, fits, put, room_of
from nmsolve.heuristics.rng import below, uniform
from nmsolve.model.compiled import embedded, plain
from nmsolve.model.types import AnyArray, FloatArray, IntArray, starts
from nmsolve.solvers.mapping.joint.problem import JointProblem


class TreeState(NamedTuple):
    """Messages as pins (``pin_ptr``, ``pins``, source among them) with ``rate`` and ``source``, and by node (``of_ptr``, ``of``);
    the table ``cost`` (2^P, P) by bit set of cores and core of the source. ``room``, who sits where, and ``total`` (1,), what all
    cost, change.
    """

    pin_ptr: IntArray
    pins: IntArray
    rate: FloatArray
    source: IntArray
    of_ptr: IntArray
    of: IntArray
    cost: FloatArray
    room: Room
    total: FloatArray


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
        np.repeat(np.arange(len(sets)), length)[order], cost, room_of(problem, core), np.zeros(1),
    )  # fmt: skip


@plain
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
def recount(s: TreeState) -> float:
    """What all messages cost, which is noted; rounding that has gathered is gone."""
    s.total[0] = 0.0
    for m in range(len(s.rate)):
        cores = 0
        for i in range(s.pin_ptr[m], s.pin_ptr[m + 1]):
            cores |= 1 << s.room.core[s.pins[i]]
        s.total[0] += s.rate[m] * s.cost[cores, s.room.core[s.source[m]]]
    return float(s.total[0])


@embedded
def _noted(s: TreeState) -> float:
    return float(s.total[0])


@embedded
def _move(s: TreeState, u: int, q: int) -> None:
    """Move node ``u`` to core ``q`` and note the change of the cost."""
    before = cost_around(s, u)
    put(s.room, u, q)
    s.total[0] += cost_around(s, u) - before


@embedded
def _some_change(s: TreeState, rng: AnyArray) -> tuple[np.int64, np.int64, np.int64]:
    """A random node and another that it changes places with, or a core that it goes to; -1 if the rules forbid it."""
    u, v = below(rng, len(s.room.core)), below(rng, len(s.room.core))
    p, q = s.room.core[u], s.room.core[v]
    if uniform(rng) < 0.5:
        q, v = below(rng, len(s.room.capacity)), np.int64(-1)
    if q == p or not fits(s.room, u, q, v) or (v >= 0 and not fits(s.room, v, p, u)):
        return np.int64(-1), q, v
    return u, q, v


@plain
def anneal(
    s: TreeState, hot: float, cold: float, tries: int, low: float, best: IntArray, rng: AnyArray
) -> float:
    """``tries`` moves or swaps with temperatures from ``hot`` to ``cold``; the least cost, kept in ``best``."""
    return metropolis(s, _some_change, _move, _noted, always, False, hot, cold, tries, best, low, rng)  # type: ignore[no-any-return]
