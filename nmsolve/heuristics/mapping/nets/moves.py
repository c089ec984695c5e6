"""Exact change of the objective when one node moves, and making the move."""

from __future__ import annotations

from nmsolve.heuristics.mapping.common.counts import add_pin, drop_pin, slot
from nmsolve.heuristics.mapping.common.room import seat
from nmsolve.heuristics.mapping.nets.model import NetState
from nmsolve.heuristics.mapping.nets.tables import set_bit, span, tree_length
from nmsolve.model.compiled import inlined, plain
from nmsolve.model.types import Int32Array


@plain
def move_change(s: NetState, u: int, q: int) -> float:
    """Exact change of the objective when node ``u`` moves to core ``q``."""
    p = s.room.core[u]
    total: float = _destination_change(s.in_net[s.in_ptr[u] : s.in_ptr[u + 1]], p, q, s, len(s.room.head))
    for i in range(s.out_ptr[u], s.out_ptr[u + 1]):
        e = s.out_net[i]
        change = 0.0
        if s.hits[slot(s.keys, s.base, e, p, len(s.room.head))] > 0:
            change += s.step
        if s.hits[slot(s.keys, s.base, e, q, len(s.room.head))] > 0:
            change -= s.step
        if s.tall:
            change += tree_length(s, e, q) - tree_length(s, e, p)
        total += s.rate[e] * change
    return total


@inlined
def _destination_change(nets: Int32Array, p: int, q: int, s: NetState, cores: int) -> float:
    """Change of the cost of ``nets`` when one destination of each goes from core ``p`` to ``q``."""
    rate, step, tall = s.rate, s.step, s.tall
    x, y, origin = s.x, s.y, s.origin
    base, keys, count = s.base, s.keys, s.hits
    row_bits, col_bits = s.row_bits, s.col_bits
    cols = len(x)
    total = 0.0
    for e in nets:
        last = count[slot(keys, base, e, p, cores)] == 1
        first = count[slot(keys, base, e, q, cores)] == 0
        if not (last or first):
            continue
        o = origin[e]
        change = 0.0
        if first and q != o:
            change += step
        if last and p != o:
            change -= step
        if tall:
            own, cp, cq = o // cols, p % cols, q % cols
            drop = p // cols if last else -1
            put = q // cols if first else -1
            if cp == cq:
                change += (
                    span(row_bits[e, cp], y, own, drop, put)[0] - span(row_bits[e, cp], y, own, -1, -1)[0]
                )
            else:
                before, kept = span(row_bits[e, cp], y, own, -1, -1)
                after, kept = span(row_bits[e, cp], y, own, drop, -1)
                change += after - before
                before, reached = span(row_bits[e, cq], y, own, -1, -1)
                after, _ = span(row_bits[e, cq], y, own, -1, put)
                change += after - before
                if not (kept and reached):
                    gone, come = -1 if kept else cp, cq if first else -1
                    before, _ = span(col_bits[e], x, o % cols, -1, -1)
                    after, _ = span(col_bits[e], x, o % cols, gone, come)
                    change += after - before
        total += rate[e] * change
    return total


@plain
def move(s: NetState, u: int, q: int) -> None:
    """Move node ``u`` to core ``q`` and bring all tables up to date."""
    p = s.room.core[u]
    seat(s.room, u, q)
    follow(s, u, p, q)


@plain
def follow(s: NetState, u: int, p: int, q: int) -> None:
    """Bring all tables up to date once node ``u`` has gone from core ``p`` to ``q``."""
    cores, cols = len(s.room.head), len(s.x)
    for i in range(s.in_ptr[u], s.in_ptr[u + 1]):
        e = s.in_net[i]
        last = drop_pin(s.keys, s.base, s.hits, e, p, cores)
        first = add_pin(s.keys, s.base, s.hits, e, q, cores)
        if last:
            set_bit(s.row_bits[e, p % cols], p // cols, False)
            _, some = span(s.row_bits[e, p % cols], s.y, 0, -1, -1)
            if not some:
                set_bit(s.col_bits[e], p % cols, False)
        if first:
            set_bit(s.row_bits[e, q % cols], q // cols, True)
            set_bit(s.col_bits[e], q % cols, True)
    for i in range(s.out_ptr[u], s.out_ptr[u + 1]):
        s.origin[s.out_net[i]] = q
