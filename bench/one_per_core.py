"""One node per core beside rig's annealer at equal CPU time: families of graphs, sizes, seeds and limits, losses included.

    python bench/one_per_core.py --peers-python PATH [--families geo,layered,rnd,comm] [--nodes 1000,4000]
        [--seconds 5,20] [--seeds 701]

PATH is a Python with numpy, rig and rig_c_sa. rig gets what serves it best: a short run tells its speed, a second run has the
effort that fills the time, and while at least half of such a run is left it runs again; the best run counts, and only
its own call is timed. nmsolve runs once through the command line with the seconds as its limit, and everything it does counts.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import tempfile
from pathlib import Path
from statistics import fmean

import numpy as np
from figures import NMSOLVE, ONE_THREAD
from peers import whole_weights

from nmsolve.hw.scores import objective_value
from nmsolve.kinds.loading import instance as load
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.solvers.mapping.api import make_problem

#: Effort of rig's first run for 1,000 nodes; its work grows with nodes to the power of 4/3.
FIRST = 0.1


def rig(python: str, problem: MappingProblem, budget: float, folder: Path) -> tuple[float, float, int]:
    """Return the best value of rig's runs, their CPU seconds and their number."""
    graph, out = folder / "graph.npz", folder / "core.npy"
    indptr, indices, weights = whole_weights(problem)
    np.savez(graph, indptr=indptr, indices=indices, weights=weights)
    effort, best, spent, runs, last = FIRST * (1000 / problem.n) ** (4 / 3), np.inf, 0.0, 0, 0.0
    while runs < 2 or budget - spent > last / 2:
        worker = Path(__file__).with_name("peer_worker.py")
        size = problem.machine.rows, problem.machine.cols
        command = [python, "-W", "ignore", worker, "rig", graph, *size, 0.0, runs + 1, out, effort]
        done = subprocess.run(
            list(map(str, command)), capture_output=True, text=True, check=True, env=os.environ | ONE_THREAD
        )
        last = max(float(done.stdout.split()[-1]), 1e-3)
        core = np.load(out)
        assert not check_mapping(problem, core)
        best, spent, runs = min(best, objective_value(problem, core)), spent + last, runs + 1
        effort = effort * (budget - spent) / last if runs == 1 else effort
    return best, spent, runs


def nmsolve(graph: Path, seconds: float, folder: Path) -> tuple[float, float]:
    """Return the objective of one run through the command line, and its CPU seconds."""
    out = folder / "out"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [NMSOLVE, "map", graph, "--time-limit", seconds, "--seed", 1, "--out", out]
    subprocess.run(list(map(str, command)), check=True, capture_output=True, env=os.environ | ONE_THREAD)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return float(json.loads((out / "report.json").read_text())["objective"]), cpu


def main() -> None:
    """Print the table row by row, and the mean ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers-python", required=True)
    parser.add_argument("--families", default="geo,layered,rnd,comm")
    parser.add_argument("--nodes", default="1000,4000")
    parser.add_argument("--seconds", default="5,20")
    parser.add_argument("--seeds", default="701")
    a = parser.parse_args()
    print("| graph | CPU s each | nmsolve | rig | nmsolve / rig |\n|---|---|---|---|---|", flush=True)
    ratios = []
    with tempfile.TemporaryDirectory(prefix="nmsolve-bench-") as name:
        folder = Path(name)
        for nodes in a.nodes.split(","):
            for family in a.families.split(","):
                for seed in a.seeds.split(","):
                    path = folder / f"{family}-{nodes}-{seed}.json"
                    make = [
                        NMSOLVE,
                        "generate",
                        f"mesh-{family}",
                        "--nodes",
                        nodes,
                        "--seed",
                        seed,
                        "--out",
                        path,
                    ]
                    subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
                    problem = make_problem(*load(path, None, None))
                    for seconds in map(float, a.seconds.split(",")):
                        ours, cpu = nmsolve(path, seconds, folder)
                        theirs, spent, runs = rig(a.peers_python, problem, seconds, folder)
                        ratios.append(ours / theirs)
                        rivals = f"{ours:,.6g} ({cpu:.1f} s) | {theirs:,.6g} ({runs} runs, {spent:.1f} s)"
                        print(f"| {path.stem} | {seconds:g} | {rivals} | {ours / theirs:.3f} |", flush=True)
    print(f"\nmean ratio {fmean(ratios):.3f}, worst {max(ratios):.3f}")


if __name__ == "__main__":
    main()
