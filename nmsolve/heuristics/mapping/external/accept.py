"""Accepting proposals one at a time in a fixed order against live capacities, and the prices of full cores."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.external.arcs import RUN
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import AnyArray, FloatArray, Int32Array, IntArray

#: Rounds in which refused nodes try again, once others have left.
ROUNDS = 4
#: Highest change of a price in one update, in units of the temperature.
STEEP = 1.0


class Placement(NamedTuple):
    """Where the nodes of a level are.

    pos (n,) uint16 or int32; load (P, R) int64; limit (P, R): what no move may exceed; goal (P, R) <= limit: what prices see to;
    price (P,) float32 per volume; came, left (P,) float64: volume that wanted to come and that left since the prices
    were last set. The margin between goal and limit lets nodes pass each other where all cores are full.
    """

    pos: AnyArray
    load: IntArray
    limit: IntArray
    goal: IntArray
    price: AnyArray
    came: FloatArray
    left: FloatArray


def placement(
    sizes: IntArray, pos: Int32Array, limit: IntArray, goal: IntArray, price: AnyArray | None = None
) -> Placement:
    """The placement ``pos`` (copied) under ``limit``; all prices 0 unless given."""
    cores = len(goal)
    load = np.zeros_like(goal)
    for r in range(sizes.shape[1]):
        load[:, r] = np.bincount(pos, sizes[:, r], cores).astype(np.int64)
    start = np.zeros(cores, np.float32) if price is None else price.copy()
    small = np.uint16 if cores <= 2**16 else np.int32  # what neighbours look up should stay in the cache
    return Placement(
        pos.astype(small), load, limit.copy(), goal.copy(), start, np.zeros(cores), np.zeros(cores)
    )


@plain
def fits(s: Placement, limit: IntArray, sizes: IntArray, u: int, p: int) -> bool:
    """True if core ``p`` has room for node ``u`` within ``limit`` (P, R)."""
    for r in range(sizes.shape[1]):  # noqa: SIM110 (numba)
        if sizes[u, r] > 0 and s.load[p, r] + sizes[u, r] > limit[p, r]:
            return False
    return True


@plain
def _overfull(s: Placement, p: int) -> bool:
    for r in range(s.load.shape[1]):  # noqa: SIM110 (numba)
        if s.load[p, r] > s.goal[p, r]:
            return True
    return False


@plain
def welcome(s: Placement, apart_ptr: IntArray, apart: Int32Array, u: int, p: int) -> bool:
    """True if no node is on core ``p`` from which ``u`` has to be apart."""
    for e in range(apart_ptr[u], apart_ptr[u + 1]):  # noqa: SIM110 (numba)
        if s.pos[apart[e]] == p:
            return False
    return True


@plain
def _put(s: Placement, sizes: IntArray, volume: AnyArray, u: int, p: int) -> None:
    q = s.pos[u]
    for r in range(sizes.shape[1]):
        s.load[q, r] -= sizes[u, r]
        s.load[p, r] += sizes[u, r]
    s.left[q] += volume[u]
    s.pos[u] = p


@kernel
def accept(
    s: Placement, sizes: IntArray, volume: AnyArray, apart_ptr: IntArray, apart: Int32Array, first: int, begin: int,
    end: int, stride: int, to: Int32Array, evict: bool,
) -> int:  # fmt: skip
    """Move the runs of nodes at ``first + begin, first + begin + stride, ...`` to the cores ``to`` as far as these have
    room.

    Who finds none tries again after the others, some of whom have made room. With ``evict`` only nodes of cores above
    their goal move. Returns the moves.
    """
    waiting = np.empty(RUN * ((max(0, end - begin) + stride - 1) // stride), np.int64)
    k = 0
    for group in range(begin, end, stride):
        for i in range(group, min(end, group + RUN)):
            u = first + i
            if to[i] != s.pos[u]:
                s.came[to[i]] += volume[u]
                waiting[k] = i
                k += 1
    moves = 0
    for _ in range(ROUNDS):
        left = 0
        for j in range(k):
            u, p = first + waiting[j], to[waiting[j]]
            if evict and not _overfull(s, s.pos[u]):
                continue
            if fits(s, s.limit, sizes, u, p) and welcome(s, apart_ptr, apart, u, p):
                _put(s, sizes, volume, u, p)
                moves += 1
            else:
                waiting[left] = waiting[j]
                left += 1
        if left == k:
            break
        k = left
    return moves


@kernel
def reprice(s: Placement, temperature: float, grain: float) -> None:
    """Set the prices so that about as much volume wants to come as there is room for, and start counting again.

    Both flows change by a factor ``exp(-+ price / T)``, so half the logarithm of their ratio would balance a core at
    once; ``grain`` (a node's volume) keeps the logarithm of small counts small. What a core holds too much counts as
    wanting to come.
    """
    for p in range(len(s.price)):
        room = np.inf
        for r in range(s.load.shape[1]):
            if s.goal[p, r] > 0:
                room = min(room, (s.goal[p, r] - s.load[p, r]) / s.goal[p, r])
        excess = np.log((s.came[p] + max(0.0, -room) + grain) / (s.left[p] + max(0.0, room) + grain))
        step = min(STEEP, max(-STEEP, 0.5 * excess))
        s.price[p] = max(0.0, s.price[p] + temperature * step / grain)
        s.came[p] = 0.0
        s.left[p] = 0.0
    s.price[:] -= s.price.min()  # only differences matter
