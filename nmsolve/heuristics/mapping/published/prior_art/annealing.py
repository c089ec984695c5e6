"""Simulated annealing in the form of Connolly (1990), *An improved annealing scheme for the QAP*, EJOR 46:93-100.

First and last temperature come from a sample of changes; cooling is Lundy and Mees' ``t / (1 + beta t)``; once every
exchange of a whole sweep was refused, the temperature returns to where the best mapping was found and stays there.
"""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.published.prior_art.arena import (
    Arena,
    Mapping,
    assign,
    change,
    copied,
    send,
    step_of,
)
from nmsolve.heuristics.rng import uniform
from nmsolve.model.compiled import plain
from nmsolve.model.types import AnyArray, FloatArray, IntArray

#: Steps sampled for the temperatures; steps of the first run in multiples of the nodes (each later run doubles it).
SAMPLE, FIRST_RUN = 1000, 500
#: Steps of one call of the kernel.
SLICE = 20_000


class Annealing:
    """State of the method; :meth:`advance` does a slice of work and returns the best mapping so far."""

    def __init__(self, a: Arena, start: Mapping, rng: AnyArray) -> None:
        self._a, self._rng, self._now, self.best = a, rng, copied(start), copied(start)
        self._length = FIRST_RUN * len(start.core)
        self._begin()

    def _begin(self) -> None:
        least, most = _sample(self._a, self._now, SAMPLE, self._rng)
        hot, cold = least + (most - least) / 10, least
        beta = (hot - cold) / (self._length * hot * cold) if cold > 0 else 0.0
        # temperature, beta, temperature of the best, still cooling?
        self._schedule = np.array([hot, beta, hot, 1.0])
        self._count = np.zeros(2, np.int64)  # steps done, refused in a row

    def advance(self) -> Mapping:
        """Anneal on; a run that is over is followed by one twice as long from its last mapping."""
        if self._schedule[0] <= 0:  # no step changes anything
            return self.best
        _anneal(self._a, self._now, self.best, self._schedule, self._count, SLICE, self._rng)
        if self._count[0] >= self._length:
            self._length *= 2
            self._begin()
        return self.best


@plain
def _sample(a: Arena, m: Mapping, steps: int, rng: AnyArray) -> tuple[float, float]:
    """Least and greatest rise of the objective over random steps (none is made)."""
    least, most = np.inf, 0.0
    for _ in range(steps):
        u, q, v = step_of(a, m, rng)
        if v > -2:
            delta = change(a, m, u, q, v)
            if delta > 0.0:
                least, most = min(least, delta), max(most, delta)
    return (least, most) if most > 0.0 else (0.0, 0.0)


@plain
def _anneal(
    a: Arena, m: Mapping, best: Mapping, schedule: FloatArray, count: IntArray, steps: int, rng: AnyArray
) -> None:
    sweep = len(m.core) * (len(m.core) - 1) // 2
    for _ in range(steps):
        u, q, v = step_of(a, m, rng)
        if v > -2:
            delta = change(a, m, u, q, v)
            if delta <= 0.0 or uniform(rng) < np.exp(-delta / schedule[0]):
                send(a, m, u, q, v, delta)
                count[1] = 0
                if m.cost[0] < best.cost[0] * (1 - 1e-12):
                    assign(best, m)
                    schedule[2] = schedule[0]
            else:
                count[1] += 1
        if schedule[3] > 0.0:
            schedule[0] /= 1.0 + schedule[1] * schedule[0]
            if count[1] >= sweep:
                schedule[0], schedule[3] = schedule[2], 0.0
    count[0] += steps
