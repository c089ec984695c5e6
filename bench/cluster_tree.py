"""One branch and bound on a cluster of this machine: how much faster two machines with a core each are, and what a part costs.

    python bench/cluster_tree.py [--nodes 17] [--machines 1,2] [--seconds 300]

The first N facilities and places of nug20 (Nugent et al. 1968; with 16 and 17 of them these are QAPLIB's nug16a, nug17), from the
best mapping that a second of `tabu` finds. `alone` is the same search without a cluster, with one worker. The last line is JSON:
wall and CPU seconds, partial mappings, parts that came back and were lost, CPU seconds of the process that deals them out, and
what a part without work takes there and back.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_worker_niceness="0")  # as local workers

import numpy as np

import nmsolve
from nmsolve.model.formats import load_instance
from nmsolve.solvers.cluster import machines
from nmsolve.solvers.cluster.subtasks import RemoteSubtasks
from nmsolve.solvers.mapping.api import make_problem
from nmsolve.solvers.mapping.branch_bound import engine
from nmsolve.solvers.mapping.branch_bound.remote import BranchBoundWorker, Subtask
from nmsolve.solvers.mapping.exact.data import exact_data

STORE = 100_000_000
NUG20 = Path(nmsolve.__file__).parent / "benchmarks/instances/nug20.dat"
PARTS = re.compile(r"(\d+) parts of the search came back from other machines, (\d+) were lost")


def first_of_nug20(nodes: int) -> str:
    """Return the text of a QAPLIB file."""
    size, *numbers = (int(x) for x in NUG20.read_text().split())
    both = np.array(numbers).reshape(2, size, size)[:, :nodes, :nodes]
    return "\n".join([str(nodes), *(" ".join(map(str, line)) for matrix in both for line in matrix)])


def search(path: Path, start: Any, seconds: float, cluster: str | None) -> dict[str, Any]:
    """Return figures of one search."""
    begun, cpu = time.monotonic(), time.process_time()
    found = nmsolve.map(
        path, engines=["branch-bound"], time_limit=seconds, warm_start=start, gap=0.0, cluster=cluster
    )
    here = time.process_time() - cpu
    said = next((m for e in found.events if (m := PARTS.search(e.text))), None)
    claim = next((b for b in found.bounds if b.method == "branch-bound"), None)
    return {
        "objective": found.objective, "bound": found.bound, "status": found.status, "wall": round(time.monotonic() - begun, 1),
        "cpu": round(found.cpu_seconds, 1), "here_cpu": round(here, 1), "nodes": claim and claim.certificate["nodes"],
        "parts": said and int(said[1]), "lost": said and int(said[2]),
    }  # fmt: skip


def overhead(path: Path, address: str, rounds: int = 300) -> dict[str, float]:
    """Return milliseconds of a part without work, there and back: by the clock, and of the CPU here."""
    problem = make_problem(*load_instance(path))
    tree = engine._tree(exact_data(problem), 10**6)
    cluster = machines.joined(address)
    subtasks = RemoteSubtasks(
        cluster, BranchBoundWorker(tree, np.arange(problem.cores)), cluster.refresh, lambda cpu: None
    )
    for measured in (False, True):
        begun, cpu = time.perf_counter(), time.process_time()
        for _ in range(rounds):
            subtasks.send(Subtask([], 2, 0.0))
            while not subtasks.back(1.0):
                continue
        if measured:
            wall, cpu = time.perf_counter() - begun, time.process_time() - cpu
    return {"ms": round(1000 * wall / rounds, 2), "here_cpu_ms": round(1000 * cpu / rounds, 2)}


def main() -> None:
    """Measure and print."""
    from ray.cluster_utils import Cluster

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=17)
    parser.add_argument("--machines", default="1,2")
    parser.add_argument("--seconds", type=float, default=300.0)
    o = parser.parse_args()
    told: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.dat"
        path.write_text(first_of_nug20(o.nodes))
        start = nmsolve.map(path, engines=["tabu"], time_limit=1.0).solution
        told["alone"] = search(path, start, o.seconds, None)
        print(json.dumps(told["alone"]), flush=True)
        for count in (int(m) for m in o.machines.split(",")):
            cluster = Cluster(
                initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": STORE}
            )
            try:
                for _ in range(count - 1):
                    cluster.add_node(num_cpus=1, object_store_memory=STORE)
                machines.joined(cluster.address)
                told[f"{count} machines"] = search(path, start, o.seconds, cluster.address)
                told["empty part"] = overhead(path, cluster.address)
                print(json.dumps(told[f"{count} machines"]), flush=True)
            finally:
                machines.joined(cluster.address).ray.shutdown()
                machines._joined.clear()
                cluster.shutdown()
    print(json.dumps(told))


if __name__ == "__main__":
    main()
