"""The best mappings of one graph on one tree of cores so far, and what is made of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from nmsolve.heuristics.mapping.multilevel.cycle import Cycle, Found, Style
from nmsolve.heuristics.mapping.multilevel.threads import ALONE, Threads
from nmsolve.heuristics.rng import below, new_rng, uniform

#: Mappings that are kept.
KEPT = 6
#: Part of the cycles that combine two mappings; and how far down the list the better one is on average.
COMBINED, DOWN = 0.9, 1.5
#: Mappings from scratch after the first are made in these ways in turn: which one suits a graph is not known before.
STYLES = tuple(
    Style(join=join, nodes_per_block=nodes, starts=2, fm=False)
    for nodes in (24, 12)
    for join in (False, True)
)


class Pool:
    """Mappings from scratch, and cycles within those that are kept, one per thread.

    The same for a seed, a number of threads and of rounds.

    Parameters
    ----------
    found : called with every mapping that is better than all before, and how it was made
    """

    def __init__(
        self, cycle: Cycle, seed: int, found: Callable[[Found, str], object] = lambda _, __: None
    ) -> None:
        self._cycle, self._found, self._from = cycle, found, seed
        self.kept: list[Found] = []
        self._rng, self._tasks = new_rng(seed), 0

    def seed(self) -> int:
        """Return a seed for the next task."""
        self._tasks += 1
        return (self._from * 1_000_003 + self._tasks) & 0x7FFF_FFFF

    def keep(self, found: Found | None, move: str) -> None:
        """Keep a mapping if it is among the best, each cost once."""
        if found is None:
            return
        best = not self.kept or found[:2] < self.kept[0][:2]
        if all(found[:2] != other[:2] for other in self.kept):
            self.kept = sorted([*self.kept, found], key=lambda one: one[:2])[:KEPT]
        if best:
            self._found(found, move)

    def start(self, threads: Threads) -> None:
        """Make one mapping from scratch on every thread."""
        styles = [STYLES[(self._tasks + i) % len(STYLES)] for i in range(threads.count)]
        tasks = [partial(self._cycle.from_scratch, style, self.seed(), ALONE) for style in styles]
        for found in threads.each(tasks):
            self.keep(found, "deep multilevel")

    def combine(self, threads: Threads) -> None:
        """Make one cycle within the kept mappings on every thread."""
        for found in threads.each([self._from_kept() for _ in range(threads.count)]):
            self.keep(found, "combination")

    def _from_kept(self) -> partial[Found | None]:
        """Return the next cycle: within one mapping, or within two."""
        last = len(self.kept) - 1
        first = min(last, int(-DOWN * np.log(1.0 - uniform(self._rng))))
        second = below(self._rng, last + 1) if uniform(self._rng) < COMBINED else first
        other = None if second == first else self.kept[second].pos
        return partial(self._cycle.within, self.kept[first].pos, other, self.seed(), ALONE)
