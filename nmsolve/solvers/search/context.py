"""The context of an engine that runs in this process, and the guard around every engine's run."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nmsolve.model import clock
from nmsolve.model.bound import Bound
from nmsolve.model.engine import Context, Engine, Remotes, ScratchPlace, Subtasks, SubtaskWorker
from nmsolve.model.errors import NmsolveError
from nmsolve.model.stop import Stop
from nmsolve.model.types import IntArray
from nmsolve.solvers.search.incumbent import Incumbent
from nmsolve.solvers.search.memory import Memory


class LocalContext:
    """Implements :class:`nmsolve.model.engine.Context` on the run's own incumbent.

    Parameters
    ----------
    engine : name under which offers and bounds are booked
    deadline : ``clock.now()`` at which this engine's share of time ends
    memory : the run's memory budget, or None
    scratch : where files may be put
    look : called whenever the engine asks whether to stop: others may have found something
    away : makes what :meth:`subtasks` returns
    remotes : makes objects on other machines
    """

    #: No engine takes turns with it.
    pace: float = 1.0

    def __init__(
        self,
        engine: str,
        incumbent: Incumbent,
        budget: Stop,
        *,
        seed: int,
        workers: int,
        deadline: float,
        memory: Memory | None = None,
        scratch: ScratchPlace | None = None,
        look: Callable[[], None] = lambda: None,
        away: Callable[[SubtaskWorker], Subtasks | None] = lambda worker: None,
        remotes: Callable[[type, Callable[[], bool]], Remotes | None] = lambda kind, should_stop: None,
    ) -> None:
        self._engine, self._incumbent, self._budget = engine, incumbent, budget
        self.seed, self.workers, self.scratch = seed, workers, scratch or ScratchPlace()
        self._memory, self._deadline = memory or Memory(), deadline
        self._since, self._look, self._away = clock.now(), look, away
        self._remotes = remotes

    @property
    def memory(self) -> int | None:
        """Bytes this engine may still take, or None without a budget."""
        return self._memory.left()

    def subtasks(self, worker: SubtaskWorker) -> Subtasks | None:
        """Return idle threads of other machines that run subtasks by ``worker``; None on a single machine."""
        return self._away(worker)

    def remotes(self, kind: type) -> Remotes | None:
        """Make an object of a class on every machine of the cluster; None without one."""
        return None if self.should_stop() else self._remotes(kind, self.should_stop)

    def incumbent(self) -> tuple[IntArray | None, float]:
        """Return the best solution so far (read-only) and its objective; ``(None, inf)`` if there is none."""
        return self._incumbent.best()

    def bound(self) -> float:
        """Return the best proven lower bound so far; 0 if none."""
        return self._incumbent.bound

    def time_left(self) -> float:
        """Wall seconds this engine may still use, rounded up to a hundredth above one second.

        Rounded, because engines derive their work from it, and equal runs should do equal work.
        """
        left = max(0.0, self._deadline - clock.now())
        return math.ceil(100 * left) / 100 if left > 1 else left

    def worked(self) -> float:
        """Wall seconds since this run began."""
        return clock.now() - self._since

    def should_stop(self) -> bool:
        """Return True once this engine's time or all memory is up, the gap is reached or the user interrupted."""
        self._look()
        return self._budget.over() or clock.now() >= self._deadline or self._incumbent.reached

    def offer(self, core: IntArray, move: str = "") -> bool:
        """Offer a solution (size,). Return True if it became the incumbent."""
        return self._incumbent.offer(self._engine, core, move)

    def raise_bound(self, bound: Bound) -> bool:
        """Offer a bound; True if it is the best of its scope."""
        return self._incumbent.raise_bound(self._engine, bound)

    def note(self, text: str) -> None:
        """Add an event in words."""
        self._incumbent.record("note", self._engine, text)


class DoubtingContext(LocalContext):
    """That of an engine that looks for a solution although another one says that there is none; it stops at the first."""

    def should_stop(self) -> bool:
        """Return True once there is a solution, time is up or the user interrupted."""
        return self._incumbent.lifted is not None or self._budget.over() or clock.now() >= self._deadline


@dataclass(frozen=True)
class Ending:
    """How an engine's run ended.

    ``kind``: ``done``, ``memory`` (out of memory), ``failed`` (an error of the engine), ``killed`` (it overran its time
    and was ended from outside), ``lost`` (the machine that it ran on is gone).
    """

    kind: str = "done"
    text: str = ""


def run_guarded(engine: Engine, problem: Any, context: Context) -> Ending:
    """Run an engine; whatever it raises becomes an :class:`Ending`, so that no engine can cost the best answer."""
    try:
        engine.run(problem, context)
    except MemoryError:
        return Ending("memory", "out of memory")
    except NmsolveError as error:
        return Ending("failed", str(error))
    except Exception as error:  # noqa: BLE001 -- the one wall between engines and the run
        last = traceback.extract_tb(error.__traceback__)[-1]
        return Ending("failed", f"{type(error).__name__}: {error} ({last.name}, line {last.lineno})")
    return Ending()
