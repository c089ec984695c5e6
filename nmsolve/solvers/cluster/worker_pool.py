"""The worker pool of a run on a cluster: it starts engines, collects their messages, and publishes the state."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from nmsolve.model import clock
from nmsolve.model.engine import Engine, SubtaskWorker
from nmsolve.model.errors import InputError
from nmsolve.model.types import IntArray
from nmsolve.solvers.cluster.agent import Job
from nmsolve.solvers.cluster.machines import AGENT_START, Cluster, ClusterMachine, RemoteWorker
from nmsolve.solvers.cluster.message_log import Record, State
from nmsolve.solvers.cluster.objects import RemoteObjects
from nmsolve.solvers.cluster.subtasks import RemoteSubtasks
from nmsolve.solvers.search.checker import Checker
from nmsolve.solvers.search.shared import SharedPickle

#: Seconds that an engine which spreads its data waits for machines that are about to join.
JOINING = 5.0


class ClusterWorkerPool:
    """The engines of one run on a cluster.

    Parameters
    ----------
    cluster : with its agents
    checker : checks the solutions of the run; it is sent to every machine once

    Raises
    ------
    InputError : the problem does not fit into the object store of a machine
    """

    def __init__(self, cluster: Cluster, checker: Checker) -> None:
        import numpy as np

        self._cluster, self._size = cluster, checker.size
        self._run = next(cluster.runs)
        shared = SharedPickle(checker)
        raw = np.frombuffer(shared.whole(), np.uint8)
        shared.close()
        store = cluster.smallest_store()
        if raw.nbytes > store:
            raise InputError(
                f"the problem takes {raw.nbytes / 2**20:.0f} MiB, the object store of a machine holds {store / 2**20:.0f} MiB",
                "--cluster", "ray start --object-store-memory=BYTES with more",
            )  # fmt: skip
        self._problem = [cluster.ray.put(raw)]
        self._workers: dict[int, RemoteWorker] = {}
        self._seen_at = time.monotonic()
        self._shown: State = State(cluster.next_version(), self._run)
        self._call: Any = None
        self._there = -1
        self._took: list[float] = []
        self.stopped = False

    def free_threads(self) -> int:
        """Return the idle threads of the machine that has most."""
        self._cluster.refresh()
        if any(machine.ready for machine in self._cluster.machines.values()):
            self._seen_at = time.monotonic()
        return max((machine.free() for machine in self._cluster.machines.values()), default=0)

    def may_rejoin(self) -> bool:
        """Return True if a missing machine may rejoin: for :data:`AGENT_START` seconds after the last was ready.

        Raises
        ------
        InputError : all were left out, and none had joined before
        """
        cluster = self._cluster
        if not cluster.machines and not cluster.joined and cluster.refusals():
            raise InputError(
                f"no machine can work: {cluster.refusals()}", "--cluster", "the same versions on all machines"
            )
        return time.monotonic() < self._seen_at + AGENT_START and not cluster.gone()

    def start(
        self, engine: Engine, *, seed: int, workers: int, span: float, last: float, memory_limit: int | None
    ) -> RemoteWorker:
        """Start an engine on the machine with most idle threads."""
        machine = max(self._cluster.machines.values(), key=ClusterMachine.free)
        number = self._cluster.next_number()
        left = last - clock.now()
        job = Job(
            number, self._run, self._problem, self._size, engine, seed, workers, span, left, memory_limit
        )
        machine.agent.start.remote(job)
        worker = self._workers[number] = machine.workers[number] = RemoteWorker(machine, workers, last)
        return worker

    def subtasks(self, worker: SubtaskWorker) -> RemoteSubtasks:
        """Return the idle threads of all machines, for subtasks of an engine."""
        return RemoteSubtasks(self._cluster, worker, lambda: self.wait(0.0), self._took.append)

    def subtask_cpu(self) -> float:
        """Return the CPU seconds of the subtasks that finished since the last call."""
        cpu = sum(self._took)
        self._took.clear()
        return cpu

    def publish(self, solution: IntArray | None, objective: float, bound: float) -> None:
        """Publish incumbent and bound to all machines."""
        self._show(State(0, self._run, self.stopped, 0.0, solution, objective, bound))

    def stop(self) -> None:
        """Ask all to end."""
        self.stopped = True
        s = self._shown
        self._show(State(0, self._run, True, 0.0, s.solution, s.objective, s.bound))

    def wait(self, seconds: float) -> None:
        """Take new messages; without any wait at most ``seconds``."""
        end = time.monotonic() + seconds
        while not self._collect(max(0.0, end - time.monotonic())) and time.monotonic() < end:
            time.sleep(min(0.01, max(0.0, end - time.monotonic())))
        self._cluster.refresh()

    def news(self) -> Sequence[str]:
        """Return which machines have joined and left since the last call."""
        notices, self._cluster.notices = self._cluster.notices, []
        return notices

    def remotes(self, kind: type, should_stop: Callable[[], bool]) -> RemoteObjects | None:
        """Make an object on every machine, and first wait for machines that are about to join."""
        cluster, since = self._cluster, time.monotonic()
        cluster.refresh()
        while (
            not all(machine.ready for machine in cluster.machines.values())
            and time.monotonic() < since + JOINING
        ):
            time.sleep(0.05)
            cluster.refresh()
        actors = [cluster.make(kind, machine) for machine in cluster.machines.values() if machine.ready]
        return RemoteObjects(cluster.ray, actors, should_stop) if actors else None

    def close(self) -> None:
        """End what still works, and take what the message log has."""
        if not self.stopped:
            self.stop()
        for worker in self._workers.values():
            worker.kill()
        for machine in self._cluster.machines.values():
            machine.workers.clear()
            self._cluster.hold(machine, False)

    def _show(self, state: State) -> None:
        self._shown = replace(state, version=self._cluster.next_version())
        self._there = -1

    def _collect(self, seconds: float) -> bool:
        """Wait so long for the message log's answer, and take it; True if it had messages."""
        cluster, ray = self._cluster, self._cluster.ray
        if self._call is None:
            new = self._shown if self._there != self._shown.version else None
            self._call = cluster.message_log.collect.remote(cluster.seen, new)
        done, _ = ray.wait([self._call], timeout=seconds)
        if not done:
            return False
        call, self._call = self._call, None
        try:
            records, self._there = ray.get(call)
        except ray.exceptions.RayError:  # the actor restarts from its log
            self._there = -1
            return False
        cluster.seen += len(records)
        for record in records:
            self._take(record)
        return bool(records)

    def _take(self, record: Record) -> None:
        """Take one message."""
        agent, _, number, message = record
        if number < 0:
            for machine in self._cluster.machines.values():
                if machine.name == agent and not self.stopped:
                    self._cluster.hold(machine, message[1])
            return
        worker = self._workers.get(number)
        if worker is None:
            return
        if message[0] == "ended":
            worker.ending, worker.cpu = worker.ending or message[1], message[2]
            worker.machine.workers.pop(number, None)
        else:
            worker.inbox.append(message)
