"""How much memory the processes of a run hold, and the budget they must keep (Linux; elsewhere only this process).

Held is the resident memory of this process, plus the private part of every process it started, plus once the memory they
share (the problem lies there once, however many of them map it).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from nmsolve.model.errors import InputError
from nmsolve.model.host.memory import LIMITS, c_library, own_peak, sizes_of, started_by

#: Seconds between two measurements of memory.
_EVERY = 0.05
#: Budgets that are stated as sufficient are multiples of this many bytes.
_STEP = 4 * 2**20
#: Numbers of glibc's malloc options (malloc.h).
_MMAP_THRESHOLD, _TRIM_THRESHOLD, _ARENA_MAX = -3, -1, -8


class Memory:
    """The memory budget of a run.

    Parameters
    ----------
    budget : most bytes that all processes together may hold, or None

    Raises
    ------
    InputError : the budget is not positive, or this system does not say what processes hold
    """

    def __init__(self, budget: int | None = None) -> None:
        if budget is not None and budget <= 0:
            raise InputError(f"the memory budget is {budget} bytes", "", "a number > 0")
        if budget is not None and not LIMITS:
            raise InputError(
                "this system does not say how much memory processes hold", "--memory", "Linux or macOS"
            )
        self.budget = budget
        self._most = 0
        if budget is not None:
            return_freed()

    def held(self) -> int:
        """Return bytes that all processes hold now."""
        held = held_now()
        self._most = max(self._most, held)
        return held

    def left(self) -> int | None:
        """Return bytes that may still be taken, or None without a budget."""
        return None if self.budget is None else max(0, self.budget - self.held())

    def settle(self) -> None:
        """Give what was freed back to the system, under a budget: what comes next must not pay for what is over."""
        if self.budget is not None:
            give_back()

    @property
    def peak(self) -> int:
        """Most bytes that all processes held at any moment looked at; never below the peak of this process alone."""
        return max(self._most, own_peak())

    def require(self, more: int, hint: str = "") -> None:
        """Refuse a budget that does not leave ``more`` bytes for the search.

        Raises
        ------
        InputError : naming the least budget that does, and ``hint``
        """
        least = self.held() + more
        if self.budget is not None and self.budget < least:
            enough = _STEP * (least // _STEP + 2) // 2**20  # what is held differs a little from run to run
            raise InputError(
                f"{self.budget / 2**20:.0f} MiB is too little", "--memory", f"at least {enough}MiB{hint}"
            )

    @contextmanager
    def watched(self, alarm: Callable[[], None]) -> Iterator[None]:
        """Look at the memory all the time; while it is above the budget, call ``alarm`` (from another thread)."""
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(_EVERY):
                try:
                    full = self.held() > (self.budget or sys.maxsize)
                except MemoryError:  # a limit of the system's, below the budget
                    full = True
                if full:
                    alarm()

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()


def return_freed() -> None:
    """Make the C library give freed memory back to the system at once (glibc; elsewhere this does nothing).

    It otherwise keeps what large arrays took, separately for every thread, so that a process that reads a file piece by
    piece holds many more pieces than it uses.
    """
    mallopt = getattr(c_library(), "mallopt", None)
    if sys.platform == "linux" and mallopt is not None:
        for option, value in ((_MMAP_THRESHOLD, 2**17), (_TRIM_THRESHOLD, 2**20), (_ARENA_MAX, 2)):
            mallopt(option, value)


def give_back() -> None:
    """Give all pages that hold only freed memory back to the system (glibc; elsewhere this does nothing)."""
    trim = getattr(c_library(), "malloc_trim", None)
    if sys.platform == "linux" and trim is not None:
        trim(0)


def held_now() -> int:
    """Return bytes that this process and all it started hold now; without /proc the peak of this process."""
    own = sizes_of("self")
    if not own:
        return own_peak()
    shared, private = 0, 0
    for pid in started_by("self"):
        child = sizes_of(str(pid))
        private += child.get("RssAnon", 0)
        shared = max(shared, child.get("RssShmem", 0))
    return own["VmRSS"] + private + max(0, shared - own.get("RssShmem", 0))
