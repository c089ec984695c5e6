"""What a person is told while kernels compile: a line on standard error, and no line where it is over within a second."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from nmsolve.model import clock

#: Seconds of compiling from which on a person is told, and seconds until the next line.
LONG, AGAIN = 1.0, 5.0

#: Who prints the line: the last one.
_tellers: list[Callable[[str], object]] = []


@contextmanager
def told_by(teller: Callable[[str], object]) -> Iterator[None]:
    """While active, ``teller`` gets the line; a table of progress puts it between its own."""
    _tellers.append(teller)
    try:
        yield
    finally:
        _tellers.remove(teller)


@contextmanager
def telling() -> Iterator[None]:
    """While active, the user is told what a command waits for. A thread begins with the first kernel that is compiled."""
    over, before, tell_at = threading.Event(), clock.stood(), LONG

    def beat() -> None:
        nonlocal tell_at
        while not over.wait(0.25):
            seconds = clock.stood() - before
            if clock.stands() and seconds >= tell_at:
                tell_at = seconds + AGAIN
                _tellers[-1](f"compiling kernels, once: {seconds:.0f} s so far")

    thread = threading.Thread(target=beat, daemon=True)

    def begin(stands: bool) -> None:
        if stands and thread.ident is None:
            thread.start()

    with told_by(lambda line: print(line, file=sys.stderr, flush=True)):
        clock.watchers.append(begin)
        try:
            yield
        finally:
            clock.watchers.remove(begin)
            over.set()
            if thread.ident is not None:
                thread.join(timeout=1.0)
