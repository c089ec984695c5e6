"""The worker pool of a run: engines in other processes, on this machine or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from nmsolve.model.engine import Engine, Remotes, Subtasks, SubtaskWorker
from nmsolve.model.host.pipes import wait_until_any
from nmsolve.model.types import IntArray
from nmsolve.solvers.search.checker import Checker
from nmsolve.solvers.search.child import Child
from nmsolve.solvers.search.context import Ending
from nmsolve.solvers.search.shared import Blackboard, SharedPickle


class Worker(Protocol):
    """One engine in another process. The run polls it and never waits for it."""

    @property
    def cpu(self) -> float:
        """CPU seconds it took, once it has ended."""

    def messages(self) -> list[Any]:
        """Return what it sent since the last call: ``("offer", solution, move)``, ``("bound", bound)`` or ``("note", text)``."""

    def ended(self) -> Ending | None:
        """Return how it ended, or None while it works; what it sent before is still there afterwards."""

    def stop_now(self, less_grace: float) -> None:
        """End it, and shorten its grace period by ``less_grace`` seconds."""

    def kill(self) -> None:
        """End it at once and free what it used. Harmless if it is gone."""


class WorkerPool(Protocol):
    """All workers of one run, and the board that they read."""

    def free_threads(self) -> int:
        """Return the largest number of idle threads on one machine; 0 if no core is idle."""

    def may_rejoin(self) -> bool:
        """Return True if a missing machine may rejoin."""

    def start(
        self, engine: Engine, *, seed: int, workers: int, span: float, last: float, memory_limit: int | None
    ) -> Worker:
        """Start an engine: see :class:`nmsolve.solvers.search.child_main.Order`."""

    def subtasks(self, worker: SubtaskWorker) -> Subtasks | None:
        """Return idle threads of other machines for subtasks of an engine, or None: see :class:`Subtasks`."""

    def subtask_cpu(self) -> float:
        """Return the CPU seconds of the subtasks that finished since the last call."""

    def remotes(self, kind: type, should_stop: Callable[[], bool]) -> Remotes | None:
        """Make an object on every machine for an engine in this process; see :class:`~nmsolve.model.engine.Context`."""

    def publish(self, solution: IntArray | None, objective: float, bound: float) -> None:
        """Show the best solution (size,), its objective and the bound to all."""

    @property
    def stopped(self) -> bool:
        """True once :meth:`stop` was called."""

    def stop(self) -> None:
        """Ask all to end."""

    def wait(self, seconds: float) -> None:
        """Wait until something has been sent, at most so long."""

    def news(self) -> Sequence[str]:
        """Return messages for the user about the workers since the last call."""

    def close(self) -> None:
        """Free all resources; no worker is running."""


class LocalWorkerPool:
    """Processes of this machine; they share the problem and the board in memory.

    Parameters
    ----------
    checker : judges the solutions of the run
    """

    def __init__(self, checker: Checker) -> None:
        self._shared, self._board = SharedPickle(checker), Blackboard(checker.size)
        self._size = checker.size
        self._children: list[Child] = []
        self.publish, self.stop = self._board.publish, self._board.stop

    def free_threads(self) -> int:
        """Return a number above all requests: the run counts its local workers itself."""
        return int(1e9)

    def may_rejoin(self) -> bool:
        """Return False: this machine cannot leave."""
        return False

    def start(
        self, engine: Engine, *, seed: int, workers: int, span: float, last: float, memory_limit: int | None
    ) -> Child:
        """Start an engine in a process of its own."""
        child = Child(
            engine, seed=seed, workers=workers, span=span, last=last, memory_limit=memory_limit, shared=self._shared,
            board=self._board, size=self._size,
        )  # fmt: skip
        self._children.append(child)
        return child

    def subtasks(self, worker: SubtaskWorker) -> None:
        """Return None: there is no other machine."""

    def subtask_cpu(self) -> float:
        """Return 0: nothing runs remotely."""
        return 0.0

    def remotes(self, kind: type, should_stop: Callable[[], bool]) -> None:
        """Return None: there is no other machine."""

    @property
    def stopped(self) -> bool:
        """True once all were asked to end."""
        return self._board.stopped

    def wait(self, seconds: float) -> None:
        """Wait until a child has sent something, at most so long."""
        self._children = [child for child in self._children if not child.closed]
        wait_until_any([child.inbox for child in self._children], seconds)

    def news(self) -> Sequence[str]:
        """Return no messages: no machine joins or leaves."""
        return ()

    def close(self) -> None:
        """Free the shared memory."""
        self._board.close()
        self._shared.close()
