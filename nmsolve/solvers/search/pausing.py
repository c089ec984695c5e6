"""Runs of engines that are paused and go on where they were, so that a race costs none of them what it had reached.

An engine asks its context often whether to stop. While it asks, the search may let others work: the run is a coroutine (greenlet)
that is left inside :meth:`PausingContext.should_stop` and entered there again. Engines need not know of it.
"""

from __future__ import annotations

import math
from typing import Any

from greenlet import GreenletExit, getcurrent, greenlet

from nmsolve.model import clock
from nmsolve.model.engine import Engine
from nmsolve.solvers.search.context import Ending, LocalContext, run_guarded

#: Part of the time left that an engine in a race may expect: bounds and mappings get equal time.
PACE = 0.5


class PausingContext(LocalContext):
    """A context in which the engine works in turns.

    Its deadline is the moment by which it has to end altogether; a turn may end before, without its knowing.
    """

    pace = PACE
    #: Seconds worked in earlier turns, and the end of the present one.
    _earlier, _until = 0.0, 0.0

    def begin_turn(self, span: float, left: float) -> None:
        """From now on it may work for ``span`` of ``left`` seconds; it has to end in these if they are all."""
        self._since = clock.now()
        self._until = self._since + span if span < left else math.inf
        self._deadline = self._since + left

    def end_turn(self) -> None:
        """What it has worked in this turn counts."""
        self._earlier = self.worked()
        self._since = clock.now()

    def worked(self) -> float:
        """Seconds of all turns up to now."""
        return self._earlier + clock.now() - self._since

    def should_stop(self) -> bool:
        """True once the run is to end; false, maybe after a long pause, as long as it may go on."""
        while not super().should_stop():
            if clock.now() < self._until:
                return False
            getcurrent().parent.switch()
        return True


class PausingRun:
    """One run of an engine, in as many turns as the search gives it."""

    def __init__(self, engine: Engine, problem: Any, context: PausingContext) -> None:
        self.context = context
        self._flow = greenlet(lambda: run_guarded(engine, problem, context))

    def go_on(self, span: float, left: float) -> Ending | None:
        """Let it work for ``span`` of the ``left`` seconds of the search. Return how it ended, or None if it is paused."""
        self._flow.parent = getcurrent()
        self.context.begin_turn(span, left)
        ending = self._flow.switch()
        self.context.end_turn()
        return ending if self._flow.dead else None

    def close(self) -> None:
        """Give it up: what it holds is freed, its ``finally`` clauses are run."""
        if not self._flow.dead:
            self._flow.throw(GreenletExit)
