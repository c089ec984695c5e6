"""Moves of nodes under limits on axon tables: counts brought up to date, and undone where they would exceed."""

from __future__ import annotations

import numba as nb

from nmsolve.heuristics.mapping.axons.state import AxonState
from nmsolve.heuristics.mapping.common.counts import add_pin, drop_pin


@nb.njit(cache=True, nogil=True)
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


@nb.njit(cache=True, nogil=True)
def _add(a: AxonState, side: int, p: int, more: int) -> None:
    """``more`` entries in the incoming (0) or outgoing (1) table of core ``p``."""
    old = a.used[side, p]
    a.used[side, p] = old + more
    a.excess[0] += max(0, old + more - a.most[side]) - max(0, old - a.most[side])
    if side == 0:
        a.excess[1] += more


@nb.njit(cache=True, nogil=True)
def try_shift(a: AxonState, u: int, q: int) -> bool:
    """:func:`shift` node ``u`` to core ``q`` unless more entries than before would be too many; True if it was done."""
    if not a.on:
        return True
    before, p = a.excess[0], a.core[u]
    shift(a, u, p, q)
    if a.excess[0] <= before:
        return True
    shift(a, u, q, p)
    return False


@nb.njit(cache=True, nogil=True)
def try_exchange(a: AxonState, u: int, v: int, p: int, q: int) -> bool:
    """:func:`shift` ``u`` from core ``p`` to ``q`` and ``v`` the other way, unless more entries than before would be too many.

    True if it was done. ``a.core[u]`` must be ``q`` already, ``a.core[v]`` still be ``q``.
    """
    if not a.on:
        return True
    before = a.excess[0]
    shift(a, u, p, q)
    shift(a, v, q, p)
    if a.excess[0] <= before:
        return True
    shift(a, v, p, q)
    shift(a, u, q, p)
    return False
