"""Emptying overfull cores by shortest paths of moves: a node goes to the next core, another one from there on, up to room.

A node that goes straight to the nearest room, cores away, costs its traffic all of the way. On a path every core gives up the
node that loses least by going one core further. Paths are Dijkstra's; a step costs what the cheapest node of its core loses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.common.heap import changed, push, remove
from nmsolve.heuristics.mapping.multilevel.graph import Graph, overfull, room_for
from nmsolve.heuristics.mapping.multilevel.heatbath import place_cost, shift_lines
from nmsolve.heuristics.mapping.multilevel.lines import Lines, State, relocate, welcome
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import AnyArray, FloatArray, Int32Array, IntArray

#: Cores that a step may lead to: the next ones along the rows and columns; where distances are a matrix, the nearest ones.
NEXT = 4
#: Rounds over all cores: nodes of different sizes leave cores on the way a little too full.
ROUNDS = 4
#: Cores and nodes that are looked at, in all, before the rest is left to others: a few tenths of a second.
MOST_LOOKS = 2**23


class Trails(NamedTuple):
    """What the search for paths keeps of every core.

    near (P, NEXT): the cores next to it; node, price (P, NEXT): its cheapest node to go there (-1: none) and what that loses, as
    of when ``fresh`` (P,) was set; heap, place, key, size: the heap of cores, nearest first (``key`` is minus the cost of the
    path); back, by (P,): from which core, and with which node, it is reached; seen (P,): cores with a key; looks (1,): how
    many cores and nodes were looked at.
    """

    near: AnyArray
    node: AnyArray
    price: FloatArray
    fresh: AnyArray
    heap: Int32Array
    place: Int32Array
    key: FloatArray
    size: IntArray
    looks: IntArray
    back: Int32Array
    by: Int32Array
    seen: Int32Array


@plain
def _next_cores(board: Lines, p: int, out: AnyArray) -> None:
    """Write the cores next to ``p`` into ``out`` (NEXT,); itself where there is none."""
    w, h = len(board.lines_x), len(board.lines_y)
    out[:] = p
    if h == 1 and w == len(board.col):
        count = 0
        for q in range(w):
            if q == p:
                continue
            k = min(count, NEXT)
            while k > 0 and board.lines_x[p, q] < board.lines_x[p, out[k - 1]]:
                if k < NEXT:
                    out[k] = out[k - 1]
                k -= 1
            if k < NEXT:
                out[k] = q
                count = min(count + 1, NEXT)
        return
    row, col = p // w, p % w
    out[0], out[1] = row * w + (col + 1) % w, row * w + (col + w - 1) % w
    out[2], out[3] = (row + 1) % h * w + col, (row + h - 1) % h * w + col


@plain
def _look(g: Graph, board: Lines, s: State, t: Trails, p: int) -> None:
    """Find the cheapest node of core ``p`` to go to each of the cores next to it."""
    near, node, price = t.near[p], t.node[p], t.price[p]
    if near[0] < 0:
        _next_cores(board, p, near)
    node[:] = -1
    price[:] = np.inf
    for i in range(s.first[p], s.first[p] + s.held[p]):
        u = s.slots[i]
        here = place_cost(board, s, u, p)
        for k in range(NEXT):
            q = near[k]
            if q == p:
                continue
            loss = max(0.0, float(place_cost(board, s, u, q) - here))
            if loss < price[k] and welcome(g, board, s, u, q, -1):
                node[k], price[k] = u, loss
    t.fresh[p] = True
    t.looks[0] += s.held[p]


@kernel
def ease(g: Graph, board: Lines, s: State, step: AnyArray) -> None:
    """Move nodes off overfull cores along cheapest paths, as far as there are such paths. ``step`` is a buffer for the lines."""
    cores = len(s.held)
    t = Trails(
        np.full((cores, NEXT), -1, np.int32), np.empty((cores, NEXT), np.int32), np.empty((cores, NEXT)),
        np.zeros(cores, np.bool_), np.empty(cores, np.int32), np.full(cores, -1, np.int32), np.full(cores, -np.inf),
        np.zeros(1, np.int64), np.zeros(1, np.int64), np.empty(cores, np.int32), np.empty(cores, np.int32),
        np.empty(cores, np.int32),
    )  # fmt: skip
    for _ in range(ROUNDS):
        moved = False
        for p in range(cores):
            tries = 4 * s.held[p]
            while tries > 0 and overfull(s.load, s.limit, p) and t.looks[0] < MOST_LOOKS:
                tries -= 1
                end = _path(g, board, s, t, p)
                if end < 0:
                    break
                moved |= _go(g, board, s, t, p, end, step)
        if not moved:
            break


@plain
def _path(g: Graph, board: Lines, s: State, t: Trails, p: int) -> int:
    """Return the core with room at the end of the cheapest path from ``p``, or -1; ``t`` then knows the path."""
    key, place = t.key, t.place
    count, end = 1, -1
    t.seen[0], key[p], t.size[0] = p, 0.0, 0
    push(t.heap, place, key, t.size, p)
    while t.size[0] > 0 and end < 0:
        a = t.heap[0]
        remove(t.heap, place, key, t.size, a)
        t.looks[0] += 1
        if a != p and room_for(g, s.load, s.limit, t.by[a], a):
            end = a
            break
        if not t.fresh[a]:
            _look(g, board, s, t, a)
        for k in range(NEXT):
            b, u = t.near[a, k], t.node[a, k]
            if u < 0 or b == p or key[a] - t.price[a, k] <= key[b]:
                continue
            if key[b] == -np.inf:
                t.seen[count] = b
                count += 1
            key[b], t.back[b], t.by[b] = key[a] - t.price[a, k], a, u
            if place[b] >= 0:
                changed(t.heap, place, key, t.size, b)
            else:
                push(t.heap, place, key, t.size, b)
    while t.size[0] > 0:
        remove(t.heap, place, key, t.size, t.heap[0])
    for i in range(count):
        key[t.seen[i]] = -np.inf
    return end


@plain
def _go(g: Graph, board: Lines, s: State, t: Trails, p: int, end: int, step: AnyArray) -> bool:
    """Make the moves of the path from its end; True if all were still possible."""
    b = end
    while b != p:
        a, u = t.back[b], t.by[b]
        t.fresh[a] = t.fresh[b] = False
        if s.pos[u] != a or not welcome(g, board, s, u, b, -1):
            return False
        relocate(g, s, u, b)
        shift_lines(g, board, s, u, a, b, step)
        b = a
    return True
