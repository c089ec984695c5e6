"""Cluster state: the machines of a cluster, their agents, and what runs on each."""

from __future__ import annotations

import atexit
import itertools
import math
import shutil
import tempfile
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nmsolve.model import clock
from nmsolve.solvers.cluster.agent import Agent, versions
from nmsolve.solvers.cluster.connect import join
from nmsolve.solvers.cluster.message_log import MessageLog
from nmsolve.solvers.search.child import GRACE
from nmsolve.solvers.search.context import Ending

#: Seconds between two refreshes of the cluster state; that a message may take; in which an agent has to start.
REFRESH, LATE, AGENT_START = 1.0, 0.4, 20.0
#: Seconds without an answer of the cluster's head after which the cluster counts as lost.
SILENCE = 10.0
#: A machine is left out after this many agents in a row that died at their start.
ATTEMPTS = 3


class RemoteWorker:
    """One engine on another machine."""

    def __init__(self, machine: ClusterMachine, threads: int, last: float) -> None:
        self.cpu = 0.0
        self.machine, self.threads = machine, threads
        self.ending: Ending | None = None
        self.inbox: deque[Any] = deque()
        self._stop_at = last

    def messages(self) -> list[Any]:
        """Return its messages since the last call."""
        out = list(self.inbox)
        self.inbox.clear()
        return out

    def ended(self) -> Ending | None:
        """Return how it ended, or None while it works. Without an answer long after the end it counts as killed."""
        if self.ending is None and self.machine.gone:
            self.ending = Ending("lost", f"{self.machine.name} is lost")
        if self.ending is None and clock.now() > self._stop_at + GRACE + LATE:
            self.ending = Ending("killed", "overran its time")
        return self.ending

    def stop_now(self, less_grace: float) -> None:
        """Shorten the wait for its end; the published state tells it to stop."""
        self._stop_at = min(self._stop_at, clock.now() - less_grace)

    def kill(self) -> None:
        """Ignore it from now on: its agent ends it with the run."""
        if self.ending is None:
            self.ending = Ending("killed", "no longer needed")


@dataclass
class ClusterMachine:
    """One machine of the cluster with its agent.

    ``agent``: handle; ``known``: reference to its description; ``serving``: reference to a call that returns only when the
    agent dies; ``ready``: it has the right versions; ``stands``: its clock is stopped; ``subtasks``: numbers of the
    subtasks that it runs.
    """

    node: str
    name: str
    slots: int
    agent: Any
    title: str
    known: Any
    serving: Any
    since: float
    ready: bool = False
    gone: bool = False
    stands: bool = False
    process: int = 0
    workers: dict[int, RemoteWorker] = field(default_factory=dict)
    subtasks: set[int] = field(default_factory=set)

    def free(self) -> int:
        """Return the number of idle threads."""
        busy = sum(w.threads for w in self.workers.values() if w.ending is None)
        return self.slots - busy - len(self.subtasks) if self.ready and not self.gone else 0


