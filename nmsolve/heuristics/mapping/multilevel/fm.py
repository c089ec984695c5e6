"""Bisection of one region's nodes: greedy growing and Fiduccia–Mattheyses passes with rollback.

The two sides are the two halves of a region of cores. A node's *pull* is what side 0 costs it more than side 1
because of nodes outside the region (terminal propagation); an edge across the cut costs ``weight * across``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.common.heap import changed, push, remove
from nmsolve.heuristics.mapping.multilevel.levels import Net
from nmsolve.heuristics.rng import below, uniform
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import AnyArray, FloatArray, Int32Array, IntArray


class Half(NamedTuple):
    """A region that is to be cut in two; see :func:`bisect`."""

    net: Net
    nodes: Int32Array
    local: Int32Array
    pull: FloatArray
    across: float
    room: IntArray
    goal: float
    fixed: AnyArray


class Sides(NamedTuple):
    """Two sides: ``side`` (k,) of every node, ``load`` (2, R), and by side a heap of the nodes that may still switch, with
    the gains ``key`` (k,); ``waiting`` (2, 1) nodes in each heap."""

    side: AnyArray
    load: IntArray
    key: FloatArray
    heap: AnyArray
    place: Int32Array
    waiting: AnyArray


@plain
def _excess(load: IntArray, room: IntArray) -> float:
    """By how much the sides overflow, in shares of their room, summed over resources."""
    out = 0.0
    for s in range(2):
        for r in range(load.shape[1]):
            if load[s, r] > room[s, r]:
                out += (load[s, r] - room[s, r]) / max(1.0, float(room[s, r]))
    return out


@plain
def _fits(net: Net, u: int, s: int, load: IntArray, room: IntArray) -> bool:
    for r in range(load.shape[1]):  # noqa: SIM110 (numba)
        if load[s, r] + net.sizes[u, r] > room[s, r]:
            return False
    return True


@plain
def _gains(half: Half, work: Sides) -> None:
    """Gain (decrease of cost) of switching every node's side."""
    net, nodes, local = half.net, half.nodes, half.local
    side, pull, across = work.side, half.pull, half.across
    key = work.key
    for i in range(len(nodes)):
        u = nodes[i]
        gain = pull[i] if side[i] == 0 else -pull[i]
        for e in range(net.indptr[u], net.indptr[u + 1]):
            j = local[net.indices[e]]
            if j >= 0:
                gain += net.weights[e] * across if side[j] != side[i] else -net.weights[e] * across
        key[i] = gain


@plain
def _switch(half: Half, work: Sides, i: int) -> None:
    """Switch node ``i`` and update the gains of its neighbours that are still in a heap."""
    net, nodes, local = half.net, half.nodes, half.local
    side, across, key = work.side, half.across, work.key
    load, heap, place = work.load, work.heap, work.place
    count = work.waiting
    u, s = nodes[i], side[i]
    for r in range(load.shape[1]):
        load[s, r] -= net.sizes[u, r]
        load[1 - s, r] += net.sizes[u, r]
    side[i] = 1 - s
    for e in range(net.indptr[u], net.indptr[u + 1]):
        j = local[net.indices[e]]
        if j >= 0 and place[j] >= 0:
            t = side[j]
            key[j] += 2 * net.weights[e] * across * (1.0 if t == s else -1.0)
            changed(heap[t], place, key, count[t], j)


@plain
def _grow(half: Half, work: Sides, rng: AnyArray) -> None:
    """Move nodes from side 1 to side 0, best gain first from a random node, until side 0 has volume ``goal``."""
    net, nodes, side = half.net, half.nodes, work.side
    room, load, fixed = half.room, work.load, half.fixed
    goal, key, heap = half.goal, work.key, work.heap
    place, count = work.place, work.waiting
    _gains(half, work)
    place[:] = -1
    count[:] = 0
    got, first = 0.0, below(rng, len(nodes))
    for i in range(len(nodes)):
        if side[i] == 0:
            got += net.volume[nodes[i]]
        elif fixed[i] < 0:
            push(heap[1], place, key, count[1], i)
    if got == 0.0 and place[first] >= 0:
        key[first] += 1e300
        changed(heap[1], place, key, count[1], first)
    while got < goal and count[1, 0] > 0:
        i = heap[1, 0]
        remove(heap[1], place, key, count[1], i)
        if _fits(net, nodes[i], 0, load, room):
            _switch(half, work, i)
            got += net.volume[nodes[i]]


