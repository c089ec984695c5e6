"""What retrieval is worth: a network that has changed, with and without a store of solved runs; the table of docs/learning.md.

``python bench/memory.py [--sizes 256,1024] [--kinds geo,comm,layered] [--cases edges,...] [--seconds 5] [--graphs 3]`` solves a
network with ``--store`` times the time, keeps it, changes it, and solves the changed one from scratch in time T, and with the
store in T/5 and T/20. Printed are the means of the ratios to scratch: below 1 the quality of scratch was reached.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

import numpy as np

from nmsolve.hw.machines import load_machine
from nmsolve.model.generators import generate
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.solvers.mapping.api import make_problem, solve


def changed(graph: LogicGraph, case: str, seed: int) -> LogicGraph:
    """Return the graph with the change that ``case`` names: ``edges``, ``few-edges``, ``weights``, ``nodes`` or ``same``;
    unless it is ``weights-known``, the nodes are numbered anew at random.

    ``edges`` : a tenth of the edges go elsewhere, with their weights; ``few-edges`` : 2 %; ``nodes`` : a twentieth of the nodes
    get other neighbours; ``weights`` : factors exp(N(0, 0.3)), rounded to at least 1
    """
    rng = np.random.default_rng(seed)
    source, target = graph.edge_source.astype(np.int64), graph.targets.astype(np.int64)
    weight, m = graph.weights.copy(), graph.m
    if case in ("edges", "few-edges"):
        gone = rng.random(m) < (0.1 if case == "edges" else 0.02)
        source, target = source.copy(), target.copy()
        source[gone], target[gone] = (
            rng.integers(0, graph.n, gone.sum()),
            rng.integers(0, graph.n, gone.sum()),
        )
    if case == "nodes":
        new = np.flatnonzero(rng.random(graph.n) < 0.05)
        other = np.arange(graph.n)
        other[new] = rng.permutation(new)
        source = other[source]
    if case in ("weights", "weights-known"):
        weight = np.maximum(1.0, np.rint(weight * np.exp(rng.normal(0, 0.3, m))))
    number = np.arange(graph.n) if case == "weights-known" else rng.permutation(graph.n)
    return LogicGraph.from_edges(graph.n, number[source], number[target], weight, name=graph.name)


def machine_for(nodes: int) -> Machine:
    """Return the smallest square mesh with a core for every node."""
    side = int(np.ceil(nodes**0.5))
    return load_machine(f"mesh:{side}x{side}")


def main() -> None:
    """Print the table, a line per family, size and case."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="256,1024")
    parser.add_argument("--kinds", default="geo,comm,layered")
    parser.add_argument("--cases", default="edges")
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="T at 256 nodes; it grows with the square root of the size"
    )
    parser.add_argument("--store", type=float, default=2.0, help="seconds for the run that is kept, in T")
    parser.add_argument("--graphs", type=int, default=3)
    a = parser.parse_args()
    print(
        "| family | nodes | case | T (s) | T/5 with the store | T/20 with the store | T/5 from scratch |\n|---|---|---|---|---|---|---|"
    )
    total = []
    for kind in a.kinds.split(","):
        for n in map(int, a.sizes.split(",")):
            for case in a.cases.split(","):
                limit = a.seconds * (n / 256) ** 0.5
                rows = [
                    ratios(kind, n, case, seed, limit, a.store * limit) for seed in range(100, 100 + a.graphs)
                ]
                total += rows
                cells = " | ".join(f"{x:.3f}" for x in np.mean(rows, axis=0))
                print(f"| {kind} | {n} | {case} | {limit:.3g} | {cells} |", flush=True)
    print("| mean | | | | " + " | ".join(f"{x:.3f}" for x in np.mean(total, axis=0)) + " |")


def ratios(kind: str, n: int, case: str, seed: int, limit: float, store: float) -> list[float]:
    """Return the objectives with the store in T/5 and T/20, and from scratch in T/5, relative to scratch in T."""
    graph, machine = generate(f"mesh-{kind}", nodes=n, seed=seed), machine_for(n)
    new = make_problem(changed(graph, case, seed), machine)
    with tempfile.TemporaryDirectory() as folder:
        kept, copy = Path(folder) / "kept.sqlite", Path(folder) / "copy.sqlite"
        solve(make_problem(graph, machine), time_limit=store, memory_of=kept, seed=seed)
        found = []
        for part in (5, 20):
            shutil.copy(kept, copy)
            found.append(solve(new, time_limit=limit / part, memory_of=copy, seed=seed + 1).objective)
    scratch = solve(new, time_limit=limit, seed=seed + 1).objective
    found.append(solve(new, time_limit=limit / 5, seed=seed + 1).objective)
    assert scratch is not None
    return [float(x) / scratch if x is not None else np.inf for x in found]


if __name__ == "__main__":
    main()
