"""The engines for many nodes per core side by side, on networks that separate and on some that do not: the whole command counts.

    python bench/separable.py [--only WORD,WORD] [--engines deep,multilevel,external] [--limits 3,10] [--seeds 3] [--workers 1]

Prints a Markdown table: for every network, objective and limit the median of the seeds by engine, and what automatic mode takes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.spatial import Delaunay, cKDTree

from nmsolve.model.formats import writer
from nmsolve.model.graph import LogicGraph


def _graph(n: int, pairs: np.ndarray) -> LogicGraph:
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    return LogicGraph.from_edges(n, pairs[:, 0], pairs[:, 1], directed=False)


def delaunay(n: int) -> LogicGraph:
    """Random points of the unit square."""
    corners = Delaunay(np.random.default_rng(n).random((n, 2))).simplices
    return _graph(n, np.concatenate([corners[:, :2], corners[:, 1:], corners[:, ::2]]))


def geometric(n: int) -> LogicGraph:
    """The same, with edges up to 0.55 sqrt(log n / n)."""
    points = np.random.default_rng(n).random((n, 2))
    return _graph(n, cKDTree(points).query_pairs(0.55 * np.sqrt(np.log(n) / n), output_type="ndarray"))


def box(side: int) -> LogicGraph:
    """A grid in three dimensions, its nodes numbered at random."""
    at = np.random.default_rng(side).permutation(side**3).reshape(side, side, side)
    ends = [
        np.stack([np.moveaxis(at, k, 0)[:-1].ravel(), np.moveaxis(at, k, 0)[1:].ravel()], axis=1)
        for k in range(3)
    ]
    return _graph(side**3, np.concatenate(ends))


def windows(layers: int, side: int) -> LogicGraph:
    """Layers of side by side nodes; each talks to three by three of the next layer."""
    at = np.arange(layers * side * side).reshape(layers, side, side)
    pairs = []
    for down in (-1, 0, 1):
        for right in (-1, 0, 1):
            rows, cols = (
                slice(max(0, -down), side - max(0, down)),
                slice(max(0, -right), side - max(0, right)),
            )
            to = at[1:, max(0, down) : side + min(0, down), max(0, right) : side + min(0, right)]
            pairs.append(np.stack([at[:-1, rows, cols].ravel(), to.ravel()], axis=1))
    return _graph(layers * side * side, np.concatenate(pairs))


def small_world(n: int, near: int) -> LogicGraph:
    """A ring in which a tenth of the edges lead anywhere."""
    rng = np.random.default_rng(n)
    a = np.repeat(np.arange(n), near)
    b = (a + np.tile(np.arange(1, near + 1), n)) % n
    b = np.where(rng.random(len(b)) < 0.1, rng.integers(0, n, len(b)), b)
    return _graph(n, np.stack([a, b], axis=1))


def random_graph(n: int, degree: int) -> LogicGraph:
    """Edges between any two."""
    return _graph(n, np.random.default_rng(n).integers(0, n, (n * degree // 2, 2)))


#: Name -> graph, objective.
CASES: dict[str, tuple[Callable[[], LogicGraph], str]] = {
    "Delaunay, 30,000 nodes": (lambda: delaunay(30_000), "hops"),
    "Delaunay, 200,000 nodes": (lambda: delaunay(200_000), "hops"),
    "geometric, 2^15 nodes": (lambda: geometric(2**15), "hops"),
    "geometric, 2^15 nodes, cut": (lambda: geometric(2**15), "cut"),
    "grid of 40^3": (lambda: box(40), "hops"),
    "windows, 20 layers of 40x40": (lambda: windows(20, 40), "hops"),
    "small world, 30,000 nodes": (lambda: small_world(30_000, 8), "hops"),
    "random, 20,000 nodes of degree 4": (lambda: random_graph(20_000, 4), "hops"),
}


def mapped(
    path: Path, objective: str, limit: float, seed: int, workers: int, engine: str | None
) -> tuple[float, list[str]]:
    """Return the objective that `nmsolve map` comes to, and which engines had an answer accepted."""
    out = path.parent / "out"
    command = [
        sys.executable, "-m", "nmsolve", "map", str(path), "--machine", "mesh:8x8", "--balance", "0.03", "--objective", objective,
        "--time-limit", str(limit), "--seed", str(seed), "--workers", str(workers), "--out", str(out),
    ]  # fmt: skip
    subprocess.run([*command, *(("--engines", engine) if engine else ())], check=True, capture_output=True)
    report = json.loads((out / "report.json").read_text())
    return report["objective"], [one["engine"] for one in report["engines"] if one["incumbents"]]


def main() -> None:
    """Measure every case; print a row of each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="cases with one of these words")
    parser.add_argument("--engines", default="deep,multilevel,external")
    parser.add_argument("--limits", default="3,10")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1)
    a = parser.parse_args()
    engines = a.engines.split(",")
    print(
        "| network | s | automatic mode takes | "
        + " | ".join(engines)
        + " |\n"
        + "|---" * (3 + len(engines))
        + "|",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.npz"
        for name, (make, objective) in CASES.items():
            if not any(word in name for word in a.only.split(",")):
                continue
            writer(path)(make(), path)
            for limit in map(float, a.limits.split(",")):
                _, taken = mapped(path, objective, limit, 1, a.workers, None)
                found = [
                    statistics.median(
                        mapped(path, objective, limit, seed, a.workers, engine)[0]
                        for seed in range(1, a.seeds + 1)
                    )
                    for engine in engines
                ]
                values = " | ".join(f"{value:,.0f}" for value in found)
                print(f"| {name} | {limit:g} | {', '.join(taken)} | {values} |", flush=True)


if __name__ == "__main__":
    main()
