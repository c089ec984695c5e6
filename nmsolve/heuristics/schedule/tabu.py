"""The engine ``tabu-blocks``: tabu search on critical processes, each on one of several units (flexible job shops).

The first searches start from schedules by rule. Later ones start between two elites, or from one that was changed at random.
"""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.rng import below, new_rng
from nmsolve.heuristics.schedule.tabu_blocks import BEST, NOW, RULES, copy, new_work, shake, tabu
from nmsolve.heuristics.schedule.tabu_shop import (
    State,
    balance,
    construct,
    modes_in,
    new_state,
    reevaluate,
    shop_of,
)
from nmsolve.model.engine import Context
from nmsolve.model.schedule.problem import NEVER, ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule
from nmsolve.model.types import IntArray

#: Moves in a row without gain before the search goes on elsewhere.
STALL = 5_000
#: Schedules that are kept to go on from, and moves at random before that.
ELITES, SHAKES = 6, 12
#: Searches in a row without a better schedule before the elites are given up, too.
VAIN = 60
#: Random factors of first schedules reach this far above 1.
NOISE = 0.3
#: Percent of the searches from elites that begin between two of them.
MIXED = 70
#: Random changes of modes for even loads, and how many modes change at once.
KICKS, KICK = 300, 4
#: Loads are even if the sum of their powers is small, with exponents up to 2 to this one.
SQUARES = 3
#: Moves between two looks at the clock, times processes to the power of 1.5: less than 0.1 s.
EFFORT = 4e6
#: Most processes, and most of them times units: the queue of every unit has room for all.
MOST_PROCESSES, MOST_PLACES = 2**15, 2**22


class TabuBlocks:
    """Makespans of processes on one unit each."""

    name = "tabu-blocks"
    finds = "mappings"

    def refuses(self, problem: ScheduleProblem) -> str | None:
        """Gangs, resources of both kinds, deadlines, loads that take time, memories that are tight, other objectives."""
        if problem.objective != "makespan" or problem.ceilings:
            return "takes the makespan only"
        used = problem.modes.unit_set
        if bool((used < 0).any()) or bool((np.diff(problem.sets.indptr)[used] != 1).any()):
            return "takes processes on one unit each"
        if bool((problem.modes.demand > 0).any()) or problem.budgets.count:
            return "takes no resources"
        if problem.count > MOST_PROCESSES or problem.count * problem.units.count > MOST_PLACES:
            return f"takes up to {MOST_PROCESSES:,} processes, and {MOST_PLACES:,} times units"
        if bool((problem.deadline < NEVER).any()):
            return "takes no deadlines"
        if bool((problem.items.load > 0).any()):
            return "takes no static data whose load takes time"
        return None if _roomy(problem) else "takes no memories that may be too small"

    def run(self, problem: ScheduleProblem, context: Context) -> None:
        """Search until told to stop, or until the bound is reached."""
        TabuSearch(problem, context.seed).run(context)


def _roomy(problem: ScheduleProblem) -> bool:
    """Return whether every memory holds all that may ever be in it."""
    m, d, sets = problem.modes, problem.items, problem.sets
    unit = sets.members[sets.indptr[:-1]]
    held, most = (np.zeros(problem.units.count, np.int64) for _ in range(2))
    np.add.at(held, unit[d.unit_set], d.bytes)
    np.maximum.at(most, unit[m.unit_set], m.working)
    return bool((held + most <= problem.units.memory).all())


