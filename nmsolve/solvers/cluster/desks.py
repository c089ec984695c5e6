"""The agent's side of errands: parts of one engine's work, each in a thread of its own."""

from __future__ import annotations

import pickle
import time
from threading import Event, Lock
from typing import Any

from nmsolve.model.engine import Doer


class Desks:
    """Copies of a doer, one for each part at work. Parts come in threads of their own."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._of, self._free = -1, list[Doer]()
        self._stops: dict[int, Event] = {}

    def work(self, of: int, doer: list[Any], number: int, part: Any) -> tuple[Any, float]:
        """Do part ``number`` by the doer with the number ``of``, pickled, whose reference comes in a list.

        Returns what came of it, and the CPU seconds that it took.
        """
        stop, cpu = Event(), time.thread_time()
        with self._lock:
            if of != self._of:
                self._of, self._free = of, []
            self._stops[number] = stop
            mine = self._free.pop() if self._free else None
        try:
            if mine is None:
                import ray

                mine = pickle.loads(ray.get(doer[0]))
            done = mine.work(part, stop.is_set)
        finally:
            with self._lock:
                del self._stops[number]
        with self._lock:
            if of == self._of:
                self._free.append(mine)
        return done, time.thread_time() - cpu

    def hurry(self, number: int) -> None:
        """Ask for what has come of a part so far."""
        with self._lock:
            stop = self._stops.get(number)
        if stop is not None:
            stop.set()
