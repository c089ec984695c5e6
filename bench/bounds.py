"""Bounds alone: value, share of the best cost known, CPU seconds to find and to re-check; a Markdown table.

Usage: OPENBLAS_NUM_THREADS=1 python bench/bounds.py [--seconds 20] [--only NAME]

Compile the kernels first (``make warm``). Share is of the best mapping known (QAPLIB, docs/peers.md); a bound's own
gap is at most what is missing to 100 %.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from nmsolve.hw.machines import load_machine
from nmsolve.model.bound import Bound
from nmsolve.model.formats import load_instance
from nmsolve.model.generators import generate
from nmsolve.model.generators.mesh import communities, random_targets
from nmsolve.model.graph import LogicGraph
from nmsolve.model.mapping.problem import MappingProblem, default_node_limit
from nmsolve.solvers.mapping.bounds.gilmore_lawler import gilmore_lawler_bound, refuses_gilmore_lawler
from nmsolve.solvers.mapping.bounds.joint import joint_bounds, refuses_joint
from nmsolve.solvers.mapping.bounds.pairs import refuses_pairs
from nmsolve.solvers.mapping.bounds.projection import projection_bounds, refuses_projection
from nmsolve.solvers.mapping.bounds.star import star_bound
from nmsolve.solvers.mapping.certificates import check_bound

HERE = Path(__file__).parent / "instances"
#: Name, how to get the graph, mesh, balance, best cost known.
INSTANCES: tuple[tuple[str, Callable[[], LogicGraph], str, float, float], ...] = (
    ("nug12", lambda: load_instance(HERE / "nug12.dat")[0], "mesh:3x4", 0.0, 578),
    ("sko100a", lambda: load_instance(HERE / "sko100a.dat")[0], "mesh:10x10", 0.0, 152002),
    ("comm-256", lambda: communities(256, seed=0), "mesh:16x16", 0.0, 18594),
    ("comm-1024", lambda: communities(1024, seed=0), "mesh:32x32", 0.0, 79448),
    ("rnd-1000", lambda: random_targets(1000, side=32, seed=1), "mesh:32x32", 0.0, 131790),
    ("q256", lambda: load_instance(HERE / "q256.graph")[0], "mesh:16x16", 0.0, 89e6),
    ("q1024", lambda: load_instance(HERE / "q1024.graph")[0], "mesh:32x32", 0.0, 188e6),
    ("delaunay_n15", lambda: load_instance(HERE / "delaunay_n15.graph")[0], "mesh:8x8", 0.03, 5600),
    ("snn20k", lambda: generate("snn"), "mesh:8x8", 0.03, 5.10e6),
)


def found(problem: MappingProblem, stop: Callable[[], bool], seconds: float) -> Iterator[Bound]:
    """The bounds that take the problem, in rising order of cost."""
    if refuses_pairs(problem) is None:
        yield star_bound(problem, stop)
    if refuses_gilmore_lawler(problem) is None:
        yield gilmore_lawler_bound(problem, stop)
    if refuses_projection(problem) is None:
        yield list(projection_bounds(problem, lambda: np.inf, 300, stop))[-1]
    if refuses_joint(problem) is None and not problem.one_per_core:
        yield from list(joint_bounds(problem, lambda: np.inf, 200, stop, seconds=seconds))[-1:]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=20.0, help="CPU seconds at most for each bound")
    parser.add_argument("--only", default="", help="instances whose names hold this")
    args = parser.parse_args()
    print("| instance | bound | value | of best known | find, CPU s | re-check, CPU s |")
    print("|---|---|---|---|---|---|")
    for name, graph, mesh, balance, best in INSTANCES:
        if args.only not in name:
            continue
        g, machine = graph(), load_machine(mesh)
        problem = MappingProblem(g, machine, node_limit=default_node_limit(g, machine, balance))
        start = time.process_time()

        def stop() -> bool:
            return time.process_time() - start > args.seconds  # noqa: B023

        for bound in found(problem, stop, args.seconds):
            spent, start = time.process_time() - start, time.process_time()
            check = check_bound(problem, bound)
            checked, start = time.process_time() - start, time.process_time()
            verdict = f"{checked:.2f}" if check.ok else f"REFUSED: {check.text}"
            row = (
                name,
                bound.method,
                f"{bound.value:,.0f}",
                f"{bound.value / best:.1%}",
                f"{spent:.2f}",
                verdict,
            )
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
