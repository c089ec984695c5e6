"""Refinement of two blocks by a minimum cut: the nodes around their border are divided at the least cost, all others fixed.

What such nodes pay is a sum over single nodes and over pairs that differ, for any distances, so that a minimum cut finds the best
division of all (swap moves: Boykov, Veksler and Zabih 2001; between blocks of a partition: Sanders and Schulz 2011). Where it
makes a block too full, the other's part of the cut becomes fixed with one node more, and the flow goes on, until the cut fits or
is no better (FlowCutter: Hamann and Strasser 2018; Gottesbüren et al. 2020).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.multilevel.graph import Board, Graph
from nmsolve.heuristics.mapping.multilevel.moves import State, put
from nmsolve.heuristics.rng import shuffle
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import AnyArray, BoolArray, FloatArray, Int32Array, IntArray

#: Steps from the border, and part of a block's volume, within which nodes may change sides.
STEPS, WIDE = 8, 0.3
#: Residual capacities below this part of the cost are none.
NONE = 1e-10
#: Nodes with more neighbours stay where they are.
HUB = 500
#: Pairs of blocks between two looks at the clock.
STRETCH = 32
FREE, FIRST, SECOND = 0, 1, 2


class _Net(NamedTuple):
    """The network between two blocks; its nodes are numbered from 0. Arrays are as long as the graph, and used again.

    number : (n,) number of a node of the graph here, -1 for those that are not; node : the reverse
    steps : from the border, negative and one less in the first block
    ptr, head, back, left : CSR of the arcs with the reverse of each and what it may still carry
    tied : what may still come from the first block, or, negative, go to the second
    fixed : FREE, FIRST or SECOND
    level, near : steps from the first block in the residual network, and to the second, -1 for none
    at, queue : buffers
    """

    number: Int32Array
    node: Int32Array
    steps: Int32Array
    ptr: IntArray
    head: Int32Array
    back: IntArray
    left: FloatArray
    tied: FloatArray
    fixed: AnyArray
    level: Int32Array
    near: Int32Array
    at: IntArray
    queue: IntArray


class _Lists(NamedTuple):
    """Who is on each block: ``first`` (K,), ``after`` and ``before`` (n,), -1 for none."""

    first: Int32Array
    after: Int32Array
    before: Int32Array


@plain
def _enter(lists: _Lists, v: int, p: int) -> None:
    head = lists.first[p]
    lists.after[v], lists.before[v] = head, -1
    if head >= 0:
        lists.before[head] = v
    lists.first[p] = v


@plain
def _leave(lists: _Lists, v: int, p: int) -> None:
    a, b = lists.before[v], lists.after[v]
    if a >= 0:
        lists.after[a] = b
    else:
        lists.first[p] = b
    if b >= 0:
        lists.before[b] = a


@plain
def _may_change(g: Graph, board: Board, v: int, p: int, q: int) -> bool:
    allowed = board.allowed[g.domain[v]]
    return bool(allowed[p] and allowed[q] and g.ptr[v + 1] - g.ptr[v] <= HUB)


@plain
def _around(
    g: Graph, board: Board, s: State, f: _Net, lists: _Lists, p: int, q: int, steps: int, wide: float
) -> int:
    """Number the nodes near the border of blocks ``p`` and ``q``; return how many."""
    k, left_p, left_q = 0, wide * board.share[p], wide * board.share[q]
    for side in range(2):
        own, other = (p, q) if side == 0 else (q, p)
        v = lists.first[own]
        while v >= 0:
            touches = False
            for e in range(g.ptr[v], g.ptr[v + 1]):
                if s.pos[g.neighbour[e]] == other:
                    touches = True
                    break
            if touches and _may_change(g, board, v, p, q):
                f.number[v], f.node[k], f.steps[k] = k, v, 0
                k += 1
                if side == 0:
                    left_p -= g.volume[v]
                else:
                    left_q -= g.volume[v]
            v = lists.after[v]
    i = 0
    while i < k:
        v = f.node[i]
        here = s.pos[v]
        if f.steps[i] < steps:
            for e in range(g.ptr[v], g.ptr[v + 1]):
                u = g.neighbour[e]
                if s.pos[u] != here or f.number[u] >= 0 or not _may_change(g, board, u, p, q):
                    continue
                if g.volume[u] > (left_p if here == p else left_q):
                    continue
                if here == p:
                    left_p -= g.volume[u]
                else:
                    left_q -= g.volume[u]
                f.number[u], f.node[k], f.steps[k] = k, u, f.steps[i] + 1
                k += 1
        i += 1
    for i in range(k):
        if s.pos[f.node[i]] == p:
            f.steps[i] = -1 - f.steps[i]
    return k


@plain
def _connect(g: Graph, board: Board, s: State, f: _Net, k: int, p: int, q: int) -> float:
    """Write the network's arcs; return what its nodes pay now above what they pay at least anywhere."""
    across = board.distance[p, q]
    f.ptr[0] = 0
    now = 0.0
    for i in range(k):
        v = f.node[i]
        arcs, first, second = 0, 0.0, 0.0
        for e in range(g.ptr[v], g.ptr[v + 1]):
            u = g.neighbour[e]
            if f.number[u] >= 0:
                arcs += 1
                continue
            t = s.pos[u]
            first += g.weight[e] * board.distance[p, t]
            second += g.weight[e] * board.distance[q, t]
        f.ptr[i + 1] = f.ptr[i] + arcs
        f.at[i] = f.ptr[i]
        f.tied[i], f.fixed[i] = second - first, FREE
        now += max(0.0, first - second) if s.pos[v] == p else max(0.0, second - first)
    for i in range(k):
        v = f.node[i]
        for e in range(g.ptr[v], g.ptr[v + 1]):
            u = g.neighbour[e]
            j = f.number[u]
            if j <= i:
                continue
            x, y, c = f.at[i], f.at[j], g.weight[e] * across
            f.head[x], f.head[y], f.back[x], f.back[y], f.left[x], f.left[y] = j, i, y, x, c, c
            f.at[i], f.at[j] = x + 1, y + 1
            if s.pos[u] != s.pos[v]:
                now += c
    return now


