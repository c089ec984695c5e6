"""The run's side of a cluster: what agents are asked, what they sent, and what they are shown."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from nmsolve.model import clock
from nmsolve.model.engine import Doer, Engine
from nmsolve.model.errors import InputError
from nmsolve.model.types import IntArray
from nmsolve.solvers.cluster.agent import Job
from nmsolve.solvers.cluster.errands import RemoteErrands
from nmsolve.solvers.cluster.ledger import Record, State
from nmsolve.solvers.cluster.machines import HIRING, Cluster, RemoteWorker, Seat
from nmsolve.solvers.cluster.objects import RemoteObjects
from nmsolve.solvers.search.referee import Referee
from nmsolve.solvers.search.shared import SharedPickle

#: Seconds that an engine which spreads its data waits for machines that are about to join.
JOINING = 5.0


class ClusterCrew:
    """The workers of one run on a cluster.

    Parameters
    ----------
    cluster : with its agents
    referee : judges the solutions of the run; it travels once to every machine

    Raises
    ------
    InputError : the problem does not fit into the object store of a machine
    """

    def __init__(self, cluster: Cluster, referee: Referee) -> None:
        import numpy as np

        self._cluster, self._size = cluster, referee.size
        self._run = next(cluster.runs)
        shared = SharedPickle(referee)
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

    def room(self) -> int:
        """Return the free threads of the machine that has most."""
        self._cluster.census()
        if any(seat.ready for seat in self._cluster.seats.values()):
            self._seen_at = time.monotonic()
        return max((seat.free() for seat in self._cluster.seats.values()), default=0)

    def hopes(self) -> bool:
        """Return True: machines come back. One that never comes must not be waited for.

        Raises
        ------
        InputError : all were left out, and none had joined before
        """
        cluster = self._cluster
        if not cluster.seats and not cluster.joined and cluster.refusals():
            raise InputError(
                f"no machine can work: {cluster.refusals()}", "--cluster", "the same versions on all machines"
            )
        return time.monotonic() < self._seen_at + HIRING and not cluster.gone()

    def start(
        self, engine: Engine, *, seed: int, workers: int, span: float, last: float, memory_limit: int | None
    ) -> RemoteWorker:
        """Start an engine where most threads are free."""
        seat = max(self._cluster.seats.values(), key=Seat.free)
        number = self._cluster.next_number()
        left = last - clock.now()
        job = Job(
            number, self._run, self._problem, self._size, engine, seed, workers, span, left, memory_limit
        )
        seat.agent.start.remote(job)
        worker = self._workers[number] = seat.workers[number] = RemoteWorker(seat, workers, last)
        return worker

    def errands(self, doer: Doer) -> RemoteErrands:
        """Return the free threads of all machines, for parts of an engine's work."""
        return RemoteErrands(self._cluster, doer, lambda: self.wait(0.0), self._took.append)

    def errand_cpu(self) -> float:
        """Return the CPU seconds of all parts that came back since the last call."""
        cpu = sum(self._took)
        self._took.clear()
        return cpu

    def publish(self, solution: IntArray | None, objective: float, bound: float) -> None:
        """Show the best to all."""
        self._show(State(0, self._run, self.stopped, 0.0, solution, objective, bound))

    def stop(self) -> None:
        """Ask all to end."""
        self.stopped = True
        s = self._shown
        self._show(State(0, self._run, True, 0.0, s.solution, s.objective, s.bound))

    def wait(self, seconds: float) -> None:
        """Take what has come; if nothing has, wait at most so long."""
        end = time.monotonic() + seconds
        while not self._collect(max(0.0, end - time.monotonic())) and time.monotonic() < end:
            time.sleep(min(0.01, max(0.0, end - time.monotonic())))
        self._cluster.census()

    def news(self) -> Sequence[str]:
        """Return who has come and gone."""
        words, self._cluster.words = self._cluster.words, []
        return words

    def remotes(self, kind: type, should_stop: Callable[[], bool]) -> RemoteObjects | None:
        """Make an object on every machine, which threads of it may use; machines that are about to join are waited for."""
        cluster, since = self._cluster, time.monotonic()
        cluster.census()
        while not all(seat.ready for seat in cluster.seats.values()) and time.monotonic() < since + JOINING:
            time.sleep(0.05)
            cluster.census()
        actors = [cluster.make(kind, seat) for seat in cluster.seats.values() if seat.ready]
        return RemoteObjects(cluster.ray, actors, should_stop) if actors else None

    def close(self) -> None:
        """End what still works, and take what the ledger has."""
        if not self.stopped:
            self.stop()
        for worker in self._workers.values():
            worker.kill()
        for seat in self._cluster.seats.values():
            seat.workers.clear()
            self._cluster.hold(seat, False)

    def _show(self, state: State) -> None:
        self._shown = replace(state, version=self._cluster.next_version())
        self._there = -1

    def _collect(self, seconds: float) -> bool:
        """Wait so long for the ledger's answer, and take it; True if it had messages."""
        cluster, ray = self._cluster, self._cluster.ray
        if self._call is None:
            new = self._shown if self._there != self._shown.version else None
            self._call = cluster.ledger.collect.remote(cluster.seen, new)
        done, _ = ray.wait([self._call], timeout=seconds)
        if not done:
            return False
        call, self._call = self._call, None
        try:
            records, self._there = ray.get(call)
        except ray.exceptions.RayError:  # it is being started again from its log
            self._there = -1
            return False
        cluster.seen += len(records)
        for record in records:
            self._take(record)
        return bool(records)

    def _take(self, record: Record) -> None:
        """Sort in one message."""
        agent, _, number, message = record
        if number < 0:
            for seat in self._cluster.seats.values():
                if seat.name == agent and not self.stopped:
                    self._cluster.hold(seat, message[1])
            return
        worker = self._workers.get(number)
        if worker is None:
            return
        if message[0] == "ended":
            worker.ending, worker.cpu = worker.ending or message[1], message[2]
            worker.seat.workers.pop(number, None)
        else:
            worker.inbox.append(message)
