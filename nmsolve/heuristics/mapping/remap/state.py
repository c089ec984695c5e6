"""What the re-mapping kernels read and change."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.common.room import Room, room_of, seat
from nmsolve.hw.cost import CoreDistance
from nmsolve.hw.deltas import Arcs, Charged, deltas_of, net_delta, pair_move_delta, pair_swap_delta
from nmsolve.model.compiled import embedded, plain
from nmsolve.model.mapping.migration_fit import homes_of
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray, read_only

#: Nodes sent home in exchange for one that leaves.
SENT_HOME = 4


class Rules(NamedTuple):
    """What counts as moved: ``home`` (n,) the core that a node was on, -1 where it may not be there any more; ``weight``
    and the CSR ``home_ptr``, ``home_core``, ``home_count`` as in ``Migration``; ``budget`` user's nodes may move.
    ``places`` are the usable cores."""

    home: IntArray
    weight: IntArray
    home_ptr: IntArray
    home_core: IntArray
    home_count: IntArray
    budget: int
    places: IntArray
    cols: int
    mesh: bool


class Prices(NamedTuple):
    """What pairs that talk cost, or, if ``by_nets``, messages."""

    arcs: Arcs
    distance: CoreDistance
    nets: Charged
    by_nets: bool


class RemapState(NamedTuple):
    """A mapping that changes, ``room``; ``away``: the nodes not at home (the first ``tally[1]`` entries), ``spot`` (n,) where a
    node is in it, -1 if at home; ``tally[0]`` user's nodes moved; ``trail``: who came from where in one change."""

    room: Room
    away: IntArray
    spot: IntArray
    tally: IntArray
    trail: IntArray


def rules_of(problem: MappingProblem) -> Rules:
    """The rules of a problem with a migration budget."""
    migration = problem.migration
    assert migration is not None
    tables = (homes_of(problem)[0], migration.weight, *migration.homes)
    mesh = problem.machine.distance_matrix is None
    every: tuple[Any, ...] = (
        *map(np.array, tables), migration.budget, np.flatnonzero(problem.machine.usable), problem.machine.cols, mesh,
    )  # fmt: skip
    return Rules(*every)


def prices_of(problem: MappingProblem) -> Prices:
    """What moves cost, for every objective that is a sum."""
    d = deltas_of(problem)
    return Prices(d.arcs, d.distance, d.nets, d.by_nets)


def new_state(problem: MappingProblem, rules: Rules, core: IntArray) -> RemapState:
    """The state of the mapping ``core`` (n,), which is copied."""
    n = problem.n
    trail = np.zeros((2 * (SENT_HOME + 1), 2), np.int64)
    state = RemapState(
        room_of(problem), np.zeros(n, np.int64), np.full(n, -1, np.int64), np.zeros(2, np.int64), trail
    )
    put_all(state, rules, read_only(np.asarray(core, np.int64)))
    return state


@plain
def put_all(s: RemapState, rules: Rules, core: IntArray) -> None:
    """Put every node on its core in ``core``; nodes may be on cores already."""
    for u in range(len(core)):
        if s.room.core[u] != core[u]:
            relocate(s, rules, u, core[u])


@embedded
def amount(rules: Rules, u: int, p: int) -> int:
    """Members of node ``u`` that have moved if it sits on core ``p``."""
    for k in range(rules.home_ptr[u], rules.home_ptr[u + 1]):
        if rules.home_core[k] == p:
            return rules.weight[u] - rules.home_count[k]  # type: ignore[no-any-return]
    return rules.weight[u]  # type: ignore[no-any-return]


@embedded
def relocate(s: RemapState, rules: Rules, u: int, p: int) -> None:
    """Move node ``u`` to core ``p`` (from nowhere, if it is on none) and keep all tables right; rules are not asked."""
    q = s.room.core[u]
    if q >= 0:
        s.tally[0] -= amount(rules, u, q)
    s.tally[0] += amount(rules, u, p)
    seat(s.room, u, p)
    if p == rules.home[u] and s.spot[u] >= 0:
        s.tally[1] -= 1
        last = s.away[s.tally[1]]
        s.away[s.spot[u]], s.spot[last] = last, s.spot[u]
        s.spot[u] = -1
    elif p != rules.home[u] and s.spot[u] < 0:
        s.away[s.tally[1]], s.spot[u] = u, s.tally[1]
        s.tally[1] += 1


@embedded
def change(s: RemapState, prices: Prices, u: int, p: int, v: int) -> float:
    """Change of the objective if ``u`` goes to core ``p`` and ``v`` (-1: none) to where ``u`` is."""
    if prices.by_nets:
        return net_delta(u, p, v, prices.nets, s.room.core, prices.distance)  # type: ignore[no-any-return]
    if v >= 0:
        return pair_swap_delta(u, v, prices.arcs, s.room.core, prices.distance)  # type: ignore[no-any-return]
    return pair_move_delta(u, p, -1, prices.arcs, s.room.core, prices.distance)  # type: ignore[no-any-return]
