"""Which kind of move to try next: a seeded bandit that pays for gain per unit of work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: Every kind is chosen at least this often, so that there are at most 20.
FLOOR = 0.05
#: What a try counts for after one more try of its kind.
DISCOUNT = 0.9


@dataclass
class Tally:
    """What a kind of move has done: tries, tries that gained, sum of gains, counted work (nominal ns)."""

    tries: int = 0
    better: int = 0
    gain: float = 0.0
    work: float = 0.0


class Bandit:
    """Probability matching: kinds are chosen in proportion to their recent gain per work, none below :data:`FLOOR`.

    The recent gain and work of a kind are sums in which every try weighs :data:`DISCOUNT` times the next one. Each kind is
    tried once before any is tried twice. Work is counted, not timed, so equal seeds make equal choices.

    Parameters
    ----------
    names : kinds of move
    seed : of the choices
    """

    def __init__(self, names: Sequence[str], seed: int) -> None:
        self._names = tuple(names)
        self.tallies = [Tally() for _ in names]
        self._rng = np.random.default_rng([seed, 5])
        self._gain, self._work = np.zeros(len(names)), np.zeros(len(names))

    @property
    def names(self) -> tuple[str, ...]:
        """The kinds of move in order of their numbers."""
        return self._names

    def probabilities(self) -> list[float]:
        """Return how likely each kind is chosen next, once all have been tried."""
        rate = self._gain / np.maximum(self._work, 1e-300)
        total = float(rate.sum())
        count = len(self.names)
        share = rate / total if total > 0 else np.full(count, 1 / count)
        return [FLOOR + (1 - count * FLOOR) * float(s) for s in share]

    def choose(self) -> int:
        """Return the number of the kind to try next."""
        for kind, tally in enumerate(self.tallies):
            if tally.tries == 0:
                return kind
        return int(self._rng.choice(len(self.names), p=self.probabilities()))

    def learn(self, kind: int, gain: float, work: float) -> None:
        """Take note that a try of ``kind`` lowered the cost by ``gain`` >= 0 for ``work`` > 0 units of counted work."""
        tally = self.tallies[kind]
        tally.tries += 1
        tally.better += gain > 0
        tally.gain += gain
        tally.work += work
        self._gain[kind] = DISCOUNT * self._gain[kind] + gain
        self._work[kind] = DISCOUNT * self._work[kind] + work

    def summary(self) -> str:
        """Return one line for the events: choices, choices that gained and gain of every kind that was tried."""
        parts = [
            f"{name} {t.tries}/{t.better}/{t.gain:.6g}"
            for name, t in zip(self.names, self.tallies, strict=True)
            if t.tries
        ]
        return "moves (tries/better/gain): " + ", ".join(parts)
