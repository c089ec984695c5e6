"""Which kinds of nodes are on which core, and whether another node may come (``kinds_per_core``)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.model.compiled import plain
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray, FloatArray, Int32Array, IntArray


class Presence(NamedTuple):
    """Kinds on cores. Where no limit can bind, there are no sets and no kinds.

    ``items[ptr[s]:ptr[s + 1]]`` kinds of set s, as in :class:`~nmsolve.model.mapping.kinds.KindSets`; ``most`` (P,) kinds that a
    core may have; ``nodes`` (P, kinds) int32 counts the nodes of every kind on every core, ``kinds`` (P,) the kinds with any.
    """

    ptr: IntArray
    items: Int32Array
    most: IntArray
    nodes: Int32Array
    kinds: IntArray


def kinds_of(problem: MappingProblem) -> tuple[Int32Array, Presence]:
    """Return the set of kinds of every node (n,), none where no limit can bind, and empty cores.

    Copies: numba compiles again for read-only arrays.
    """
    sets, most = problem.kinds, problem.machine.kinds_per_core
    if sets is None or most is None:
        return np.zeros(0, np.int32), unlimited()
    limit = np.full(problem.cores, most, np.int64)
    return np.array(sets.of), no_one(np.array(sets.ptr), np.array(sets.items), limit, sets.number)


def unlimited() -> Presence:
    """Return what stands for cores that may have any number of kinds."""
    return no_one(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int64), 0)


def no_one(ptr: IntArray, items: Int32Array, most: IntArray, kinds: int) -> Presence:
    """Return empty cores, with these sets and limits."""
    cores = len(most)
    return Presence(ptr, items, most, np.zeros((cores, kinds), np.int32), np.zeros(cores, np.int64))


@plain
def company(s: Presence, p: int, comes: int, goes: int) -> np.int64:
    """How many kinds core ``p`` has once a node with the set ``comes`` came and one with the set ``goes`` left (-1: none)."""
    out = s.kinds[p]
    if comes >= 0:
        for e in range(s.ptr[comes], s.ptr[comes + 1]):
            if s.nodes[p, s.items[e]] == 0:
                out += 1
    if goes >= 0:
        for e in range(s.ptr[goes], s.ptr[goes + 1]):
            k = s.items[e]
            stays = s.nodes[p, k] > 1
            if comes >= 0:
                for i in range(s.ptr[comes], s.ptr[comes + 1]):
                    stays = stays or s.items[i] == k
            if not stays:
                out -= 1
    return np.int64(out)


@plain
def enter(s: Presence, p: int, comes: int) -> None:
    """A node with the set ``comes`` comes to core ``p``."""
    for e in range(s.ptr[comes], s.ptr[comes + 1]):
        k = s.items[e]
        if s.nodes[p, k] == 0:
            s.kinds[p] += 1
        s.nodes[p, k] += 1


@plain
def leave(s: Presence, p: int, goes: int) -> None:
    """A node with the set ``goes`` leaves core ``p``."""
    for e in range(s.ptr[goes], s.ptr[goes + 1]):
        k = s.items[e]
        s.nodes[p, k] -= 1
        if s.nodes[p, k] == 0:
            s.kinds[p] -= 1


@plain
def recount(s: Presence, of: Int32Array, core: IntArray) -> None:
    """Count all kinds again: node u with the set ``of[u]`` is on ``core[u]``. Nothing where no limit can bind."""
    if s.nodes.shape[1] == 0:
        return
    s.nodes[:] = 0
    s.kinds[:] = 0
    for u in range(len(core)):
        enter(s, core[u], of[u])


def owners(held: FloatArray, need: IntArray, free: IntArray) -> BoolArray:
    """Return (P, kinds) which cores are for which kinds: those that have most of them first, then what a kind still needs.

    ``held`` (P, kinds) is how much of every kind is on every core, ``need`` (kinds,) the cores that a kind takes at least, and
    ``free`` (P,) how many kinds a core may have.
    """
    cores, kinds = held.shape
    order = np.argsort(-held, axis=None, kind="stable")[: int((held > 0).sum())]
    owns = np.zeros((cores, kinds), bool)
    _give(order // kinds, order % kinds, need.copy(), free.astype(np.int64), owns)
    return owns


@plain
def _give(cores: IntArray, kinds: IntArray, need: IntArray, free: IntArray, owns: BoolArray) -> None:
    """Give cores to kinds in this order, at most ``free`` (P,) kinds each, and leave the others what they ``need``."""
    left, missing = free.sum(), need.sum()
    for i in range(len(cores)):
        p, k = cores[i], kinds[i]
        if free[p] > 0 and (need[k] > 0 or left > missing):
            owns[p, k] = True
            free[p] -= 1
            left -= 1
            if need[k] > 0:
                need[k] -= 1
                missing -= 1
    for k in range(len(need)):
        for p in range(len(free)):
            if need[k] > 0 and free[p] > 0 and not owns[p, k]:
                owns[p, k] = True
                free[p] -= 1
                need[k] -= 1