class Cluster:
    """A cluster that this process has joined, with one agent on every machine and the message log on this one; made once.

    Parameters
    ----------
    address : see :func:`nmsolve.solvers.cluster.connect.join`
    """

    def __init__(self, address: str) -> None:
        self.ray = ray = join(address)
        self._folder = Path(tempfile.mkdtemp(prefix="nmsolve-cluster-"))
        self.log = self._folder / "messages.log"
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._at = NodeAffinitySchedulingStrategy
        here = ray.get_runtime_context().get_node_id()
        at_home = NodeAffinitySchedulingStrategy(here, soft=False)
        self.message_log = (
            ray.remote(MessageLog)
            .options(num_cpus=0, max_restarts=-1, scheduling_strategy=at_home)
            .remote(str(self.log))
        )
        self.machines: dict[str, ClusterMachine] = {}
        #: Whether a machine has ever joined: then the run has an answer to keep, even if all machines are left out later.
        self.joined = False
        self.notices: list[str] = []
        self._failures: dict[str, int] = {}
        self._left_out: dict[str, str] = {}
        self._numbers, self.runs = itertools.count(), itertools.count(1)
        self._version = 0
        self._counted = -math.inf
        self.seen = 0
        self._alive: dict[str, Any] = {}
        self._heard = time.monotonic()
        self._ask()
        threading.Thread(target=self._listen, daemon=True, name="cluster-state").start()
        self.refresh()

    def next_number(self) -> int:
        """Return a new number for a child, an agent or a subtask."""
        return next(self._numbers)

    def next_version(self) -> int:
        """Return the version of the next state."""
        self._version += 1
        return self._version

    def slots(self) -> int:
        """Return the cores of all machines that have not been left out."""
        return sum(machine.slots for machine in self.machines.values())

    def gone(self) -> bool:
        """Return True if the cluster's head has been silent for long."""
        return time.monotonic() > self._heard + SILENCE

    def _listen(self) -> None:
        """Poll the list of machines in a thread of its own: a call to a dead head blocks for minutes."""
        while self.ray.is_initialized():
            time.sleep(REFRESH)
            try:
                self._ask()
            except Exception:  # noqa: BLE001 -- any error means no answer
                continue

    def _ask(self) -> None:
        self._alive = {n["NodeID"]: n for n in self.ray.nodes() if n["Alive"]}
        self._heard = time.monotonic()

    def smallest_store(self) -> float:
        """Return the bytes of the smallest object store of a machine with an agent."""
        nodes = [node for key, node in self._alive.items() if key in self.machines]
        return min((n["Resources"].get("object_store_memory", math.inf) for n in nodes), default=math.inf)

    def refresh(self) -> None:
        """Update which machines have joined, left or become ready; at most once per :data:`REFRESH` seconds."""
        if time.monotonic() < self._counted + REFRESH and all(
            machine.ready for machine in self.machines.values()
        ):
            return
        for machine in list(self.machines.values()):
            self._check(machine)
        if time.monotonic() < self._counted + REFRESH:
            return
        self._counted = time.monotonic()
        if self.gone():
            self._leave()
            return
        for key, node in self._alive.items():
            slots = int(node["Resources"].get("CPU", 0))
            if slots and key not in self.machines and key not in self._left_out:
                self.machines[key] = self._start_agent(key, node["NodeManagerHostname"], slots)

    def _leave(self) -> None:
        """Give up all machines: the head that lists them is lost."""
        if self.machines:
            self.notices.append(
                f"cluster: its head has not answered for {SILENCE:.0f} s; the search goes on without it"
            )
        for machine in self.machines.values():
            machine.gone = True
            self.hold(machine, False)
        self.machines.clear()

    def close(self) -> None:
        """Forget the log."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def refusals(self) -> str:
        """Return which machines were left out, and why."""
        return "; ".join(self._left_out.values())

    def make(self, kind: type, machine: ClusterMachine) -> Any:
        """Make an object of an engine on a machine, beside the agent; return its handle."""
        options = {"num_cpus": 0, "scheduling_strategy": self._at(machine.node, soft=False)}
        return self.ray.remote(kind).options(**options).remote(machine.slots)

    def _start_agent(self, key: str, host: str, slots: int) -> ClusterMachine:
        name = f"agent-{self.next_number()}"
        agent = (
            self.ray.remote(Agent)
            .options(num_cpus=slots, max_concurrency=slots + 4, scheduling_strategy=self._at(key, soft=False))
            .remote(name, self.message_log)
        )
        title = f"machine {host} ({key[:6]})"
        return ClusterMachine(
            key, name, slots, agent, title, agent.describe.remote(), agent.serve.remote(), time.monotonic()
        )

    def _check(self, machine: ClusterMachine) -> None:
        """Update a machine whose agent has started or died."""
        pending = [machine.serving] if machine.ready else [machine.serving, machine.known]
        done, _ = self.ray.wait(pending, num_returns=len(pending), timeout=0)
        if machine.serving in done:
            self._lose(machine)
        elif machine.known in done:
            found, machine.process = self.ray.get(machine.known)
            differ = [
                f"{k} {found.get(k)} there, {v} here" for k, v in versions().items() if found.get(k) != v
            ]
            if differ:
                self._leave_out(machine, ", ".join(differ))
                return
            machine.ready, self._failures[machine.node] = True, 0
            self.joined = True
            self.notices.append(f"cluster: {machine.title} has joined with {machine.slots} engines at a time")

    def _lose(self, machine: ClusterMachine) -> None:
        """Record that an agent has died; its machine gets another one if it is still alive."""
        machine.gone = True
        self.hold(machine, False)
        del self.machines[machine.node]
        if machine.ready:
            self.notices.append(f"cluster: {machine.title} is gone; what it ran begins again elsewhere")
            return
        self._failures[machine.node] = self._failures.get(machine.node, 0) + 1
        if self._failures[machine.node] >= ATTEMPTS:
            self._leave_out(machine, self._why(machine))

    def _why(self, machine: ClusterMachine) -> str:
        try:
            self.ray.get(machine.known, timeout=0.1)
        except Exception as error:  # noqa: BLE001 -- any error there is the reason to report
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            return next((x for x in lines if "Error" in x), lines[-1] if lines else repr(error))[:160]
        return "its agent ends again and again"

    def _leave_out(self, machine: ClusterMachine, why: str) -> None:
        machine.gone = True
        self.machines.pop(machine.node, None)
        self._left_out[machine.node] = f"{machine.title}: {why}"
        self.notices.append(f"cluster: left out {machine.title}: {why}")
        self.ray.kill(machine.agent)

    def hold(self, machine: ClusterMachine, stands: bool) -> None:
        """Stop the clock here too while an agent's machine compiles kernels."""
        if stands != machine.stands:
            machine.stands = stands
            (clock.hold if stands else clock.go_on)()


_joined: dict[str, Cluster] = {}


def joined(address: str) -> Cluster:
    """Return the cluster at an address, joined when it is first asked for.

    Raises
    ------
    InputError : see :func:`nmsolve.solvers.cluster.connect.join`
    """
    if address not in _joined:
        _joined[address] = Cluster(address)
        atexit.register(_joined[address].close)
    return _joined[address]
