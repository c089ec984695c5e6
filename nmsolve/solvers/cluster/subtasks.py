"""Subtasks of one engine as the run sees them. A subtask without a result counts as not done."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from nmsolve.model.engine import SubtaskWorker
from nmsolve.solvers.cluster.machines import Cluster, ClusterMachine

#: Seconds without an answer to a recall after which a subtask counts as lost; its thread then stays busy.
SILENT = 10.0


class _Out(NamedTuple):
    """A running subtask: its machine and the reference to its result."""

    machine: ClusterMachine
    answer: Any


class RemoteSubtasks:
    """Implements :class:`nmsolve.model.engine.Subtasks` on a cluster.

    Parameters
    ----------
    cluster : with its agents
    worker : sent to every machine once
    look : updates the cluster state
    took : called with the CPU seconds of every finished subtask
    """

    def __init__(
        self, cluster: Cluster, worker: SubtaskWorker, look: Callable[[], None], took: Callable[[float], None]
    ) -> None:
        self._cluster, self._look, self._took = cluster, look, took
        self._of = cluster.next_number()
        self._worker = [cluster.ray.put(pickle.dumps(worker, protocol=5))]
        self._out: dict[int, _Out] = {}
        self._asked: dict[int, float] = {}
        self._dead: set[str] = set()

    def free(self) -> int:
        """Return the number of idle threads."""
        self._look()
        return sum(max(0, machine.free()) for machine in self._machines())

    def _machines(self) -> list[ClusterMachine]:
        """Return the machines without those whose agent died after the last refresh of the cluster state."""
        return [machine for machine in self._cluster.machines.values() if machine.name not in self._dead]

    def send(self, subtask: Any) -> int:
        """Send a subtask to the machine with most idle threads; return its number."""
        machine = max(self._machines(), key=lambda machine: machine.free())
        number = self._cluster.next_number()
        self._out[number] = _Out(machine, machine.agent.work.remote(self._of, self._worker, number, subtask))
        machine.subtasks.add(number)
        return number

    def recall(self, number: int) -> None:
        """Stop a subtask: it returns the result so far. Without an answer within :data:`SILENT` it counts as lost."""
        if number not in self._asked:
            self._asked[number] = time.monotonic()
            self._out[number].machine.agent.recall.remote(number)

    def back(self, seconds: float) -> list[tuple[int, Any]]:
        """Return (number, result) of the finished subtasks after at most ``seconds``; the result of a lost one is None.

        Raises
        ------
        Exception : the exception that the worker raised
        """
        ray = self._cluster.ray
        number_of = {out.answer: number for number, out in self._out.items()}
        if not number_of:
            time.sleep(seconds)
            return []
        ray.wait(list(number_of), num_returns=1, timeout=seconds)
        there, _ = ray.wait(list(number_of), num_returns=len(number_of), timeout=0)
        found = []
        for answer in there:
            number = number_of[answer]
            try:
                reply, cpu = ray.get(answer)
                self._took(cpu)
            except ray.exceptions.RayTaskError as error:
                raise error.cause from error
            except ray.exceptions.RayError:  # its machine is gone, or the agent there
                reply = None
                self._dead.add(self._out[number].machine.name)
            self._forget(number).subtasks.discard(number)
            found.append((number, reply))
        late = time.monotonic() - SILENT
        for number in [number for number, asked in self._asked.items() if asked < late]:
            self._forget(number)
            found.append((number, None))
        return found

    def close(self) -> None:
        """Cancel all running subtasks."""
        for number in list(self._out):
            self.recall(number)
            self._forget(number).subtasks.discard(number)

    def _forget(self, number: int) -> ClusterMachine:
        self._asked.pop(number, None)
        return self._out.pop(number).machine
