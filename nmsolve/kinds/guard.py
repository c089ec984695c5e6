"""A second signal ends the process, and so does a time limit that is long over, also where the main thread is inside a compiled
loop and cannot run Python's handlers. Compiled loops let other threads run; the answer so far is on disk."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from nmsolve.model import clock
from nmsolve.model.host.processes import ASKING, HARMLESS

#: Seconds after the second signal in which the main thread may still end the process itself: it may be writing the answer.
GRACE = 10.0
#: Seconds after the time limit in which the main thread must have run some Python; one call into linear algebra may take long.
STUCK = 60.0

#: Exit code of an interrupted command.
INTERRUPTED = 130


@contextmanager
def ends_by_second_signal() -> Iterator[None]:
    """Watch in a thread for signals that ask for the end."""
    if threading.current_thread() is not threading.main_thread():
        yield  # elsewhere Python has no signals
        return
    into, out = os.pipe()
    os.set_blocking(out, False)
    before = signal.set_wakeup_fd(out, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(into,), daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(out)


def _watch(pipe: int) -> None:
    """Count the signals, whose numbers arrive through the pipe, until it is closed."""
    asked = 0
    while numbers := os.read(pipe, 64):
        asked += sum(number in ASKING for number in numbers)
        if asked > 1:
            time.sleep(GRACE)
            os._exit(INTERRUPTED)
    os.close(pipe)


@contextmanager
def ends_if_stuck(limit: float) -> Iterator[None]:
    """Watch in a thread whether the main thread still runs Python after the time limit (``clock.now()``)."""
    main = threading.current_thread()
    if HARMLESS is None or main is not threading.main_thread():
        yield
        return
    over, answered = threading.Event(), threading.Event()
    ask = partial(signal.pthread_kill, main.ident or 0, HARMLESS)
    before = signal.signal(HARMLESS, lambda *_: answered.set())
    threading.Thread(target=_ask, args=(limit, ask, over, answered), daemon=True).start()
    try:
        yield
    finally:
        over.set()
        signal.signal(HARMLESS, before)


def _ask(limit: float, ask: Callable[[], None], over: threading.Event, answered: threading.Event) -> None:
    """Ask the main thread again and again for an answer, once the limit has passed; end the process where none comes."""
    while not over.wait(max(STUCK / 10, limit - clock.now())):
        if clock.now() < limit:  # kernels were compiled, which does not count
            continue
        answered.clear()
        ask()
        if not answered.wait(STUCK) and not over.is_set():
            words = f"error: the search has not ended {STUCK:.0f} s after the time limit; what it had found is on disk"
            os.write(2, words.encode() + b"\n")
            os._exit(INTERRUPTED)


def _not_in_children() -> None:
    """A copy of this process does not report its signals as those of this one."""
    if threading.current_thread() is threading.main_thread():
        signal.set_wakeup_fd(-1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_not_in_children)
