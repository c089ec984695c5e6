"""One slice of annealing on a net objective: nodes weigh all cores and go where the heat lets them."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.axons.moves import crowded, relief, rise, try_exchange, try_shift
from nmsolve.heuristics.mapping.common.room import fits
from nmsolve.heuristics.mapping.nets.changes import Ramps, all_changes
from nmsolve.heuristics.mapping.nets.model import NetState
from nmsolve.heuristics.mapping.nets.moves import move, move_change
from nmsolve.heuristics.rng import below, uniform
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import AnyArray, FloatArray

#: Partners tried for a node that wants to go to a full core.
PARTNERS = 1
#: Nodes drawn until one is on a core with too many entries, while these have a price.
CROWDED = 4
#: Price of an entry of an axon table that is too many, at which no move makes them more.
STRICT = np.inf


@plain
def anneal(
    s: NetState, ramps: Ramps, change: FloatArray, heat: float, work: int, rng: AnyArray, tally: AnyArray,
    price: float = STRICT,
) -> float:  # fmt: skip
    """Visit random nodes until ``work`` (table entries looked at) is used up; the change of the objective.

    Each visit draws the largest change it accepts (Metropolis: ``-heat * log(random)``, with ``heat`` 0 only
    improvements) and goes to a random one of the cores within it: as a move where there is room, else as a
    swap with a node of that core if the sum of both changes is within it too. ``tally`` counts [visits,
    moves, swaps]; ``change`` (P,) is scratch.

    Where axon tables are limited, every entry that is too many costs ``price`` on top of the objective; at the price
    ``STRICT`` no move makes them more.
    """
    total = 0.0
    while work > 0:
        u = below(rng, len(s.room.core))
        if s.axons.on and 0.0 < price < STRICT:
            u = crowded(s.axons, u, CROWDED, rng)
        tally[0] += 1
        work -= all_changes(s, ramps, u, change)
        limit = -1e-9
        if heat > 0.0:
            limit = -heat * np.log(uniform(rng) + 1e-300)
        goal, room, looked = _choose(s, u, change, limit, price, rng)
        work -= looked
        if goal < 0:
            continue
        if room:
            work -= degree(s, u)
            if try_shift(s.axons, u, goal, _spare(limit - change[goal], price)):
                total += change[goal]
                move(s, u, goal)
                tally[1] += 1
        else:
            gain = try_swaps(s, u, goal, change[goal], limit, price)
            work -= PARTNERS * degree(s, u)
            if gain != 0.0:
                tally[2] += 1
                total += gain
    return total


@plain
def _spare(within: float, price: float) -> float:
    """How many more entries may be too many for a change that is ``within`` below what is accepted."""
    if price == STRICT:
        return 0.0
    return within / price if price > 0.0 else np.inf


@plain
def _choose(
    s: NetState, u: int, change: FloatArray, limit: float, price: float, rng: AnyArray
) -> tuple[int, bool, int]:
    """A random core with room among those of change within ``limit``, else a random full one of them; and the work done.

    With limited axon tables the change includes the price of entries (those of the node's own core and the goal; what
    happens on other cores is left to the exact count).
    """
    p = s.room.core[u]
    roomy, full, looked = 0, 0, 0
    goal, other = -1, -1
    priced = s.axons.on and price > 0.0
    strict = price == STRICT
    less = 0.0
    if priced and not strict:
        less = price * relief(s.axons, u)
        looked += degree(s, u)
    for q in range(len(change)):
        if change[q] - less > limit or q == p:
            continue
        if priced:
            more = rise(s.axons, u, q)
            looked += degree(s, u)
            if more > 0 and (strict or change[q] + price * more - less > limit):
                continue
        if fits(s.room, u, q, -1):
            roomy += 1
            if below(rng, roomy) == 0:
                goal = q
        elif roomy == 0:
            full += 1
            if below(rng, full) == 0:
                other = q
    return (goal, True, looked) if roomy > 0 else (other, False, looked)


@plain
def degree(s: NetState, u: int) -> int:
    """Messages that a move of ``u`` looks at."""
    return s.in_ptr[u + 1] - s.in_ptr[u] + s.out_ptr[u + 1] - s.out_ptr[u] + 4  # type: ignore[no-any-return]


@plain
def try_swaps(s: NetState, u: int, q: int, first: float, limit: float, price: float = STRICT) -> float:
    """Exchange ``u`` with one of the next nodes of core ``q`` if that changes the objective by at most
    ``limit``.

    ``first`` is the change of moving ``u`` alone. The sum of both moves' changes is the swap's own unless
    the nodes share a message, so it decides whether the exact change is worth computing. Returns the change
    made, or 0.
    """
    p = s.room.core[u]
    for _ in range(PARTNERS):
        v = s.room.head[q]
        if v < 0:
            break
        s.room.head[q] = s.room.after[v]
        if not (fits(s.room, u, q, v) and fits(s.room, v, p, u)):
            continue
        paid = s.axons.on and price > 0.0 and price != STRICT
        if not paid and first + move_change(s, v, p) > limit:
            continue
        move(s, u, q)
        change: float = first + move_change(s, v, p)
        if (paid or change <= limit) and try_exchange(s.axons, u, v, p, q, _spare(limit - change, price)):
            move(s, v, p)
            return change
        move(s, u, p)
    return 0.0


@kernel
def measure(
    s: NetState, ramps: Ramps, change: FloatArray, samples: int, rng: AnyArray
) -> tuple[FloatArray, float]:
    """For ``samples`` random nodes the mean change over all cores (samples,), and the work of a visit."""
    out = np.zeros(samples)
    work = 0
    for i in range(samples):
        work += all_changes(s, ramps, below(rng, len(s.room.core)), change)
        out[i] = change.mean()
    return out, work / samples
