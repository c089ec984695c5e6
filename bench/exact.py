"""Exact engines alone: CPU seconds to the proof, or the bound reached.

Usage: python bench/exact.py [--limit SECONDS] [--engines a,b] [GRAPH ...]

Graphs given are added to the small instances of ``figures.py`` and to random networks with several nodes per core; they must
name their mesh.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from figures import instance

from nmsolve.hw.machines import load_machine
from nmsolve.model.formats import load_graph
from nmsolve.model.generators import generate
from nmsolve.model.graph import LogicGraph
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.migration import Migration
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
#: Communities on cores that hold several nodes: name of the row, nodes, nodes of a community, density between communities, mesh,
#: nodes per core, objective. Density inside is 0.7, weights are 1 to 9.
COMMUNITIES = (
    ("12 nodes on 2x3, two per core", 12, 4, 0.15, "mesh:2x3", 2, "hops"),
    ("16 nodes on 2x2, four per core", 16, 4, 0.15, "mesh:2x2", 4, "hops"),
    ("20 nodes on 2x2, five per core", 20, 5, 0.15, "mesh:2x2", 5, "hops"),
    ("18 nodes on 3x3, two per core", 18, 2, 0.15, "mesh:3x3", 2, "hops"),
    ("cut of 24 nodes into 4 parts of at most 7", 24, 6, 0.15, "mesh:1x4", 7, "cut"),
    ("cut of 28 nodes into 2 parts of at most 15", 28, 14, 0.2, "mesh:1x2", 15, "cut"),
)


def communities(n: int, size: int, between: float) -> LogicGraph:
    """Undirected communities of ``size`` nodes."""
    rng, (a, b) = np.random.default_rng(0), np.triu_indices(n, 1)
    kept = rng.random(len(a)) < np.where(a // size == b // size, 0.7, between)
    weights = rng.integers(1, 10, kept.sum()).astype(float)
    return LogicGraph.from_edges(n, a[kept], b[kept], weights, directed=False)


def messages(n: int) -> LogicGraph:
    """Every node sends one multicast message to three others."""
    rng = np.random.default_rng(0)
    others = [rng.choice(np.delete(np.arange(n), u), 3, replace=False) for u in range(n)]
    rates = rng.integers(1, 9, 3 * n).astype(float)
    return LogicGraph.from_edges(
        n, np.repeat(np.arange(n), 3), np.concatenate(others), rates, multicast=np.ones(n, bool)
    )


def pinned() -> Iterator[tuple[str, MappingProblem]]:
    """Yield 64 nodes on 8x8 cores of which most are pinned to random ones, or all but two stay there, each with its name."""
    graph, machine = generate("mesh-geo", nodes=64, seed=3), load_machine("mesh:8x8")
    core = np.random.default_rng(0).permutation(64).tolist()
    pins = tuple(SideConstraint(f"p{u}", "pin", nodes=(u,), cores=(core[u],)) for u in range(64))
    for many in (64, 56, 48, 32):
        yield f"64 nodes on 8x8, {many} pinned", MappingProblem(graph, machine, "hops", pins[:many], 1)
    yield (
        "64 nodes on 8x8, two may move",
        MappingProblem(graph, machine, "hops", (), 1, Migration.of(core, 2)),
    )


def several() -> Iterator[tuple[str, MappingProblem]]:
    """Yield problems whose cores hold several nodes, each with its name."""
    for name, n, size, between, mesh, most, objective in COMMUNITIES:
        graph = communities(n, size, between)
        yield name, MappingProblem(graph, load_machine(mesh), objective, node_limit=most)
    board = load_machine("mesh:2x2")
    yield (
        "8 nodes on 2x2, messages by their trees",
        MappingProblem(messages(8), board, "multicast-hops", node_limit=3),
    )


def cell(problem: MappingProblem, engine: str, limit: float) -> str:
    """What one engine alone makes of a problem: CPU seconds if proved, else bound and best mapping."""
    if make_engine(engine).refuses(problem) is not None:
        return "refuses"
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
            row(
                f"{path.stem} on {machine.name}",
                MappingProblem(graph, machine, node_limit=per_core),
                engines,
                options.limit,
            )
        for name, problem in (*several(), *pinned()):
            row(name, problem, engines, options.limit)


def row(name: str, problem: MappingProblem, engines: list[str], limit: float) -> None:
    """Print one line of the table."""
    cells = [cell(problem, engine, limit) for engine in engines]
    print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
