"""Kills workers, agents, the message log and whole machines of a cluster while it maps, and counts what that costs.

    python bench/cluster_kills.py [--kills 50] [--seconds 150] [--seed 1] [--nodes 2000]

The cluster is on this machine: a machine that stays, on which the run itself works, and one that comes and goes. Every kill is
SIGKILL, drawn by the seed: an engine, an agent, the message log, or the second machine (which comes back). An answer is
lost if the message log has one that holds and is better than what the run returned; a run hangs if it takes `LATE` seconds
longer than its limit. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_worker_niceness="0")  # as local workers

from processes import below
from ray.cluster_utils import Cluster

import nmsolve
from nmsolve.solvers.cluster import machines, worker_pool
from nmsolve.solvers.cluster.message_log import read_log
from nmsolve.solvers.search.incumbent import judge

STORE, LATE, HANG, QUIET = 100_000_000, 2.0, 60.0, 2.0
COMMANDS = {"engine": "search.child_main", "agent": "ray::Agent", "message_log": "ray::MessageLog"}
KINDS = ("engine", "engine", "agent", "agent", "message_log", "machine", "machine", "machine")


class Killer:
    """Kills something now and then, until it has killed ``kills`` times or the run is over. Ray starts machines only from the
    main thread, so the search has another one.
    """

    def __init__(self, cluster: Cluster, node: Any, kills: int, every: float, seed: int) -> None:
        self.cluster, self.node, self.kills, self.every = cluster, node, kills, every
        self.random, self.over = random.Random(seed), threading.Event()
        self.done: dict[str, int] = dict.fromkeys(KINDS, 0)

    def run(self) -> None:
        """Kill."""
        begun = time.monotonic()
        while not self.over.is_set() and (count := sum(self.done.values())) < self.kills:
            self.over.wait(max(0.1, begun + (count + 1) * self.every - time.monotonic()))
            kind = self.random.choice(KINDS)
            if not self.over.is_set() and self._kill(kind):
                self.done[kind] += 1

    def _kill(self, kind: str) -> bool:
        """Kill one of a kind; False if there is none just now."""
        if kind == "machine":
            self.cluster.remove_node(self.node, allow_graceful=False)
            self.node = self.cluster.add_node(num_cpus=1, object_store_memory=STORE)
            return True
        found = below(os.getpid(), COMMANDS[kind])
        if found:
            os.kill(self.random.choice(found), signal.SIGKILL)
        return bool(found)


def reservoir(nodes: int) -> Any:
    """Return a generated network."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.json"
        command = [
            Path(sys.executable).with_name("nmsolve"),
            "generate",
            "reservoir",
            "--nodes",
            str(nodes),
            "--out",
            path,
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return nmsolve.load_graph(path)


def main() -> int:
    """Run; 1 if an answer was lost or the run hung."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=150.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=2000)
    o = parser.parse_args()
    checkers: list[Any] = []
    plain = worker_pool.ClusterWorkerPool.__init__

    def spied(self: Any, cluster: Any, checker: Any) -> None:
        checkers.append(checker)
        plain(self, cluster, checker)

    worker_pool.ClusterWorkerPool.__init__ = spied  # type: ignore[method-assign]
    graph = reservoir(o.nodes)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": STORE})
    try:
        node = cluster.add_node(num_cpus=1, object_store_memory=STORE)
        machines.joined(cluster.address)
        killer = Killer(cluster, node, o.kills, (o.seconds - 2 * QUIET) / (o.kills + 1), o.seed)
        begun = time.monotonic()
        with ThreadPoolExecutor(1) as pool:
            search = pool.submit(
                nmsolve.map, graph, "mesh:4x4", time_limit=o.seconds, seed=o.seed, cluster=cluster.address
            )
            search.add_done_callback(lambda _: killer.over.set())
            killer.run()
            answer = search.result(o.seconds + HANG)
        wall = time.monotonic() - begun
        offers = [m for _, _, _, m in read_log(machines.joined(cluster.address).log) if m[0] == "offer"]
        judged = [judge(checkers[0], m[1]) for m in offers]
    finally:
        machines.joined(cluster.address).ray.shutdown()
        cluster.shutdown()
    values = [value for complaint, _, value in judged if complaint is None]
    lost = sum(value < answer.objective * (1 - 1e-9) for value in values)
    told = {
        "kills": sum(killer.done.values()), "kinds": killer.done, "offers": len(offers), "lost": lost,
        "objective": answer.objective, "best_offer": min(values, default=None), "status": answer.status,
        "begun_again": sum(": lost" in e.text or e.text.startswith("lost") for e in answer.events),
        "stopped": answer.stop_reason, "seconds": round(wall, 1), "hung": wall > o.seconds + LATE,
    }  # fmt: skip
    for event in answer.events:
        print(f"{event.seconds:6.1f} {event.kind} {event.engine} {event.text}", file=sys.stderr)
    print(json.dumps(told))
    return int(lost > 0 or told["hung"])


if __name__ == "__main__":
    sys.exit(main())
