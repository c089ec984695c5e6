"""Automatic mode beside each of its engines alone at equal time: bound and objective, and how far it is behind the best.

Usage: OPENBLAS_NUM_THREADS=1 python bench/auto.py [--limits 3,10] [--only WORD,WORD] [--kept FILE]

Compile the kernels first (``make warm``). Every run has a process of its own, one thread, and a clock that counts its CPU
seconds, so that other work on the machine costs nothing; networks of up to 40 nodes, where exact engines work in
children, are measured by wall time. Behind: (best bound - bound) / best bound, (objective - best) / best; what is below
zero is ahead.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from sparse import box, delaunay, geometric, random_graph, small_world, windows

from nmsolve.hw.machines import load_machine
from nmsolve.model import clock
from nmsolve.model.generators import generate
from nmsolve.model.graph import LogicGraph
from nmsolve.model.mapping.problem import MappingProblem, default_node_limit
from nmsolve.solvers.mapping.api import solve
from nmsolve.solvers.mapping.auto import EXACT_CORES, EXACT_NODES
from nmsolve.solvers.mapping.registry import REGISTRY, make_engine

#: Engines that are there to compare with, to fall back on, or for graphs of other sizes.
OTHERS = (
    "first-fit",
    "external",
    "m2",
    "communities",
    "simple-annealing",
    "genetic",
    "ant-colony",
    "particle-swarm",
    "mip",
)
#: From this many nodes on one of them is beside the others.
LARGE, OF_LARGE = 20_000, "external"
#: More than this part behind is a loss.
LOSS = 0.02


def snn(nodes: int, synapses: int, layers: int = 4, directed: int = 1) -> Callable[[], LogicGraph]:
    """A layered spiking network; its neurons multicast where it is directed."""
    return lambda: generate(
        "snn", nodes=nodes, synapses=synapses, layers=layers, directed=directed, sigma=0.2
    )


def mesh(kind: str, nodes: int) -> Callable[[], LogicGraph]:
    """A network of the suite ``mesh``."""
    return lambda: generate(f"mesh-{kind}", nodes=nodes)


@dataclass(frozen=True)
class Case:
    """An instance: ``room`` is the most nodes on a core (0: what a balance of 0.03 gives)."""

    name: str
    graph: Callable[[], LogicGraph]
    board: str
    objective: str = "hops"
    room: int = 0

    def problem(self) -> MappingProblem:
        """The instance as a problem."""
        graph, machine = self.graph(), load_machine(self.board)
        limit = self.room or default_node_limit(graph, machine, 0.03)
        return MappingProblem(graph, machine, self.objective, node_limit=limit)


CASES = (
    Case("comm-16", mesh("comm", 16), "mesh:4x4", room=1),
    Case("snn-36", snn(36, 400), "mesh:3x3", "connectivity", 5),
    Case("snn-64-connectivity", snn(64, 600), "mesh:4x4", "connectivity"),
    Case("snn-64-multicast", snn(64, 600), "mesh:4x4", "multicast-hops"),
    Case("snn-64-cut", snn(64, 600), "mesh:4x4", "cut"),
    Case("snn-64-hops", snn(64, 600), "mesh:4x4"),
    Case("comm-64", mesh("comm", 64), "mesh:8x8", room=1),
    Case("layered-100", mesh("layered", 100), "mesh:10x10", room=1),
    Case("comm-64-multicast", mesh("comm", 64), "mesh:8x8", "multicast-hops", 1),
    Case("comm-256", mesh("comm", 256), "mesh:16x16", room=1),
    Case("layered-1000", mesh("layered", 1000), "mesh:32x32", room=1),
    Case("snn-500-multicast", snn(500, 10_000), "mesh:4x4", "multicast-hops"),
    Case("snn-2000-hops", snn(2000, 60_000, 8, 0), "mesh:4x4"),
    Case("snn-2000-cut", snn(2000, 60_000, 8, 0), "mesh:4x4", "cut"),
    Case("snn-2000-multicast", snn(2000, 60_000, 8), "mesh:4x4", "multicast-hops"),
    Case("snn-2000-connectivity", snn(2000, 60_000, 8), "mesh:8x8", "connectivity"),
    Case("delaunay-30000", partial(delaunay, 30_000), "mesh:8x8"),
    Case("delaunay-200000", partial(delaunay, 200_000), "mesh:8x8"),
    Case("geometric-32768", partial(geometric, 2**15), "mesh:8x8"),
    Case("geometric-32768-cut", partial(geometric, 2**15), "mesh:8x8", "cut"),
    Case("box-40", partial(box, 40), "mesh:8x8"),
    Case("windows-20x40x40", partial(windows, 20, 40), "mesh:8x8"),
    Case("small-world-30000", partial(small_world, 30_000, 8), "mesh:8x8"),
    Case("random-20000", partial(random_graph, 20_000, 4), "mesh:8x8"),
)


class Reached(NamedTuple):
    """What a run ended with (None: nothing)."""

    objective: float | None
    bound: float | None


def _run(problem: MappingProblem, engines: Sequence[str] | None, seconds: float, pipe: Connection) -> None:
    """One run, in a process of its own."""
    if not small(problem):
        clock.count_cpu()
    result = solve(problem, time_limit=seconds, engines=engines, seed=1)
    pipe.send(Reached(result.objective, result.bound))


def small(problem: MappingProblem) -> bool:
    """Exact engines have a chance."""
    return problem.n <= EXACT_NODES and problem.cores <= EXACT_CORES


def run(problem: MappingProblem, engines: Sequence[str] | None, seconds: float) -> Reached:
    """Automatic mode, or the named engines, on a problem."""
    here, there = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(
        target=_run, args=(problem, engines, seconds, there)
    )
    process.start()
    there.close()
    found = here.recv()
    process.join()
    return found


def alone(problem: MappingProblem) -> list[str]:
    """The engines that take the problem."""
    exact = small(problem)
    names = [k for k in REGISTRY if k not in OTHERS or (k == OF_LARGE and problem.n >= LARGE)]
    engines = [make_engine(name) for name in names]
    return [e.name for e in engines if e.refuses(problem) is None and (exact or not REGISTRY[e.name].child)]


def behind(case: Case, seconds: float, kept: dict[str, Reached]) -> tuple[str, float]:
    """A row of the table, and by how much automatic mode is behind in it."""
    problem = case.problem()
    for name in alone(problem):
        key = f"{case.name} {seconds:g} {name}"
        if key not in kept:
            kept[key] = run(problem, [name], seconds)
    singles = {name: kept[f"{case.name} {seconds:g} {name}"] for name in alone(problem)}
    bounds = {name: r.bound for name, r in singles.items() if r.bound is not None}
    costs = {name: r.objective for name, r in singles.items() if r.objective is not None}
    prover, finder = max(bounds, key=bounds.__getitem__), min(costs, key=costs.__getitem__)
    auto = run(problem, None, seconds)
    low = (bounds[prover] - (auto.bound or 0.0)) / bounds[prover] if bounds[prover] > 0 else 0.0
    high = (auto.objective - costs[finder]) / costs[finder] if auto.objective is not None else 1.0
    row = (
        f"| {case.name} | {seconds:g} | {auto.bound or 0.0:,.0f} | {prover} {bounds[prover]:,.0f} | {low:.1%} "
        f"| {auto.objective or 0.0:,.0f} | {finder} {costs[finder]:,.0f} | {high:.1%} |"
    )
    return row, max(low, high)


def main() -> None:
    """Print the table, and how many rows are lost."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--limits", default="3,10", help="CPU seconds of every run, comma-separated")
    parser.add_argument("--only", default="", help="instances whose names hold one of these words")
    parser.add_argument("--kept", type=Path, help="JSON file that keeps what the engines alone reached")
    args = parser.parse_args()
    kept: dict[str, Reached] = {}
    if args.kept and args.kept.exists():
        kept = {key: Reached(*value) for key, value in json.loads(args.kept.read_text()).items()}
    print("| instance | CPU s | bound | best alone | behind | objective | best alone | behind |")
    print("|---|---|---|---|---|---|---|---|")
    losses = []
    for seconds in (float(part) for part in args.limits.split(",")):
        for case in CASES:
            if any(word in case.name for word in args.only.split(",")):
                row, worst = behind(case, seconds, kept)
                losses += [f"{case.name} {seconds:g} s"] * (worst > LOSS)
                print(row, flush=True)
                if args.kept:
                    args.kept.write_text(json.dumps(kept, indent=1))
    print(f"\nMore than {LOSS:.0%} behind: {', '.join(losses) or 'none'}.")


if __name__ == "__main__":
    main()