class TabuSearch:
    """One problem's elites, and the best schedule."""

    def __init__(self, problem: ScheduleProblem, seed: int) -> None:
        self._problem, self._order, self._rng = problem, problem.order, new_rng(seed)
        self._modes = modes_in(problem, self._order)
        self._shop = shop_of(problem, self._order)
        self._now, self._best = new_state(self._shop), new_state(self._shop)
        self._work = new_work(self._shop)
        self._elites: list[tuple[int, State]] = []
        self._vain = 0
        self._moves, self._offered = max(1, int(EFFORT / problem.count**1.5)), NEVER

    def run(self, context: Context) -> None:
        """Tabu search from first schedules, then from changed elites."""
        while not context.should_stop():
            self._begin()
            while self._improve(context):
                pass
            if context.should_stop() or context.bound() >= self._offered:
                return
            self._keep()
            self._take(context)

    def _begin(self) -> None:
        """Go on from a new schedule, or from an elite."""
        if len(self._elites) < ELITES:
            squares = below(self._rng, 1 + SQUARES)
            if squares > 0:
                balance(self._shop, self._now, self._rng, squares, KICKS, KICK)
            value = construct(self._shop, self._now, self._rng, NOISE, squares > 0)
        elif len(self._elites) > 1 and below(self._rng, 100) < MIXED:
            value = self._mix()
        else:
            _, state = self._elites[int(below(self._rng, len(self._elites)))]
            copy(state, self._now)
            reevaluate(self._shop, self._now)
            value = shake(self._shop, self._now, self._work, self._rng, SHAKES)
        self._work.rule[0] = below(self._rng, len(RULES))
        self._work.until[:] = 0
        self._work.counts[:] = 0
        self._work.counts[[NOW, BEST]] = value
        copy(self._now, self._best)

    def _mix(self) -> int:
        """Go on from between two elites: modes of either, in the order of the sums of both starts; return the makespan."""
        one = int(below(self._rng, len(self._elites)))
        other = (one + 1 + int(below(self._rng, len(self._elites) - 1))) % len(self._elites)
        a, b, now = self._elites[one][1], self._elites[other][1], self._now
        first = np.array([below(self._rng, 2) for _ in range(len(a.mode))]) > 0
        now.mode[:] = np.where(first, a.mode, b.mode)
        self._queue(now, a.end - a.span + b.end - b.span)
        return int(reevaluate(self._shop, now))

    def _queue(self, state: State, start: IntArray) -> None:
        """Fill the queues of the modes in ``state`` in the order of ``start``."""
        state.unit[:], state.span[:] = self._shop.unit[state.mode], self._shop.span[state.mode]
        state.length[:] = 0
        for i in np.argsort(start, kind="stable").tolist():
            u = state.unit[i]
            state.queue[u, state.length[u]] = i
            state.length[u] += 1

    def _improve(self, context: Context) -> bool:
        """Search for a while; False if it is time to go on elsewhere, or to end."""
        self._offer(context)
        if context.should_stop() or context.bound() >= self._offered:
            return False
        goes_on = tabu(self._shop, self._now, self._best, self._work, self._rng, self._moves, STALL)
        self._offer(context)
        return bool(goes_on)

    def _keep(self) -> None:
        """Add the best schedule of this search to the elites."""
        state = new_state(self._shop)
        copy(self._best, state)
        self._add(int(self._work.counts[BEST]), state)

    def _add(self, value: int, state: State) -> None:
        """Add a schedule to the elites, in place of the worst of too many; give them up after many that were no better."""
        self._vain = 0 if value < min((e[0] for e in self._elites), default=NEVER) else self._vain + 1
        if self._vain > VAIN:
            self._elites, self._vain = [], 0
            return
        reevaluate(self._shop, state)
        if any(value == e[0] and np.array_equal(state.end, e[1].end) for e in self._elites):
            return
        self._elites.append((value, state))
        if len(self._elites) > ELITES:
            self._elites.remove(max(self._elites, key=lambda e: e[0]))

    def _take(self, context: Context) -> None:
        """Add the schedule of another engine to the elites, if it is better than all here."""
        packed, value = context.incumbent()
        if packed is None or value >= self._offered:
            return
        answer = Schedule.unpacked(packed)
        state = new_state(self._shop)
        inverse = np.empty(len(self._modes), np.int64)
        inverse[self._modes] = np.arange(len(self._modes))
        state.mode[:] = inverse[answer.mode[self._order]]
        self._queue(state, answer.start[self._order])
        made = int(reevaluate(self._shop, state))
        if made >= 0:
            self._add(made, state)

    def _offer(self, context: Context) -> None:
        """Offer the best schedule if it is new."""
        if self._work.counts[BEST] < self._offered:
            self._offered = int(self._work.counts[BEST])
            context.offer(self.packed(), "tabu search")

    def packed(self) -> IntArray:
        """Return the best schedule of this search as engines offer it."""
        reevaluate(self._shop, self._best)
        n = self._problem.count
        mode, start = np.empty(n, np.int64), np.empty(n, np.int64)
        mode[self._order] = self._modes[self._best.mode]
        start[self._order] = self._best.end - self._best.span
        return Schedule(mode, start, self._problem.modes.item[mode] >= 0).packed()
