"""Hierarchies of machines: the search beside SharedMap (chszlablib), both in CPU seconds, losses included.

    python bench/hierarchies.py --peers-python PATH [--trees 4:8:2,4:8:6] [--seconds 5,10] [--seeds 1,2,3] [--only delaunay,...]

Graphs of 2^15 nodes, 3 % balance, distances 1:10:100. PATH is a Python with numpy and chszlablib (pip install
chszlablib==0.5.27). SharedMap (strong, one thread) runs as long as it wants; the engine `multilevel`, one worker, gets
SECONDS of the search alone (graph in memory, kernels compiled before). Medians of the seeds, hops counted once per edge.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path
from statistics import median

import numpy as np
from mapper_many import Context
from sparse import box, delaunay, geometric, windows

from nmsolve.hw.machines import load_machine
from nmsolve.hw.scores import objective_value
from nmsolve.model import clock
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.api import make_problem
from nmsolve.solvers.mapping.registry import REGISTRY

GRAPHS = {
    "delaunay": lambda: delaunay(2**15, 941),
    "geometric": lambda: geometric(2**15, 941),
    "box": lambda: box(32),
    "windows": lambda: windows(20, 40),
}
DISTANCES = "1:10:100"
PEER = """
import sys, time
import numpy as np
from chszlablib import Decomposition, Graph
z = np.load(sys.argv[1])
ones = np.ones(len(z["indptr"]) - 1, np.int64)
g = Graph.from_csr(z["indptr"], z["indices"].astype(np.int32), node_weights=ones, edge_weights=z["weights"])
begun = time.process_time()
found = Decomposition.process_map(
    g, hierarchy=[int(x) for x in sys.argv[2].split(":")], distance=[int(x) for x in sys.argv[3].split(":")],
    mode="strong", imbalance=0.03, threads=1, seed=int(sys.argv[4]),
)
print(time.process_time() - begun)
np.save(sys.argv[5], np.asarray(found.assignment))
"""


class Run(Context):
    """A run whose mappings are scored by the evaluator."""

    def offer(self, core: IntArray, move: str = "") -> bool:
        """Take a mapping if it is the best."""
        cost = objective_value(self._problem, core.astype(np.int64))
        if cost < self.cost:
            self.best, self.cost = core.astype(np.int64), cost
        return self.cost == cost


def peer(python: str, problem: MappingProblem, tree: str, seed: int) -> tuple[float, float]:
    """SharedMap's hops and its CPU seconds."""
    with tempfile.TemporaryDirectory() as folder:
        graph, out = Path(folder) / "graph.npz", Path(folder) / "core.npy"
        indptr, indices, weights = problem.graph.traffic
        np.savez(graph, indptr=indptr, indices=indices, weights=np.rint(weights).astype(np.int64))
        command = [python, "-c", PEER, str(graph), tree, DISTANCES, str(seed), str(out)]
        used = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])
        return objective_value(problem, np.load(out).astype(np.int64)), used


def ours(problem: MappingProblem, seed: int, seconds: float) -> float:
    """Hops after so many CPU seconds."""
    context = Run(problem, seed, seconds, 1)
    REGISTRY["multilevel"].make().run(problem, context)
    return context.cost


def main() -> None:
    """Print the table, row by row."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers-python", required=True)
    parser.add_argument("--trees", default="4:8:2,4:8:6")
    parser.add_argument("--seconds", default="5,10")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--only", default=",".join(GRAPHS))
    a = parser.parse_args()
    clock.count_cpu()
    seconds, seeds = [float(s) for s in a.seconds.split(",")], [int(s) for s in a.seeds.split(",")]
    ours(make_problem(delaunay(2000, 1), load_machine("tree:4:8:2,1:10:100"), balance=0.03), 1, 1.0)
    print(
        "| graph | tree | SharedMap strong (CPU s) | "
        + " | ".join(f"{s:g} s | ratio" for s in seconds)
        + " |"
    )
    for name in a.only.split(","):
        graph = GRAPHS[name]()
        for tree in a.trees.split(","):
            problem = make_problem(graph, load_machine(f"tree:{tree},{DISTANCES}"), balance=0.03)
            found = [peer(a.peers_python, problem, tree, seed) for seed in seeds]
            best, used = (median(one[k] for one in found) for k in (0, 1))
            cells = []
            for limit in seconds:
                value = median(ours(problem, seed, limit) for seed in seeds)
                cells.append(f"{value:,.0f} | {value / best:.3f}")
            print(f"| {name} | {tree} | {best:,.0f} ({used:.1f}) | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