@plain
def _layers(f: _Net, k: int, least: float) -> bool:
    """Write the level of every node from the first block; return whether the second is reached. If not, levels are of all."""
    begun, last = 0, 0
    for i in range(k):
        f.level[i] = -1
        if f.fixed[i] == FIRST or f.tied[i] > least:
            f.level[i], f.queue[last] = 0, i
            last += 1
    end = -1
    while begun < last:
        i = f.queue[begun]
        begun += 1
        if end >= 0 and f.level[i] >= end:
            break
        if f.fixed[i] == SECOND or f.tied[i] < -least:
            end = f.level[i]
            continue
        for a in range(f.ptr[i], f.ptr[i + 1]):
            j = f.head[a]
            if f.level[j] < 0 and f.left[a] > least:
                f.level[j] = f.level[i] + 1
                f.queue[last] = j
                last += 1
    return end >= 0


@plain
def _blocked(f: _Net, root: int, least: float) -> float:
    """Send along the levels from one node what they carry; return how much."""
    total, path = 0.0, f.queue
    while f.fixed[root] == FIRST or f.tied[root] > least:
        i, length = root, 0
        while f.fixed[i] != SECOND and f.tied[i] >= -least:
            a, end = f.at[i], f.ptr[i + 1]
            while a < end and not (f.left[a] > least and f.level[f.head[a]] == f.level[i] + 1):
                a += 1
            f.at[i] = a
            if a < end:
                path[length] = a
                length += 1
                i = f.head[a]
                continue
            f.level[i] = -2
            if length == 0:
                return total
            length -= 1
            i = f.head[f.back[path[length]]]
            f.at[i] += 1
        amount = np.inf if f.fixed[root] == FIRST else f.tied[root]
        if f.fixed[i] != SECOND:
            amount = min(amount, -f.tied[i])
        for x in range(length):
            amount = min(amount, f.left[path[x]])
        for x in range(length):
            f.left[path[x]] -= amount
            f.left[f.back[path[x]]] += amount
        if f.fixed[root] != FIRST:
            f.tied[root] -= amount
        if f.fixed[i] != SECOND:
            f.tied[i] += amount
        total += amount
    return total


