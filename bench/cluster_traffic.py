"""What 64 to 1,024 workers send, played against a real message log: how long polls and acknowledgements take, and its limit.

    python bench/cluster_traffic.py [--seconds 10] [--workers 64,256,1024,2048] [--net 20000] [--record 20]

First a real search on a cluster of two machines with one core each (on this one) is recorded: how often a worker sends offers,
bounds or notes, and how often the run publishes a new state. Then agents are simulated, each of which stands for 16 workers.
It polls ten times a second, as a real one, and sends messages at 16 times the recorded rate of a worker, with arrays of that
size. One more process simulates the run, which collects twenty times a second and publishes states at its recorded rate.
Processes simulate all agents; they, the message log and Ray share the cores of this machine, so times are upper limits. Latency
is what an agent waits for the answer to a poll, or until its messages are in the log. Each number of workers is also run with
polls alone: what a search does once it finds little. `log_ms`: CPU time of the message log per call, which other work on the
machine hardly changes. The last line is JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_worker_niceness="0")  # as local workers

import numpy as np
import ray
from ray.cluster_utils import Cluster

import nmsolve
from nmsolve.solvers.cluster import machines
from nmsolve.solvers.cluster.agent import LOOK
from nmsolve.solvers.cluster.message_log import MessageLog, State, read_log

STORE = 200_000_000
#: Workers of an agent, processes that play agents, seconds between two collections, parts of the time before it counts.
PER_AGENT, PLAYERS, COLLECT, WARM = 16, 4, 0.05, 0.2


def recorded(nodes: int, seconds: float) -> dict[str, float]:
    """Return what a worker of a real search sends in a second, and what the run shows."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snn.npz"
        command = [Path(sys.executable).with_name("nmsolve"), "generate", "snn", "--nodes", str(nodes)]
        command += ["--synapses", str(30 * nodes), "--layers", "8", "--out", path]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        graph = nmsolve.load_graph(path)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": STORE})
    try:
        cluster.add_node(num_cpus=1, object_store_memory=STORE)
        there = machines.joined(cluster.address)
        found = nmsolve.map(graph, "mesh:8x8", balance=0.03, time_limit=seconds, cluster=cluster.address)
        kinds = [message[0] for _, _, _, message in read_log(there.log)]
    finally:
        machines.joined(cluster.address).ray.shutdown()
        cluster.shutdown()
    shown = sum(event.kind in ("incumbent", "bound") for event in found.events)
    rate = {kind: round(kinds.count(kind) / seconds / 2, 3) for kind in ("offer", "bound", "note")}
    return rate | {"shown": round(shown / seconds, 3)}


class Player:
    """Plays many agents, each waiting for its own answers."""

    def __init__(self, message_log: Any, size: int, rate: dict[str, float]) -> None:
        self._message_log, self._rate = message_log, rate
        self._messages = {
            "offer": ("offer", np.arange(size), "move"), "bound": ("bound", b"x" * 2000), "note": ("note", "x" * 80),
        }  # fmt: skip

    async def play(self, first: int, agents: int, begin: float, seconds: float) -> tuple[list[float], ...]:
        """Return the waits for looks, and for acknowledgements."""
        looks: list[float] = []
        handed: list[float] = []
        await asyncio.gather(
            *(
                self._agent(f"agent-{first + k}", first + k, begin, seconds, looks, handed)
                for k in range(agents)
            )
        )
        return looks, handed

    async def _agent(
        self, name: str, seed: int, begin: float, seconds: float, looks: list[float], handed: list[float]
    ) -> None:
        rng = np.random.default_rng(seed)
        taken = version = 0
        due = {kind: time.time() for kind in self._messages}
        await asyncio.sleep(max(0.0, begin - time.time()) + rng.random() * LOOK)
        while (now := time.time()) < begin + seconds:
            unsent = []
            for kind, message in self._messages.items():
                rate = PER_AGENT * self._rate[kind]
                while rate > 0 and due[kind] <= now:
                    unsent.append((seed, message))
                    due[kind] += rng.exponential(1 / rate)
            taken, state = await self._message_log.exchange.remote(name, taken, unsent, version)
            version = version if state is None else state.version
            took = time.time() - now
            if now > begin + WARM * seconds:
                (handed if unsent else looks).append(took)
            await asyncio.sleep(max(0.0, LOOK - took))

    async def collect(self, begin: float, seconds: float, size: int) -> int:
        """Play the run; return how many messages came."""
        rng, seen, version = np.random.default_rng(0), 0, 0
        due = begin
        await asyncio.sleep(max(0.0, begin - time.time()))
        while (now := time.time()) < begin + seconds:
            state = None
            if due <= now:
                version += 1
                state = State(version, 1, solution=np.arange(size), objective=1.0 / version)
                due = now + rng.exponential(1 / max(1e-9, self._rate["shown"]))
            records, _ = await self._message_log.collect.remote(seen, state)
            seen += len(records)
            await asyncio.sleep(max(0.0, now + COLLECT - time.time()))
        return seen


