"""When a run ends: its time limit, what is kept back of it, signals that ask for the end, and memory that is used up."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import NamedTuple, Self

from nmsolve.model import clock
from nmsolve.model.errors import InputError
from nmsolve.model.host.processes import ASKING, HANGUP

#: Most of the time limit that a search keeps back on a busy machine.
MOST_RESERVED = 0.2


class Reserve(NamedTuple):
    """CPU seconds kept back of a time limit: this ``part`` of it, and at most ``most``."""

    part: float
    most: float

    def of(self, limit: float) -> float:
        """Return them for a ``limit`` in seconds."""
        return min(self.most, self.part * limit)


#: What is kept back: by a search to stop its children; for what comes from other machines, in addition; by one that alternates
#: between mapping and routes, for the figures of the routes; by a command for the pictures of a page, and of one with many.
CHILDREN, AWAY, ROUTES = Reserve(0.03, 0.5), Reserve(0.05, 0.5), Reserve(0.1, 0.5)
PICTURES, MANY_PICTURES = Reserve(0.1, 0.5), Reserve(0.1, 1.5)
#: Seconds that a search gets where loading took the time, and their most of the limit: small networks get a useful answer.
FIRST_ANSWER, SHARE = 0.4, 0.2


def kept_back(cpu: float, limit: float, most: float = MOST_RESERVED) -> float:
    """Return the wall seconds in which this process gets ``cpu`` seconds (:func:`nmsolve.model.clock.pace`): on a busy machine
    at most the part ``most`` of the limit, or as many as on an idle one."""
    return min(cpu * clock.pace(), max(cpu, most * limit), limit)


#: Runs inside runs, the outermost first: it handles the signals.
_running: list[Stop] = []


class Stop:
    """The end of one run: when it is due, and whether it was asked for.

    As a context manager it notes the first Ctrl-C, SIGTERM or SIGHUP, which ends this run and all runs inside it or around it
    with their best answers; the second raises KeyboardInterrupt. Outside the main thread, where Python delivers no signals, it
    notes none.

    Parameters
    ----------
    seconds : time limit, > 0; None: no limit
    started : ``clock.now()`` at the moment the limit counts from; now if not given
    reserve : CPU seconds kept back at the end for stopping children and for the last figures; on a busy machine as many more
        wall seconds as it takes to get these (:func:`nmsolve.model.clock.pace`)
    heard : called with the first signal; tells the user what happens

    Raises
    ------
    InputError : the limit is not a positive, finite number
    """

    def __init__(
        self,
        seconds: float | None = None,
        *,
        started: float | None = None,
        reserve: float = 0.0,
        heard: Callable[[], None] = lambda: None,
    ) -> None:
        if seconds is not None and not 0 < seconds < math.inf:
            raise InputError(f"the time limit is {seconds} seconds", "", "a finite number > 0")
        limit = math.inf if seconds is None else seconds
        self.started = clock.now() if started is None else started
        self.limit = self.started + limit
        self.deadline = self.limit - kept_back(reserve, limit)
        self._heard, self._interrupted, self._asked_at = heard, threading.Event(), math.inf
        self._starved = threading.Event()
        self._outer, self._before = self, {}  # type: ignore[var-annotated]
        #: Blocks of :func:`unbroken`, and whether a second signal came in one.
        self.held, self.again = 0, False

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            return self
        self._outer = _running[0] if _running else self
        _running.append(self)
        if self._outer is self:
            nohup = HANGUP is not None and signal.getsignal(HANGUP) == signal.SIG_IGN
            kinds = [s for s in ASKING if not (nohup and s == HANGUP)]
            self._before = {s: signal.signal(s, self._on_signal) for s in kinds}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self in _running:
            _running.remove(self)
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        """Note the first signal; raise KeyboardInterrupt at the second."""
        if self._asked_at == math.inf:
            self._asked_at = clock.now()
            self._heard()
            return
        self.again = True
        if not self.held:
            raise KeyboardInterrupt

    @property
    def asked_at(self) -> float:
        """``clock.now()`` at the first signal; inf before it."""
        return self._outer._asked_at

    @property
    def asked(self) -> bool:
        """True once a signal asked for the end."""
        return self.asked_at < math.inf

    def elapsed(self) -> float:
        """Wall seconds since the start."""
        return clock.now() - self.started

    def left(self) -> float:
        """Wall seconds until the search must end; never below 0."""
        return max(0.0, self.deadline - clock.now())

    def keep_back(self, seconds: float) -> None:
        """Keep back this much more at the end: what writing the answer takes, as measured once."""
        self.deadline -= min(seconds, MOST_RESERVED * self.left())

    def begin(self) -> None:
        """Give a search that begins now :data:`FIRST_ANSWER`, however late it is."""
        least = min(FIRST_ANSWER, SHARE * (self.limit - self.started))
        self.deadline = max(self.deadline, clock.now() + least)

    def interrupt(self) -> None:
        """Ask the run to end with its best answer."""
        self._interrupted.set()

    @property
    def interrupted(self) -> bool:
        """True once the run was asked to end, by a signal or by :meth:`interrupt`."""
        return self._interrupted.is_set() or self.asked

    def starve(self) -> None:
        """Ask the run to end with its best answer: the memory budget is used up."""
        self._starved.set()

    @property
    def starved(self) -> bool:
        """True once the memory budget was used up."""
        return self._starved.is_set()

    def over(self) -> bool:
        """Return True once time or memory is up or the run was asked to end."""
        return self.interrupted or self.starved or clock.now() >= self.deadline


@contextmanager
def unbroken() -> Iterator[None]:
    """Let a second signal wait until the block has ended: the best answer is being written."""
    if threading.current_thread() is not threading.main_thread() or not _running:
        yield
        return
    stop = _running[0]
    stop.held += 1
    try:
        yield
    finally:
        stop.held -= 1
        if stop.again and not stop.held:
            raise KeyboardInterrupt
