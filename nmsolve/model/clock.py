"""The clock that time limits are counted on. It stands still while kernels are compiled, which happens once on a machine: a first
run searches as long as any later one.
"""

from __future__ import annotations

import time
from collections.abc import Callable

#: Called with True when the clock begins to stand still, and with False when it goes on.
watchers: list[Callable[[bool], object]] = []

_read = time.monotonic
_holds, _since, _stood = 0, 0.0, 0.0


def now() -> float:
    """Return seconds; those in which kernels were compiled do not count."""
    return (_since if _holds else _read()) - _stood


def hold() -> None:
    """Let the clock stand still until :func:`go_on` was called as often as this."""
    global _holds, _since
    if not _holds:
        _since = _read()
        for watcher in watchers:
            watcher(True)
    _holds += 1


def go_on() -> None:
    """End one :func:`hold`."""
    global _holds
    _holds -= 1
    if not _holds:
        skip(_read() - _since)
        for watcher in watchers:
            watcher(False)


def skip(seconds: float) -> None:
    """Do not count these seconds, which have passed: in them another process compiled kernels for this one."""
    global _stood
    _stood += seconds


def stood() -> float:
    """Return how many seconds it has stood still so far."""
    return _stood + (_read() - _since if _holds else 0.0)


def stands() -> bool:
    """Return True while it stands still."""
    return bool(_holds)


def count_cpu() -> None:
    """From now on count CPU seconds of this process, so that other work on the machine costs nothing."""
    global _read
    _read = time.process_time


def pace() -> float:
    """Return wall seconds per CPU second that the main thread of this process got so far: 1 on an idle machine, 4 where three
    others want each of its processors. Sleep does not count. 1 where the system does not tell (Linux does).
    """
    try:
        with open("/proc/self/schedstat", "rb") as file:
            ran, waited = (int(text) for text in file.read().split()[:2])
    except (OSError, ValueError):
        return 1.0
    return 1.0 + waited / ran if ran else 1.0
