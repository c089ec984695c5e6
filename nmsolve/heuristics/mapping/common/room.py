"""Who fits where: capacities, allowed cores, kinds and ``apart`` of a mapping that is being made or changed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.common.kinds import Presence, company, enter, kinds_of, leave, recount
from nmsolve.model.compiled import embedded, plain
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray, Int32Array, IntArray


class Room(NamedTuple):
    """Sizes, limits and side constraints as in ``MappingProblem``, and a mapping that changes in place.

    ``load`` (P, resources) is what the nodes take of each core, ``core`` (n,) where they are (-1: nowhere yet). Rings of the
    nodes of each core, ``head`` (P,), ``after`` and ``before`` (n,): kept by :func:`seat` and :func:`refill`, not by
    :func:`put`. Sets of kinds ``kind_of`` (n,), none where kinds are not limited; ``kinds``, which are on which core.
    """

    sizes: IntArray
    capacity: IntArray
    load: IntArray
    domain_of: Int32Array
    domains: BoolArray
    apart_ptr: IntArray
    apart: Int32Array
    core: IntArray
    head: IntArray
    after: IntArray
    before: IntArray
    kind_of: Int32Array
    kinds: Presence


def room_of(problem: MappingProblem, core: IntArray | None = None) -> Room:
    """The empty room of a problem, or that of the mapping ``core`` (n,). Copies: numba compiles again for read-only arrays."""
    n, cores, (kind_of, kinds) = problem.n, problem.cores, kinds_of(problem)
    room = Room(
        sizes=np.array(problem.sizes),
        capacity=np.array(problem.capacity),
        load=np.zeros(problem.capacity.shape, np.int64),
        domain_of=np.array(problem.domain_of),
        domains=np.array(problem.domains),
        apart_ptr=np.array(problem.apart[0]),
        apart=np.array(problem.apart[1]),
        core=np.full(n, -1, np.int64),
        head=np.full(cores, -1, np.int64),
        after=np.zeros(n, np.int64),
        before=np.zeros(n, np.int64),
        kind_of=kind_of,
        kinds=kinds,
    )
    if core is not None:
        room.core[:] = core
        refill(room)
    return room


@embedded
def fits(s: Room, u: int, p: int, without: int) -> bool:
    """True if node ``u`` may go to core ``p`` once node ``without`` (-1: none) has left it."""
    if not s.domains[s.domain_of[u], p]:
        return False
    for r in range(s.sizes.shape[1]):
        spare = s.capacity[p, r] - s.load[p, r]
        if without >= 0:
            spare += s.sizes[without, r]
        if s.sizes[u, r] > spare:
            return False
    clear = len(s.kind_of) == 0 or kinds_fit(s, u, p, without)
    for e in range(s.apart_ptr[u], s.apart_ptr[u + 1]):
        v = s.apart[e]
        clear = clear and (s.core[v] != p or v == without)
    return clear


@plain
def trades(s: Room, u: int, q: int, v: int) -> bool:
    """True if node ``u`` may go to core ``q``, and node ``v`` (-1: none) from there to where ``u`` is."""
    return bool(fits(s, u, q, v) and (v < 0 or fits(s, v, s.core[u], u)))


@plain
def kinds_fit(s: Room, u: int, p: int, without: int) -> bool:
    """True if the kinds on core ``p`` allow node ``u`` once node ``without`` (-1: none) has left it; kinds are limited."""
    goes = np.int64(s.kind_of[without]) if without >= 0 else np.int64(-1)
    return bool(company(s.kinds, p, s.kind_of[u], goes) <= s.kinds.most[p])


@embedded
def put(s: Room, u: int, p: int) -> None:
    """Move node ``u`` to core ``p`` (from another, or from nowhere); rules are not asked."""
    q = s.core[u]
    for r in range(s.sizes.shape[1]):
        if q >= 0:
            s.load[q, r] -= s.sizes[u, r]
        s.load[p, r] += s.sizes[u, r]
    if len(s.kind_of) > 0:
        if q >= 0:
            leave(s.kinds, q, s.kind_of[u])
        enter(s.kinds, p, s.kind_of[u])
    s.core[u] = p


@plain
def seat(s: Room, u: int, p: int) -> None:
    """:func:`put` node ``u`` on core ``p``, and into its ring."""
    if s.core[u] >= 0:
        ring_out(s, u, s.core[u])
    ring_in(s, u, p)
    put(s, u, p)


@plain
def refill(s: Room) -> None:
    """Recompute loads, kinds and rings from ``core``; every node is placed."""
    recount(s.kinds, s.kind_of, s.core)
    s.load[:] = 0
    s.head[:] = -1
    for u in range(len(s.core)):
        p = s.core[u]
        ring_in(s, u, p)
        for r in range(s.sizes.shape[1]):
            s.load[p, r] += s.sizes[u, r]


@plain
def ring_in(s: Room, u: int, p: int) -> None:
    """Put node ``u`` into the ring of core ``p``, before its head."""
    h = s.head[p]
    if h < 0:
        s.head[p] = s.after[u] = s.before[u] = u
    else:
        b = s.before[h]
        s.after[b], s.before[u], s.after[u], s.before[h] = u, b, h, u


@plain
def ring_out(s: Room, u: int, p: int) -> None:
    """Take node ``u`` out of the ring of core ``p``."""
    a, b = s.after[u], s.before[u]
    if a == u:
        s.head[p] = -1
    else:
        s.after[b], s.before[a] = a, b
        if s.head[p] == u:
            s.head[p] = a


@plain
def nearest(s: Room, u: int, wish: int, cols: int) -> int:
    """The core nearest to ``wish`` on the board that takes ``u``, other than its present one; or -1."""
    best, least = -1, 1 << 62
    for p in range(s.load.shape[0]):
        away = abs(p // cols - wish // cols) + abs(p % cols - wish % cols)
        if p != s.core[u] and away < least and fits(s, u, p, -1):
            best, least = p, away
    return best
