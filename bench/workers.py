"""What a second worker is worth: wall seconds of reading a store, of clustering and of refinement with one and two threads.

python bench/workers.py NET.nmz [--cores 16x16]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from nmsolve.heuristics.mapping.external.anneal import Run
from nmsolve.heuristics.mapping.external.build import finest, symmetric
from nmsolve.heuristics.mapping.external.clustering import cluster
from nmsolve.heuristics.mapping.external.engine import cores_of
from nmsolve.heuristics.mapping.external.lawful import placed, scattered
from nmsolve.heuristics.mapping.external.sweep import Crew
from nmsolve.heuristics.mapping.multilevel.schedule import Budget
from nmsolve.heuristics.rng import new_rng
from nmsolve.hw.machines import load_machine
from nmsolve.model.store import open_graph
from nmsolve.solvers.mapping.api import make_problem

TIMES, SWEEPS = 3, 4


def seconds(work: Callable[[], object]) -> float:
    """Least wall seconds of :data:`TIMES` calls after a first one, which may compile."""
    work()
    took = []
    for _ in range(TIMES):
        begin = time.perf_counter()
        work()
        took.append(time.perf_counter() - begin)
    return min(took)


def phases(path: str, cores: str, workers: int) -> dict[str, float]:
    """Wall seconds of every phase."""
    graph = open_graph(path)
    problem = make_problem(graph, load_machine(f"mesh:{cores}"), balance=0.03)
    with ThreadPoolExecutor(workers) as pool:
        crew = Crew(workers, pool if workers > 1 else None, lambda: False)
        budget = Budget(1e18, lambda: False, lambda: 0.0)
        lines = Run(cores_of(problem), False, crew, budget, new_rng(1))
        cut = Run(cores_of(replace(problem, objective="cut")), True, crew, budget, new_rng(1))
        level = finest(problem, symmetric(graph, crew))
        limit = 20.0 * float(level.volume.mean())

        def refine(run: Run) -> None:
            s = placed(level, scattered(level, run.cores.allowed), run)
            for _ in range(SWEEPS):
                run.sweep(level, s, 0.2 * run.unit(level))

        return {
            "read the store": seconds(lambda: sum(len(b.targets) for b in graph.blocks(workers))),
            "sort by node": seconds(lambda: symmetric(graph, crew)),
            "cluster": seconds(lambda: cluster(level, limit, 1, crew)),
            "refine hops": seconds(lambda: refine(lines)),
            "refine the cut": seconds(lambda: refine(cut)),
        }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("net")
    parser.add_argument("--cores", default="16x16")
    a = parser.parse_args()
    one, two = phases(a.net, a.cores, 1), phases(a.net, a.cores, 2)
    print("| phase | 1 worker s | 2 workers s | times as fast |\n|---|---|---|---|")
    for name, alone in one.items():
        print(f"| {name} | {alone:.2f} | {two[name]:.2f} | {alone / two[name]:.2f} |")
    whole = np.array([[one[n], two[n]] for n in one]).sum(axis=0)
    print(f"| all | {whole[0]:.2f} | {whole[1]:.2f} | {whole[0] / whole[1]:.2f} |")


if __name__ == "__main__":
    main()
