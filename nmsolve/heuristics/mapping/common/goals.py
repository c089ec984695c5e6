"""Where a node might go: to those it talks to, next to them, or anywhere; with whom it changes places there."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from nmsolve.heuristics.mapping.common.room import Room, fits, trades
from nmsolve.heuristics.rng import below, uniform
from nmsolve.hw.links import Links
from nmsolve.model.compiled import plain
from nmsolve.model.graph import Rows
from nmsolve.model.types import AnyArray, Int32Array, IntArray

#: Part of the tries that go to any core, and of the others the part that starts from any node.
FAR, ANYWHERE = 0.1, 0.25


class Places(Protocol):
    """The part of a kernel's state that is read here: messages, the rows of every node, cores and their links."""

    @property
    def nets(self) -> Rows: ...
    @property
    def row_ptr(self) -> IntArray: ...
    @property
    def rows(self) -> Int32Array: ...
    @property
    def room(self) -> Room: ...
    @property
    def links(self) -> Links: ...


@plain
def partner(s: Places, u: int, rng: AnyArray) -> np.int64:
    """A node to go to: one of a random message of ``u``, or any."""
    rows = s.row_ptr[u + 1] - s.row_ptr[u]
    if rows == 0 or uniform(rng) < ANYWHERE:
        return np.int64(below(rng, len(s.room.core)))
    i = s.rows[s.row_ptr[u] + below(rng, rows)]
    pins = s.nets.indptr[i + 1] - s.nets.indptr[i]
    if s.nets.source[i] != u or pins == 0:
        return np.int64(s.nets.source[i])
    return np.int64(s.nets.targets[s.nets.indptr[i] + below(rng, pins)])


@plain
def goal(s: Places, u: int, rng: AnyArray) -> np.int64:
    """A core to try: of a partner, next to it, or any."""
    if uniform(rng) < FAR:
        return np.int64(below(rng, len(s.room.capacity)))
    q = s.room.core[partner(s, u, rng)]
    if uniform(rng) < 0.5:
        near = s.links.ends[4 * q + below(rng, 4)]
        if near >= 0:
            return np.int64(near)
    return np.int64(q)


@plain
def some_change(s: Places, rng: AnyArray) -> tuple[np.int64, np.int64, np.int64]:
    """A random node, a core that it may go to, and the node there that it changes places with (-1: none).

    The node is -1 if none was found. What it has to change with is the head of a ring, which turns.
    """
    room = s.room
    u = below(rng, len(room.core))
    p, q, v = room.core[u], np.int64(goal(s, u, rng)), np.int64(-1)
    if q == p:
        return np.int64(-1), q, v
    if not fits(room, u, q, -1):
        v = np.int64(room.head[q])
        if v < 0:
            return np.int64(-1), q, v
        room.head[q] = room.after[v]  # next time another one
        if not trades(room, u, q, v):
            return np.int64(-1), q, v
    return u, q, v
