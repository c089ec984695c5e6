"""Work budget and the annealing schedule of one level."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from nmsolve.heuristics.mapping.multilevel.graph import Graph
from nmsolve.heuristics.mapping.multilevel.heatbath import heat_sweep
from nmsolve.heuristics.mapping.multilevel.lines import Lines, State
from nmsolve.model.types import AnyArray

#: Work units of one kernel call at most: about 0.05 s.
SLICE = 3e7


@dataclass
class Budget:
    """How much of the run is over: by work done, or by the clock if the machine is slower than the work assumes.

    One unit of work is about one nanosecond on a 2020s core; see :func:`work_of`.

    Attributes
    ----------
    total : work units of the whole run
    should_stop : asked after every slice of work
    elapsed : share of the allowed time that is over (0 if no time is kept)
    """

    total: float
    should_stop: Callable[[], bool]
    elapsed: Callable[[], float]
    spent: float = 0.0
    stopped: bool = field(default=False)

    def done(self) -> float:
        """Return the share of the run that is over, 0 to 1 and beyond."""
        return max(self.spent / self.total, self.elapsed())

    def stop(self) -> bool:
        """Return True once the search was told to stop; remembers it."""
        self.stopped = self.stopped or self.should_stop()
        return self.stopped


def work_of(board: Lines, visits: int, draws: int, moves: int, touched: int) -> float:
    """Return work units of visits, draws of another core, accepted moves and neighbours told about them."""
    width = len(board.lines_x) + len(board.lines_y)
    return visits * (12.0 + 1.1 * width) + draws * 80.0 + moves * 90.0 + touched * (1.5 + 0.25 * width)


@dataclass
class Scratch:
    """Buffers of the kernels for one board."""

    bits: AnyArray
    prob: AnyArray
    step: AnyArray


def scratch_for(board: Lines) -> Scratch:
    """Fresh buffers."""
    width = len(board.lines_x) + len(board.lines_y)
    bits = np.zeros(width, np.int32)
    return Scratch(bits, bits.view(np.float32), np.zeros(width, np.float32))


def anneal(
    g: Graph, board: Lines, s: State, hot: float, cold: float, until: float, budget: Budget, rng: AnyArray, scratch: Scratch
) -> None:  # fmt: skip
    """Cool geometrically from ``hot`` to ``cold`` while the run goes from its present share to ``until``.

    Late phases are squeezed, not cut: if the clock runs ahead of the work, the temperature follows the clock.
    """
    begin = budget.done()
    span = max(until - begin, 1e-9)
    runner = _Runner(g, board, s, budget, rng, scratch)
    while not budget.stop():
        over = (budget.done() - begin) / span
        if over >= 1.0:
            break
        # At least 300 temperature steps per phase.
        runner.advance(hot * (cold / hot) ** over, span * budget.total / 300)


def warm_up(
    g: Graph, board: Lines, s: State, temperature: float, sweeps: int, budget: Budget, rng: AnyArray, scratch: Scratch
) -> None:  # fmt: skip
    """Make ``sweeps`` sweeps at one temperature; ``rng`` is the state of the random numbers."""
    runner = _Runner(g, board, s, budget, rng, scratch)
    while runner.visited < sweeps * len(s.pos) and not budget.stop():
        runner.advance(temperature, SLICE, len(s.pos))


class _Runner:
    """Visits the nodes of one level in cyclic order, in kernel calls of limited work."""

    def __init__(
        self, g: Graph, board: Lines, s: State, budget: Budget, rng: AnyArray, scratch: Scratch
    ) -> None:  # fmt: skip
        self.g, self.board, self.s = g, board, s
        self.budget, self.rng, self.scratch = budget, rng, scratch
        self.visited = 0
        degree = len(g.neighbour) / max(1, len(s.pos))
        self.price = work_of(board, 1, 1, 2, int(2 * degree))  # per visit, at most

    def advance(self, temperature: float, work: float, most: int = 1 << 60) -> None:
        """Make one kernel call of about ``work`` units (at most a slice), 20 sweeps and ``most`` visits."""
        n, board, scratch = len(self.s.pos), self.board, self.scratch
        visits = max(1, min(int(min(SLICE, work) / self.price), 20 * n, most))
        draws, moves, touched = heat_sweep(
            self.g, board, self.s, self.visited % n, visits, temperature, scratch.bits, scratch.prob, scratch.step,
            self.rng,
        )  # fmt: skip
        self.visited += visits
        work = work_of(board, visits, draws, moves, touched)
        self.budget.spent += work
        # Calls get longer as moves get rarer.
        self.price = max(work_of(board, 1, 0, 0, 0), 1.2 * work / visits)
