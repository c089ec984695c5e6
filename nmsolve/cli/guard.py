"""A second signal ends the process, also where the main thread is inside a compiled loop and cannot run Python's handler."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from nmsolve.model.host.processes import ASKING

#: Seconds after the second signal in which the main thread may still end the process itself.
GRACE = 3.0

#: Exit code of an interrupted command.
INTERRUPTED = 130


@contextmanager
def ends_by_second_signal() -> Iterator[None]:
    """Watch in a thread for signals that ask for the end. Compiled loops let other threads run; the answer so far is on disk."""
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


def _not_in_children() -> None:
    """A copy of this process does not report its signals as those of this one."""
    if threading.current_thread() is threading.main_thread():
        signal.set_wakeup_fd(-1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_not_in_children)