def played(workers: int, rate: dict[str, float], size: int, seconds: float) -> dict[str, Any]:
    """Return what this many workers see of one message log."""
    agents = max(1, workers // PER_AGENT)
    with tempfile.TemporaryDirectory() as folder:
        message_log = ray.remote(MessageLog).options(num_cpus=0).remote(f"{folder}/log")
        process = ray.get(message_log.process.remote())
        many = ray.remote(Player).options(num_cpus=0, max_concurrency=10_000)
        players = [many.remote(message_log, size, rate) for _ in range(PLAYERS + 1)]
        begin = time.time() + 2.0
        shares = [len(part) for part in np.array_split(np.arange(agents), PLAYERS)]
        firsts = np.cumsum([0, *shares])
        work = [
            p.play.remote(int(f), share, begin, seconds)
            for p, f, share in zip(players, firsts, shares, strict=False)
        ]
        came = players[-1].collect.remote(begin, seconds, size)
        time.sleep(max(0.0, begin - time.time()))
        cpu = _cpu(process)
        parts = ray.get(work)
        cpu = _cpu(process) - cpu
        looks = np.array([x for part in parts for x in part[0]])
        handed = np.array([x for part in parts for x in part[1]])
        messages = ray.get(came)
        for actor in [message_log, *players]:
            ray.kill(actor)
    calls, span = len(looks) + len(handed), (1 - WARM) * seconds
    return {
        "workers": workers, "agents": agents, "calls_per_s": round(calls / span), "asked_per_s": round(agents / LOOK),
        "messages_per_s": round(messages / seconds, 1), "log_busy": round(cpu / seconds, 2),
        "log_ms": round(1000 * cpu / max(1.0, calls / span * seconds), 2),
        "look_ms": _quantiles(looks), "acknowledged_ms": _quantiles(handed),
    }  # fmt: skip


def _quantiles(waits: Any) -> dict[str, float] | None:
    if len(waits) == 0:
        return None
    return {name: round(1000 * float(np.quantile(waits, q)), 1) for name, q in (("p50", 0.5), ("p99", 0.99))}


def _cpu(process: int) -> float:
    """Return the CPU seconds of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Record, play and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--workers", default="64,256,1024,2048")
    parser.add_argument("--net", type=int, default=20_000, help="nodes of the network, so length of an offer")
    parser.add_argument("--record", type=float, default=20.0, help="seconds of the real search")
    o = parser.parse_args()
    told: dict[str, Any] = {"per_worker_s": recorded(o.net, o.record)}
    print(json.dumps(told), flush=True)
    ray.init(
        address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=STORE
    )
    told["played"] = []
    for workers in (int(w) for w in o.workers.split(",")):
        for rate in (dict.fromkeys(told["per_worker_s"], 0.0), told["per_worker_s"]):
            told["played"].append(played(workers, rate, o.net, o.seconds))
            print(json.dumps(told["played"][-1]), flush=True)
    ray.shutdown()
    print(json.dumps(told))


if __name__ == "__main__":
    main()
