"""The loop of local search on mappings, for every state that knows how a node moves and what its mapping costs, and its pace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nmsolve.heuristics.rng import new_rng, uniform
from nmsolve.model.compiled import inlined
from nmsolve.model.engine import Context
from nmsolve.model.types import AnyArray, IntArray

#: What a state says about its mapping: it is not allowed, it may lead on to others, it may be an answer.
REFUSED, PASSING, SOUND = range(3)
#: Tries in one kernel call at first; afterwards about SLICE seconds of them.
FIRST, SLICE = 20, 0.05


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


def cooled(hot: float, fall: float, share: float, greedy: float = 0.0) -> float:
    """Return the temperature after a share of a run: geometric from ``hot`` to ``hot * fall``, 0 in the last part ``greedy``."""
    done = share / (1.0 - greedy)
    return hot * fall**done if done < 1.0 else 0.0


def paced(tries: int, spent: float, wanted: float = SLICE) -> int:
    """Return how many tries take ``wanted`` seconds if ``tries`` took ``spent``, at most four times as many as these."""
    return max(1, min(4 * tries, int(tries * wanted / max(spent, 1e-4))))


class Slices:
    """Kernel calls of one run of :func:`metropolis`, each about as long; mappings that beat the best are offered.

    Attributes
    ----------
    best, low : the best sound mapping (n,) so far and its value; a caller who changes what values mean sets it anew
    rng : state of random numbers
    """

    def __init__(self, context: Context, core: IntArray, low: float) -> None:
        self._context, self._tries = context, FIRST
        self.best, self.low, self.rng = np.array(core), low, new_rng(context.seed)

    def run(
        self, search: Callable[..., float], state: Any, heat: float, begun: float, wanted: float = SLICE
    ) -> None:
        """Call the kernel ``search`` once; ``wanted`` seconds are counted from when ``begun`` was the time left."""
        new = search(state, heat, self._tries, self.best, self.low, self.rng)
        if new < self.low:
            self.low = new
            self._context.offer(self.best.copy(), "annealing" if heat > 0 else "descent")
        self._tries = paced(self._tries, begun - self._context.time_left(), wanted)
