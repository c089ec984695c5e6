"""The machines of a cluster and who works there: which there are, which agents they have, what each is on."""

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
from nmsolve.solvers.cluster.ledger import Ledger
from nmsolve.solvers.search.child import GRACE
from nmsolve.solvers.search.context import Ending

#: Seconds between two looks at which machines there are; that a message may take; until a machine without an agent is given up.
CENSUS, LATE, HIRING = 1.0, 0.4, 20.0
#: Seconds without a word of the cluster's head after which nothing more is hoped for.
SILENCE = 10.0
#: Agents of one machine in a row that died before they said anything, after which it is left out.
ATTEMPTS = 3


class RemoteWorker:
    """One engine on another machine."""

    def __init__(self, seat: Seat, threads: int, last: float) -> None:
        self.cpu = 0.0
        self.seat, self.threads = seat, threads
        self.ending: Ending | None = None
        self.inbox: deque[Any] = deque()
        self._stop_at = last

    def messages(self) -> list[Any]:
        """Return what it sent since the last call."""
        out = list(self.inbox)
        self.inbox.clear()
        return out

    def ended(self) -> Ending | None:
        """Return how it ended, or None while it works. One that is silent long after the end is given up."""
        if self.ending is None and self.seat.gone:
            self.ending = Ending("lost", f"{self.seat.name} is gone")
        if self.ending is None and clock.now() > self._stop_at + GRACE + LATE:
            self.ending = Ending("killed", "overran its time")
        return self.ending

    def stop_now(self, hurry: float) -> None:
        """Wait no longer than this for its end, which the state asks for."""
        self._stop_at = min(self._stop_at, clock.now() - hurry)

    def kill(self) -> None:
        """Give it up: its agent ends it with the run."""
        if self.ending is None:
            self.ending = Ending("killed", "no longer needed")


