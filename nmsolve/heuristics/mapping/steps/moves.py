"""Random moves and swaps of nodes, from busy cores first, judged by a norm of how long cores and links are busy, or by a sum."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.axons.moves import shift as shift_axons
from nmsolve.heuristics.mapping.common.counts import add_pin, drop_pin
from nmsolve.heuristics.mapping.common.metropolis import PASSING, SOUND, metropolis
from nmsolve.heuristics.mapping.common.norm import CEILING, OVER, PRICE, largest
from nmsolve.heuristics.mapping.common.room import fits, seat, trades
from nmsolve.heuristics.mapping.links.moves import SLACK
from nmsolve.heuristics.mapping.nets.incidence import unpack
from nmsolve.heuristics.mapping.nets.moves import follow
from nmsolve.heuristics.mapping.steps.state import StepState, carry, plant, reached, shift
from nmsolve.heuristics.rng import below, uniform
from nmsolve.model.compiled import plain
from nmsolve.model.types import AnyArray, IntArray

#: Part of the tries that take a node of the busiest of this many cores; that go to a core of a message of the node; that change
#: places where there is room, too.
BUSY, DRAWN, NEAR, SWAP = 0.5, 4, 0.6, 0.3


@plain
def above(s: StepState) -> float:
    """How far what is not lowered is above its ceiling: the times of all cores and links together, or the sum."""
    over = s.heat[OVER] if s.paid[2] > 0.0 else s.paid[0] - s.paid[1]
    most = s.heat[CEILING] if s.paid[2] > 0.0 else s.paid[1]
    return float(over) if over > SLACK * most else 0.0


@plain
def value(s: StepState) -> float:
    """The sum, the 2^power-norm of all times, a little above the longest, or what a step of that length takes in all; and what is
    paid for entries too many in axon tables and above ceilings."""
    price = s.heat[PRICE] * s.axons.excess[0] if s.axons.on else 0.0
    price += s.paid[3] * above(s)
    if s.paid[2] > 0.0 and len(s.draw) == 0:
        return float(s.paid[0] + price)
    longest = largest(s.heat)
    if len(s.draw) == 0:
        return float(longest + price)
    time = s.draw[3] + longest
    energy = s.draw[2] + s.paid[0] + (s.draw[0] + s.draw[1] * s.draw[5]) * time
    return float((energy * time if s.draw[4] > 0.0 else energy) + price)


@plain
def verdict(s: StepState) -> int:
    """No answer while entries are too many or something is above its ceiling."""
    if above(s) > 0.0:
        return PASSING
    return PASSING if s.axons.on and s.axons.excess[0] > 0 else SOUND


@plain
def move(s: StepState, u: int, q: int) -> None:
    """Put node ``u`` on core ``q`` and bring all times up to date."""
    p, cores = s.room.core[u], len(s.room.head)
    if len(s.sum.at) > 1:
        one = s.sum
        s.paid[0] += follow(
            one.tables, one.work, u, q, one.rows[: unpack(one.data, one.at[u], one.at[u + 1], one.rows)]
        )
    fresh = s.room.head[q] < 0
    seat(s.room, u, q)
    if len(s.draw) > 0:
        s.draw[5] += (1.0 if fresh else 0.0) - (1.0 if s.room.head[p] < 0 else 0.0)
    sends = s.own[u]
    for j in range(s.out_ptr[u], s.out_ptr[u + 1]):
        e = s.out_net[j]
        s.origin[e] = q
        sends += s.rate[e] * s.price[0] * s.reach[e]
        if s.price[2] > 0.0 and s.shared > 0:
            plant(s, e, p, -s.rate[e] * s.price[2], -1)
            plant(s, e, q, s.rate[e] * s.price[2], -1)
        elif s.price[2] > 0.0:
            whole = s.base[e + 1] - s.base[e] == cores
            for i in range(s.base[e], s.base[e + 1]):
                if s.hits[i] > 0:
                    goal = i - s.base[e] if whole else np.int64(s.keys[i])
                    carry(s, p, goal, -s.rate[e] * s.price[2])
                    carry(s, q, goal, s.rate[e] * s.price[2])
    shift(s, p, -sends)
    shift(s, q, sends)
    shift(s, s.inbox + p, -s.heard[u])
    shift(s, s.inbox + q, s.heard[u])
    if s.axons.on:
        shift_axons(s.axons, u, p, q)
    for j in range(s.in_ptr[u], s.in_ptr[u + 1]):
        e = s.in_net[j]
        if drop_pin(s.keys, s.base, s.hits, e, p, cores):
            reached(s, e, p, -1)
        if add_pin(s.keys, s.base, s.hits, e, q, cores):
            reached(s, e, q, 1)


@plain
def _load(s: StepState, p: int) -> float:
    return float(max(s.busy[p], s.busy[s.inbox + p]))


@plain
def _goal(s: StepState, u: int, rng: AnyArray) -> np.int64:
    """A core to try: one that holds an end of a message of ``u``, or the less busy one of two."""
    ins, outs = s.in_ptr[u + 1] - s.in_ptr[u], s.out_ptr[u + 1] - s.out_ptr[u]
    if ins + outs > 0 and uniform(rng) < NEAR:
        k = below(rng, ins + outs)
        e = s.in_net[s.in_ptr[u] + k] if k < ins else s.out_net[s.out_ptr[u] + k - ins]
        pins = s.pin_ptr[e + 1] - s.pin_ptr[e]
        return np.int64(s.room.core[s.pins[s.pin_ptr[e] + below(rng, pins)]])
    a, b = below(rng, len(s.room.head)), below(rng, len(s.room.head))
    return np.int64(a if _load(s, a) < _load(s, b) else b)


@plain
def propose(s: StepState, rng: AnyArray) -> tuple[np.int64, np.int64, np.int64]:
    """A node, a core that it may go to, and the node there that it changes places with (-1: none); the first -1 if none."""
    room = s.room
    u = np.int64(below(rng, len(room.core)))
    if (s.paid[2] <= 0.0 or len(s.draw) > 0) and uniform(rng) < BUSY:
        for _ in range(DRAWN - 1):
            w = np.int64(below(rng, len(room.core)))
            if _load(s, room.core[w]) > _load(s, room.core[u]):
                u = w
    p, q, v = room.core[u], _goal(s, u, rng), np.int64(-1)
    if q == p:
        return np.int64(-1), q, v
    if uniform(rng) < SWAP or not fits(room, u, q, -1):
        v = np.int64(room.head[q])
        if v >= 0:
            room.head[q] = room.after[v]  # next time another one
        if not trades(room, u, q, v):
            return np.int64(-1), q, v
    return u, q, v


@plain
def search(s: StepState, heat: float, tries: int, best: IntArray, low: float, rng: AnyArray) -> float:
    """:func:`~nmsolve.heuristics.mapping.common.metropolis.metropolis` by changes in parts of the value."""
    return metropolis(s, propose, move, value, verdict, True, heat, heat, tries, best, low, rng)  # type: ignore[no-any-return]
