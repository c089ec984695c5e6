"""The agent: one process per machine of a cluster. It starts engines in child processes that share the problem and a board in
memory, forwards their messages to the message log, and keeps the board up to date.
"""

from __future__ import annotations

import os
import platform
import queue
import time
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from nmsolve.model import clock
from nmsolve.model.engine import Engine
from nmsolve.model.host.pipes import wait_until_any
from nmsolve.solvers.cluster.message_log import State
from nmsolve.solvers.cluster.subtask_workers import SubtaskWorkers
from nmsolve.solvers.search.child import THREADS, Child
from nmsolve.solvers.search.context import Ending
from nmsolve.solvers.search.shared import Blackboard, SharedPickle

#: Seconds between two looks at the message log while nothing is sent, and at the children.
LOOK, POLL = 0.1, 0.05
#: Seconds that one call of the message log may take before it is made again.
CALL_TIMEOUT = 3.0


@dataclass(frozen=True)
class Job:
    """An engine for an agent to start: see :class:`nmsolve.solvers.search.child_main.Order`.

    Attributes
    ----------
    number : of the child, in the run's process
    run : of the run, in that process
    problem : reference to the pickled checker, in a list
    size : length of a solution
    left : seconds until the end of the run
    """

    number: int
    run: int
    problem: list[Any]
    size: int
    engine: Engine
    seed: int
    workers: int
    span: float
    left: float
    memory_limit: int | None


def versions() -> dict[str, str]:
    """Return what has to be the same on all machines of a cluster."""
    import ray

    return {
        "nmsolve": metadata.version("nmsolve"),
        "Python": platform.python_version(),
        "Ray": ray.__version__,
    }


@dataclass
class _Site:
    """What the children of one run share on this machine."""

    run: int
    shared: SharedPickle
    board: Blackboard
    size: int


class Agent:
    """One per machine. :meth:`serve` runs until the process is ended; :meth:`start` may be called meanwhile.

    Parameters
    ----------
    name : unique among all agents of the run; key of its messages in the log
    message_log : handle of the actor
    """

    def __init__(self, name: str, message_log: Any) -> None:
        for variable in THREADS:  # Ray's, for all of this machine's cores
            os.environ.pop(variable, None)
        self._name, self._message_log = name, message_log
        self._jobs: queue.SimpleQueue[tuple[float, Job]] = queue.SimpleQueue()
        self._children: dict[int, Child] = {}
        self._site: _Site | None = None
        self._unsent: list[tuple[int, Any]] = []
        self._taken = 0
        self._state = State()
        self._stands = False
        self._looked = 0.0
        self._subtask_workers = SubtaskWorkers()

    def describe(self) -> tuple[dict[str, str], int]:
        """Return the versions here, and the process id."""
        return versions(), os.getpid()

    def children(self) -> list[int]:
        """Return the process ids of the engines at work."""
        return [child.pid for child in list(self._children.values())]

    def start(self, job: Job) -> None:
        """Start an engine soon."""
        self._jobs.put((time.monotonic(), job))

    def work(self, of: int, worker: list[Any], number: int, subtask: Any) -> tuple[Any, float]:
        """Run a subtask of an engine: see :meth:`SubtaskWorkers.work`."""
        return self._subtask_workers.work(of, worker, number, subtask)

    def recall(self, number: int) -> None:
        """Stop a subtask: it returns the result so far."""
        self._subtask_workers.recall(number)

    def serve(self) -> None:
        """Serve for ever."""
        while True:
            self._begin()
            wait_until_any([child.inbox for child in self._children.values()], POLL)
            self._tend()
            if self._unsent or time.monotonic() >= self._looked + LOOK:
                self._exchange()

    def _begin(self) -> None:
        """Start what was ordered."""
        while not self._jobs.empty():
            came, job = self._jobs.get()
            try:
                site = self._site_of(job)
                last = clock.now() + job.left - (time.monotonic() - came)
                self._children[job.number] = Child(
                    job.engine, seed=job.seed, workers=job.workers, span=job.span, last=last,
                    memory_limit=job.memory_limit, shared=site.shared, board=site.board, size=site.size,
                )  # fmt: skip
            except Exception as error:  # noqa: BLE001 -- one engine that cannot start must not cost the others
                self._unsent.append(
                    (job.number, ("ended", Ending("failed", f"it could not be started: {error}"), 0.0))
                )

    def _site_of(self, job: Job) -> _Site:
        """Return the memory of the job's run; a new run ends what is left of the one before."""
        import ray

        if self._site is None or self._site.run != job.run:
            self._leave()
            raw = ray.get(job.problem[0])
            self._site = _Site(job.run, SharedPickle.of_bytes(raw), Blackboard(job.size), job.size)
            self._show()
        return self._site

    def _leave(self) -> None:
        for child in self._children.values():
            child.kill()
        self._children.clear()
        if self._site is not None:
            self._site.board.close()
            self._site.shared.close()
            self._site = None

    def _tend(self) -> None:
        """Take what the children sent, and see who has ended."""
        for number, child in list(self._children.items()):
            gone = child.ended()
            self._unsent += [(number, message) for message in child.messages()]
            if gone is None:
                continue
            child.kill()
            del self._children[number]
            gone = Ending("lost", gone.text) if child.shot else gone
            self._unsent.append((number, ("ended", gone, child.cpu)))
        if clock.stands() != self._stands:
            self._stands = not self._stands
            self._unsent.append((-1, ("stands", self._stands)))

    def _exchange(self) -> None:
        """Send the unsent messages, and show a new state on the board. Without an answer the messages are kept."""
        import ray

        self._looked = time.monotonic()
        call = self._message_log.exchange.remote(self._name, self._taken, self._unsent, self._state.version)
        try:
            taken, state = ray.get(call, timeout=CALL_TIMEOUT)
        except ray.exceptions.RayError:  # the actor is restarting
            time.sleep(LOOK)
            return
        del self._unsent[: taken - self._taken]
        self._taken = taken
        if state is not None:
            self._state = state
            self._show()

    def _show(self) -> None:
        state = self._state
        if self._site is None or state.run != self._site.run:
            return
        self._site.board.publish(state.solution, state.objective, state.bound)
        if state.stopped and not self._site.board.stopped:
            self._site.board.stop()
            for child in self._children.values():
                child.stop_now(state.less_grace)
