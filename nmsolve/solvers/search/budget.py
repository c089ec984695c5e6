"""The time that a run may take, and what stopped it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from nmsolve.model import clock
from nmsolve.model.errors import InputError
from nmsolve.model.stop import Stop, stopping

#: Most of the limit that is kept back on a busy machine.
MOST_RESERVED = 0.2


def _pace(started: float) -> float:
    """Wall seconds per CPU second of this process since ``started``, at least 1; 1 where it had not begun then."""
    spent, worked = clock.now() - started, time.process_time()
    return max(1.0, spent / worked) if worked > 0 else 1.0


class Budget:
    """Wall clock of one run with its deadline, and the interrupt flag.

    Parameters
    ----------
    seconds : time limit, > 0
    started : ``clock.now()`` at the moment the limit counts from; now if not given
    reserve : seconds kept back at the end for stopping children and for the last figures; more where other processes slow this
        one down, as its first moments since ``started`` tell

    Raises
    ------
    InputError : the limit is not a positive, finite number
    """

    def __init__(self, seconds: float, *, started: float | None = None, reserve: float = 0.0) -> None:
        if not (math.isfinite(seconds) and seconds > 0):
            raise InputError(f"the time limit is {seconds} seconds", "", "a finite number > 0")
        self.started = clock.now() if started is None else started
        self.limit = self.started + seconds
        slowed = min(reserve * _pace(self.started), max(reserve, MOST_RESERVED * seconds))
        self.deadline = self.limit - min(slowed, seconds)
        self._interrupt = threading.Event()
        self._stop = Stop()
        self._starved = threading.Event()

    def elapsed(self) -> float:
        """Wall seconds since the start."""
        return clock.now() - self.started

    def left(self) -> float:
        """Wall seconds until the search must end; never below 0."""
        return max(0.0, self.deadline - clock.now())

    def interrupt(self) -> None:
        """Ask the run to end with its best answer."""
        self._interrupt.set()

    @property
    def interrupted(self) -> bool:
        """True once the run was asked to end."""
        return self._interrupt.is_set() or self._stop.asked

    def starve(self) -> None:
        """Ask the run to end with its best answer: the memory budget is used up."""
        self._starved.set()

    @property
    def starved(self) -> bool:
        """True once the memory budget was used up."""
        return self._starved.is_set()

    def over(self) -> bool:
        """Return True once time or memory is up or the run was interrupted."""
        return self.interrupted or self._starved.is_set() or clock.now() >= self.deadline

    @contextmanager
    def ctrl_c(self) -> Iterator[None]:
        """While active, the first Ctrl-C, SIGTERM or SIGHUP interrupts this run, the second raises KeyboardInterrupt
        (:func:`nmsolve.model.stop.stopping`). Inside a block of a larger run that was asked to end before, this
        one is over at once.
        """
        with stopping() as self._stop:
            yield
