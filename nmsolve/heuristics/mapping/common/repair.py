"""Making a mapping legal: every node to the nearest core that may and can hold it."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.common.kinds import owners
from nmsolve.heuristics.mapping.common.room import Room, fits, nearest, put, room_of
from nmsolve.heuristics.mapping.first_fit import first_fit
from nmsolve.model.compiled import plain
from nmsolve.model.mapping.kinds import KindSets
from nmsolve.model.mapping.kinds_fit import cores_needed
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray


def repair(problem: MappingProblem, wish: IntArray) -> IntArray | None:
    """A mapping that obeys capacities, faults and side constraints, close to ``wish``; None if none was
    found.

    No step of a published method: M2 and M1.4 know neither side constraints nor parts that do not fit.
    Nodes with the fewest allowed cores choose first, then nodes kept apart from others, then large ones.
    Each keeps the core it wishes if it may; the others take the nearest allowed core with room (Manhattan
    distance on the board); one that finds none pushes a single other node to a third core. Where kinds per core are
    limited, cores are first given to the kinds that wish for them most; if that does not do, any mapping will.

    Parameters
    ----------
    wish : (n,) int64 core numbers in range, otherwise arbitrary
    """
    share = (problem.sizes / np.maximum(problem.capacity.max(axis=0, initial=1), 1)).max(axis=1, initial=0.0)
    choices = problem.domains.sum(axis=1)[problem.domain_of]
    alone = np.diff(problem.apart[0]) == 0
    order = np.lexsort((-share, alone, choices))
    room, wish = room_of(problem), np.ascontiguousarray(wish, np.int64)
    if problem.kinds is None:
        return room.core if _place(room, order, wish, problem.machine.cols) else None
    done = _place(room, order, _wishes_by_kind(problem, problem.kinds, wish), problem.machine.cols)
    return room.core if done else first_fit(problem)


def _wishes_by_kind(problem: MappingProblem, sets: KindSets, wish: IntArray) -> IntArray:
    """Return (n,) cores near those wished, of which each is for as few kinds as it may have."""
    node, kind = sets.pairs()
    held = np.zeros((problem.cores, sets.number))
    np.add.at(held, (wish[node], kind), 1.0)
    limit = np.broadcast_to(problem.capacity.max(axis=0, initial=0), (sets.number, problem.sizes.shape[1]))
    free = np.where(problem.machine.usable, problem.machine.kinds_per_core or 0, 0)
    owns = owners(held, cores_needed(problem, sets, limit), free)
    at, out = np.arange(problem.cores), wish.copy()
    row, col = np.divmod(at, problem.machine.cols)
    pairs, of = np.unique(np.column_stack([sets.of, wish]), axis=0, return_inverse=True)
    there = pairs[:, 1].copy()
    for i, (s, p) in enumerate(pairs.tolist()):
        own = at[owns[:, sets.of_set(s)].all(axis=1)]
        if len(own) and not owns[p, sets.of_set(s)].all():
            there[i] = own[np.argmin(np.abs(row[own] - row[p]) + np.abs(col[own] - col[p]))]
    out[:] = there[of.ravel()]
    return out


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


@plain
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
