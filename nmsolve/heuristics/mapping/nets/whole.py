"""The coarsest level of a net problem: all nodes of a core are one vertex, and cores trade places.

Where a message reaches most cores anyway, which parts of a network are neighbours on the board decides most. The lists
are read off the finest level's hits, so that nothing is streamed for it.
"""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.common.room import fits
from nmsolve.heuristics.mapping.nets.incidence import Incidence, gap_bytes, unpack
from nmsolve.heuristics.mapping.nets.levels import NetLevel
from nmsolve.heuristics.mapping.nets.moves import shift
from nmsolve.heuristics.mapping.nets.state import NetTables, Vertices, Work
from nmsolve.heuristics.rng import below, uniform
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.store.varint import put
from nmsolve.model.types import AnyArray, BoolArray, FloatArray, Int32Array, IntArray, frozen, starts

#: Messages that decide the order of whole cores.
ROWS = 1000


def sampled(rate: FloatArray, seed: int) -> FloatArray:
    """(rows,) the rates of :data:`ROWS` random messages, scaled up to represent all; 0 for the others.

    Messages from one core to the same cores are alike as far as whole cores are concerned.
    """
    if len(rate) <= ROWS:
        return rate
    chosen = np.random.default_rng([seed & (2**63 - 1), ROWS]).permutation(len(rate))[:ROWS]
    out = np.zeros_like(rate)
    out[chosen] = rate[chosen] * (len(rate) / ROWS)
    return out


def whole_cores(t: NetTables, nodes: IntArray, rate: FloatArray) -> tuple[NetLevel, BoolArray]:
    """The level whose vertices are the used cores of mapping ``nodes`` (nodes,), for which ``t`` is filled.

    Also (vertices, P) bool, the cores on which every node of a vertex is allowed. Messages with ``rate`` (rows,) 0
    are left out.
    """
    used, label = np.unique(nodes, return_inverse=True)
    number = np.full(len(t.room.load), -1, np.int32)
    number[used] = np.arange(len(used))
    size = np.zeros(len(used), np.int64)
    _walk(t.hits, t.origin, rate, number, np.zeros(0, np.int64), size, np.zeros(0, np.uint8))
    at = starts(size)
    data = np.empty(int(at[-1]), np.uint8)
    _walk(t.hits, t.origin, rate, number, at[:-1].copy(), size, data)
    allowed = np.ones((len(used), len(t.room.load)), bool)
    for d in range(len(t.room.domains)):
        allowed[number[np.unique(t.room.core[t.room.domain_of == d])]] &= t.room.domains[d]
    alone = np.zeros(len(used) + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32)
    vertices = Vertices(
        label.astype(np.int32), t.room.load[used].copy(), np.arange(len(used), dtype=np.int32), *alone
    )
    return NetLevel(vertices, Incidence(at, int(t.fan[rate > 0].sum()), data), number[t.origin]), frozen(
        allowed
    )


@kernel
def _walk(
    hits: AnyArray,
    origin: Int32Array,
    rate: AnyArray,
    number: Int32Array,
    free: IntArray,
    size: IntArray,
    data: AnyArray,
) -> None:
    """Add up the bytes of every vertex's list in ``size``, or, with ``data``, write the lists from ``free`` on."""
    seen = np.full(len(size), -1, np.int64)
    for row in range(len(hits)):
        if rate[row] <= 0.0:
            continue
        for p in range(hits.shape[1]):
            if hits[row, p] == 0 or p == origin[row]:
                continue
            v = number[p]
            gap = row - seen[v] - 1
            seen[v] = row
            if len(data):
                free[v] = put(data, free[v], np.uint64(gap))
            else:
                size[v] += gap_bytes(gap)


@plain
def trade(
    t: NetTables, s: Work, data: AnyArray, at: IntArray, rows: Int32Array, others: Int32Array, tenant: Int32Array,
    heat: float, tries: int, rng: AnyArray, worse: FloatArray,
) -> float:  # fmt: skip
    """Annealing of whole cores: a random vertex goes to a random core, whose vertex takes its place; the change made.

    ``tenant`` (P,) is the vertex on each core, -1 if none; ``rows`` and ``others`` are scratch. ``worse`` gets, for each
    try, the rise of the cost (0 if none).
    """
    total = 0.0
    worse[:] = 0.0
    for k in range(tries):
        v, q = below(rng, len(t.room.core)), below(rng, len(tenant))
        p, u = t.room.core[v], tenant[q]
        if p == q or not fits(t.room, v, q, u) or (u >= 0 and not fits(t.room, u, p, v)):
            continue
        own = rows[: unpack(data, at[v], at[v + 1], rows)]
        change = shift(t, s, v, q, own)
        swapped = others[:0]
        if u >= 0:
            swapped = others[: unpack(data, at[u], at[u + 1], others)]
            change += shift(t, s, u, p, swapped)
        worse[k] = max(0.0, change)
        if change <= -heat * np.log(uniform(rng) + 1e-300):
            tenant[q], tenant[p] = v, u
            total += change
        else:
            if u >= 0:
                shift(t, s, u, q, swapped)
            shift(t, s, v, p, own)
    return total