@plain
def _augment(f: _Net, k: int, least: float) -> float:
    """Send what can be sent (Dinic 1970); return how much. Then nodes with a level are the first block's part of the cut."""
    total = 0.0
    while _layers(f, k, least):
        for i in range(k):
            f.at[i] = f.ptr[i]
        for i in range(k):
            if f.level[i] == 0:
                total += _blocked(f, i, least)
    return total


@plain
def _reach_back(f: _Net, k: int, least: float) -> None:
    """Write to ``near`` which nodes reach the second block."""
    begun, last = 0, 0
    for i in range(k):
        f.near[i] = -1
        if f.fixed[i] == SECOND or f.tied[i] < -least:
            f.near[i], f.queue[last] = 0, i
            last += 1
    while begun < last:
        i = f.queue[begun]
        begun += 1
        for a in range(f.ptr[i], f.ptr[i + 1]):
            j = f.head[a]
            if f.near[j] < 0 and f.left[f.back[a]] > least:
                f.near[j], f.queue[last] = 0, j
                last += 1


@plain
def _fits(
    g: Graph, s: State, f: _Net, k: int, p: int, q: int, kept: Int32Array, first: bool
) -> tuple[bool, bool, float]:
    """Return whether block ``p`` and block ``q`` have room if ``p`` gets what is in ``kept`` (0 or more), or all but that, and
    how full the fuller is."""
    room_p, room_q, fullest = True, True, 0.0
    for r in range(s.load.shape[1]):
        a, b = s.load[p, r], s.load[q, r]
        for i in range(k):
            size = g.sizes[f.node[i], r]
            goes = (kept[i] >= 0) == first
            if s.pos[f.node[i]] == p and not goes:
                a, b = a - size, b + size
            elif s.pos[f.node[i]] == q and goes:
                a, b = a + size, b - size
        room_p, room_q = room_p and a <= s.room[p, r], room_q and b <= s.room[q, r]
        fullest = max(fullest, a / max(1, s.room[p, r]), b / max(1, s.room[q, r]))
    return room_p, room_q, fullest


@plain
def _fix(f: _Net, k: int, own: Int32Array, other: Int32Array, block: int, sign: int) -> bool:
    """Fix one side of the cut and one node next to it, rather one from which no more flow comes, and far from the border.

    ``own``, ``other`` : ``level`` and ``near``, or the reverse; return False if there is no such node
    """
    best, free, far = -1, False, 0
    for i in range(k):
        if own[i] < 0:
            continue
        f.fixed[i] = block
        for a in range(f.ptr[i], f.ptr[i + 1]):
            j = f.head[a]
            if own[j] >= 0 or f.fixed[j] != FREE:
                continue
            no_flow, steps = other[j] < 0, sign * f.steps[j]
            if best < 0 or (no_flow and not free) or (no_flow == free and steps < far):
                best, free, far = j, no_flow, steps
    if best < 0:
        for j in range(k):
            if own[j] < 0 and f.fixed[j] == FREE and (best < 0 or sign * f.steps[j] < far):
                best, far = j, sign * f.steps[j]
    if best >= 0:
        f.fixed[best] = block
    return best >= 0


@plain
def _cut(g: Graph, s: State, f: _Net, lists: _Lists, k: int, p: int, q: int, now: float) -> float:
    """Move nodes to the sides of a better cut that fits, if there is one; return what it gains."""
    flow, least = 0.0, NONE * now
    while True:
        flow += _augment(f, k, least)
        if flow >= now * (1 - 1e-7):
            return 0.0
        _reach_back(f, k, least)
        p_fits, q_fits, full = _fits(g, s, f, k, p, q, f.level, True)
        p_also, q_also, fuller = _fits(g, s, f, k, p, q, f.near, False)
        if (p_fits and q_fits) or (p_also and q_also):
            first = p_fits and q_fits and not (p_also and q_also and fuller < full)
            break
        if not p_fits or not q_also:
            return 0.0
        here, there = 0.0, 0.0
        for i in range(k):
            if f.level[i] >= 0:
                here += g.volume[f.node[i]]
            if f.near[i] >= 0:
                there += g.volume[f.node[i]]
        if here <= there:
            grown = _fix(f, k, f.level, f.near, FIRST, 1)
        else:
            grown = _fix(f, k, f.near, f.level, SECOND, -1)
        if not grown:
            return 0.0
    for i in range(k):
        v = f.node[i]
        goal = p if (f.level[i] >= 0 if first else f.near[i] < 0) else q
        if s.pos[v] != goal:
            _leave(lists, v, s.pos[v])
            put(g, s, v, goal)
            _enter(lists, v, goal)
    gained: float = now - flow
    return gained


