"""The engine ``subgraphs``: solutions of any sum of costs by block moves on random trees of the contracted network.

It begins with the answer that messages and prices of memory suggest (:mod:`.messages`), or with the best one known, and
anneals from the best again and again (:mod:`.block_moves`).
"""

from __future__ import annotations

import math
import time

import numpy as np

from nmsolve.heuristics.assignment.block_moves import Block, Needs, State, anneal, measure, round_messages
from nmsolve.heuristics.assignment.messages import MessageAscent, Network
from nmsolve.heuristics.rng import new_rng
from nmsolve.model import clock
from nmsolve.model.assignment.contract import Contracted, contracted
from nmsolve.model.assignment.network import CostNetwork, network_complaint
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.assignment.reduction import SUMS, Reduced, reduced
from nmsolve.model.assignment.spans import spans_of
from nmsolve.model.assignment.tight import Tight, tight_positions
from nmsolve.model.engine import Context
from nmsolve.model.types import FloatArray

#: Sweeps of messages per temperature, and the share of the first temperature at which prices are good enough.
SWEEPS, COLD = 30, 1e-4
#: Part of the time left that messages may take.
ASCENT = 0.2
#: First and last temperatures of an annealing, as shares of what a node costs on average, in turn.
HEATS = ((1.0, 1e-3), (0.1, 1e-4), (0.01, 1e-5), (0.3, 1e-4))
#: Moves of an annealing per node, and annealings without a better solution before the engine ends.
EFFORT, IDLE = 100, 24
#: Annealings that go on from what messages suggest though it needs too much memory and a solution is known.
PATIENCE = 4
#: Seconds between two looks at the clock.
GLANCE = 0.1
#: The least that a byte too many costs, in prices of bytes.
OVER = 3.0


class NetworkSearch:
    """Annealing by trees of nodes; memory is checked at every move."""

    name = "subgraphs"
    finds = "mappings"

    def refuses(self, problem: AssignProblem | CostNetwork) -> str | None:
        """Objectives that are no sums of costs, and ceilings on others."""
        if isinstance(problem, CostNetwork):
            return None
        if problem.ceilings:
            return "takes no ceilings on other objectives"
        return None if problem.objective in SUMS else f"{problem.objective} is no sum of costs"

    def run(self, problem: AssignProblem | CostNetwork, context: Context) -> None:
        """Anneal until time is up or nothing better is found any more."""
        whole = reduced(problem)
        small = contracted(whole.network)
        if context.should_stop():
            context.note("time was up before the search began")
            return
        tight = None if small is None else tight_positions(small.network)
        if small is None or tight is None or (tight.slack < 0).any():
            context.note(
                "strategies that nodes need exclude each other, or need too much memory: there is no solution"
            )
            return
        if not context.should_stop():
            _NetworkSearch(whole, small, tight, context).run()


