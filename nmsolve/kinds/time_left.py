"""The time after a search: checks always get some, pictures what is left; the answer is on disk before."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import TypeVar

from nmsolve.kinds import clock as of_command
from nmsolve.kinds.guard import ends_if_stuck
from nmsolve.model import clock
from nmsolve.model.host.killable import OutOfTime as OutOfTime
from nmsolve.model.host.killable import killable
from nmsolve.model.stop import PICTURES, Reserve, Stop, kept_back

T = TypeVar("T")
#: Seconds after the time limit, and after the end was asked for, at which checks and pictures that still run are left out.
AFTER_LIMIT, AFTER_SIGNAL = 0.6, 0.4
#: CPU seconds that writing a page and the last words take, and with which any but a large page has all its pictures.
WORDS, PAGE = 0.05, 1.0
#: Most of the time left that searches leave to files, checks and pictures on a busy machine.
MOST = 1 / 2
#: CPU seconds that checks always get: enough for small networks.
CHECKS = 0.25


def search_time(limit: float, pictures: Reserve = PICTURES, files: float = 0.0) -> float:
    """Return seconds of a command's time limit that are for searching; files, checks and page have the rest, and a moment more.

    Parameters
    ----------
    pictures : what is kept back for these
    files : CPU seconds that writing files takes which nothing can cut short
    """
    return limit - kept_back(pictures.of(limit) + files, of_command.left(limit), MOST)


class TimeLeft:
    """Around a search and the writing of its answer: one signal ends all searches inside, and what is optional soon after.

    The first Ctrl-C, SIGTERM or SIGHUP ends the search with its best answer. What is :meth:`optional` runs in a copy of this
    process, which is killed :data:`AFTER_SIGNAL` after a signal and :data:`AFTER_LIMIT` after the time limit. A second one ends
    everything. Outside the main thread, where Python delivers no signals, and on Windows nothing is cut off.

    Parameters
    ----------
    limit : ``clock.now()`` at which the time limit ends; never if not given
    """

    def __init__(self, limit: float = math.inf) -> None:
        self._limit = limit
        # a command; functions print nothing, and do not end their process
        self._stop = Stop(heard=_say_stopping) if limit < math.inf else Stop()
        self._open = ExitStack()

    def __enter__(self) -> TimeLeft:
        self._open.enter_context(self._stop)
        if self._limit < math.inf:
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
        late = self._limit + AFTER_LIMIT - WORDS * clock.pace()
        return min(late, self._stop.asked_at + AFTER_SIGNAL) - clock.now()

    def each(self, work: Callable[[], Iterator[T]], least: float = 0.0) -> Iterator[T]:
        """Yield what ``work`` yields in a copy of this process, as far as it gets.

        Parameters
        ----------
        least : CPU seconds that it gets however late it is, unless the end is asked for meanwhile

        Raises
        ------
        OutOfTime : time is up, or the end was asked for
        """
        asked, end = self.asked, clock.now() + least * clock.pace()

        def left() -> float:
            return self.left() if self.asked and not asked else max(self.left(), end - clock.now())

        return killable(work, left)

    def optional(self, work: Callable[[], T], least: float = 0.0) -> T:
        """Return what ``work`` returns; as :meth:`each`."""
        return next(self.each(lambda: iter([work()]), least))

    def page(self, render: Callable[[], str], bare: Callable[[], str] | None = None) -> str:
        """Return a page with as many of its pictures as there is time for, and without any however late it is.

        ``bare`` makes a page in less time than ``render`` without pictures: what comes where that takes too long, too. Where
        time is short it is made first.
        """
        from nmsolve.report.drawing import drawn_one_by_one, without_pictures

        short = self.left() < PAGE * clock.pace()

        def pages() -> Iterator[str]:
            if bare is not None and short:
                with without_pictures():
                    yield bare()
            yield from drawn_one_by_one(render)

        found: list[str] = []
        awaited = bare is None or short  # else `bare` can still come
        with suppress(OutOfTime):
            for page in killable(pages, lambda: math.inf if awaited and not found else self.left()):
                found[:] = [page]
                if self.left() <= 0:
                    break
        if not found:  # out of time, or the copy died
            with without_pictures():
                found = [(bare or render)()]
        return found[0]


def _say_stopping() -> None:
    """Print what the first signal does; not by ``print``, as the signal may have come in the middle of one."""
    with suppress(OSError):
        os.write(
            2,
            b"stopping: the best answer so far is written; Ctrl-C again ends at once, and leaves what is on disk\n",
        )
