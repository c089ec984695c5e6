"""Making a mapping legal: every node to the nearest core that may and can hold it."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.common.room import Room, fits, nearest, put, room_of
from nmsolve.model.compiled import plain, plain_callee
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray


def repair(problem: MappingProblem, wish: IntArray) -> IntArray | None:
    """A mapping that obeys capacities, faults and side constraints, close to ``wish``; None if none was
    found.

    No step of a published method: M2 and M1.4 know neither side constraints nor parts that do not fit.
    Nodes with the fewest allowed cores choose first, then nodes kept apart from others, then large ones.
    Each keeps the core it wishes if it may; the others take the nearest allowed core with room (Manhattan
    distance on the board); one that finds none pushes a single other node to a third core.

    Parameters
    ----------
    wish : (n,) int64 core numbers in range, otherwise arbitrary
    """
    share = (problem.sizes / np.maximum(problem.capacity.max(axis=0, initial=1), 1)).max(axis=1, initial=0.0)
    choices = problem.domains.sum(axis=1)[problem.domain_of]
    alone = np.diff(problem.apart[0]) == 0
    order = np.lexsort((-share, alone, choices))
    room = room_of(problem)
    done = _place(room, order, np.ascontiguousarray(wish, np.int64), problem.machine.cols)
    return room.core if done else None


@plain
def _place(room: Room, order: IntArray, wish: IntArray, cols: int) -> bool:
    """Give every node a core, in ``order``; False if one found none."""
    for u in order:
        if fits(room, u, wish[u], -1):
            put(room, u, wish[u])
        elif room.domain_of[u] > 0:
            p = nearest(room, u, wish[u], cols)
            if p >= 0:
                put(room, u, p)
    for u in order:
        if room.core[u] >= 0:
            continue
        p = nearest(room, u, wish[u], cols)
        if p < 0:
            p = _push(room, u, cols)
        if p < 0:
            return False
        put(room, u, p)
    return True


@plain_callee
def _push(room: Room, u: int, cols: int) -> int:
    """Make room for ``u`` by moving one node to a third core; the core freed, or -1."""
    for v in range(len(room.core)):
        p = int(room.core[v])
        if p < 0 or not fits(room, u, p, v):
            continue
        q = nearest(room, v, p, cols)
        if q >= 0:
            put(room, v, q)
            return p
    return -1
