"""The chain of stages with the least sum of costs and of a weight times the largest load, and a bound on all others.

Costs and weight are those of the goal (:mod:`nmsolve.model.pipeline.goals`). Let S be the sum of the costs, T the largest load,
w the weight. For a ceiling on T, S has a bound from below (:mod:`.batch_kernels`). So ceilings fall, from none: if S is at least
D within a ceiling, no plan whose T is above (V - D) / w is better than one of value V, and that is the next ceiling. Where it
hardly falls, the least S within the ceiling is found exactly, over those stages that a better plan can have, and with it the
least T that allows this S; below that is the next ceiling. The search ends when D + w F reaches V, with F the period, below
which no T is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from nmsolve.heuristics.pipeline.batch_kernels import Arcs, arcs_left, best_price, least_sum, read_costs
from nmsolve.heuristics.pipeline.chain import ChainPartition
from nmsolve.heuristics.pipeline.chain_loads import ANY_LOAD, Costs, entering
from nmsolve.hw.pipeline.stages import objective
from nmsolve.model.pipeline.goals import SLOWEST
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import IntArray

#: Prices tried per ceiling; a ceiling that falls by less than this part asks for an exact search.
TRIES, SLOW = 24, 0.01
#: Where that is too large, this many may fall by less than this.
STILL, SMALL = 1e-4, 20
#: Prices tried per ceiling while a good plan is looked for, places of ceilings at first, and rounds in which two more are tried.
LOOK, PLACES, ROUNDS = 8, 10, 5
#: Stages that an exact search has room for at first, most of them, and most entries of its tables.
SOME_ARCS, MOST_ARCS, MOST_ENTRIES = 2**12, 2**22, 2**26
#: Steps of it per second.
PACE = 1e8
#: Part of a value that sums of floats may be off by.
ROUNDING = 1e-12


@dataclass
class Descent:
    """What is proved so far: no largest load is below ``floor``; plans whose largest load is above the last of ``ceilings`` are
    no better than ``value``. All in ticks, the ceilings falling from ``ANY_LOAD`` or what is held, with the price per core for
    each.

    ``bound``: no plan's value is less. ``plan``: with this ``value``. Both in ticks of the objective.
    """

    floor: int = 0
    ceilings: list[int] = field(default_factory=list)
    prices: list[float] = field(default_factory=list)
    value: float = math.inf
    bound: float = 0.0
    plan: PipelinePlan | None = None


def fastest_batch(problem: PipelineProblem, time_left: Callable[[], float]) -> Iterator[Descent]:
    """Yield the state of the search whenever its plan or its bound is better; the last one's bound is its value if time allows.

    Without a plan the value is inf, and so is the bound: there is none.
    """
    assert problem.goal.adds_up
    partition = ChainPartition(replace(problem, goal=SLOWEST))
    most = math.inf if problem.goal.held is None else problem.goal.held[1]
    first, period = partition.in_order(np.arange(problem.count))
    found = Descent()
    if first is None or period > most:
        found.bound = math.inf
        yield found
        return
    # a float holds the period up to its last digit
    found.floor = math.floor(problem.ticks.floor(period) * (1 - 2.0**-50))
    found.plan, found.value = first, math.ldexp(objective(problem, first), problem.sums.exponent)
    yield found
    search = BatchSearch(problem, partition, found)
    yield from search.run(time_left)


class BatchSearch:
    """One search, with the tables of its problem."""

    def __init__(self, problem: PipelineProblem, partition: ChainPartition, found: Descent) -> None:
        self.problem, self.partition, self.found = problem, partition, found
        self.chain = partition.whole()
        self.limits = partition.limits
        self.weight, self.costs = problem.sums.weight, costs_of(problem, partition)
        self.unit = self._first_price()
        #: no plan may have a larger load
        self.most = ANY_LOAD
        if problem.goal.held is not None:
            self.most = problem.ticks.within(problem.goal.held[1])
        self.stages = np.empty((problem.count, 2), np.int64)
        #: of an exact search at most
        self.steps = self.limits.rows * problem.count**2 * problem.largest_group

    def run(self, time_left: Callable[[], float]) -> Iterator[Descent]:
        """See :func:`fastest_batch`."""
        found, more = self.found, self.weight
        ceiling, price = self.most, 0.0 if len(self.costs.work) else self.unit
        small = 0
        if more:
            self._look_around(price, time_left)
        while True:
            least, price = self._bound(ceiling, price, TRIES)
            if math.isinf(least):  # no plan keeps the ceiling: all others are no better
                found.bound = found.value
                break
            found.ceilings.append(ceiling)
            found.prices.append(price)
            open_ = least + more * found.floor
            found.bound = max(found.bound, min(found.value, open_) * (1 - ROUNDING))
            yield found
            if open_ >= found.value * (1 - ROUNDING) or found.value == 0.0:
                found.bound = found.value
                break
            if time_left() <= 0:
                return
            following = ceiling
            if more:
                # what is above is at most rounding better
                following = min(ceiling, math.floor((found.value * (1 - ROUNDING) - least) / more))
            if following >= (1 - SLOW) * ceiling:
                worst = self.exact(ceiling, price) if self.steps / PACE < time_left() else None
                if worst is not None:
                    following = min(following, worst - 1)
                elif following > (1 - STILL) * ceiling:
                    small += 1
                if following >= ceiling or small > SMALL:
                    return
            if following < found.floor:
                found.bound = found.value
                break
            ceiling = following
        yield found

    def exact(self, ceiling: int, price: float) -> int | None:
        """Return the largest load of the plan with the least sum within the ceiling, of those that are better than the one known,
        0 if none is; None if there are too many stages to choose from."""
        found, chain, limits = self.found, self.chain, self.limits
        size = limits.rows * (self.problem.count + 1) * (limits.cores + 1)
        if size > MOST_ENTRIES:
            return None
        number, arcs = SOME_ARCS, Arcs.room(0)
        while number > len(arcs.load):
            if number > MOST_ARCS:
                return None
            arcs, below = Arcs.room(number), found.value * (1 - ROUNDING)
            number = arcs_left(
                ceiling, price, float(found.floor), below, self.weight, chain, self.costs, limits, arcs
            )
        least = least_sum(number, arcs, self.problem.count, limits, self.stages)
        if math.isinf(least):
            return 0
        plan = self._plan()
        total, worst = read_costs(self.stages, chain, self.costs)
        value = total + self.weight * float(worst)
        if value < found.value:
            found.value, found.plan = value, plan
        return int(worst)

    def _bound(self, ceiling: int, price: float, tries: int) -> tuple[float, float]:
        """Return the bound on the sum of costs within a ceiling, and its price; a plan met on the way is kept if it is better."""
        known = self.found.value
        least, price, value = best_price(
            ceiling, price, self.unit, self.weight, self.chain, self.costs, self.limits, known, self.stages, tries
        )  # fmt: skip
        if value < known:
            self.found.value, self.found.plan = value, self._plan()
        return least, price

    def _look_around(self, price: float, time_left: Callable[[], float]) -> None:
        """Find a good plan: within ceilings from the period up to where a sum of costs below the least would be needed, and
        between those that were best."""
        found, floor, part = self.found, float(max(1, self.found.floor)), 0.5 * time_left()
        least, price = self._bound(self.most, price, LOOK)
        top = max(1.0, (found.value - least) / self.weight / floor)
        points = [top ** (k / PLACES) for k in range(PLACES + 1)]
        best = [math.inf] * len(points)
        for _ in range(ROUNDS):
            for k, point in enumerate(points):
                if math.isinf(best[k]) and time_left() > part:
                    before = found.value
                    ceiling = min(self.most, math.floor(min(float(ANY_LOAD), floor * point * (1 + ROUNDING))))
                    least, price = self._bound(ceiling, price, LOOK)
                    best[k] = least + self.weight * floor * point if found.value >= before else found.value
            k = min(range(len(points)), key=best.__getitem__)
            around = [(points[n] * points[n + 1]) ** 0.5 for n in (k - 1, k) if 0 <= n < len(points) - 1]
            points, best = points + around, best + [math.inf] * len(around)
            order = sorted(range(len(points)), key=points.__getitem__)
            points, best = [points[n] for n in order], [best[n] for n in order]

    def _plan(self) -> PipelinePlan:
        used: IntArray = self.stages[self.stages[:, 0] >= 0][::-1]
        return self.partition.plan_of(self.chain, used)

    def _first_price(self) -> float:
        """Return what a core is worth where all of them share all work."""
        time = max(1.0, float(self.chain.rest[0]) / self.limits.cores**2)
        return (
            max(time * self.weight, 1e-6 * float(self.costs.least[-1, 0]), 1.0)
            if len(self.costs.work)
            else time
        )


def costs_of(problem: PipelineProblem, partition: ChainPartition) -> Costs:
    """Return the tables of what stages cost besides their load; without any where that is their cost."""
    none = np.empty((0, 0), np.int64)
    ticks = problem.sums
    if ticks.layer is None or ticks.tensor is None:
        return Costs(none, none, none, 0.0)
    layer = ticks.layer[:, : problem.largest_group]
    least = np.minimum.accumulate(layer[:, ::-1], axis=1)[:, ::-1]
    work, least = (np.vstack([0 * x[:1], np.cumsum(x, axis=0)]) for x in (layer, least))
    move = np.zeros((problem.count, problem.count + 1), np.int64)
    entering(problem.tensors.source, ticks.tensor, *partition.uses, move)
    return Costs(work, least, move, ticks.offchip)
