"""The engine ``activity-lists``: genetic search over lists of processes that share resources, one mode each (RCPSP).

A list becomes a schedule by serial generation, which is then justified to the right and to the left (Valls, Ballestín,
Quintanilla 2005). A population without gain for long is given up for a new one. The best lists of several that were given up
make one of the next level.
"""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.rng import new_rng
from nmsolve.heuristics.schedule.genetic_crossover import (
    IDLE,
    GeneticArrays,
    Population,
    improve,
    insert,
    make_children,
    new_work,
    sample,
)
from nmsolve.heuristics.schedule.genetic_serial import LATE, projects_of
from nmsolve.model.engine import Context
from nmsolve.model.schedule.problem import NEVER, ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule
from nmsolve.model.types import IntArray

#: Lists of a population, and children in a row without gain before it is given up.
LISTS, STALL = 300, 30_000
#: This many populations that were given up give their best lists to one of the next level.
MERGED = 4
#: How strongly first lists prefer what much must follow, per tick.
REGRET = 0.3
#: Most ticks of a schedule: what is free in every tick is kept. Most processes: so are the lists of a population.
MOST_TICKS, MOST_PROCESSES = 2**22, 2**15
#: Processes and ticks that are scheduled between two looks at the clock, one direction each: less than 0.1 s.
EFFORT = 1_000_000


class ActivityLists:
    """Makespans of processes without units."""

    name = "activity-lists"
    finds = "mappings"

    def refuses(self, problem: ScheduleProblem) -> str | None:
        """Units, choices, deadlines, other objectives."""
        if bool((problem.modes.unit_set >= 0).any()) or problem.modes.count > problem.count:
            return "takes processes with one mode and without units"
        if problem.objective != "makespan" or problem.ceilings:
            return "takes the makespan only"
        if bool((problem.deadline < NEVER).any()):
            return "takes no deadlines"
        if problem.count > MOST_PROCESSES:
            return f"takes up to {MOST_PROCESSES:,} processes"
        if problem.horizon >= MOST_TICKS:
            return f"takes less than {MOST_TICKS:,} ticks"
        return None

    def run(self, problem: ScheduleProblem, context: Context) -> None:
        """Breed until told to stop, or until the bound is reached."""
        search = GeneticSearch(problem, context.seed)
        while not search.done(context):
            search.populate(context)
            while search.make_children(context):
                search.take(context)
            search.keep()


class GeneticSearch:
    """One problem's lists and the best schedule of them."""

    def __init__(self, problem: ScheduleProblem, seed: int) -> None:
        self._problem, self._order, self._rng = problem, problem.order, new_rng(seed)
        self._forward, self._backward = projects_of(problem, self._order)
        n = problem.count
        self._work: GeneticArrays = new_work(self._forward, problem.horizon + 2)
        # a place stays empty where two lists make one schedule; its list can be a parent all the same, so it must be a list
        some = np.tile(np.arange(n), (LISTS, 1))
        self._lists = Population(some, np.full(LISTS, LATE), np.zeros(LISTS, np.int64))
        self._children = max(1, EFFORT // (n + int(self._forward.span.sum())))
        self._offered = LATE
        #: of every level the best lists of the populations that were given up; the level of the present one
        self._kept: list[list[Population]] = []
        self._level = 0

    def populate(self, context: Context) -> None:
        """Make a new population: of the best lists of several, or of random lists."""
        self._work.counts[IDLE] = 0
        for level, kept in enumerate(self._kept):
            if len(kept) == MERGED:
                for whole, *parts in zip(self._lists, *kept, strict=True):
                    whole[:] = np.concatenate(parts)
                kept.clear()
                self._level, self._work.top[1] = level + 1, self._lists.cost.min()
                return
        self._level, self._work.top[1] = 0, LATE
        self._lists.cost[:] = LATE
        for place in range(LISTS):
            if context.should_stop():
                return
            sample(self._forward, self._backward, self._lists, self._work, self._rng, place, REGRET)
            self._offer(context, "sampling")

    def done(self, context: Context) -> bool:
        """Return whether to end: no time is left, or nothing better can be found."""
        return context.should_stop() or context.bound() >= self._work.top[0]

    def keep(self) -> None:
        """Keep the best lists of a population that is given up."""
        if len(self._kept) == self._level:
            self._kept.append([])
        best = np.argsort(self._lists.cost, kind="stable")[: LISTS // MERGED]
        self._kept[self._level].append(Population(*(part[best] for part in self._lists)))

    def make_children(self, context: Context) -> bool:
        """Make children for a while; False if it is time for a new population or for an end."""
        if self.done(context):
            return False
        goes_on = make_children(
            self._forward, self._backward, self._lists, self._work, self._rng, self._children, STALL
        )
        self._offer(context, "breeding")
        return bool(goes_on)

    def take(self, context: Context) -> None:
        """Add the schedule of another engine, if it is better than all here."""
        packed, value = context.incumbent()
        if packed is None or value >= self._work.top[0]:
            return
        start = Schedule.unpacked(packed).start[self._order]
        self._work.order[:] = np.argsort(start, kind="stable")
        now = improve(self._forward, self._backward, self._work, LATE)
        if now < LATE:
            place = int(self._lists.cost.argmax())
            insert(self._lists, self._work, now, place)
            self._offer(context, "justification")

    def _offer(self, context: Context, move: str) -> None:
        """Offer the best schedule if it is new."""
        if self._work.top[0] < self._offered:
            self._offered = int(self._work.top[0])
            context.offer(self.packed(), move)

    def packed(self) -> IntArray:
        """Return the best schedule as engines offer it."""
        start = np.empty(self._problem.count, np.int64)
        start[self._order] = self._work.best - self._forward.span
        none = np.zeros(len(start), bool)
        return Schedule(self._problem.modes.first[:-1].copy(), start, none).packed()
