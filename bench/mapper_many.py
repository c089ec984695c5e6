"""Figures of an engine on many nodes per core: cost against processor seconds.

    python bench/mapper_many.py INSTANCE SECONDS [--engine multilevel] [--workers 1] [--seeds 3] [--mesh 8x8] [--balance 0.03]

INSTANCE is any graph file.
Processor seconds of the search alone are counted (graph in memory, kernels compiled before), and shared by the workers: with
two, SECONDS are over after twice as many. The schedule follows processor time, so that a loaded machine does not change what
is measured. One line per improvement, one per seed.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from nmsolve.hw.cost import core_distance
from nmsolve.model.engine import ScratchPlace
from nmsolve.model.formats import load_graph
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem, default_node_limit
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.registry import REGISTRY


def cost_of(problem: MappingProblem, core: IntArray) -> float:
    """Hops, from the definition."""
    distance = core_distance(problem)
    row, col = np.divmod(core, distance.cols)
    source, target = problem.graph.edge_source, problem.graph.targets
    dx = np.abs(distance.x[col[source]] - distance.x[col[target]])
    dy = np.abs(distance.y[row[source]] - distance.y[row[target]])
    return float((problem.graph.weights * (dx + dy)).sum())


class Context:
    """What an engine sees of a run whose clock is the processor time of all threads, divided among them."""

    memory, scratch, pace, note = None, ScratchPlace(), 1.0, staticmethod(print)

    def __init__(self, problem: MappingProblem, seed: int, seconds: float, workers: int) -> None:
        self.seed, self.workers, self._seconds, self._problem = seed, workers, seconds, problem
        self._began, self.best, self.cost = time.process_time(), None, np.inf
        self.found: list[tuple[float, float, str]] = []

    def worked(self) -> float:
        """Processor seconds of each worker so far."""
        return (time.process_time() - self._began) / self.workers

    def time_left(self) -> float:
        """Seconds that are left."""
        return max(0.0, self._seconds - self.worked())

    def should_stop(self) -> bool:
        """Return whether time is over."""
        return self.time_left() <= 0.0

    def incumbent(self) -> tuple[IntArray | None, float]:
        """Return the best mapping so far."""
        return self.best, self.cost

    def offer(self, core: IntArray, move: str = "") -> bool:
        """Take a mapping if it is the best."""
        core = core.astype(np.int64)
        if check_mapping(self._problem, core):
            sys.exit("no feasible mapping")
        cost = cost_of(self._problem, core)
        if cost >= self.cost:
            return False
        self.best, self.cost = core, cost
        self.found.append((self.worked(), cost, move))
        return True


def one_run(
    problem: MappingProblem, engine: Any, seed: int, seconds: float, workers: int
) -> tuple[float, float]:
    """Final cost and seconds of one search; prints its improvements."""
    context = Context(problem, seed, seconds, workers)
    engine.run(problem, context)
    total = context.worked()
    for at, cost, move in context.found:
        print(f"  {at:8.2f} s  {cost:>14,.0f}  {move}")
    return context.cost, total


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
    parser.add_argument("--engine", default="multilevel")
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    rows, cols = (int(v) for v in args.mesh.split("x"))
    graph, machine = load_graph(args.instance), Machine(f"mesh:{args.mesh}", (1, 1), (rows, cols))
    problem = MappingProblem(graph, machine, node_limit=default_node_limit(graph, machine, args.balance))
    tiny = MappingProblem(LogicGraph.from_edges(40, range(39), range(1, 40)), machine, node_limit=5)
    engine = REGISTRY[args.engine].make()
    engine.run(tiny, Context(tiny, 0, 0.5, 1))  # compiles the kernels
    results = []
    for seed in range(1, args.seeds + 1):
        cost, total = one_run(problem, engine, seed, args.seconds, args.workers)
        results.append(cost)
        print(f"seed {seed}: {cost:,.0f} in {total:.2f} s")
    print(f"mean {np.mean(results):,.0f}  best {min(results):,.0f}  worst {max(results):,.0f}")


if __name__ == "__main__":
    main()
