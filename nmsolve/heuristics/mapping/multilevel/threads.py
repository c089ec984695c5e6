"""Threads of one search: the caller's own, and others that wait between tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")
#: Items per thread from which a second one pays: waking it takes 50 to 90 us.
GRAIN = 1500
#: Seconds between looks at the clock while others still work.
LOOK = 0.05


class Threads:
    """``count`` threads that run kernels, which hold no lock of Python's, side by side.

    ``watch`` : called now and then while this thread waits for others
    """

    def __init__(self, count: int, watch: Callable[[], object] = lambda: None) -> None:
        self.count, self._watch = count, watch
        self._others = ThreadPoolExecutor(count - 1) if count > 1 else None

    def ranges(self, n: int, grain: int = GRAIN) -> list[tuple[int, int]]:
        """Return the stretches of 0 to ``n`` that threads take."""
        parts = max(1, min(self.count, n // grain))
        return [(n * k // parts, n * (k + 1) // parts) for k in range(parts)]

    def over(self, kernel: Callable[..., T], n: int, *given: Any, grain: int = GRAIN) -> list[T]:
        """Call ``kernel(begin, end, *given)`` for stretches of 0 to ``n``; return what each returned, in order."""
        return self.each([partial(kernel, begin, end, *given) for begin, end in self.ranges(n, grain)])

    def each(self, tasks: Sequence[Callable[[], T]]) -> list[T]:
        """Return what each task returns, in order; the first ones run in this thread. All have ended when an error is raised."""
        if self._others is None or len(tasks) < 2:
            return [task() for task in tasks]
        own = -(-len(tasks) // self.count)
        waiting = [self._others.submit(task) for task in tasks[own:]]
        try:
            done = [task() for task in tasks[:own]]
        finally:
            while wait(waiting, LOOK).not_done:
                self._watch()
        return done + [one.result() for one in waiting]

    def close(self) -> None:
        """End the other threads."""
        if self._others is not None:
            self._others.shutdown()


#: Work in the caller's thread alone.
ALONE = Threads(1)
