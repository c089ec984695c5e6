"""What a person is told who waits for one long step: a line on the terminal every few seconds."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
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
