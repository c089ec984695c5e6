"""Passes over the connections of a network that machines of a cluster hold, beside threads of one process.

    python bench/cluster_passes.py NET.nmz [--machines 1,2] [--sweeps 3]

Each machine is a node with one core of a local cluster. Printed are seconds of giving out the connections, of clustering and of a
sweep of refinement (hops, 16x16 cores, from no order), for one thread, for as many threads as machines, and for the machines; and
whether all end with the same clusters and the same placement, which they must. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_worker_niceness="0")  # as local workers

import numpy as np
import ray
from ray.cluster_utils import Cluster
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from nmsolve.heuristics.mapping.external.anneal import Run
from nmsolve.heuristics.mapping.external.away import Away
from nmsolve.heuristics.mapping.external.build import finest, symmetric
from nmsolve.heuristics.mapping.external.clustering import cluster
from nmsolve.heuristics.mapping.external.engine import cores_of
from nmsolve.heuristics.mapping.external.holder import Holder
from nmsolve.heuristics.mapping.external.lawful import placed, scattered
from nmsolve.heuristics.mapping.external.levels import Level
from nmsolve.heuristics.mapping.external.sweep import Crew, sweep
from nmsolve.heuristics.mapping.multilevel.schedule import Budget
from nmsolve.heuristics.rng import new_rng
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.store import open_graph
from nmsolve.solvers.cluster.objects import RemoteObjects

STORE = 600_000_000


def passes(problem: MappingProblem, level: Level, crew: Crew, sweeps: int) -> tuple[dict[str, float], Any]:
    """Return seconds of a clustering and of a sweep, and what they led to; the first of each is not counted."""
    run = Run(cores_of(problem), False, crew, Budget(1e15, crew.should_stop, lambda: 0.0), new_rng(1))
    times: dict[str, list[float]] = {"cluster": [], "sweep": []}
    for _ in range(2):
        begun = time.perf_counter()
        label, _count = cluster(level, 0.05, 1, crew)
        times["cluster"].append(time.perf_counter() - begun)
    s = placed(level, scattered(level, run.cores.allowed), run)
    unit = run.unit(level)
    for k in range(sweeps + 1):
        begun = time.perf_counter()
        sweep(level, run.cores, s, False, unit, k, crew)
        times["sweep"].append(time.perf_counter() - begun)
    return {k: round(float(np.mean(v[1:])), 2) for k, v in times.items()}, (label, s.pos)


def away(problem: MappingProblem, level: Level, machines: int, sweeps: int) -> tuple[dict[str, float], Any]:
    """Return the same of this many machines of a cluster, and the seconds of giving out the connections."""
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": STORE})
    try:
        for _ in range(machines - 1):
            nodes.add_node(num_cpus=1, object_store_memory=STORE)
        ray.init(nodes.address, log_to_driver=False, logging_level="ERROR")

        def hire() -> RemoteObjects:
            at = [NodeAffinitySchedulingStrategy(n["NodeID"], soft=False) for n in ray.nodes() if n["Alive"]]
            holders = [ray.remote(Holder).options(num_cpus=0, scheduling_strategy=x).remote(1) for x in at]
            return RemoteObjects(ray, holders, lambda: False)

        known = (cores_of(problem), level.volume, level.domain, level.apart_ptr)
        there = Away(hire, level.source.blocks, known)
        begun = time.perf_counter()
        assert there.spread() == machines
        given = round(time.perf_counter() - begun, 2)
        times, result = passes(problem, replace(level, away=there), Crew(1, None, lambda: False), sweeps)
        return {"spread": given} | times, result
    finally:
        ray.shutdown()
        nodes.shutdown()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("net")
    parser.add_argument("--machines", default="1,2")
    parser.add_argument("--sweeps", type=int, default=3)
    o = parser.parse_args()
    graph = open_graph(o.net)
    board = Machine(name="mesh", chips=(1, 1), cores=(16, 16), capacity={"neurons": graph.n // 250})
    problem = MappingProblem(graph, board)
    level = finest(problem, symmetric(graph, Crew(1, None, lambda: False)))
    told: dict[str, Any] = {"nodes": graph.n, "connections": graph.m}
    wanted: Any = None
    for count in sorted({1, *map(int, o.machines.split(","))}):
        with ThreadPoolExecutor(count) as pool:
            crew = Crew(count, pool if count > 1 else None, lambda: False)
            told[f"threads {count}"], found = passes(problem, level, crew, o.sweeps)
        results = [found]
        if count in map(int, o.machines.split(",")):
            told[f"machines {count}"], found = away(problem, level, count, o.sweeps)
            results.append(found)
        wanted = wanted or results[0]
        for label, pos in results:
            assert np.array_equal(label, wanted[0])
            assert np.array_equal(pos, wanted[1])
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
