"""Figures of a cluster of two machines with one core each, on this machine, beside processes of one machine.

    python bench/cluster.py [--seconds 30] [--seeds 1,2]

snn20k on an 8x8 mesh with one and two local workers, and on clusters with one and two machines: objective, bound, seconds from
the command to the first word of a run and of an agent. The last line is JSON. What many workers send: cluster_traffic.py.
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

os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_worker_niceness="0")  # as local workers

from ray.cluster_utils import Cluster

STORE = 200_000_000
NMSOLVE = Path(sys.executable).with_name("nmsolve")


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


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--seeds", default="1,2")
    o = parser.parse_args()
    print(json.dumps(searches(o.seconds, [int(s) for s in o.seeds.split(",")])))


if __name__ == "__main__":
    main()
