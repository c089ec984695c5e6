"""What arrives from several processes, taken without waiting for any of them.

Where pipes cannot be asked whether something is there (Windows), a thread reads each.
"""

from __future__ import annotations

import os
import selectors
import threading
import time
from collections import deque
from collections.abc import Iterable

from nmsolve.model.host.processes import PASSES_FILES

#: Bytes that are read at once.
_PIECE = 1 << 20
#: Seconds between two looks at what threads have read.
_LOOK = 0.005


class Inbox:
    """The near end of a pipe.

    Parameters
    ----------
    fd : its descriptor, which is closed with it
    threaded : read by a thread
    """

    def __init__(self, fd: int, threaded: bool = not PASSES_FILES) -> None:
        self.fd = fd
        #: True once the far end is closed and everything has been taken.
        self.silent = False
        self._parts: deque[bytes] = deque()
        self._thread: threading.Thread | None = None
        if threaded:
            self._thread = threading.Thread(target=self._read, daemon=True)
            self._thread.start()
        else:
            os.set_blocking(fd, False)

    @property
    def threaded(self) -> bool:
        """Whether a thread reads it."""
        return self._thread is not None

    @property
    def waiting(self) -> bool:
        """Whether :meth:`take` has something to give, or to notice (of a threaded one)."""
        return bool(self._parts) or (self._thread is not None and not self._thread.is_alive())

    def take(self) -> bytes:
        """Return what has arrived since the last call."""
        if self._thread is not None:
            over = not self._thread.is_alive()  # before the look: what comes last is not missed
            parts = [self._parts.popleft() for _ in range(len(self._parts))]
            self.silent = over
            return b"".join(parts)
        found = []
        while not self.silent:
            try:
                piece = os.read(self.fd, _PIECE)
            except BlockingIOError:
                break
            self.silent = not piece
            found.append(piece)
        return b"".join(found)

    def close(self) -> None:
        """Close it; the process at the far end has ended."""
        if self._thread is not None:
            self._thread.join()
        os.close(self.fd)

    def _read(self) -> None:
        while piece := os.read(self.fd, _PIECE):
            self._parts.append(piece)


def wait_until_any(inboxes: Iterable[Inbox], seconds: float) -> None:
    """Wait until something is in one of them, at most so long."""
    open_ones = [one for one in inboxes if not one.silent]
    if any(one.threaded for one in open_ones):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not any(one.waiting for one in open_ones):
            time.sleep(_LOOK)
        return
    with selectors.DefaultSelector() as selector:
        for one in open_ones:
            selector.register(one.fd, selectors.EVENT_READ)
        selector.select(seconds)
