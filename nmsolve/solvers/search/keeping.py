"""Handing over the best answer while the search goes on, so that whatever ends the process leaves it."""

from __future__ import annotations

import math
from collections.abc import Callable

from nmsolve.model import clock
from nmsolve.model.errors import NmsolveError
from nmsolve.model.stop import Stop
from nmsolve.solvers.search.incumbent import Incumbent

#: Least seconds between two answers handed over, and part of the time that this may take.
PAUSE, PART = 2.0, 0.05


class Keeper:
    """Hands over the first incumbent at once, later ones no more often than they cost :data:`PART` of the time.

    Parameters
    ----------
    stop : of the run; the time that the first answer takes is kept back for the last one
    write : hands over the incumbent as it is now; if it fails, it is not called again
    """

    def __init__(self, incumbent: Incumbent, stop: Stop, write: Callable[[], None]) -> None:
        self._incumbent, self._stop, self._write = incumbent, stop, write
        self._kept, self._next, self._failed = math.inf, -math.inf, False

    def look(self) -> None:
        """Hand over the incumbent if it is new and it is time; cheap if not. Once the time is over the run hands over the last
        one itself.
        """
        due = self._incumbent.objective < self._kept and clock.now() >= self._next
        if due and not self._stop.over():
            self.keep()

    def keep(self) -> None:
        """Hand over the incumbent if it is new."""
        objective = self._incumbent.objective
        if self._failed or not objective < self._kept:
            return
        begun, first = clock.now(), self._kept == math.inf
        try:
            self._write()
        except NmsolveError as error:
            self._failed = True
            self._incumbent.record("note", "search", f"the best answer so far was not written: {error}")
        self._kept = objective
        took = clock.now() - begun
        self._next = clock.now() + max(PAUSE, took / PART)
        if first:
            self._stop.keep_back(took)
