"""Annealing over sets of displaced nodes: every change keeps the number of moved nodes within the budget."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.common.room import fits
from nmsolve.heuristics.mapping.remap.state import SENT_HOME, Prices, RemapState, Rules, change, relocate
from nmsolve.heuristics.rng import below, uniform
from nmsolve.model.compiled import embedded, plain
from nmsolve.model.types import AnyArray, FloatArray, IntArray

#: Chances: that a node which is away already is taken, that such a node tries its home, that a node tries the core of a
#: neighbour, and (on a mesh) that a core beside the one found is tried instead.
AWAY, HOMEWARD, NEIGHBOUR, BESIDE = 0.5, 0.3, 0.8, 0.5
#: Members of a full core looked at for an exchange.
PARTNERS = 4


@plain
def anneal(
    s: RemapState,
    rules: Rules,
    prices: Prices,
    heat: float,
    tries: int,
    rng: AnyArray,
    best: IntArray,
    gain: FloatArray,
) -> None:
    """Try ``tries`` changes at temperature ``heat`` (Metropolis).

    A change moves a node, or exchanges it with one of a full core; if more nodes have moved then than the budget allows,
    others that are away are sent home, and all of it is one change. ``gain``: [change of the objective since the caller
    set it to 0, its least value so far, which is the one of ``best`` (n,), by how much less is a new best].
    """
    trail, noted = s.trail, True
    for _ in range(tries):
        u = _some_node(s, rules, rng)
        p = _some_core(s, rules, prices, u, rng)
        if p < 0 or p == s.room.core[u]:
            continue
        length, total = step(s, rules, prices, u, p, 0, rng)
        if length == 0:
            continue
        for _ in range(SENT_HOME):
            if s.tally[0] <= rules.budget:
                break
            w = s.away[below(rng, s.tally[1])]
            if rules.home[w] >= 0 and w != u:
                length, more = step(s, rules, prices, w, rules.home[w], length, rng)
                total += more
        kept = s.tally[0] <= rules.budget and (
            total <= 0.0 or uniform(rng) < np.exp(-total / max(heat, 1e-300))
        )
        if kept and total > 0.0 and not noted:  # leaving a new best behind: note it as it was
            _note(s, best)
            for k in range(length - 1, -1, -1):
                best[trail[k, 0]] = trail[k, 1]
            noted = True
        if not kept:
            for k in range(length - 1, -1, -1):
                relocate(s, rules, trail[k, 0], trail[k, 1])
            continue
        gain[0] += total
        if gain[0] < gain[1] - gain[2]:
            gain[1], noted = gain[0], False
    if not noted:
        _note(s, best)


@embedded
def _note(s: RemapState, best: IntArray) -> None:
    for u in range(len(best)):  # as one assignment it would make an array
        best[u] = s.room.core[u]


@embedded
def _some_node(s: RemapState, rules: Rules, rng: AnyArray) -> int:
    if s.tally[1] > 0 and uniform(rng) < AWAY:
        return s.away[below(rng, s.tally[1])]  # type: ignore[no-any-return]
    return below(rng, len(s.room.core))  # type: ignore[no-any-return]


@embedded
def _some_core(s: RemapState, rules: Rules, prices: Prices, u: int, rng: AnyArray) -> int:
    """Where ``u`` could go: home, to a neighbour or beside one, or anywhere; -1 for a place off the board."""
    if s.spot[u] >= 0 and rules.home[u] >= 0 and uniform(rng) < HOMEWARD:
        return rules.home[u]  # type: ignore[no-any-return]
    arcs = prices.arcs
    degree = arcs.indptr[u + 1] - arcs.indptr[u]
    if degree == 0 or uniform(rng) >= NEIGHBOUR:
        return rules.places[below(rng, len(rules.places))]  # type: ignore[no-any-return]
    p = s.room.core[arcs.other[arcs.indptr[u] + below(rng, degree)]]
    if rules.mesh and uniform(rng) < BESIDE:
        side = below(rng, 4)
        row, col = p // rules.cols, p % rules.cols
        row += (side == 0) - (side == 1)
        col += (side == 2) - (side == 3)
        if row < 0 or col < 0 or col >= rules.cols or row * rules.cols + col >= len(s.room.head):
            return -1
        p = row * rules.cols + col
    return p  # type: ignore[no-any-return]


@embedded
def step(
    s: RemapState, rules: Rules, prices: Prices, u: int, p: int, length: int, rng: AnyArray
) -> tuple[int, float]:  # fmt: skip
    """Put ``u`` on core ``p``, in exchange for one of its nodes if it is full; adds who came from where to ``s.trail``.

    Returns the new length of the trail (unchanged if it cannot be done) and the change of the objective.
    """
    q, v, trail = s.room.core[u], -1, s.trail
    if q == p:
        return length, 0.0
    if not fits(s.room, u, p, -1):
        v = _partner(s, u, p, rng)
        if v < 0:
            return length, 0.0
    total = change(s, prices, u, p, v)
    relocate(s, rules, u, p)
    trail[length, 0], trail[length, 1] = u, q
    if v >= 0:
        relocate(s, rules, v, q)
        trail[length + 1, 0], trail[length + 1, 1] = v, p
        return length + 2, total
    return length + 1, total


@embedded
def _partner(s: RemapState, u: int, p: int, rng: AnyArray) -> int:
    """A node of core ``p`` that may go where ``u`` is once they change places: one that is away if possible; or -1."""
    q, v, found = s.room.core[u], s.room.head[p], -1
    if v < 0 or not s.room.domains[s.room.domain_of[u], p]:
        return -1
    for _ in range(below(rng, PARTNERS)):
        v = s.room.after[v]
    for _ in range(PARTNERS):
        if fits(s.room, u, p, v) and fits(s.room, v, q, u):
            if s.spot[v] >= 0:
                return v  # type: ignore[no-any-return]
            if found < 0:
                found = v
        v = s.room.after[v]
    s.room.head[p] = v
    return found
