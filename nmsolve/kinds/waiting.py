"""What a person is told who waits for one long step, or for kernels to compile: a line every few seconds."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from nmsolve.model import clock

#: Seconds until the first line, and from one to the next.
EVERY = 5.0


@contextmanager
def waiting(what: str, limit: float) -> Iterator[None]:
    """While active, say every few seconds ``what`` goes on, for how long, and for how long it may; on a terminal only."""
    if not sys.stderr.isatty():
        yield
        return
    over, began = threading.Event(), clock.now()
    most = f" of {limit:,.0f} s" if limit < float("inf") else ""

    def beat() -> None:
        while not over.wait(EVERY):
            print(f"{what}: {clock.now() - began:,.0f} s{most}", file=sys.stderr, flush=True)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(timeout=1.0)


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
