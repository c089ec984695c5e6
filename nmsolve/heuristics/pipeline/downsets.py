"""Exact partition of a branching network into contiguous stages: dynamic programming over downsets, between two bounds.

A contiguous plan is a chain of downsets, each with the stages so far (Tarnawski et al., NeurIPS 2020, tabulate the best load for
every downset and number of devices, over all pairs). Here a limit on loads is guessed, and a downset remembers the fewest
cores that reach it within the limit; only pairs are looked at whose work is within the limit and behind which the remaining
cores can be enough. A guess that fails is a lower bound, one that succeeds gives a plan; they close in on each other. All in
whole ticks, so that the end is exact.

Before, the same search along one topological order gives a plan to start from.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nmsolve.heuristics.pipeline.downset_kernels import fill_needs, run
from nmsolve.heuristics.pipeline.downset_setup import (
    new_states,
    plan_of,
    relief,
    rules_of,
    states_per_downset,
)
from nmsolve.heuristics.pipeline.lattice import Lattice, bytes_per_downset, lattice_of, least_area
from nmsolve.heuristics.pipeline.poset import Poset, poset_of
from nmsolve.hw.pipeline.stages import largest_load
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem

#: Bytes that the downsets may take, unless the caller says otherwise.
MEMORY = 2**30
#: Pairs of downsets between two looks at the clock.
SLICE = 2_000_000
#: More ticks than any load.
ENDLESS = 2**62

News = Callable[[PipelinePlan | None, float], None]


def _silent(plan: PipelinePlan | None, bound: float) -> None:
    """Do nothing: there is no observer."""


def best_contiguous(
    problem: PipelineProblem,
    time_left: Callable[[], float],
    *,
    memory: int | None = None,
    news: News = _silent,
    note: Callable[[str], None] = lambda text: None,
) -> tuple[PipelinePlan | None, float, bool]:
    """Return the best plan among those the split (``contiguous`` or ``chain``) allows, or the best until time or memory ran out.

    Parameters
    ----------
    time_left : seconds that remain; asked about every tenth of a second
    memory : bytes that the downsets may take
    news : called with every better plan and every better bound
    note : called with the reason why the search stopped

    Returns
    -------
    the plan or None; a lower bound on the objective of all plans; whether the plan is the best one (with None: whether there is
    none, and then the bound is infinite). The bound is that of this split: plans of ``any`` split may be better.
    """
    search = _DownsetSearch(
        problem, poset_of(problem), time_left, MEMORY if memory is None else memory, news, note
    )
    complete = search.complete()
    if not complete:
        return search.plan, problem.ticks.seconds(search.proved), False
    if search.plan is None:
        return None, math.inf, True
    return search.plan, problem.ticks.seconds(search.high), True


class _Stopped(Exception):
    """Time or memory ran out."""


@dataclass
class _DownsetSearch:
    """Two bounds that close in, in ticks.

    ``proved``: no plan has a smaller load; ``low``: none of the order that is searched now has; ``high``: load of ``plan``, or
    ENDLESS; ``stride``: how far the next guess goes up while there is no plan.
    """

    problem: PipelineProblem
    poset: Poset
    time_left: Callable[[], float]
    memory: int
    news: News
    note: Callable[[str], None]
    plan: PipelinePlan | None = None
    proved: int = 0
    low: int = 0
    high: int = ENDLESS
    stride: int = 1

    def __post_init__(self) -> None:
        self.proved = self._least()

    def complete(self) -> bool:
        """Find the best plan; False if time or memory ran out before."""
        try:
            chain = self.poset.as_chain()
            if self.problem.split != "chain":
                self._close_in(chain, self._lattice(chain))
            if self.proved < self.high:
                self._close_in(self.poset, self._lattice(self.poset))
        except _Stopped as stop:
            self.note(str(stop))
            return False
        return True

    def _lattice(self, poset: Poset) -> Lattice:
        each = 20 * states_per_downset(self.problem, rules_of(self.problem, poset, 1)) + 4 * (
            self.problem.hosts + 1
        )
        room = max(2, self.memory // (bytes_per_downset(poset) + each))
        lattice, seen = lattice_of(self.problem, poset, room, self.time_left)
        if lattice is None:
            why = "no memory for more" if seen >= room else "then time was up"
            raise _Stopped(f"downsets: {seen:,} seen, {why}")
        return lattice

    def _close_in(self, poset: Poset, lattice: Lattice) -> None:
        """Guess until the bounds meet, or no plan is possible at all.

        After a guess half way, anything below the plan is asked for: if that fails, it was the last guess. If plans got better
        by small steps twice, half way again.
        """
        anything, small = False, 0
        self.low, self.stride = self.proved, 1
        while self.low < self.high:
            limit = self.high - 1 if anything and self.plan is not None else self._middle()
            gap, before = self.high - self.low, self.high
            plan = self._guess(poset, lattice, limit)
            if plan is not None:
                self.plan, self.high = plan, self._load(plan)
                small = small + 1 if 4 * (before - self.high) < gap else 0
                anything = small < 2
            elif limit >= self._most():
                return
            else:
                self.low = limit + 1
                self.stride *= 2
                anything, small = True, 0
            if poset is self.poset:
                self.proved = self.low
            elif plan is None:
                continue  # what fails for one order may go for another
            self.news(plan, self.problem.ticks.seconds(self.proved))

    def _middle(self) -> int:
        """Return the next guess: half way to the plan; without one by growing steps from the bound, as low guesses are cheap."""
        if self.plan is None:
            return min(self.low + (self.low // 10 + 1) * self.stride, self._most())
        return (self.low + self.high) // 2

    def _most(self) -> int:
        """No stage of any plan has more load than this."""
        return max(1, int(self.poset.time[:, 0].sum() + self.poset.host.sum() + self.poset.net_weight.sum()))

    def _least(self) -> int:
        """Return a lower bound by counting: the work shared by all, and the largest part."""
        problem, poset = self.problem, self.poset
        area, worth = int(least_area(poset).sum()), problem.hosts * relief(problem, poset)
        if worth:
            shared = int(area / (problem.cores + worth) * (1 - 1e-9))
        else:
            shared = -(-area // problem.cores)
        alone = poset.time[:, -1].copy()
        if problem.hosts:
            alone = np.where(poset.impossible, alone, np.minimum(alone, poset.host))
        return max(shared, int(alone.max()))

    def _guess(self, poset: Poset, lattice: Lattice, limit: int) -> PipelinePlan | None:
        """Return a plan whose loads are at most ``limit`` ticks, or None if there is none."""
        rules = rules_of(self.problem, poset, limit)
        states = new_states(lattice, rules, states_per_downset(self.problem, rules))
        fill_needs(lattice, rules, states.need)
        at = 0
        while at < len(lattice.area):
            if self.time_left() <= 0:
                raise _Stopped(f"downsets: {len(lattice.area):,} seen, time was up")
            at = run(lattice, rules, states, at, SLICE)
        return plan_of(self.problem, poset, lattice, rules, states)

    def _load(self, plan: PipelinePlan) -> int:
        ticks, tensors = self.problem.ticks, self.problem.tensors
        load = largest_load(
            plan.stage, plan.cores, ticks.time, ticks.host, ticks.impossible,
            tensors.source, tensors.indptr, tensors.targets, ticks.tensor, self.problem.overlap,
        )  # fmt: skip
        return int(load)
