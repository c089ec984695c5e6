"""Engine ``remap``: the best mapping near an old one, within a migration budget."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nmsolve.heuristics.mapping.remap.kernel import anneal
from nmsolve.heuristics.mapping.remap.repair import stay_put
from nmsolve.heuristics.mapping.remap.state import new_state, prices_of, put_all, rules_of
from nmsolve.heuristics.rng import new_rng
from nmsolve.hw.scores import objective_value
from nmsolve.model.engine import Context
from nmsolve.model.errors import NmsolveError
from nmsolve.model.mapping.features import takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray, read_only

#: First and last temperature in units of what a typical accepted change costs (see :meth:`_Search.typical`).
HOT, COLD = 1.0, 0.003
#: A temperature above every change.
MELT = 1e100
#: A run is a few coolings: (share of the run, first temperature in units of HOT, from the best so far?).
PLAN = ((0.15, 3.0, False), (0.25, 1.0, False), (0.25, 0.3, True), (0.35, 1.0, True))
#: Nanoseconds of one try: fixed, per neighbour for pairwise objectives, per message pin for net objectives.
TRY, PER_NEIGHBOUR, PER_PIN = 140.0, 8.0, 32.0
#: An improvement by less than this part of the objective may be rounding.
MARGIN = 1e-12
#: Seconds of work in one kernel call; tries that measure the temperature; longest run in tries per node.
SLICE, SAMPLES, LONGEST = 0.05, 2000, 20_000


class Remap:
    """Annealing of single moves and exchanges that counts, for every change, who is then away from the old core.

    Takes problems with a migration budget and every objective that is a sum. Starts from the best mapping so far, else
    from the reference made legal. Deterministic by seed and time limit unless the machine is too slow for the plan.
    """

    name = "remap"
    finds = "mappings"
    refuses = takes("pairs trees reach budget kinds -free")

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Anneal until the plan is through or time is up.

        Raises
        ------
        NmsolveError : no mapping within the budget is known or was found to start from
        """
        start, _ = context.incumbent()
        if start is None:
            start = first_within(problem, context.should_stop)
            if start is None:
                raise NmsolveError("no mapping within the migration budget was found to start from")
            context.offer(start, "repaired")
        if not context.should_stop():
            _Search(problem, start, context).run()


def first_within(problem: MappingProblem, should_stop: Callable[[], bool]) -> IntArray | None:
    """Return (n,) the reference made legal by few moves, within the budget and the time; else None."""
    assert problem.migration is not None
    first = np.unique(problem.migration.group, return_index=True)[1]
    core = stay_put(problem, problem.migration.reference[first], should_stop)
    return core if core is not None and problem.migration.moved(core) <= problem.migration.budget else None


class _Search:
    """One run of the engine: kernel state, best mapping, plan."""

    def __init__(self, problem: MappingProblem, start: IntArray, context: Context) -> None:
        self.context, self.start = context, np.ascontiguousarray(start, np.int64)
        self.rules = rules_of(problem)
        self.prices = prices_of(problem)
        self.state = new_state(problem, self.rules, self.start)
        self.rng = new_rng(context.seed)
        self.best, self.least = self.start.copy(), 0.0
        self.found, self.gain = self.start.copy(), np.zeros(3)
        self.margin = MARGIN * abs(objective_value(problem, self.start))
        pins = problem.graph.m * (PER_PIN if self.prices.by_nets else PER_NEIGHBOUR)
        self.seconds_per_try = 1e-9 * (TRY + 2.0 * pins / problem.n)
        self.began = max(1e-3, context.time_left())
        self.planned = min(self.began / self.seconds_per_try, LONGEST * problem.n)

    def run(self) -> None:
        """Run all coolings of the plan."""
        unit = self.typical()
        until = 0.0
        for share, hot, from_best in PLAN:
            until += share
            put_all(self.state, self.rules, read_only(self.best if from_best else self.start))
            self.begin_at(self.least if from_best else 0.0)
            self.cool(hot * HOT * unit, COLD * unit, share, until)
            if self.context.should_stop():
                return

    def begin_at(self, change: float) -> None:
        """Tell the kernel that the state costs ``change`` more than the start, and that this is its best."""
        self.gain[:] = change, change, self.margin

    def typical(self) -> float:
        """Return the mean rise of the objective by a random change: the unit of temperature."""
        rises, before = [], 0.0
        self.begin_at(0.0)
        for _ in range(SAMPLES // 10):
            self.anneal(MELT, 10)
            rises.append(abs(self.gain[0] - before) / 10)
            before = self.gain[0]
            if self.context.should_stop():
                break
        self.keep()
        return float(np.mean(rises)) or 1.0

    def cool(self, hot: float, cold: float, share: float, until: float) -> None:
        """Run one geometric cooling; the clock drives it where it is ahead of the work."""
        tries, done = share * self.planned, 0.0
        lead = self.context.time_left()
        goal = lead - self.began * (1.0 - until)
        piece = max(1, int(min(SLICE / self.seconds_per_try, tries / 100)))
        while not self.context.should_stop():
            clock = (lead - self.context.time_left()) / goal if goal > 0 else 1.0
            over = max(done / tries, clock)
            if over >= 1.0:
                break
            heat = hot * (cold / hot) ** over
            self.anneal(heat, piece)
            done += piece
        self.keep()

    def anneal(self, heat: float, tries: int) -> None:
        """Make one kernel call."""
        anneal(self.state, self.rules, self.prices, heat, tries, self.rng, self.found, self.gain)

    def keep(self) -> None:
        """Offer the best mapping of the last cooling if it is the best so far."""
        if self.gain[1] < self.least - self.margin:
            self.best[:], self.least = self.found, float(self.gain[1])
            self.context.offer(self.best.copy(), "moves within the budget")
