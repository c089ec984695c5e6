"""Bringing a mapping within the limits on axon tables: annealing on the excess entries."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle

import numpy as np

from nmsolve.heuristics.mapping.axons.moves import crowded, shift
from nmsolve.heuristics.mapping.axons.state import AxonState, build_axons
from nmsolve.heuristics.mapping.common.room import Room, fits, put, room_of, trades
from nmsolve.heuristics.rng import below, new_rng, uniform
from nmsolve.model.compiled import plain
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import AnyArray, Int32Array, IntArray

#: Entries looked at in one kernel call (about 50 ms), and most of them in all, per entry that a node has.
SLICE, PATIENCE = 2_000_000, 2000
#: Temperature in entries: least, largest (or that part of the entries of a node), and slices from one to the other and back.
#: It starts cold: where little is wrong, little moves.
COLD, WARM, HOT, SWING = 0.02, 0.5, 0.05, 16
#: Worth of an entry that is not too many: fewer of them make room for the others.
THRIFT = 0.02
#: Nodes drawn until one is on a core with too many entries.
DRAWS = 16


def within_axons(
    problem: MappingProblem, core: IntArray, seed: int = 0, should_stop: Callable[[], bool] = lambda: False
) -> IntArray | None:
    """A mapping near ``core`` (n,) within the limits on axon tables, or None if none was found.

    ``core`` must obey all other rules; so does the answer. Random moves and swaps are taken if they lower, by Metropolis'
    rule, the number of entries that are too many (and a little the number of all): a node goes to a random core, or to
    that of another node that one of its messages reaches.
    """
    at = np.array(core, np.int64)
    state = build_axons(problem, at)
    if not state.on or state.excess[0] == 0:
        return at
    room = room_of(problem, at)._replace(core=at)  # the mapping that the axon tables see
    graph, rng = problem.graph, new_rng(seed, 11)
    effort = 2.0 + 2.0 * len(state.in_row) / problem.n
    work, swing = PATIENCE * effort * problem.n, np.geomspace(COLD, max(WARM, HOT * effort), SWING)
    piece = int(min(SLICE, work / (4 * SWING)))
    for heat in cycle([*swing, *swing[::-1]]):
        if state.excess[0] == 0 or work <= 0 or should_stop():
            break
        _relieve(state, room, graph.indptr, graph.targets, heat, piece, rng)
        work -= piece
    return at if state.excess[0] == 0 else None


@plain
def _relieve(
    a: AxonState, room: Room, pin_ptr: IntArray, pins: Int32Array, heat: float, work: int, rng: AnyArray
) -> None:
    """Try moves and swaps until no entry is too many or ``work`` is used up."""
    core = a.core
    while a.excess[0] > 0 and work > 0:
        u = crowded(a, below(rng, len(core)), DRAWS, rng)
        q, v = _goal(a, u, pin_ptr, pins, rng)
        p = core[u]
        work -= 4
        if q == p or (v >= 0 and v == u):
            continue
        if fits(room, u, q, -1):
            v = -1
        elif v < 0 or not trades(room, u, q, v):
            continue
        work -= _exchange(a, room, u, v, q, heat, rng)


@plain
def _goal(
    a: AxonState, u: int, pin_ptr: IntArray, pins: Int32Array, rng: AnyArray
) -> tuple[np.int64, np.int64]:
    """Where ``u`` might go: ``(core, node there)``; the node is -1 where the core was drawn."""
    count = a.in_ptr[u + 1] - a.in_ptr[u]
    way = below(rng, 4)
    if way == 0:
        return below(rng, a.used.shape[1]), np.int64(-1)  # numba unifies signed numbers only
    v = below(rng, len(a.core))
    if way > 1 and count > 0:
        e = a.in_row[a.in_ptr[u] + below(rng, count)]
        length = pin_ptr[e + 1] - pin_ptr[e]
        if length > 0:
            v = np.int64(pins[pin_ptr[e] + below(rng, length)])
    return a.core[v], v


@plain
def _exchange(a: AxonState, room: Room, u: int, v: int, q: int, heat: float, rng: AnyArray) -> int:
    """Move ``u`` to core ``q``, and ``v`` (-1: none) the other way, if Metropolis' rule takes it; the work done."""
    p = a.core[u]
    too_many, entries = a.excess[0], a.excess[1]
    shift(a, u, p, q)
    put(room, u, q)
    work = a.in_ptr[u + 1] - a.in_ptr[u] + 2
    if v >= 0:
        shift(a, v, q, p)
        put(room, v, p)
        work += a.in_ptr[v + 1] - a.in_ptr[v] + 2
    rise = a.excess[0] - too_many + THRIFT * (a.excess[1] - entries)
    if rise <= -heat * np.log(uniform(rng) + 1e-300):
        return work  # type: ignore[no-any-return]
    if v >= 0:
        shift(a, v, p, q)
        put(room, v, q)
    shift(a, u, q, p)
    put(room, u, p)
    return 2 * work  # type: ignore[no-any-return]
