"""Exact engines alone: CPU seconds to the proof, or the bound reached.

Usage: python bench/exact.py [--limit SECONDS] [--engines a,b] [GRAPH ...]

Graphs given are added to the small instances of ``figures.py``; they must name their mesh.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from figures import instance

from nmsolve.hw.machines import load_machine
from nmsolve.model.formats import load_graph
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.api import solve
from nmsolve.solvers.mapping.registry import make_engine

#: Instance, mesh or None for the one in the file, nodes per core.
INSTANCES: tuple[tuple[str, str | None, int], ...] = (
    ("nug9.json", None, 1),
    ("comm12.json", None, 1),
    ("joint8.json", "mesh:2x2", 2),
    ("nug12.dat", None, 1),
)


def cell(problem: MappingProblem, engine: str, limit: float) -> str:
    """What one engine alone makes of a problem: CPU seconds if proved, else bound and best mapping."""
    if make_engine(engine).refuses(problem) is not None:
        return "–"
    result = solve(problem, time_limit=limit, engines=[engine], seed=1)
    if result.status == "optimal":
        return f"**{result.objective:g} in {result.cpu_seconds:.1f} s**"
    best = "no mapping" if result.objective is None else f"{result.objective:g}"
    return f"{result.bound or 0:g} ≤ {best}, {result.cpu_seconds:.0f} s"


def main() -> None:
    """Print one Markdown row per instance, one column per engine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=60.0, help="wall seconds for each run")
    parser.add_argument("--engines", default="branch-bound,cpsat,mip")
    parser.add_argument("graphs", nargs="*", type=Path)
    options = parser.parse_args()
    engines = options.engines.split(",")
    print("| instance | " + " | ".join(engines) + " |\n|" + "---|" * (1 + len(engines)))
    with tempfile.TemporaryDirectory() as folder:
        cases = [(instance(name, Path(folder)), mesh, limit) for name, mesh, limit in INSTANCES]
        for path, mesh, per_core in cases + [(path, None, 1) for path in options.graphs]:
            graph = load_graph(path)
            shape = "x".join(str(k) for k in graph.meta.get("mesh", ()))  # type: ignore[attr-defined]
            machine = load_machine(mesh or f"mesh:{shape}")
            problem = MappingProblem(graph, machine, node_limit=per_core)
            cells = [cell(problem, engine, options.limit) for engine in engines]
            print(f"| {path.stem} on {machine.name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
