"""Pipelines on one core per stage: best plan, bounds, and the geometric mean of bound over best.

``python bench/pipeline_bounds.py [GRAPH.json ... MODEL.onnx ...] [--synthetic 12] [--stages 16] [--seconds 30] [--split any]
[--engines pipeline-counting,pipeline-local,orders,cover] [--bind batch=1,seq=128]`` prints a Markdown table. GRAPH.json are cost
graphs of msr-fiddle; without ``--engines`` all that fit run, exact partition over downsets among them. ``--synthetic`` adds
random graphs of the families that were used to train REGAL (Paliwal et al., ICLR 2020): Erdos-Renyi, Barabasi-Albert,
Watts-Strogatz and layered ones, 50 to 200 nodes, edges from lower to higher numbers, work and tensors drawn from a normal
distribution; a tensor takes a fifth of a node's mean time. Sizes and shares are ours: the published graphs are not at hand.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np

from nmsolve.hw.pipeline.tiles import pipeline_problem
from nmsolve.model.formats.cost_graph import load_cost_graph
from nmsolve.model.operators.binding import parse_bindings
from nmsolve.model.operators.layers import layers_of
from nmsolve.model.pipeline.figures import ASSUMED
from nmsolve.model.pipeline.problem import PipelineProblem, Tensors
from nmsolve.solvers.pipeline.api import plan


def synthetic(seed: int) -> PipelineProblem:
    """One random graph; the families take turns."""
    draw = np.random.default_rng(seed)
    count = int(draw.integers(50, 201))
    kind = ("erdos-renyi", "barabasi-albert", "watts-strogatz", "layered")[seed % 4]
    if kind == "erdos-renyi":
        graph = nx.gnp_random_graph(count, 3.0 / count, seed=seed)
    elif kind == "barabasi-albert":
        graph = nx.barabasi_albert_graph(count, 2, seed=seed)
    elif kind == "watts-strogatz":
        graph = nx.watts_strogatz_graph(count, 4, 0.3, seed=seed)
    else:
        layer = np.sort(draw.integers(0, count // 8, count))
        pairs = [
            (u, v)
            for u in range(count)
            for v in range(u)
            if layer[u] == layer[v] + 1 and draw.random() < 0.25
        ]
        graph = nx.Graph(pairs)
    users: dict[int, list[int]] = {}
    for u, v in graph.edges():
        users.setdefault(min(u, v), []).append(max(u, v))
    makers = sorted(users)
    tensors = Tensors(
        source=np.array(makers, np.int64),
        indptr=np.cumsum([0, *(len(users[m]) for m in makers)]).astype(np.int64),
        targets=np.array([t for m in makers for t in sorted(users[m])], np.int64),
        time=np.abs(draw.normal(0.2, 0.1, len(makers))),
        volume=np.ones(len(makers)),
    )
    work = np.abs(draw.normal(1.0, 0.5, count))
    labels = tuple(f"n{k}" for k in range(count))
    return PipelineProblem(f"{kind}-{seed}", labels, work[:, None], np.zeros(count), tensors, 1, 1)


def problems(options: argparse.Namespace) -> Iterator[PipelineProblem]:
    """All graphs that are asked for, with this number of single-core stages."""
    k = options.stages
    for path in options.graphs:
        if path.suffix == ".json":
            given = load_cost_graph(path)
        else:
            from nmsolve.model.formats.onnx import load_onnx

            layers = layers_of(load_onnx(path), parse_bindings(options.bind))
            given = replace(pipeline_problem(layers, ASSUMED, k), memory=None)
            given = replace(given, time=np.ascontiguousarray(given.time[:, :1]))
        yield replace(given, cores=k, stages=k + given.hosts, split=options.split)
    for seed in range(options.synthetic):
        yield replace(synthetic(seed), cores=k, stages=k, split=options.split)


def main() -> int:
    """Print a row per graph, then the mean."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("graphs", nargs="*", type=Path)
    parser.add_argument("--synthetic", type=int, default=0)
    parser.add_argument("--stages", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--split", default="contiguous", choices=["contiguous", "any"])
    parser.add_argument("--engines", type=lambda text: text.split(","))
    parser.add_argument("--bind", default="")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print("| graph | layers | best | bound | bound / best | by | CPU s |\n|---|---|---|---|---|---|---|")
    ratios = []
    for problem in problems(options):
        found = plan(problem, time_limit=options.seconds, engines=options.engines, seed=options.seed)
        bound, best = found.bound or 0.0, found.objective or math.inf
        ratios.append(bound / best)
        by = max(found.bounds, key=lambda b: b.value).method if found.bounds else "-"
        figures = f"{best:.6g} | {bound:.6g} | {ratios[-1]:.4f} | {by} | {found.cpu_seconds:.1f}"
        print(f"| {problem.name} | {problem.count} | {figures} |", flush=True)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios and min(ratios) > 0 else 0.0
    print(f"\ngeometric mean of bound / best over {len(ratios)} graphs: {mean:.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