@kernel
def _network(g: Graph) -> _Net:
    n, m = len(g.volume), len(g.neighbour)
    return _Net(
        np.full(n, -1, np.int32), np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n + 1, np.int64),
        np.empty(m, np.int32), np.empty(m, np.int64), np.empty(m), np.empty(n), np.empty(n, np.int8),
        np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int64), np.empty(n, np.int64),
    )  # fmt: skip


@kernel
def _listed(pos: Int32Array, k: int) -> _Lists:
    lists = _Lists(np.full(k, -1, np.int32), np.empty(len(pos), np.int32), np.empty(len(pos), np.int32))
    for v in range(len(pos)):
        _enter(lists, v, pos[v])
    return lists


@plain
def _improve(
    pairs: Int32Array, g: Graph, board: Board, s: State, f: _Net, lists: _Lists, steps: int, wide: float,
    changed: BoolArray,
) -> float:  # fmt: skip
    """Divide the nodes around the border of one pair (P, 2) of blocks after the other; return what all gain."""
    total = 0.0
    for x in range(len(pairs)):
        p, q = pairs[x, 0], pairs[x, 1]
        k = _around(g, board, s, f, lists, p, q, steps, wide)
        now = _connect(g, board, s, f, k, p, q)
        gain = _cut(g, s, f, lists, k, p, q, now) if now > 0.0 else 0.0
        for i in range(k):
            f.number[f.node[i]] = -1
        if gain > 0.0:
            changed[p], changed[q] = True, True
            total += gain
    return total


@kernel
def _neighbours(g: Graph, pos: Int32Array, k: int) -> Int32Array:
    """Return the pairs of blocks (P, 2) that edges join, in rising order."""
    code, many = np.empty(len(g.neighbour) // 2 + 1, np.int64), 0
    for v in range(len(pos)):
        for e in range(g.ptr[v], g.ptr[v + 1]):
            p, q = pos[v], pos[g.neighbour[e]]
            if p < q and many < len(code):
                code[many] = np.int64(p) * k + q
                many += 1
    code = np.sort(code[:many])
    pairs, found = np.empty((many, 2), np.int32), 0
    for i in range(many):
        if i == 0 or code[i] != code[i - 1]:
            pairs[found, 0], pairs[found, 1] = code[i] // k, code[i] % k
            found += 1
    return pairs[:found].copy()


def refine_by_flow(
    g: Graph, board: Board, s: State, rounds: int, rng: AnyArray, stop: Callable[[], bool] = lambda: False,
    steps: int = STEPS, wide: float = WIDE,
) -> float:  # fmt: skip
    """Divide the nodes around the borders of all pairs of blocks anew, and again where something changed; return what it gains.

    The mapping only gets better, and no block too full that was not.
    """
    blocks = len(board.share)
    active, total = np.ones(blocks, bool), 0.0
    f, lists = _network(g), _listed(s.pos, blocks)
    for _ in range(rounds):
        pairs = _neighbours(g, s.pos, blocks)
        pairs = pairs[active[pairs[:, 0]] | active[pairs[:, 1]]]
        order = np.arange(len(pairs), dtype=np.int32)
        shuffle(rng, order)
        active = np.zeros(blocks, bool)
        gained = 0.0
        for first in range(0, len(pairs), STRETCH):
            if stop():
                return total + gained
            gained += _improve(
                pairs[order[first : first + STRETCH]], g, board, s, f, lists, steps, wide, active
            )
        total += gained
        if gained == 0.0:
            break
    return total
