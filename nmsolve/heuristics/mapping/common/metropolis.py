"""The loop of local search on mappings, for every state that knows how a node moves and what its mapping costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nmsolve.heuristics.rng import uniform
from nmsolve.model.compiled import inlined
from nmsolve.model.types import AnyArray, IntArray

#: What a state says about its mapping: it is not allowed, it may lead on to others, it may be an answer.
REFUSED, PASSING, SOUND = range(3)


@inlined
def always(s: Any) -> int:
    """The verdict of a state all of whose mappings are sound."""
    return SOUND


@inlined
def trade(s: Any, move: Callable[..., Any], u: int, q: int, v: int, p: int) -> None:
    """Node ``u`` goes to core ``q``, and node ``v``, if any, to core ``p``."""
    move(s, u, q)
    if v >= 0:
        move(s, v, p)


@inlined
def metropolis(
    s: Any, propose: Callable[..., Any], move: Callable[..., Any], value: Callable[..., Any], verdict: Callable[..., Any],
    relative: bool, hot: float, cold: float, tries: int, best: IntArray, low: float, rng: AnyArray,
) -> float:  # fmt: skip
    """Try ``tries`` changes; keeps in ``best`` (n,) the sound mappings that beat ``low``, whose new value is returned.

    A change is taken if the mapping is not refused and its value has grown by at most ``-heat * log(random)``, Metropolis' rule;
    ``relative``: that part of itself. The heat falls geometrically from ``hot`` to ``cold``; 0 takes improvements only.

    A kernel names the functions of its state and calls this, which becomes part of it: numba keeps no kernel that it is given
    functions for. ``propose(s, rng)`` draws a node, a core and the node there that takes its place (-1: none); the first is -1
    if none was found. ``move(s, u, q)`` puts node ``u`` on core ``q``.
    """
    now, heat = value(s), hot
    fall = (cold / hot) ** (1.0 / tries) if hot > 0.0 else 1.0
    for _ in range(tries):
        heat *= fall
        u, q, v = propose(s, rng)
        if u < 0:
            continue
        p = s.room.core[u]
        trade(s, move, u, q, v, p)
        new = value(s)
        luck = -heat * np.log(uniform(rng) + 1e-300) if heat > 0.0 else 0.0
        said = verdict(s) if new <= now + (luck * now if relative else luck) else REFUSED
        if said != REFUSED:
            now = new
            if said == SOUND and now < low - 1e-12 * min(abs(low), 1e300):
                low = now
                for w in range(len(best)):  # as one assignment it would make an array
                    best[w] = s.room.core[w]
        else:
            trade(s, move, u, p, v, q)
    return low