class _NetworkSearch:
    """One search and its room."""

    def __init__(self, whole: Reduced, small: Contracted, tight: Tight, context: Context) -> None:
        self.whole, self.small, self.context = whole, small, context
        end = clock.now() + ASCENT * context.time_left()
        ascent = MessageAscent(small.network, tight, lambda: context.should_stop() or clock.now() > end)
        self.heat = ascent.hottest()
        ascent.cool(self.heat, COLD, SWEEPS)
        self.heat = max(self.heat, abs(ascent.best) / small.network.count)
        self.net = _finite(ascent.net)
        spans = spans_of(small.network, tight)
        self.price: FloatArray = np.zeros(len(spans.limit))
        self.price[spans.rows(tight.memory, tight.position)] = ascent.dual.price
        charge = np.zeros(len(small.network.cost))
        self.needs = Needs(spans.ptr, spans.first, spans.last, spans.amount, spans.limit, charge)
        self._charge()
        n = small.network.count
        self.state = State(
            np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(len(self.price), np.int64), np.zeros(5)
        )
        least = self.heat / max(1.0, float(tight.amount.mean()) if len(tight.amount) else 1.0)
        self.dearest = max(float(self.price.max(initial=0)), least)
        self.state.total[2:] = math.inf, OVER * self.dearest, OVER * self.dearest
        nodes, up, seen, new = np.zeros((4, n), np.int64)
        pick = np.zeros(len(ascent.dual.message), np.int64)
        self.block = Block(
            nodes, up, seen, np.zeros(len(charge)), pick, new, np.zeros(int(np.diff(small.network.ptr).max()))
        )
        round_messages(self.net, ascent.dual.unary, ascent.dual.message, self.state.at)
        self.rng = new_rng(context.seed)
        self.offered = math.inf

    def run(self) -> None:
        """Anneal from the best again and again."""
        measure(self.net, self.needs, self.state)
        idle = turn = 0
        while idle < IDLE and not self.context.should_stop():
            self._warm(turn)
            hot, cold = HEATS[turn % len(HEATS)]
            self._anneal(hot * self.heat, cold * self.heat)
            idle = 0 if self._offer() else idle + 1
            if self.state.total[1] > 0:
                self._raise_prices()
            turn += 1

    def _charge(self) -> None:
        """Set what the bytes of every choice cost at the prices there are."""
        needs, whole = self.needs, np.concatenate([[0.0], np.cumsum(self.price)])
        choice = np.repeat(np.arange(len(needs.charge)), np.diff(needs.ptr))
        needs.charge[:] = 0
        np.add.at(needs.charge, choice, (whole[needs.last] - whole[needs.first]) * needs.amount)

    def _raise_prices(self) -> None:
        """Make bytes dearer where too many are used."""
        over = np.maximum(0, self.state.used - self.needs.limit)
        self.price += self.dearest * over / over.max()
        self._charge()

    def _warm(self, turn: int) -> None:
        """Go on from the best solution: its own, or one that another engine found.

        What messages suggest may need too much memory, and yet be nearer to the best solutions than a first one that fits.
        """
        known, value = self.context.incumbent()
        if turn < PATIENCE and math.isinf(self.state.total[2]) and self.state.total[0] < value:
            return
        if known is not None and value < self.offered:
            inner = self.small.lower(self.whole.lower(known))
            if inner is not None:
                self.state.at[:] = inner
                self.offered = value
                measure(self.net, self.needs, self.state)
                return
        if math.isfinite(self.state.total[2]):
            self.state.at[:] = self.state.best
            measure(self.net, self.needs, self.state)

    def _anneal(self, hot: float, cold: float) -> None:
        """Cool down once, looking at the clock between pieces."""
        moves = EFFORT * self.small.network.count
        heats = np.array([hot, cold, moves])
        done, some = 0, 16
        while done < moves and not self.context.should_stop():
            start, end = time.perf_counter(), min(done + some, moves)
            anneal(self.net, self.needs, self.state, self.block, heats, done, end, self.rng)
            done = end
            if time.perf_counter() - start < GLANCE / 2:
                some *= 2

    def _offer(self) -> bool:
        """Offer the best solution if it is new and breaks no rule; whether it was."""
        value = self.state.total[2]
        if (
            not value < self.offered - 0.5
            or network_complaint(self.small.network, self.state.best) is not None
        ):
            return False
        self.offered = value
        self.context.offer(self.whole.lift(self.small.lift(self.state.best)), "trees")
        return True


def _finite(net: Network) -> Network:
    """Return the network with costs instead of what is forbidden, dearer than anything allowed can be."""
    allowed = np.where(np.isfinite(net.table), net.table, 0.0)
    dear = 1.0 + float(net.cost.sum())
    if len(net.ends):
        dear += float(np.maximum.reduceat(allowed, net.table_ptr[:-1]).sum())
    return net._replace(table=np.where(np.isfinite(net.table), net.table, dear))
