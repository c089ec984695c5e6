"""What Ctrl-C means once the search is over: the answer is written, and only what can be made up for later is left out."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

#: A batch system's way to say Ctrl-C.
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Patience:
    """While active, the first Ctrl-C (or SIGTERM) ends only what runs in :meth:`optional`; the second one everything.

    Around a search and the writing of its answer: the search itself handles signals in its own way. Outside the main
    thread, where Python delivers no signals, nothing changes.
    """

    def __init__(self) -> None:
        self._asked, self._optional = False, False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Patience:
        if threading.current_thread() is threading.main_thread():
            self._before = {s: signal.signal(s, self._on_signal) for s in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def optional(self) -> Iterator[None]:
        """Raises KeyboardInterrupt in here as soon as somebody has asked for the end, also before."""
        self._optional = True  # first: a signal must not fall between the question and this
        try:
            if self._asked:
                raise KeyboardInterrupt
            yield
        finally:
            self._optional = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        again, self._asked = self._asked, True
        if again or self._optional:
            raise KeyboardInterrupt
