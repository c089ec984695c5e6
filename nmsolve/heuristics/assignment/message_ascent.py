"""Messages and prices on their way up, stage by stage at falling temperatures."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from nmsolve.heuristics.assignment.messages import ascend, given, network_of, rows_of, start_of, value
from nmsolve.model.assignment.network import CostNetwork
from nmsolve.model.assignment.tight import Tight
from nmsolve.model.types import FloatArray

#: The temperature falls by this factor after each stage; this many stages without a better bound end a round.
COOLING, VAIN = 0.6, 4
#: Sweeps at temperature 0 before a bound is stated.
POLISH = 10
#: Seconds between two looks at the clock.
GLANCE = 0.1


class MessageAscent:
    """The ascent of one network.

    Parameters
    ----------
    network : with one pair of two nodes at most, the smaller first (:mod:`nmsolve.model.assignment.contract`)
    stop : whether time is up
    better : is given prices (R,) and messages wherever they prove more than any before: what tables give to their nodes, pair
        after pair, the strategies of the first node before those of the second

    Attributes
    ----------
    best : the best bound so far, in floats
    proof : the prices and messages that prove it
    """

    def __init__(
        self,
        network: CostNetwork,
        tight: Tight,
        stop: Callable[[], bool],
        better: Callable[[FloatArray, FloatArray], None] = lambda price, message: None,
    ) -> None:
        self.network, self.stop, self.better = network, stop, better
        self.net, self.rows = network_of(network), rows_of(tight)
        self.dual = start_of(self.net, self.rows)
        self.node = np.repeat(np.arange(network.count), np.diff(network.ptr))
        self.best = -math.inf
        self.proof: tuple[FloatArray, FloatArray] = self.dual.price.copy(), self.dual.message.copy()

    def hottest(self, known: float = math.inf) -> float:
        """Return a first temperature: what a node costs on average, by the bound without prices or a ``known`` solution."""
        self.state()
        scale = max(abs(self.best), abs(known) if math.isfinite(known) else 0.0)
        if scale < 1:
            finite = self.net.table[np.isfinite(self.net.table)]
            scale = max(1.0, float(finite.sum()) / max(1, len(finite)) * len(self.net.ends))
        return scale / self.network.count

    def cool(self, heat: float, cold: float, sweeps: int) -> float:
        """Ascend at falling temperatures, down to a share ``cold`` of the first; the last one."""
        last, vain = heat * cold, 0
        while heat > last and vain < VAIN and not self.stop():
            self._ascend(heat, sweeps)
            vain = 0 if self.state() else vain + 1
            heat *= COOLING
        return heat

    def _ascend(self, heat: float, sweeps: int) -> None:
        """Make this many sweeps, fewer if time is up."""
        done, some = 0, 1
        while done < sweeps and not self.stop():
            start = time.perf_counter()
            ascend(self.net, self.rows, self.dual, self.node, heat, min(some, sweeps - done))
            done += some
            if time.perf_counter() - start < GLANCE / 2:
                some *= 2

    def state(self) -> bool:
        """Polish the messages at temperature 0 and say what they prove; whether that is better than before."""
        warm = self.dual.message.copy()
        looked = time.monotonic()
        for _ in range(POLISH):
            if time.monotonic() > looked + GLANCE:  # of large networks a sweep takes that long
                looked = time.monotonic()
                if self.stop():
                    break
            ascend(self.net, self.rows, self.dual, self.node, 0.0, 1)
        out = np.zeros_like(warm)
        given(self.net, self.dual, out)
        self.dual.message[:] = warm
        proved = value(self.net, self.dual, out) - float(self.dual.price @ self.rows.slack)
        if not proved + self.network.constant > self.best:
            return False
        self.best = proved + self.network.constant
        self.proof = self.dual.price.copy(), out
        self.better(*self.proof)
        return True
