"""Annealing one level: from which temperature, down to which, in how many sweeps."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from nmsolve.heuristics.mapping.external.accept import Placement
from nmsolve.heuristics.mapping.external.levels import Level
from nmsolve.heuristics.mapping.external.propose import Cores, hashed
from nmsolve.heuristics.mapping.external.residence import Streamed
from nmsolve.heuristics.mapping.external.sweep import Crew, Swept, survey, sweep
from nmsolve.heuristics.mapping.multilevel.schedule import Budget
from nmsolve.model.types import AnyArray

#: Quick cooling looks for the temperature at which order sets in: factor per step of two sweeps, for a cut per sweep, and the
#: fall of the cost that shows it.
QUICK, QUICK_CUT, ORDER = 0.75, 0.7, 0.97
#: Part of an annealing after which cores no longer take more than their goal.
TIGHT = 0.85
#: Work units of reading a connection from a store.
READING = 35.0


@dataclass
class Run:
    """What every phase needs: the board, whether only the cut counts, threads, budget, and numbers for the passes.

    ``scoring`` : work units of reading the graph where an offer is scored, if it is on disk
    """

    cores: Cores
    cut: bool
    crew: Crew
    budget: Budget
    random: AnyArray
    scoring: float = 0.0
    passes: int = 0
    units: dict[int, float] = field(default_factory=dict)

    def key(self) -> int:
        """Return a new key for random numbers."""
        self.passes += 1
        return int(hashed(self.random[0], self.passes) & np.uint64(0x7FFFFFFFFFFFFFFF))

    def sweep(self, level: Level, s: Placement, temperature: float) -> Swept:
        """One sweep, booked as work."""
        swept = sweep(level, self.cores, s, self.cut, temperature, self.key(), self.crew)
        self.budget.spent += self.work(level)
        return swept

    def work(self, level: Level) -> float:
        """Return work units (about nanoseconds of one thread) of a sweep."""
        width = len(self.cores.lines_x) + len(self.cores.lines_y)
        node = 150.0 if self.cut else 90.0 + 2.0 * width
        work = (5.0 if self.cut else 2.5) * level.source.arcs + node * level.n
        if level.machines:
            work /= level.machines
        elif isinstance(level.source, Streamed):
            work += READING * (level.source.arcs - level.source.held)
        return work

    @property
    def spread(self) -> float:
        """Mean distance of two cores; more than 0 even where there is only one, as temperatures are multiples of it."""
        c = self.cores
        return max(1e-30, c.step if self.cut else float(c.lines_x.mean() + c.lines_y.mean()) + c.step)

    def unit(self, level: Level) -> float:
        """Return what one unit of distance costs the average node."""
        if id(level) in self.units:
            return self.units[id(level)]
        if level.away is not None and level.machines:
            weight = level.away.weight
        else:
            weight = sum(
                float(a.weight[a.indptr[0] : a.indptr[-1]].sum(dtype=np.float64))
                for a in level.source.blocks()
            )
        lines = (self.cores.lines_x, self.cores.lines_y)
        steps = [float(np.diagonal(x, 1).mean()) for x in lines if len(x) > 1]
        step = self.cores.step + (0.0 if self.cut else max(steps, default=0.0))
        self.units[id(level)] = max(1e-30, weight / level.n * step)
        return self.units[id(level)]


def anneal(level: Level, s: Placement, hot: float, cold: float, until: float, run: Run) -> None:
    """Cool geometrically from ``hot`` to ``cold`` until the share ``until`` of the run is over.

    The number of sweeps follows from the work they take; where the clock runs ahead of the work, the temperature
    follows the clock.
    """
    begin = run.budget.done()
    span = max(1e-9, until - begin)
    sweeps = max(3, int(span * run.budget.total / run.work(level)))
    i = 0
    while i < sweeps and not run.budget.stop():
        if i >= TIGHT * sweeps:
            np.copyto(s.limit, s.goal)
        run.sweep(level, s, hot * (cold / hot) ** (i / (sweeps - 1)))
        late = (run.budget.done() - begin) / span * sweeps
        i = max(i + 1, min(int(late), sweeps - 1) if i < sweeps - 1 else sweeps)


def temperature_of(level: Level, s: Placement, highest: float, run: Run) -> float:
    """The temperature at which a placement is in balance: draws of a sample of nodes neither raise nor lower what they pay.

    Between ``highest`` / 2**12 and ``highest``, to about 10 %.
    """
    low, high = highest / 4096, highest
    key = run.key()
    for _ in range(7):
        middle = float(np.sqrt(low * high))
        if survey(level, run.cores, s, run.cut, middle, key, run.crew) > 0:
            high = middle
        else:
            low = middle
    return float(np.sqrt(low * high))


def order_sets_in(level: Level, s: Placement, highest: float, run: Run) -> float:
    """Return the temperature at which a placement without order begins to get better, by quick cooling from ``highest``."""
    temperature, first = highest, 0.0
    quick = QUICK_CUT if run.cut else QUICK
    for i in range(60):
        if not run.cut:
            run.sweep(level, s, temperature)
        cost = run.sweep(level, s, temperature).cost
        first = cost if i == 0 else first
        if cost < ORDER * first or run.budget.stop():
            break
        temperature *= quick
    return temperature / quick
