"""A context whose clock is made of questions: engines run the same number of steps on any machine, however busy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from search_fakes import QuietContext

from nmsolve.model.engine import ScratchPlace
from nmsolve.model.types import IntArray


class Counted(QuietContext):
    """Offers are checked and scored, and the best one is kept.

    Parameters
    ----------
    value : objective of a solution, by the evaluator; raises AssertionError if it breaks a rule
    seconds : time left, as the engine sees it: many engines derive their amount of work from it
    stops, looks : ``should_stop()`` returns False this many times, or until the incumbent was read this many times; then True
    tick : seconds that go by with every look at the clock; 0: none is left less, and work is measured in real ones
    slow_start : looks at the clock that take a quarter of ``tick`` each, so that engines whose slices grow with the time that
        the last one took grow them by a factor of four this many times, and then keep them
    start : a solution known from the start
    upper : a value known from the start, without a solution: bounds aim at it
    memory, scratch : bytes left, and where files go
    """

    def __init__(
        self,
        value: Callable[[IntArray], float],
        *,
        seconds: float = 1e6,
        stops: float = np.inf,
        looks: float = np.inf,
        tick: float = 0.0,
        slow_start: int = 0,
        seed: int = 1,
        start: IntArray | None = None,
        upper: float = np.inf,
        memory: int | None = None,
        scratch: ScratchPlace | None = None,
    ) -> None:
        super().__init__()
        self._value, self.seed = value, seed
        self.memory, self.scratch = memory, scratch or ScratchPlace()
        self._seconds, self._stops, self._tick, self._slow = seconds, stops, tick, slow_start
        self._looks, self._worked = looks, 0.0
        self.value = upper
        self.moves: list[str] = []
        if start is not None:
            self.offer(start, "start")

    def incumbent(self) -> tuple[IntArray | None, float]:
        self._looks -= 1
        return self.best, self.value

    def time_left(self) -> float:
        self._seconds -= self._tick / (4 if self._slow > 0 else 1)
        self._slow -= 1
        return max(0.0, self._seconds)

    def worked(self) -> float:
        self._worked += self._tick
        return self._worked if self._tick else super().worked()

    def should_stop(self) -> bool:
        self._stops -= 1
        return self._stops < 0 or self._looks < 0 or self._seconds <= 0

    def offer(self, core: IntArray, move: str = "") -> bool:
        value = self._value(core)
        if value >= self.value:
            return False
        self.best, self.value = np.array(core), value
        self.moves.append(move)
        return True
