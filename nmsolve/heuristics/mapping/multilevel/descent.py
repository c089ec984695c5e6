"""Deterministic refinement on the line tables: emptying overfull cores, and descent to a move-and-swap optimum."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.multilevel.ease import ease
from nmsolve.heuristics.mapping.multilevel.graph import Graph, overfull, room_for
from nmsolve.heuristics.mapping.multilevel.heatbath import pair_error, place_cost, shift_lines
from nmsolve.heuristics.mapping.multilevel.lines import (
    Lines,
    State,
    relocate,
    swap_fits,
    weight_between,
    welcome,
)
from nmsolve.model.basic_kernels import stable_order
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import AnyArray, Int32Array, IntArray

#: A table of what the members of cores make of exchanges pays from this many nodes per core on, up to this many cores.
FULL, MANY_CORES = 8, 2048
#: On this many cores a descent then looks for the best partner of a node.
TRIED = 3


@plain
def _cheapest_room(g: Graph, board: Lines, s: State, u: int) -> int:
    """The cheapest other core with room for ``u``; -1 if there is none."""
    best, least = -1, np.float32(np.inf)
    for p in range(len(s.held)):
        if p != s.pos[u]:
            c = place_cost(board, s, u, p)
            if c < least and room_for(g, s.load, s.limit, u, p) and welcome(g, board, s, u, p, -1):
                best, least = p, c
    return best


@kernel
def evict(g: Graph, board: Lines, s: State, step: AnyArray) -> int:
    """Move nodes off overfull cores along cheapest paths; what is left goes straight to the cheapest room, least extra cost per
    volume first. Returns how many cores stay overfull.
    """
    ease(g, board, s, step)
    left = 0
    for p in range(len(s.held)):
        if not overfull(s.load, s.limit, p):
            continue
        members = s.slots[s.first[p] : s.first[p] + s.held[p]].copy()
        price = np.full(len(members), np.inf)
        for i in range(len(members)):
            u = members[i]
            t = _cheapest_room(g, board, s, u)
            if t >= 0:
                rise = place_cost(board, s, u, t) - place_cost(board, s, u, p)
                price[i] = rise / (1e-9 + g.volume[u]) if rise > 0.0 else rise
        for i in stable_order(price):
            if not overfull(s.load, s.limit, p) or price[i] == np.inf:
                break
            t = _cheapest_room(g, board, s, members[i])
            if t >= 0:
                relocate(g, s, members[i], t)
                shift_lines(g, board, s, members[i], p, t, step)
        if overfull(s.load, s.limit, p):
            left += 1
    return left


@plain
def _best_exchange(g: Graph, board: Lines, s: State, u: int, p: int, gain: float) -> int:
    """The member of core ``p`` with which ``u`` exchanges best, if the total cost falls; else -1."""
    q = s.pos[u]
    best, least = -1, -1e-6 * (1.0 + gain)
    error = pair_error(board, p, q)
    for i in range(s.first[p], s.first[p] + s.held[p]):
        v = s.slots[i]
        d = place_cost(board, s, v, q) - place_cost(board, s, v, p) - gain
        if d >= least or not swap_fits(g, s, u, v) or not welcome(g, board, s, v, q, u):
            continue
        if not welcome(g, board, s, u, p, v):
            continue
        d += weight_between(g, u, v) * error
        if d < least:
            best, least = v, d
    return best


def promises(board: Lines, s: State) -> AnyArray:
    """The table for :func:`descend`, (P, P) float32; without entries where cores hold few nodes, or where there are too many."""
    cores = len(s.held)
    if len(s.pos) < FULL * cores or cores > MANY_CORES:
        return np.zeros((0, 0), np.float32)
    table = np.full((cores, cores), np.inf, np.float32)
    _fill_promises(board, s, table)
    return table


@plain
def _fill_promises(board: Lines, s: State, table: AnyArray) -> None:
    """Write the least that any node of core p costs more on core q to ``table[p, q]``."""
    for v in range(len(s.pos)):
        p = s.pos[v]
        here = place_cost(board, s, v, p)
        for q in range(len(s.held)):
            table[p, q] = min(table[p, q], place_cost(board, s, v, q) - here)


@kernel
def descend(g: Graph, board: Lines, s: State, nodes: Int32Array, promise: AnyArray, step: AnyArray) -> int:
    """Give every node of ``nodes`` its best improving move or exchange, if any. Returns the moves made.

    ``promise`` says what the members of a core would make of an exchange (:func:`promises`); partners are then looked for on the
    few cores that promise most. Without entries they are looked for on all.
    """
    moves, w = 0, len(board.lines_x)
    likely, hope = np.empty(TRIED, np.int64), np.empty(TRIED, np.float32)
    for u in nodes:
        q = s.pos[u]
        here = place_cost(board, s, u, q)
        best, partner, least = -1, -1, -1e-6 * (1.0 + here)
        hope[:] = 0.0
        cheapest = s.lines[u, 0]
        for x in range(1, w):
            cheapest = min(cheapest, s.lines[u, x])
        for p in range(len(s.held)):
            if cheapest + s.lines[u, w + board.row[p]] >= here:  # no core of this row is better
                continue
            d = place_cost(board, s, u, p) - here
            if p == q or not board.allowed[g.domain[u], p]:
                continue
            if d < least and room_for(g, s.load, s.limit, u, p):
                if welcome(g, board, s, u, p, -1):
                    best, partner, least = p, -1, d
            elif d < 0.0 and s.held[p] > 0:
                if len(promise) > 0:
                    _remember(likely, hope, p, d + promise[p, q])
                else:
                    v, both = _exchange(g, board, s, u, p, d)
                    if both < least:
                        best, partner, least = p, v, both
        for k in range(TRIED):
            if hope[k] < 0.0:
                p = likely[k]
                v, both = _exchange(g, board, s, u, p, place_cost(board, s, u, p) - here)
                if both < least:
                    best, partner, least = p, v, both
        if best >= 0:
            relocate(g, s, u, best)
            shift_lines(g, board, s, u, q, best, step)
            moves += 1
            if partner >= 0:
                relocate(g, s, partner, q)
                shift_lines(g, board, s, partner, best, q, step)
                moves += 1
    return moves


@plain
def _remember(likely: IntArray, hope: AnyArray, p: int, change: float) -> None:
    """Keep core ``p`` among the few with the least change, in rising order."""
    k = len(hope)
    while k > 0 and change < hope[k - 1]:
        k -= 1
        if k + 1 < len(hope):
            hope[k + 1], likely[k + 1] = hope[k], likely[k]
        hope[k], likely[k] = change, p


@plain
def _exchange(g: Graph, board: Lines, s: State, u: int, p: int, d: float) -> tuple[int, float]:
    """The member of core ``p`` with which ``u`` exchanges best, and the change; (-1, 0) if no exchange lowers the cost.

    ``d`` < 0 is what moving ``u`` alone changes.
    """
    v, q = _best_exchange(g, board, s, u, p, -d), s.pos[u]
    if v < 0:
        return -1, 0.0
    both = d + place_cost(board, s, v, q) - place_cost(board, s, v, p)
    return v, both + weight_between(g, u, v) * pair_error(board, p, q)