@kernel
def _pass(half: Half, work: Sides) -> bool:
    """One FM pass: every node moves at most once, then back to the best prefix. True if anything was gained."""
    net, nodes, side = half.net, half.nodes, work.side
    room, load, fixed = half.room, work.load, half.fixed
    key, heap, place = work.key, work.heap, work.place
    count = work.waiting
    n = len(nodes)
    _gains(half, work)
    place[:] = -1
    count[:] = 0
    for i in range(n):
        if fixed[i] < 0:
            push(heap[side[i]], place, key, count[side[i]], i)
    moved = np.empty(n, np.int32)
    k, best_k = 0, 0
    start = _excess(load, room)
    excess, best_excess, gain, best_gain = start, start, 0.0, 0.0
    patience = max(100, n // 3)
    while count[0, 0] + count[1, 0] > 0 and k - best_k < patience:
        s = 0
        if count[0, 0] == 0 or (count[1, 0] > 0 and key[heap[1, 0]] > key[heap[0, 0]]):
            s = 1
        if excess > 0.0 and count[0, 0] > 0 and count[1, 0] > 0:
            over = np.zeros(2)
            for t in range(2):
                for r in range(load.shape[1]):
                    over[t] = max(over[t], float(load[t, r] - room[t, r]))
            if over[0] != over[1]:
                s = 0 if over[0] > over[1] else 1
        i = heap[s, 0]
        remove(heap[s], place, key, count[s], i)
        if excess == 0.0 and not _fits(net, nodes[i], 1 - s, load, room):
            continue
        gain += key[i]
        _switch(half, work, i)
        excess = _excess(load, room)
        moved[k] = i
        k += 1
        if excess < best_excess - 1e-12 or (excess <= best_excess + 1e-12 and gain > best_gain + 1e-9):
            best_k, best_gain, best_excess = k, gain, excess
    for m in range(k - 1, best_k - 1, -1):
        i = moved[m]
        u, s = nodes[i], side[i]
        for r in range(load.shape[1]):
            load[s, r] -= net.sizes[u, r]
            load[1 - s, r] += net.sizes[u, r]
        side[i] = 1 - s
    return best_gain > 1e-9 or best_excess < start - 1e-12


@plain
def _cost(half: Half, work: Sides) -> float:
    net, nodes, local = half.net, half.nodes, half.local
    side, pull, across = work.side, half.pull, half.across
    total = 0.0
    for i in range(len(nodes)):
        if side[i] == 0:
            total += pull[i]
        for e in range(net.indptr[nodes[i]], net.indptr[nodes[i] + 1]):
            j = local[net.indices[e]]
            if j > i and side[j] != side[i]:
                total += net.weights[e] * across
    return total


@kernel
def bisect(
    net: Net, nodes: Int32Array, local: Int32Array, pull: FloatArray, across: float, room: IntArray, goal: float,
    fixed: AnyArray, start: AnyArray, tries: int, rng: AnyArray,
) -> AnyArray:  # fmt: skip
    """Side (k,) int8 of each of ``nodes``: the best of ``start`` and several growings, refined by FM passes.

    Parameters
    ----------
    nodes : (k,) node numbers; local : (n,) index into ``nodes``, -1 for all other nodes
    pull : (k,) cost of side 0 minus cost of side 1
    room : (2, R) capacity of both sides; goal : volume that growing aims at on side 0
    fixed : (k,) int8: -1 free, else the side on which the node must stay
    start : (k,) int8 sides to begin the first of ``tries`` with; or empty
    """
    half, k = Half(net, nodes, local, pull, across, room, goal, fixed), len(nodes)
    key, place = np.zeros(k), np.full(k, -1, np.int32)
    heap, count = np.zeros((2, k), np.int32), np.zeros((2, 1), np.int64)
    best, best_cost, best_excess = np.zeros(k, np.int8), np.inf, np.inf
    for attempt in range(tries):
        given = attempt == 0 and len(start) > 0
        side = start.copy() if given else np.ones(k, np.int8)
        load = np.zeros_like(room)
        for i in range(k):
            if fixed[i] >= 0:
                side[i] = fixed[i]
            elif not given and attempt % 4 == 3:
                side[i] = 0 if uniform(rng) < 0.5 else 1
            for r in range(room.shape[1]):
                load[side[i], r] += net.sizes[nodes[i], r]
        work = Sides(side, load, key, heap, place, count)
        if not given and attempt % 4 != 3:
            _grow(half, work, rng)
        for _ in range(8):
            if not _pass(half, work):
                break
        cost, excess = _cost(half, work), _excess(load, room)
        if excess < best_excess - 1e-12 or (excess <= best_excess + 1e-12 and cost < best_cost):
            best, best_cost, best_excess = side.copy(), cost, excess
    return best
