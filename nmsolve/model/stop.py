"""Requests to stop a run: the first signal ends all remaining stages with the best answer."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from nmsolve.model import clock
from nmsolve.model.host.processes import ASKING, HANGUP


class Stop:
    """Whether, and when (``clock.now()``), the end was asked for."""

    def __init__(self) -> None:
        self.asked_at: float | None = None
        #: Called with the first signal as it came; cuts off what runs.
        self.at_once: Callable[[int, FrameType | None], None] | None = None
        #: Called with the first signal before that; says what happens.
        self.heard: Callable[[], None] | None = None
        #: Blocks of :func:`unbroken`, and whether a second signal came in one.
        self.held = 0
        self.again = False

    @property
    def asked(self) -> bool:
        """True once the end was asked for."""
        return self.asked_at is not None

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Note the first signal, and cut off what may be; raise KeyboardInterrupt at the second."""
        if self.asked:
            self.again = True
            if self.held:
                return
            raise KeyboardInterrupt
        self.asked_at = clock.now()
        if self.heard is not None:
            self.heard()
        if self.at_once is not None:
            self.at_once(number, frame)


_running: list[Stop] = []


@contextmanager
def stopping() -> Iterator[Stop]:
    """While active, signals are kept in the :class:`Stop`. Inside another such block it is that one's: whoever asks for the end
    of a part of a run asks for the end of the run.

    Outside the main thread, where Python delivers no signals, it is never asked for.
    """
    if threading.current_thread() is not threading.main_thread():
        yield Stop()
        return
    if _running:
        yield _running[-1]
        return
    stop = Stop()
    nohup = HANGUP is not None and signal.getsignal(HANGUP) == signal.SIG_IGN
    before = {s: signal.signal(s, stop.on_signal) for s in ASKING if not (nohup and s == HANGUP)}
    _running.append(stop)
    try:
        yield stop
    finally:
        _running.pop()
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def unbroken() -> Iterator[None]:
    """Let a second signal wait until the block has ended: the best answer is being written."""
    if threading.current_thread() is not threading.main_thread() or not _running:
        yield
        return
    stop = _running[-1]
    stop.held += 1
    try:
        yield
    finally:
        stop.held -= 1
        if stop.again and not stop.held:
            raise KeyboardInterrupt
