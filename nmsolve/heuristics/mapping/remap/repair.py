"""An old mapping made legal by few moves: every node that may stay stays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nmsolve.heuristics.mapping.common.room import Room, fits, nearest, put, room_of
from nmsolve.heuristics.mapping.first_fit import make_room
from nmsolve.model.compiled import plain
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray


def stay_put(
    problem: MappingProblem, wish: IntArray, should_stop: Callable[[], bool] = lambda: False
) -> IntArray | None:
    """A feasible mapping that differs from ``wish`` in few nodes, or None if none was found.

    Where a core is overfull, small nodes and those that represent many stay, which keeps most of them (exactly the most
    where there is one resource and no ``apart``). The others go to the nearest core with room, the largest first; one
    that finds none pushes others along a shortest chain.

    Parameters
    ----------
    wish : (n,) int64 core numbers, in range
    should_stop : asked for every node that needs another core; None is returned once it says True
    """
    share = (problem.sizes / np.maximum(problem.capacity.max(axis=0, initial=1), 1)).max(axis=1, initial=0.0)
    worth = np.ones(problem.n) if problem.migration is None else problem.migration.weight
    room = room_of(problem)
    _keep(room, np.argsort(share / worth, kind="stable"), np.ascontiguousarray(wish, np.int64))
    homeless = np.flatnonzero(room.core < 0)
    choices = problem.domains.sum(axis=1)[problem.domain_of[homeless]]
    for u in homeless[np.lexsort((-share[homeless], choices))].tolist():
        if should_stop():
            return None
        p = nearest(room, u, int(wish[u]), problem.machine.cols)
        if p >= 0:
            put(room, u, p)
        elif not make_room(room, u):
            return None
    return room.core


@plain
def _keep(room: Room, order: IntArray, wish: IntArray) -> None:
    """Give every node, in ``order``, the core it wishes if that is still allowed."""
    for u in order:
        if fits(room, u, wish[u], -1):
            put(room, u, wish[u])
