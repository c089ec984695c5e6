"""Large moves and reheating: let the bandit choose a kind of move, try it for a while, keep what gains, until told to stop."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.bandit import Bandit
from nmsolve.heuristics.mapping.placement.data import placement_cost
from nmsolve.heuristics.mapping.placement.local_search import SLICE, LocalSearch, search_cost
from nmsolve.heuristics.mapping.placement.schedule import anneal
from nmsolve.model.engine import Context
from nmsolve.model.types import IntArray

#: Work of one try of a large move as a share of one reheating, and at least (nominal ns).
TRY, LEAST_TRY = 0.25, 1e7
#: Reheating, in this many kinds: temperatures as shares of the warm one.
REHEATS = {"reheat": 1 / 3, "mild reheat": 1 / 10}
#: Tries between two lines in the events.
REPORT = 250


class Neighbourhoods:
    """Large-neighbourhood search from the placement of a local search.

    Parameters
    ----------
    search : placed at ``core``, whose cost is ``cost``
    warm : temperature that keeps the overall arrangement but loosens everything inside it
    cold : temperature at which nothing moves any more
    reheat : work of one reheating, nominal ns
    """

    def __init__(
        self, search: LocalSearch, core: IntArray, context: Context, warm: float, cold: float, reheat: float
    ) -> None:
        self._search, self._context = search, context
        self._warm, self._cold, self._reheat = warm, cold, reheat
        self._core, self._cost = core, placement_cost(search.data, core)
        self._seen: IntArray | None = None
        self._kinds = search.kinds()
        self._rounds = dict.fromkeys(self._kinds, 10)
        self.chooser = Bandit((*self._kinds, *REHEATS), context.seed)

    def run(self) -> None:
        """Search until told to stop; what the kinds of move did is noted in the events."""
        self._search.place(self._core)
        tries = 0
        while not self._context.should_stop():
            self._adopt()
            number = self.chooser.choose()
            before, cost = self._search.work, self._cost
            name = self.chooser.names[number]
            if name in REHEATS:
                self._heat(name, REHEATS[name] * self._warm)
            else:
                self._large(name)
            self.chooser.learn(number, cost - self._cost, max(1.0, self._search.work - before))
            tries += 1
            if tries % REPORT == 0:
                self._context.note(self.chooser.summary())
        self._context.note(self.chooser.summary())

    def _large(self, kind: str) -> None:
        """Make large moves of one kind for one try, in slices."""
        search, change = self._search, 0.0
        end = search.work + max(LEAST_TRY, TRY * self._reheat)
        while search.work < end and not self._context.should_stop():
            before = search.work
            change += search.large_moves(kind, self._rounds[kind])
            spent = max(1.0, search.work - before)
            self._rounds[kind] = int(np.clip(self._rounds[kind] * min(3.0, SLICE / spent), 1, 100_000))
        if change < 0:
            self._keep(kind)

    def _heat(self, name: str, hot: float) -> None:
        """Anneal from temperature ``hot`` and descend; back to the best placement if that was no use."""
        search, stop = self._search, self._context.should_stop
        end = search.work + 1.2 * self._reheat
        hot = max(hot, 2 * self._cold)
        lead = max(1e-9, self._context.time_left())
        anneal(search, self._reheat, hot, self._cold, lambda: 1 - self._context.time_left() / lead, stop)
        search.descend(lambda: stop() or search.work > end)
        if not self._keep(name):
            search.place(self._core)

    def _keep(self, name: str) -> bool:
        """Offer where the search is if that is the best so far."""
        cost = search_cost(self._search)
        if cost >= self._cost:
            return False
        self._core, self._cost = self._search.core(), cost
        self._context.offer(self._core, name)
        return True

    def _adopt(self) -> None:
        """Go on from the incumbent if another engine has found something better."""
        core, _ = self._context.incumbent()
        if core is None or core is self._seen:
            return
        self._seen = core
        cost = placement_cost(self._search.data, core)
        if cost < self._cost - 1e-9 * abs(self._cost):
            self._core, self._cost = core.copy(), cost
            self._search.place(self._core)
