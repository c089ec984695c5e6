"""What may still be done when time is up, or somebody has asked for the end: the answer is written, with less about it."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType, TracebackType

from nmsolve.solvers.search.stop import Stop, stopping

#: Seconds that checks and pictures may go on after the time limit, and after somebody asked for the end.
AFTER_LIMIT, AFTER_SIGNAL = 1.0, 0.4
#: Seconds until it is tried again to cut off what did not notice.
AGAIN = 0.2
#: Seconds that checks get however late it is: enough for small networks.
CHECKS = 0.4


class OutOfTime(KeyboardInterrupt):
    """Time for what can be left out is up; as if somebody had asked for the end."""


class Patience:
    """Around a search and the writing of its answer: one signal ends all searches inside, and what is optional soon after.

    The first Ctrl-C, SIGTERM or SIGHUP ends the search with its best answer. What runs in :meth:`optional` ends at the
    signal, or a moment later if the signal came before it began; at the latest a second after the time limit. A second
    signal ends everything. Outside the main thread, where Python delivers no signals, nothing is cut off.

    Parameters
    ----------
    limit : ``time.monotonic()`` at which the time limit ends; never if not given
    """

    def __init__(self, limit: float = math.inf) -> None:
        self._limit = limit
        self._stop = Stop()
        self._open = ExitStack()

    def __enter__(self) -> Patience:
        self._stop = self._open.enter_context(stopping())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    @property
    def asked(self) -> bool:
        """True once somebody asked for the end."""
        return self._stop.asked

    def left(self) -> float:
        """Seconds that optional things may still take; not above 0 if time is up."""
        asked_at = math.inf if self._stop.asked_at is None else self._stop.asked_at
        return min(self._limit + AFTER_LIMIT, asked_at + AFTER_SIGNAL) - time.monotonic()

    @contextmanager
    def optional(self, least: float = 0.0) -> Iterator[None]:
        """Raises KeyboardInterrupt in here as soon as somebody asks for the end or time is up, also before.

        ``least`` : seconds that it gets however late it is, unless somebody asks for the end meanwhile.
        """
        in_main = threading.current_thread() is threading.main_thread()
        asked = self.asked
        self._stop.at_once = True  # first: a signal must not fall between the question and this
        before = signal.signal(signal.SIGALRM, self._alarm) if in_main else None
        try:
            end = time.monotonic() + max(least, self.left())
            left = end - time.monotonic()
            if left <= 0:
                raise OutOfTime
            if in_main and left < math.inf:
                signal.setitimer(signal.ITIMER_REAL, left, AGAIN)
            yield
        except Exception:
            if time.monotonic() >= end or (self.asked and not asked):
                raise OutOfTime from None
            raise
        finally:
            self._stop.at_once = False
            if in_main:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, before)

    def _alarm(self, number: int, frame: FrameType | None) -> None:
        if self._stop.at_once:
            raise OutOfTime
