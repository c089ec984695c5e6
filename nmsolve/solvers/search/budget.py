"""How long a run may take, and who stopped it."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from nmsolve.model.errors import InputError


class Budget:
    """Wall clock of one run with its deadline, and the interrupt flag.

    Parameters
    ----------
    seconds : time limit, > 0
    started : ``time.monotonic()`` at the moment the limit counts from; now if not given
    reserve : seconds kept back at the end for stopping children and for the last figures

    Raises
    ------
    InputError : the limit is not a positive, finite number
    """

    def __init__(self, seconds: float, *, started: float | None = None, reserve: float = 0.0) -> None:
        if not (math.isfinite(seconds) and seconds > 0):
            raise InputError(f"the time limit is {seconds} seconds", "", "a finite number > 0")
        self.started = time.monotonic() if started is None else started
        self.limit = self.started + seconds
        self.deadline = self.limit - min(reserve, seconds)
        self._interrupt = threading.Event()
        self._starved = threading.Event()

    def elapsed(self) -> float:
        """Wall seconds since the start."""
        return time.monotonic() - self.started

    def left(self) -> float:
        """Wall seconds until the search must end; never below 0."""
        return max(0.0, self.deadline - time.monotonic())

    def interrupt(self) -> None:
        """Ask the run to end with its best answer."""
        self._interrupt.set()

    @property
    def interrupted(self) -> bool:
        """True once somebody asked the run to end."""
        return self._interrupt.is_set()

    def starve(self) -> None:
        """The memory budget is used up: ask the run to end with its best answer."""
        self._starved.set()

    @property
    def starved(self) -> bool:
        """True once the memory budget was used up."""
        return self._starved.is_set()

    def over(self) -> bool:
        """True once time or memory is up or the run was interrupted."""
        return self._interrupt.is_set() or self._starved.is_set() or time.monotonic() >= self.deadline

    @contextmanager
    def ctrl_c(self) -> Iterator[None]:
        """While active, the first Ctrl-C or SIGTERM sets the interrupt flag and the second raises KeyboardInterrupt.

        Outside the main thread, where Python delivers no signals, this does nothing.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def on_signal(number: int, frame: FrameType | None) -> None:
            if self._interrupt.is_set():
                raise KeyboardInterrupt
            self._interrupt.set()

        before = {s: signal.signal(s, on_signal) for s in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
