"""Deterministic refinement on the line tables: emptying overfull cores, and descent to a move-and-swap optimum."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.multilevel.ease import ease, overfull
from nmsolve.heuristics.mapping.multilevel.heatbath import pair_error, place_cost, shift_lines
from nmsolve.heuristics.mapping.multilevel.levels import Board, Net
from nmsolve.heuristics.mapping.multilevel.state import (
    State,
    fits,
    relocate,
    swap_fits,
    weight_between,
    welcome,
)
from nmsolve.model.basic_kernels import stable_order
from nmsolve.model.compiled import kernel, plain_callee
from nmsolve.model.types import AnyArray, Int32Array


@plain_callee
def _cheapest_room(net: Net, board: Board, s: State, u: int) -> int:
    """The cheapest other core with room for ``u``; -1 if there is none."""
    best, least = -1, np.float32(np.inf)
    for p in range(len(s.held)):
        if p != s.pos[u]:
            c = place_cost(board, s, u, p)
            if c < least and fits(net, s, u, p) and welcome(net, board, s, u, p, -1):
                best, least = p, c
    return best


@kernel
def evict(net: Net, board: Board, s: State, step: AnyArray) -> int:
    """Move nodes off overfull cores along cheapest paths; what is left goes straight to the cheapest room, least extra cost per
    volume first. Returns how many cores stay overfull.
    """
    ease(net, board, s, step)
    left = 0
    for p in range(len(s.held)):
        if not overfull(s, p):
            continue
        members = s.slots[s.first[p] : s.first[p] + s.held[p]].copy()
        price = np.full(len(members), np.inf)
        for i in range(len(members)):
            u = members[i]
            t = _cheapest_room(net, board, s, u)
            if t >= 0:
                rise = place_cost(board, s, u, t) - place_cost(board, s, u, p)
                price[i] = rise / (1e-9 + net.volume[u]) if rise > 0.0 else rise
        for i in stable_order(price):
            if not overfull(s, p) or price[i] == np.inf:
                break
            t = _cheapest_room(net, board, s, members[i])
            if t >= 0:
                relocate(net, s, members[i], t)
                shift_lines(net, board, s, members[i], p, t, step)
        if overfull(s, p):
            left += 1
    return left


@plain_callee
def _best_exchange(net: Net, board: Board, s: State, u: int, p: int, gain: float) -> int:
    """The member of core ``p`` with which ``u`` exchanges best, if the total cost falls; else -1."""
    q = s.pos[u]
    best, least = -1, -1e-6 * (1.0 + gain)
    error = pair_error(board, p, q)
    for i in range(s.first[p], s.first[p] + s.held[p]):
        v = s.slots[i]
        d = place_cost(board, s, v, q) - place_cost(board, s, v, p) - gain
        if d >= least or not swap_fits(net, s, u, v) or not welcome(net, board, s, v, q, u):
            continue
        if not welcome(net, board, s, u, p, v):
            continue
        d += weight_between(net, u, v) * error
        if d < least:
            best, least = v, d
    return best


@kernel
def descend(net: Net, board: Board, s: State, nodes: Int32Array, step: AnyArray) -> int:
    """Give every node of ``nodes`` its best improving move or exchange, if any. Returns the moves made."""
    moves, w = 0, len(board.lines_x)
    for u in nodes:
        q = s.pos[u]
        here = place_cost(board, s, u, q)
        best, partner, least = -1, -1, -1e-6 * (1.0 + here)
        cheapest = s.lines[u, 0]
        for x in range(1, w):
            cheapest = min(cheapest, s.lines[u, x])
        for p in range(len(s.held)):
            if cheapest + s.lines[u, w + board.row[p]] >= here:  # no core of this row is better
                continue
            d = place_cost(board, s, u, p) - here
            if p == q or not board.allowed[net.domain[u], p]:
                continue
            if d < least and fits(net, s, u, p):
                if welcome(net, board, s, u, p, -1):
                    best, partner, least = p, -1, d
            elif d < 0.0 and s.held[p] > 0:
                v = _best_exchange(net, board, s, u, p, -d)
                if v >= 0:
                    both = d + place_cost(board, s, v, q) - place_cost(board, s, v, p)
                    both += weight_between(net, u, v) * pair_error(board, p, q)
                    if both < least:
                        best, partner, least = p, v, both
        if best >= 0:
            relocate(net, s, u, best)
            shift_lines(net, board, s, u, q, best, step)
            moves += 1
            if partner >= 0:
                relocate(net, s, partner, q)
                shift_lines(net, board, s, partner, best, q, step)
                moves += 1
    return moves
