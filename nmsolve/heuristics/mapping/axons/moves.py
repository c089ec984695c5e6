"""Moves of nodes under limits on axon tables: counts brought up to date, and undone where they would exceed."""

from __future__ import annotations

from nmsolve.heuristics.mapping.axons.state import AxonState
from nmsolve.heuristics.mapping.common.counts import add_pin, drop_pin, slot
from nmsolve.heuristics.rng import below
from nmsolve.model.compiled import plain
from nmsolve.model.types import AnyArray


@plain
def shift(a: AxonState, u: int, p: int, q: int) -> None:
    """Bring the counts up to date for node ``u`` going from core ``p`` to ``q``; ``a.core[u]`` may hold either."""
    cores = a.used.shape[1]
    before = a.sent[u]
    for i in range(a.in_ptr[u], a.in_ptr[u + 1]):
        e = a.in_row[i]
        last = drop_pin(a.keys, a.base, a.hits, e, p, cores)
        first = add_pin(a.keys, a.base, a.hits, e, q, cores)
        if last:
            _add(a, 0, p, -1)
        if first:
            _add(a, 0, q, 1)
        if last != first:
            more = 1 if first else -1
            w = a.source[e]
            a.sent[w] += more
            if w != u:
                _add(a, 1, a.core[w], more)
    _add(a, 1, p, -before)
    _add(a, 1, q, a.sent[u])


@plain
def _add(a: AxonState, side: int, p: int, more: int) -> None:
    """``more`` entries in the incoming (0) or outgoing (1) table of core ``p``."""
    old = a.used[side, p]
    a.used[side, p] = old + more
    a.excess[0] += max(0, old + more - a.most[side]) - max(0, old - a.most[side])
    if side == 0:
        a.excess[1] += more


@plain
def crowded(a: AxonState, u: int, draws: int, rng: AnyArray) -> int:
    """Node ``u`` if its core has too many entries, else the first such of ``draws`` random ones, else the last."""
    for _ in range(draws):
        p = a.core[u]
        if a.used[0, p] > a.most[0] or a.used[1, p] > a.most[1]:
            break
        u = below(rng, len(a.core))
    return u


@plain
def relief(a: AxonState, u: int) -> int:
    """How many fewer entries would be too many on the core of node ``u`` without it (and its messages)."""
    p, cores = a.core[u], a.used.shape[1]
    over_in, over_out = a.used[0, p] - a.most[0], a.used[1, p] - a.most[1]
    less = max(0, min(over_out, a.sent[u]))
    if over_in > 0:
        alone = 0
        for i in range(a.in_ptr[u], a.in_ptr[u + 1]):
            alone += a.hits[slot(a.keys, a.base, a.in_row[i], p, cores)] == 1
        less += min(over_in, alone)
    return less  # type: ignore[no-any-return]


@plain
def rise(a: AxonState, u: int, q: int) -> int:
    """How many more entries would be too many on core ``q`` with node ``u`` (and its messages)."""
    cores = a.used.shape[1]
    more = max(0, min(a.sent[u], a.used[1, q] + a.sent[u] - a.most[1]))
    room, come = a.most[0] - a.used[0, q], a.in_ptr[u + 1] - a.in_ptr[u]
    if come > room:
        for i in range(a.in_ptr[u], a.in_ptr[u + 1]):
            come -= a.hits[slot(a.keys, a.base, a.in_row[i], q, cores)] > 0
        more += max(0, min(come, come - room))
    return more  # type: ignore[no-any-return]


@plain
def try_shift(a: AxonState, u: int, q: int, most: float) -> bool:
    """:func:`shift` node ``u`` to core ``q`` if at most ``most`` more entries are then too many; True if it was done."""
    if not a.on:
        return True
    before, p = a.excess[0], a.core[u]
    shift(a, u, p, q)
    if a.excess[0] - before <= most:
        return True
    shift(a, u, q, p)
    return False


@plain
def try_exchange(a: AxonState, u: int, v: int, p: int, q: int, most: float) -> bool:
    """:func:`shift` ``u`` from core ``p`` to ``q`` and ``v`` the other way, as :func:`try_shift` does.

    ``a.core[u]`` must be ``q`` already, ``a.core[v]`` still be ``q``.
    """
    if not a.on:
        return True
    before = a.excess[0]
    shift(a, u, p, q)
    shift(a, v, q, p)
    if a.excess[0] - before <= most:
        return True
    shift(a, v, p, q)
    shift(a, u, q, p)
    return False
