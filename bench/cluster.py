"""Figures of a cluster of two machines with one core each, on this machine, beside processes of one machine.

    python bench/cluster.py [--seconds 30] [--seeds 1,2] [--only search,calls]

`search`: snn20k on an 8x8 mesh with one and two local workers, and on clusters with one and two machines: objective, bound, and
seconds from the command to the first word of a run and of an agent. `calls`: how many messages a second the ledger takes from one
agent after the other, by their size, and what 64 to 1,024 workers send: each agent stands for 16, looks ten times a second and
sends what the runs above sent per worker. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import numpy as np
import ray
from ray.cluster_utils import Cluster

from nmsolve.solvers.cluster.ledger import Ledger

STORE = 200_000_000
NMSOLVE = Path(sys.executable).with_name("nmsolve")
#: Workers that one agent stands for, and how often it looks in a second.
PER_AGENT, LOOKS = 16, 10


def search(net: Path, out: Path, seconds: float, seed: int, *how: str) -> dict[str, Any]:
    """Return figures of one search."""
    begun = time.time()
    command = [
        NMSOLVE, "map", net, "-m", "mesh:8x8", "--balance", "0.03", "-t", f"{seconds}s", "--seed", str(seed), "-o", out, *how,
    ]  # fmt: skip
    subprocess.run(
        [str(x) for x in command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wall = time.time() - begun
    report = json.loads((out / "report.json").read_text())
    events = [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]
    joined = [e["seconds"] for e in events if "has joined" in e.get("text", "")]
    start = next(e["seconds"] for e in events if e["type"] == "start")
    return {
        "how": " ".join(how[:1]), "seed": seed, "objective": report["objective"], "bound": report["bound"],
        "start": start, "joined": max(joined, default=None), "wall": round(wall, 1),
        "events": sum(e["type"] in ("incumbent", "bound", "note") for e in events),
    }  # fmt: skip


def searches(seconds: float, seeds: list[int]) -> list[dict[str, Any]]:
    """Return figures of searches with one and two workers, here and on a cluster."""
    out = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        net = folder / "snn20k.npz"
        sizes = ["--nodes", "20000", "--synapses", "600000", "--layers", "8"]
        subprocess.run(
            [NMSOLVE, "generate", "snn", *sizes, "--out", net], check=True, stdout=subprocess.DEVNULL
        )
        for machines in (1, 2):
            cluster = Cluster(
                initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": STORE}
            )
            try:
                for _ in range(machines - 1):
                    cluster.add_node(num_cpus=1, object_store_memory=STORE)
                for seed in seeds:
                    for how in (("--workers", str(machines)), ("--cluster", cluster.address)):
                        found = search(net, folder / "out", seconds, seed, *how) | {"workers": machines}
                        print(json.dumps(found), flush=True)
                        out.append(found)
            finally:
                cluster.shutdown()
    return out


def calls() -> dict[str, Any]:
    """Return how many messages a second one ledger takes, and the share of that which more workers send."""
    ray.init(
        address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=STORE
    )
    rates: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        ledger = ray.remote(Ledger).options(num_cpus=0).remote(f"{folder}/log")
        for name, size in (("look", 0), ("offer_20k", 20_000)):
            sent = [0] * 64
            message = [(1, ("offer", np.arange(size), "move"))] if size else []
            for measured in (False, True):
                rounds, begun = 6, time.perf_counter()
                for _ in range(rounds):
                    work = []
                    for agent in range(64):
                        work.append(ledger.exchange.remote(f"{name}-{agent}", sent[agent], message, 0))
                        sent[agent] += len(message)
                    ray.get(work)
                    if size:
                        ray.get(ledger.collect.remote(10**9, None))
                if measured:
                    rates[name] = round(64 * rounds / (time.perf_counter() - begun))
    ray.shutdown()
    load = {}
    for workers in (64, 256, 1024):
        looks = workers / PER_AGENT * LOOKS
        load[workers] = {"looks_per_s": looks, "busy": round(looks / rates["look"], 3),
                         "offers_per_s_left": round((1 - looks / rates["look"]) * rates["offer_20k"], 1)}  # fmt: skip
    return {"per_s": rates, "workers": load}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--seeds", default="1,2")
    parser.add_argument("--only", default="search,calls")
    o = parser.parse_args()
    told: dict[str, Any] = {}
    if "calls" in o.only:
        told["calls"] = calls()
    if "search" in o.only:
        told["search"] = searches(o.seconds, [int(s) for s in o.seeds.split(",")])
    print(json.dumps(told))


if __name__ == "__main__":
    main()
