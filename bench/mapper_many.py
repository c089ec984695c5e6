"""Figures of the multilevel mapper on many nodes per core: cost against processor seconds.

    python bench/mapper_many.py INSTANCE SECONDS [--seeds 3] [--mesh 8x8] [--balance 0.03]

INSTANCE is any graph file.
Processor seconds of the search alone are counted (graph in memory, kernels compiled before); the schedule follows
processor time, so that a loaded machine does not change what is measured. One line per improvement, one per seed.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

from nmsolve.heuristics.mapping.multilevel.mapper import WORK_PER_SECOND, map_multilevel
from nmsolve.hw.cost import core_distance
from nmsolve.model.formats import load_graph
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem, default_node_limit
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.model.types import IntArray


def cost_of(problem: MappingProblem, core: IntArray) -> float:
    """Hops, from the definition."""
    distance = core_distance(problem)
    row, col = np.divmod(core, distance.cols)
    source, target = problem.graph.edge_source, problem.graph.targets
    dx = np.abs(distance.x[col[source]] - distance.x[col[target]])
    dy = np.abs(distance.y[row[source]] - distance.y[row[target]])
    return float((problem.graph.weights * (dx + dy)).sum())


def one_run(problem: MappingProblem, seed: int, seconds: float) -> tuple[float, float]:
    """Final cost and processor seconds of one search; prints its improvements."""
    began = time.process_time()
    found = []

    def spent() -> float:
        return time.process_time() - began

    def offer(core: IntArray, move: str) -> None:
        found.append((spent(), move, core))

    best = map_multilevel(
        problem, seed, seconds * WORK_PER_SECOND, lambda: spent() > seconds, offer, lambda: spent() / seconds
    )
    total = spent()
    if best is None or check_mapping(problem, best):
        sys.exit("no feasible mapping")
    for at, move, core in found:
        print(f"  {at:8.2f} s  {cost_of(problem, core):>14,.0f}  {move}")
    return cost_of(problem, best), total


def main() -> None:
    """Parse the command line and run the seeds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("instance", type=Path)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--mesh", default="8x8")
    parser.add_argument("--balance", type=float, default=0.03)
    parser.add_argument("--seeds", type=int, default=1)
    args = parser.parse_args()
    rows, cols = (int(v) for v in args.mesh.split("x"))
    graph, machine = load_graph(args.instance), Machine(f"mesh:{args.mesh}", (1, 1), (rows, cols))
    problem = MappingProblem(graph, machine, node_limit=default_node_limit(graph, machine, args.balance))
    tiny = MappingProblem(LogicGraph.from_edges(40, range(39), range(1, 40)), machine, node_limit=5)
    map_multilevel(tiny, 0, 1e6, lambda: False, lambda *_: None)  # compiles the kernels
    results = []
    for seed in range(1, args.seeds + 1):
        cost, total = one_run(problem, seed, args.seconds)
        results.append(cost)
        print(f"seed {seed}: {cost:,.0f} in {total:.2f} CPU s")
    print(f"mean {np.mean(results):,.0f}  best {min(results):,.0f}  worst {max(results):,.0f}")


if __name__ == "__main__":
    main()
