"""Moves of nodes under limits on axon tables: counts brought up to date."""

from __future__ import annotations

from nmsolve.heuristics.mapping.axons.state import AxonState
from nmsolve.heuristics.mapping.common.counts import add_pin, drop_pin
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
