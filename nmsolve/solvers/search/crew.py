"""Where the engines of a run work that do not run in its own process: in processes of this machine, or of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from nmsolve.model.engine import Doer, Engine, Errands, Remotes
from nmsolve.model.host.pipes import wait_until_any
from nmsolve.model.types import IntArray
from nmsolve.solvers.search.child import Child
from nmsolve.solvers.search.context import Ending
from nmsolve.solvers.search.referee import Referee
from nmsolve.solvers.search.shared import Blackboard, SharedPickle


class Worker(Protocol):
    """One engine at work elsewhere. The run polls it and never waits for it."""

    @property
    def cpu(self) -> float:
        """CPU seconds it took, once it has ended."""

    def messages(self) -> list[Any]:
        """Return what it sent since the last call: ``("offer", solution, move)``, ``("bound", bound)`` or ``("note", text)``."""

    def ended(self) -> Ending | None:
        """Return how it ended, or None while it works; what it sent before is still there afterwards."""

    def stop_now(self, hurry: float) -> None:
        """End it, with ``hurry`` seconds less of grace than usual."""

    def kill(self) -> None:
        """End it at once and free what it used. Harmless if it is gone."""


class Crew(Protocol):
    """All workers of one run, and the board that they read."""

    def room(self) -> int:
        """Return how many threads the largest free place has, at once on one machine; 0 if no core is free."""

    def hopes(self) -> bool:
        """Return True while a place that is not there now may still come."""

    def start(
        self, engine: Engine, *, seed: int, workers: int, span: float, last: float, memory_limit: int | None
    ) -> Worker:
        """Start an engine: see :class:`nmsolve.solvers.search.child_main.Order`."""

    def errands(self, doer: Doer) -> Errands | None:
        """Return threads of other machines that do parts of an engine's work, or None: see :class:`Errands`."""

    def errand_cpu(self) -> float:
        """Return the CPU seconds of what came back from these since the last call."""

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
        """Return what people should know of the workers since the last call."""

    def close(self) -> None:
        """Give everything back; no thread is at work."""


class LocalCrew:
    """Processes of this machine; they share the problem and the board in memory.

    Parameters
    ----------
    referee : judges the solutions of the run
    """

    def __init__(self, referee: Referee) -> None:
        self._shared, self._board = SharedPickle(referee), Blackboard(referee.size)
        self._size = referee.size
        self._children: list[Child] = []
        self.publish, self.stop = self._board.publish, self._board.stop

    def room(self) -> int:
        """Return a number above all that a run asks for: it counts its workers itself."""
        return int(1e9)

    def hopes(self) -> bool:
        """Return False: all places are there from the start."""
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

    def errands(self, doer: Doer) -> None:
        """Return None: an engine's own threads do its work on this machine."""

    def errand_cpu(self) -> float:
        """Return 0: there are no errands."""
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
        """Return nothing: there is nothing to say of this machine."""
        return ()

    def close(self) -> None:
        """Free the shared memory."""
        self._board.close()
        self._shared.close()
