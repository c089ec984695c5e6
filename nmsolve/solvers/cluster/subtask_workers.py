"""Subtasks on their machine, each in its own thread of the agent."""

from __future__ import annotations

import pickle
import time
from threading import Event, Lock
from typing import Any

from nmsolve.model.engine import SubtaskWorker


class SubtaskWorkers:
    """Pool of worker objects, one per running subtask. Each call of :meth:`work` comes in its own thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._of, self._free = -1, list[SubtaskWorker]()
        self._stops: dict[int, Event] = {}

    def work(self, of: int, worker: list[Any], number: int, subtask: Any) -> tuple[Any, float]:
        """Run subtask ``number`` with a copy of worker object ``of``; ``worker`` holds the reference to its pickle.

        Returns the result and its CPU seconds.
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

                mine = pickle.loads(ray.get(worker[0]))
            done = mine.work(subtask, stop.is_set)
        finally:
            with self._lock:
                del self._stops[number]
        with self._lock:
            if of == self._of:
                self._free.append(mine)
        return done, time.thread_time() - cpu

    def recall(self, number: int) -> None:
        """Stop a subtask: it returns the result so far."""
        with self._lock:
            stop = self._stops.get(number)
        if stop is not None:
            stop.set()
