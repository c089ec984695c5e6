"""Remote subproblems of a best-first search: sent to other machines, returned, and stolen from busy machines.

A subtask is a set of open subproblems. Its worker searches them depth first for a limited time and returns those that are still
open; they replace the subtask. For an idle machine another subtask is recalled early: this is work stealing.
Until its result is there a subtask counts as open, with the bounds it was sent with. A lost subtask counts as not done.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from nmsolve.model import clock
from nmsolve.model.engine import Subtasks
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.branch_bound.best_first import BestFirstSearch, Subproblem, SubtaskResult
from nmsolve.solvers.mapping.branch_bound.search import Tree

#: Seconds of work per subtask: at least, and per remote thread, so that the run keeps up with the results.
STINT, EACH = 1.0, 0.01
#: Seconds after which a subtask may be recalled for an idle machine; of a wait for results with and without an idle machine; of
#: the wait at the end.
EARLY, SOON, WAIT, LAST = 0.05, 0.02, 0.1, 0.3
#: Subproblems of a subtask: a thread's fair share divided by SHARE, and at most MOST.
SHARE, MOST = 4, 16
#: A subtask is recalled after this many times its time.
OVERDUE = 2.0


class Subtask(NamedTuple):
    """Open subproblems, the doubled value that mappings must stay below, and the seconds to work."""

    subproblems: list[Subproblem]
    limit: int
    seconds: float


class BranchBoundWorker:
    """Worker object for the subtasks of one search.

    Parameters
    ----------
    tree : of the search
    places : cores that may be used
    """

    def __init__(self, tree: Tree, places: IntArray) -> None:
        self._tree, self._places = tree, places
        self._search: BestFirstSearch | None = None

    def work(self, subtask: Subtask, should_stop: Callable[[], bool]) -> SubtaskResult:
        """Search the subproblems of a subtask; return those still open."""
        if self._search is None:
            self._search = BestFirstSearch(self._tree, self._places, most=-1)
        end = clock.now() + subtask.seconds
        return self._search.work_on(
            subtask.subproblems, subtask.limit, lambda: should_stop() or clock.now() >= end
        )


class RemoteSubproblems:
    """Sends the open subproblems of a search to other machines. Only one thread may call it.

    Parameters
    ----------
    search : the whole search
    subtasks : threads of other machines with a :class:`BranchBoundWorker` of its tree
    """

    def __init__(self, search: BestFirstSearch, subtasks: Subtasks) -> None:
        self._search, self._subtasks = search, subtasks
        self._since: dict[int, float] = {}
        self._recalled: set[int] = set()
        #: Numbers of subtasks returned and lost.
        self.returned = self.lost = 0

    def advance(self) -> bool:
        """Send subtasks to idle threads and take results; True once no mapping below the limit is left."""
        search, free = self._search, self._subtasks.free()
        threads = free + len(self._since)
        if threads == 0:  # no other machine: search in this process
            return search.advance()
        stint = max(STINT, EACH * threads)
        while free > 0 and (subproblems := search.take(min(MOST, 1 + len(search.heap) // (SHARE * threads)))):
            number = self._subtasks.send(Subtask(subproblems, search.limit, stint))
            search.mark_sent(number, subproblems)
            self._since[number] = clock.now()
            free -= 1
        if not self._since:
            return search.advance()
        self._recall_some(free, stint)
        self._receive(SOON if free > 0 else WAIT)
        return False

    def finish(self) -> None:
        """Recall all subtasks and wait briefly for results; subproblems of the others stay open as sent."""
        for number in self._since:
            self._recall(number)
        end = clock.now() + LAST
        while self._since and clock.now() < end:
            self._receive(SOON)
        self._subtasks.close()

    def _recall_some(self, idle: int, stint: float) -> None:
        """Recall overdue subtasks, and the oldest one for each idle thread."""
        now = clock.now()
        for number, since in self._since.items():
            if now > since + OVERDUE * stint:
                self._recall(number)
            elif idle > 0 and now > since + EARLY and number not in self._recalled:
                self._recall(number)
                idle -= 1

    def _recall(self, number: int) -> None:
        if number not in self._recalled:
            self._recalled.add(number)
            self._subtasks.recall(number)

    def _receive(self, seconds: float) -> None:
        for number, result in self._subtasks.back(seconds):
            self._search.replace_sent(number, result)
            del self._since[number]
            self._recalled.discard(number)
            self.returned += result is not None
            self.lost += result is None
