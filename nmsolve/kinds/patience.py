"""What is still done once time is up or the user has interrupted: the answer is written, with fewer checks and pictures."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import FrameType, TracebackType

from nmsolve.kinds.guard import ends_if_stuck
from nmsolve.model import clock
from nmsolve.model.host.processes import ALARMS
from nmsolve.model.stop import Stop, stopping

#: Seconds that checks and pictures may continue after the time limit, and after the end was asked for.
AFTER_LIMIT, AFTER_SIGNAL = 0.8, 0.4
#: Seconds of the limit that searches leave to checks and pictures, and most of it.
PAGE, PAGE_PART = 1.2, 0.1
#: The same where pages have many pictures.
LONG_PAGE = 2.5
#: Seconds between attempts to cut off work that did not stop, or that was inside an import.
AGAIN, AFTER_IMPORT = 0.2, 0.01
#: Seconds that checks always get: enough for small networks.
CHECKS = 0.4
#: Seconds that pictures get however long the import took.
PICTURES = 2.0


def search_time(limit: float, page: float = PAGE) -> float:
    """Return seconds of a time limit that are for searching; the rest, at most ``page``, and what comes after draw the page."""
    return limit - min(page, PAGE_PART * limit)


class OutOfTime(KeyboardInterrupt):
    """Time for what can be left out is up; as if the end had been asked for."""


class Patience:
    """Around a search and the writing of its answer: one signal ends all searches inside, and what is optional soon after.

    The first Ctrl-C, SIGTERM or SIGHUP ends the search with its best answer. What runs in :meth:`optional` ends at the
    signal, or a moment later if the signal came before it began; at the latest :data:`AFTER_LIMIT` after the time limit. A second
    signal ends everything. An import is never cut off: it is done first, as half of a module would be there ever after.
    Outside the main thread, where Python delivers no signals, nothing is cut off; on Windows only if asked for.

    Parameters
    ----------
    limit : ``clock.now()`` at which the time limit ends; never if not given
    """

    def __init__(self, limit: float = math.inf) -> None:
        self._limit = limit
        self._stop = Stop()
        self._open = ExitStack()

    def __enter__(self) -> Patience:
        self._stop = self._open.enter_context(stopping())
        if self._limit < math.inf:  # a command; functions print nothing, and do not end their process
            self._stop.heard = _say_stopping
            self._open.enter_context(ends_if_stuck(self._limit))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    @property
    def asked(self) -> bool:
        """True once the end was asked for."""
        return self._stop.asked

    def left(self) -> float:
        """Return seconds that optional things may still take; not above 0 if time is up."""
        asked_at = math.inf if self._stop.asked_at is None else self._stop.asked_at
        return min(self._limit + AFTER_LIMIT, asked_at + AFTER_SIGNAL) - clock.now()

    @contextmanager
    def drawing(self) -> Iterator[None]:
        """Do the same as :meth:`optional` for a page with pictures; what draws is imported before, if there is time for any.

        On a slow machine the import alone takes what is left. Once it is paid for, pictures get :data:`PICTURES`.
        """
        least = 0.0
        if self.left() > 0:
            from nmsolve.report.drawing import import_what_draws

            import_what_draws()
            least = 0.0 if self.asked else PICTURES
        with self.optional(least):
            yield

    @contextmanager
    def optional(self, least: float = 0.0) -> Iterator[None]:
        """Raises KeyboardInterrupt in here as soon as the end is asked for or time is up, also before.

        ``least`` : seconds that it gets however late it is, unless the end is asked for meanwhile.
        """
        in_main = threading.current_thread() is threading.main_thread()
        asked = self.asked
        end = clock.now() + max(least, self.left())
        left = end - clock.now()
        if left <= 0:
            raise OutOfTime
        cut = _Cut(_imports(sys._getframe()), end)
        alarm = in_main and ALARMS
        before = signal.signal(signal.SIGALRM, cut.off) if alarm else None
        try:
            if in_main:
                if left < math.inf:
                    cut.after(left)
                self._stop.at_once = cut.off
                if self.asked and not asked:  # before the line above
                    raise OutOfTime
            yield
        except Exception:
            if clock.now() >= end or (self.asked and not asked):
                raise OutOfTime from None
            raise
        finally:
            cut.over = True  # first: an alarm that rings now is too late
            self._stop.at_once = None
            if alarm:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, before)


def _say_stopping() -> None:
    """Print what the first signal does; not by ``print``, as the signal may have come in the middle of one."""
    with suppress(OSError):
        os.write(
            2,
            b"stopping: the best answer so far is written; Ctrl-C again ends at once, and leaves what is on disk\n",
        )


class _Cut:
    """Raises OutOfTime in the main thread, but never inside an import that began after ``imports`` others; without a request
    not before ``end`` (``clock.now()``, which stands still while kernels are compiled, as alarms do not).
    """

    def __init__(self, imports: int, end: float) -> None:
        self._imports, self._end = imports, end
        self.over = self.asked = False

    def after(self, seconds: float) -> None:
        """Ask for the end this many seconds from now, where the system can."""
        if ALARMS:
            signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)

    def off(self, number: int, frame: FrameType | None) -> None:
        """Ask for the end now, or when the import is done; a handler of signals."""
        if self.over:
            return
        if number == signal.SIGALRM and not self.asked and clock.now() < self._end:
            self.after(max(AGAIN, self._end - clock.now()))
            return
        self.asked = self.asked or number != signal.SIGALRM
        importing = _imports(frame) > self._imports
        self.after(AFTER_IMPORT if importing else AGAIN)
        if not importing:
            raise OutOfTime


def _imports(frame: FrameType | None) -> int:
    """Return frames of the import system that ``frame`` was called from."""
    count = 0
    while frame is not None:
        count += frame.f_code.co_filename.startswith("<frozen importlib")
        frame = frame.f_back
    return count
