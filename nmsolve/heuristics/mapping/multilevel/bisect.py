"""Halving regions of nodes with the regions of cores that they are on: greedy growing, and FM with a heap per side."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.common.heap import changed, push, remove
from nmsolve.heuristics.mapping.common.labels import members
from nmsolve.heuristics.mapping.multilevel.graph import Graph
from nmsolve.heuristics.mapping.multilevel.tree import Halving
from nmsolve.heuristics.rng import below, uniform
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import AnyArray, BoolArray, FloatArray, Int32Array, IntArray

#: Moves without gain after which a pass ends, and the part of the region's nodes that is added.
PATIENCE, PATIENCE_PART = 60, 0.1


class _Half(NamedTuple):
    """One region that is halved, and buffers for all nodes.

    nodes : those of the region; inside : (n,) True for them
    forced : (n,) 0 free, 1 left only, 2 right only
    pull : (n,) what other regions make of the left half, less what they make of the right one
    most : (2,) volume of the halves at most
    """

    nodes: Int32Array
    inside: BoolArray
    forced: AnyArray
    pull: FloatArray
    across: float
    most: FloatArray
    side: AnyArray
    key: FloatArray
    heap: Int32Array
    place: Int32Array
    size: IntArray
    locked: BoolArray
    log: Int32Array


@kernel
def split(
    g: Graph, region: Int32Array, halving: Halving, share: FloatArray, allowed: BoolArray, slack: float, tries: int,
    passes: int, rng: AnyArray,
) -> Int32Array:  # fmt: skip
    """Return the region of the next depth of every node (n,), of several tries for each region the best.

    Parameters
    ----------
    region : (n,) region of every node at this depth
    share : (j,) volume that regions of the next depth take; allowed : (D, j)
    slack : part by which a half may take more than its share of what the region holds
    """
    n, k = len(region), len(halving.left)
    start, nodes = members(region, k)
    new = np.full(n, -1, np.int32)
    inside, forced, pull = np.zeros(n, np.bool_), np.zeros(n, np.int8), np.zeros(n)
    side, best, key = np.zeros(n, np.int8), np.zeros(n, np.int8), np.zeros(n)
    heap, place, size = np.empty((2, n), np.int32), np.full((2, n), -1, np.int32), np.zeros((2, 1), np.int64)
    locked, log, most = np.zeros(n, np.bool_), np.empty(n, np.int32), np.zeros(2)
    for r in range(k):
        inner = nodes[start[r] : start[r + 1]]
        a, b = halving.left[r], halving.right[r]
        if b < 0 or len(inner) == 0:
            for v in inner:
                new[v] = a
            continue
        total, heaviest = 0.0, 0.0
        for v in inner:
            inside[v] = True
            total += g.volume[v]
            heaviest = max(heaviest, g.volume[v])
        goal = total * share[a] / max(1e-12, share[a] + share[b])
        most[0] = max(min(share[a], goal * (1 + slack)), goal + heaviest / 2)
        most[1] = max(min(share[b], (total - goal) * (1 + slack)), total - goal + heaviest / 2)
        across = halving.new[a, b] - (halving.new[a, a] + halving.new[b, b]) / 2
        for v in inner:
            left, right = allowed[g.domain[v], a], allowed[g.domain[v], b]
            forced[v] = 0 if left == right else 1 if left else 2
            pull[v] = 0.0
            for e in range(g.ptr[v], g.ptr[v + 1]):
                u = g.neighbour[e]
                if inside[u]:
                    continue
                if new[u] >= 0:
                    pull[v] += g.weight[e] * (halving.new[a, new[u]] - halving.new[b, new[u]])
                else:
                    pull[v] += g.weight[e] * (halving.mixed[a, region[u]] - halving.mixed[b, region[u]])
        h = _Half(
            inner, inside, forced, pull, max(across, 1e-9), most, side, key, heap, place, size, locked, log
        )
        least, low = np.inf, np.inf
        for trial in range(tries):
            held = _grow(g, h, goal, trial % 2 == 1, rng)
            for _ in range(passes):
                held, better = _improve(g, h, held, total, goal)
                if not better:
                    break
            over = max(0.0, held - most[0]) + max(0.0, total - held - most[1])
            over = over if over > 1e-9 * total else 0.0
            cost = _cost(g, h)
            if over < least or (over == least and cost < low):
                least, low = over, cost
                for v in inner:
                    best[v] = side[v]
        for v in inner:
            inside[v] = False
        for v in inner:
            new[v] = a if best[v] == 0 else b
    return new


@plain
def _grow(g: Graph, h: _Half, goal: float, pulled: bool, rng: AnyArray) -> float:
    """Let the left half grow from a random node, or from the one that is pulled there most; return its volume."""
    heap, place, size = h.heap[0], h.place[0], h.size[0]
    held, first = 0.0, h.nodes[below(rng, len(h.nodes))]
    for v in h.nodes:
        h.side[v] = 1
        h.locked[v] = h.forced[v] == 2
        if pulled and h.pull[v] + 1e-3 * uniform(rng) < h.pull[first]:
            first = v
    for v in h.nodes:
        if h.forced[v] == 1:
            h.side[v], h.locked[v] = 0, True
            held += g.volume[v]
    h.key[first] = np.inf
    if not h.locked[first]:
        push(heap, place, h.key, size, first)
    at, looked = below(rng, len(h.nodes)), 0
    while held < goal:
        if size[0] == 0:  # another component
            while looked < len(h.nodes) and h.locked[h.nodes[at]]:
                at = at + 1 if at + 1 < len(h.nodes) else 0
                looked += 1
            if looked == len(h.nodes):
                break
            v = h.nodes[at]
        else:
            v = heap[0]
            remove(heap, place, h.key, size, v)
        h.locked[v] = True
        if held + g.volume[v] > h.most[0]:
            continue
        h.side[v] = 0
        held += g.volume[v]
        for e in range(g.ptr[v], g.ptr[v + 1]):
            u = g.neighbour[e]
            if not h.inside[u] or h.locked[u]:
                continue
            if place[u] >= 0:
                h.key[u] += 2 * g.weight[e] * h.across
                changed(heap, place, h.key, size, u)
            else:
                h.key[u] = _gain(g, h, u)
                push(heap, place, h.key, size, u)
    while size[0] > 0:
        remove(heap, place, h.key, size, heap[0])
    return held


@plain
def _gain(g: Graph, h: _Half, v: int) -> float:
    """By how much the cost falls if ``v`` goes to the other side."""
    gain: float = h.pull[v] if h.side[v] == 0 else -h.pull[v]
    for e in range(g.ptr[v], g.ptr[v + 1]):
        u = g.neighbour[e]
        if h.inside[u]:
            gain += g.weight[e] * h.across * (1.0 if h.side[u] != h.side[v] else -1.0)
    return gain


@plain
def _improve(g: Graph, h: _Half, held: float, total: float, goal: float) -> tuple[float, bool]:
    """Make one FM pass; return the volume on the left after it, and whether anything is better."""
    heaviest = 0.0
    for v in h.nodes:
        h.locked[v] = h.forced[v] > 0
        heaviest = max(heaviest, g.volume[v])
        if h.locked[v]:
            continue
        border = h.pull[v] != 0.0
        for e in range(g.ptr[v], g.ptr[v + 1]):
            u = g.neighbour[e]
            border = border or (h.inside[u] and h.side[u] != h.side[v])
        if border:
            h.key[v] = _gain(g, h, v)
            s = h.side[v]
            push(h.heap[s], h.place[s], h.key, h.size[s], v)
    moved, kept, gain, most_gain = 0, 0, 0.0, 0.0
    least = max(0.0, held - h.most[0]) + max(0.0, total - held - h.most[1])
    while True:
        lefts, rights = h.size[0, 0] > 0, h.size[1, 0] > 0
        if not (lefts or rights):
            break
        from_left, from_right = lefts, rights
        if lefts and held <= h.most[0] and total - held + g.volume[h.heap[0, 0]] > h.most[1] + heaviest:
            from_left = False
        if rights and total - held <= h.most[1] and held + g.volume[h.heap[1, 0]] > h.most[0] + heaviest:
            from_right = False
        if held > h.most[0] and lefts:
            from_right = False
        if total - held > h.most[1] and rights:
            from_left = False
        if not (from_left or from_right):
            s = 0 if lefts else 1
            remove(h.heap[s], h.place[s], h.key, h.size[s], h.heap[s, 0])
            continue
        s = 0 if from_left else 1
        if from_left and from_right:
            one, other = h.key[h.heap[0, 0]], h.key[h.heap[1, 0]]
            s = 0 if one > other or (one == other and held > goal) else 1
        v = h.heap[s, 0]
        remove(h.heap[s], h.place[s], h.key, h.size[s], v)
        gain += h.key[v]
        held += g.volume[v] if s == 1 else -g.volume[v]
        h.side[v], h.locked[v], h.log[moved] = 1 - s, True, v
        moved += 1
        over = max(0.0, held - h.most[0]) + max(0.0, total - held - h.most[1])
        if over < least - 1e-12 or (over <= least and gain > most_gain + 1e-9 * abs(most_gain)):
            least, most_gain, kept = over, gain, moved
        elif moved - kept > PATIENCE + PATIENCE_PART * len(h.nodes):
            break
        for e in range(g.ptr[v], g.ptr[v + 1]):
            u = g.neighbour[e]
            if not h.inside[u] or h.locked[u]:
                continue
            t = h.side[u]
            if h.place[t, u] >= 0:
                h.key[u] += 2 * g.weight[e] * h.across * (1.0 if t != h.side[v] else -1.0)
                changed(h.heap[t], h.place[t], h.key, h.size[t], u)
            else:
                h.key[u] = _gain(g, h, u)
                push(h.heap[t], h.place[t], h.key, h.size[t], u)
    for s in range(2):
        while h.size[s, 0] > 0:
            remove(h.heap[s], h.place[s], h.key, h.size[s], h.heap[s, 0])
    while moved > kept:
        moved -= 1
        v = h.log[moved]
        h.side[v] = 1 - h.side[v]
        held += g.volume[v] if h.side[v] == 0 else -g.volume[v]
    return held, kept > 0


@plain
def _cost(g: Graph, h: _Half) -> float:
    """Cost of what crosses, and of what other regions pull."""
    cost = 0.0
    for v in h.nodes:
        if h.side[v] == 0:
            cost += h.pull[v]
            continue
        for e in range(g.ptr[v], g.ptr[v + 1]):
            u = g.neighbour[e]
            if h.inside[u] and h.side[u] == 0:
                cost += g.weight[e] * h.across
    return cost
