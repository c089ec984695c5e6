"""Work budget and the annealing schedule of one level."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from nmsolve.heuristics.mapping.multilevel.heatbath import heat_sweep
from nmsolve.heuristics.mapping.multilevel.levels import Board, Net
from nmsolve.heuristics.mapping.multilevel.state import State
from nmsolve.model.types import AnyArray

#: Work units of one kernel call at most: about 0.05 s.
SLICE = 3e7


@dataclass
class Budget:
    """How much of the run is over: by work done, or by the clock if the machine is slower than the work assumes.

    One unit of work is about one nanosecond on a 2020s core; see :func:`visit_price` and :func:`edge_price`.

    Attributes
    ----------
    total : work units of the whole run
    should_stop : asked after every slice of work
    elapsed : share of the allowed time that is over (0 if nobody keeps time)
    """

    total: float
    should_stop: Callable[[], bool]
    elapsed: Callable[[], float]
    spent: float = 0.0
    stopped: bool = field(default=False)

    def done(self) -> float:
        """Share of the run that is over, 0 to 1 and beyond."""
        return max(self.spent / self.total, self.elapsed())

    def stop(self) -> bool:
        """True once the search was told to stop; remembers it."""
        self.stopped = self.stopped or self.should_stop()
        return self.stopped


def visit_price(board: Board) -> float:
    """Work units of visiting one node."""
    return 25.0 + 1.2 * (len(board.lines_x) + len(board.lines_y))


def edge_price(board: Board) -> float:
    """Work units of telling one neighbour about a move."""
    return 2.0 + 0.25 * (len(board.lines_x) + len(board.lines_y))


@dataclass
class Scratch:
    """Buffers of the kernels for one board."""

    bits: AnyArray
    prob: AnyArray
    step: AnyArray


def scratch_for(board: Board) -> Scratch:
    """Fresh buffers."""
    width = len(board.lines_x) + len(board.lines_y)
    bits = np.zeros(width, np.int32)
    return Scratch(bits, bits.view(np.float32), np.zeros(width, np.float32))


def anneal(
    net: Net, board: Board, s: State, hot: float, cold: float, until: float, budget: Budget, rng: AnyArray, scratch: Scratch
) -> None:  # fmt: skip
    """Cool geometrically from ``hot`` to ``cold`` while the run goes from its present share to ``until``.

    Late phases are squeezed, not cut: if the clock runs ahead of the work, the temperature follows the clock.
    """
    n = len(s.pos)
    degree = len(net.indices) / max(1, n)
    begin = budget.done()
    span = max(until - begin, 1e-9)
    node = 0
    slowest = visit_price(board) + 2 * degree * edge_price(board)
    while not budget.stop():
        over = (budget.done() - begin) / span
        if over >= 1.0:
            break
        temperature = hot * (cold / hot) ** over
        # At least 300 temperature steps per phase, no call longer than a slice, no more than 20 sweeps a call.
        visits = int(min(SLICE, span * budget.total / 300) / slowest)
        visits = max(1, min(visits, 20 * n))
        _, touched = heat_sweep(
            net, board, s, node, visits, temperature, scratch.bits, scratch.prob, scratch.step, rng
        )
        node = (node + visits) % n
        budget.spent += visits * visit_price(board) + touched * edge_price(board)
        # Calls get longer as moves get rarer.
        slowest = visit_price(board) + max(0.05, 1.5 * touched / visits) * edge_price(board)
