"""Parts of a best-first search on other machines: lent, given back, taken away from those who have too many.

A part is some open partial mappings. Who has it works on it for a stint, depth first, so that little is open then; that comes
back in the part's place. For machines without work parts of others are called back early: this is how work is stolen.
A part is open, with the bound that it was lent with, until its answer is there: what is lost was not done.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from nmsolve.model import clock
from nmsolve.model.engine import Subtasks
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.branch_bound.frontier import Came, Frontier, Open
from nmsolve.solvers.mapping.branch_bound.search import Tree

#: Seconds of a stint: at least, and for each thread there is, so that whoever deals out the parts keeps up.
STINT, EACH = 1.0, 0.01
#: Seconds after which a part can be called back for others; that an answer is waited for, where a machine has nothing to do and
#: else; that those at the end are.
EARLY, SOON, WAIT, LAST = 0.05, 0.02, 0.1, 0.3
#: Partial mappings in a part: one in this many of those that every thread could have, but no more than this many.
SHARE, MOST = 4, 16
#: A part is called back after this many times its stint.
OVERDUE = 2.0


class Part(NamedTuple):
    """Open partial mappings, the doubled value that mappings must stay below, and for how many seconds to work."""

    items: list[Open]
    limit: int
    seconds: float


class BranchBoundWorker:
    """Works on parts of one search.

    Parameters
    ----------
    tree : of the search
    places : cores that may be used
    """

    def __init__(self, tree: Tree, places: IntArray) -> None:
        self._tree, self._places = tree, places
        self._frontier: Frontier | None = None

    def work(self, part: Part, should_stop: Callable[[], bool]) -> Came:
        """Return what came of a part."""
        if self._frontier is None:
            self._frontier = Frontier(self._tree, self._places, most=-1)
        end = clock.now() + part.seconds
        return self._frontier.work_on(part.items, part.limit, lambda: should_stop() or clock.now() >= end)


class Dealer:
    """Deals out the parts of a frontier; one call of :meth:`advance` after the other, from one thread.

    Parameters
    ----------
    frontier : the whole search
    subtasks : threads of other machines that work by a :class:`BranchBoundWorker` of its tree
    """

    def __init__(self, frontier: Frontier, subtasks: Subtasks) -> None:
        self._frontier, self._subtasks = frontier, subtasks
        self._since: dict[int, float] = {}
        self._called: set[int] = set()
        #: Parts that came back, and that were lost.
        self.came = self.lost = 0

    def advance(self) -> bool:
        """Lend what can be lent, and take what has come back; True once no mapping below the limit is left."""
        f, free = self._frontier, self._subtasks.free()
        hands = free + len(self._since)
        if hands == 0:  # no machine is there: the work goes on here
            return f.advance()
        stint = max(STINT, EACH * hands)
        while free > 0 and (items := f.take(min(MOST, 1 + len(f.heap) // (SHARE * hands)))):
            number = self._subtasks.send(Part(items, f.limit, stint))
            f.lend(number, items)
            self._since[number] = clock.now()
            free -= 1
        if not self._since:
            return f.advance()
        self._call_back(free, stint)
        self._settle(SOON if free > 0 else WAIT)
        return False

    def finish(self) -> None:
        """Call all parts back, and wait a little for what came of them; what does not come is open as it was."""
        for number in self._since:
            self._call(number)
        end = clock.now() + LAST
        while self._since and clock.now() < end:
            self._settle(SOON)
        self._subtasks.close()

    def _call_back(self, idle: int, stint: float) -> None:
        """Call back what has been out for longest, for those that have nothing, and what is overdue."""
        now = clock.now()
        for number, since in self._since.items():
            if now > since + OVERDUE * stint:
                self._call(number)
            elif idle > 0 and now > since + EARLY and number not in self._called:
                self._call(number)
                idle -= 1

    def _call(self, number: int) -> None:
        if number not in self._called:
            self._called.add(number)
            self._subtasks.recall(number)

    def _settle(self, seconds: float) -> None:
        for number, came in self._subtasks.back(seconds):
            self._frontier.settle(number, came)
            del self._since[number]
            self._called.discard(number)
            self.came += came is not None
            self.lost += came is None