@dataclass
class Seat:
    """One machine of the cluster with its agent.

    ``agent``: handle; ``known``: reference to what it says of itself; ``serving``: reference to a call that does not return
    while it lives; ``ready``: it has the right versions; ``stands``: its clock stands still; ``errands``: numbers of
    those that it is on.
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
    errands: set[int] = field(default_factory=set)

    def free(self) -> int:
        """Return how many threads are free."""
        busy = sum(w.threads for w in self.workers.values() if w.ending is None)
        return self.slots - busy - len(self.errands) if self.ready and not self.gone else 0


class Cluster:
    """A cluster that this process has joined, with one agent on every machine and the ledger on this one; made once.

    Parameters
    ----------
    address : see :func:`nmsolve.solvers.cluster.connect.join`
    """

    def __init__(self, address: str) -> None:
        self.ray = ray = join(address)
        self._folder = Path(tempfile.mkdtemp(prefix="nmsolve-cluster-"))
        self.log = self._folder / "ledger.log"
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._at = NodeAffinitySchedulingStrategy
        here = ray.get_runtime_context().get_node_id()
        at_home = NodeAffinitySchedulingStrategy(here, soft=False)
        self.ledger = (
            ray.remote(Ledger)
            .options(num_cpus=0, max_restarts=-1, scheduling_strategy=at_home)
            .remote(str(self.log))
        )
        self.seats: dict[str, Seat] = {}
        #: Whether a machine has ever joined: then its best answer counts, whoever is left out later.
        self.joined = False
        self.words: list[str] = []
        self._failures: dict[str, int] = {}
        self._left_out: dict[str, str] = {}
        self._numbers, self.runs = itertools.count(), itertools.count(1)
        self._version = 0
        self._counted = -math.inf
        self.seen = 0
        self._alive: dict[str, Any] = {}
        self._heard = time.monotonic()
        self._ask()
        threading.Thread(target=self._listen, daemon=True, name="census").start()
        self.census()

    def next_number(self) -> int:
        """Return a number that no child or agent had."""
        return next(self._numbers)

    def next_version(self) -> int:
        """Return the version of the next state."""
        self._version += 1
        return self._version

    def slots(self) -> int:
        """Return the cores of all machines that have not been left out."""
        return sum(seat.slots for seat in self.seats.values())

    def gone(self) -> bool:
        """Return True if the cluster's head has been silent for long."""
        return time.monotonic() > self._heard + SILENCE

    def _listen(self) -> None:
        """Ask which machines there are, again and again: without the head a call waits for minutes."""
        while self.ray.is_initialized():
            time.sleep(CENSUS)
            try:
                self._ask()
            except Exception:  # noqa: BLE001 -- whatever it is, nothing was heard
                continue

    def _ask(self) -> None:
        self._alive = {n["NodeID"]: n for n in self.ray.nodes() if n["Alive"]}
        self._heard = time.monotonic()

    def smallest_store(self) -> float:
        """Return the bytes of the smallest object store of a machine with a seat."""
        nodes = [node for key, node in self._alive.items() if key in self.seats]
        return min((n["Resources"].get("object_store_memory", math.inf) for n in nodes), default=math.inf)

    def census(self) -> None:
        """See who has come, who has gone, and who is ready; now and then."""
        if time.monotonic() < self._counted + CENSUS and all(seat.ready for seat in self.seats.values()):
            return
        for seat in list(self.seats.values()):
            self._check(seat)
        if time.monotonic() < self._counted + CENSUS:
            return
        self._counted = time.monotonic()
        if self.gone():
            self._leave()
            return
        for key, node in self._alive.items():
            slots = int(node["Resources"].get("CPU", 0))
            if slots and key not in self.seats and key not in self._left_out:
                self.seats[key] = self._hire(key, node["NodeManagerHostname"], slots)

    def _leave(self) -> None:
        """Give up all machines: it is not known any more which there are."""
        if self.seats:
            self.words.append(
                f"cluster: its head has not answered for {SILENCE:.0f} s; the search goes on without it"
            )
        for seat in self.seats.values():
            seat.gone = True
            self.hold(seat, False)
        self.seats.clear()

    def close(self) -> None:
        """Forget the log."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def refusals(self) -> str:
        """Return which machines were left out, and why."""
        return "; ".join(self._left_out.values())

    def make(self, kind: type, seat: Seat) -> Any:
        """Make an object of an engine's own on a seat's machine, beside the agent; return its handle."""
        options = {"num_cpus": 0, "scheduling_strategy": self._at(seat.node, soft=False)}
        return self.ray.remote(kind).options(**options).remote(seat.slots)

    def _hire(self, key: str, host: str, slots: int) -> Seat:
        name = f"agent-{self.next_number()}"
        agent = (
            self.ray.remote(Agent)
            .options(num_cpus=slots, max_concurrency=slots + 4, scheduling_strategy=self._at(key, soft=False))
            .remote(name, self.ledger)
        )
        title = f"machine {host} ({key[:6]})"
        return Seat(
            key, name, slots, agent, title, agent.describe.remote(), agent.serve.remote(), time.monotonic()
        )

    def _check(self, seat: Seat) -> None:
        """Notice that an agent has come or gone."""
        pending = [seat.serving] if seat.ready else [seat.serving, seat.known]
        done, _ = self.ray.wait(pending, num_returns=len(pending), timeout=0)
        if seat.serving in done:
            self._lose(seat)
        elif seat.known in done:
            told, seat.process = self.ray.get(seat.known)
            differ = [f"{k} {told.get(k)} there, {v} here" for k, v in versions().items() if told.get(k) != v]
            if differ:
                self._leave_out(seat, ", ".join(differ))
                return
            seat.ready, self._failures[seat.node] = True, 0
            self.joined = True
            self.words.append(f"cluster: {seat.title} has joined with {seat.slots} engines at a time")

    def _lose(self, seat: Seat) -> None:
        """Book that an agent has died; its machine gets another one if it is there."""
        seat.gone = True
        self.hold(seat, False)
        del self.seats[seat.node]
        if seat.ready:
            self.words.append(f"cluster: {seat.title} is gone; what it ran begins again elsewhere")
            return
        self._failures[seat.node] = self._failures.get(seat.node, 0) + 1
        if self._failures[seat.node] >= ATTEMPTS:
            self._leave_out(seat, self._why(seat))

    def _why(self, seat: Seat) -> str:
        try:
            self.ray.get(seat.known, timeout=0.1)
        except Exception as error:  # noqa: BLE001 -- whatever went wrong there is what is to be said
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            return next((x for x in lines if "Error" in x), lines[-1] if lines else repr(error))[:160]
        return "its agent ends again and again"

    def _leave_out(self, seat: Seat, why: str) -> None:
        seat.gone = True
        self.seats.pop(seat.node, None)
        self._left_out[seat.node] = f"{seat.title}: {why}"
        self.words.append(f"cluster: left out {seat.title}: {why}")
        self.ray.kill(seat.agent)

    def hold(self, seat: Seat, stands: bool) -> None:
        """Let the clock stand still here too while an agent's machine compiles kernels."""
        if stands != seat.stands:
            seat.stands = stands
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
