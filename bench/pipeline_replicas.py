"""What replicas of stages do to the best chain, on assumed cores with exchange inside groups.

``python bench/pipeline_replicas.py MODEL.onnx ... [--cores 64] [--core-memory BYTES] [--replicas 1,2,4,16]
[--bind batch=1,seq=128]`` prints a Markdown table: the period for every number of replicas allowed, with the number of stages and
the most replicas of one, PipeDream's plan for the last number, and CPU seconds of that search. Ends with 1 if a plan is not
proved.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from nmsolve.check.pipeline.chain_bound import chain_bound_holds
from nmsolve.heuristics.pipeline.baselines import copies_of_cores
from nmsolve.heuristics.pipeline.chain import ChainPartition
from nmsolve.hw.pipeline.stages import stage_loads
from nmsolve.hw.pipeline.tiles import pipeline_problem
from nmsolve.model.formats.onnx import load_onnx
from nmsolve.model.operators.binding import parse_bindings, symbols_of
from nmsolve.model.operators.layers import layers_of
from nmsolve.model.pipeline.figures import ASSUMED
from nmsolve.model.pipeline.problem import PipelineProblem


def cell(problem: PipelineProblem) -> tuple[str, bool, float]:
    """Return a cell of the table, whether its plan is proved, and CPU seconds of the search."""
    begun = time.process_time()
    plan, value = ChainPartition(problem).in_order(np.arange(problem.count), fewest_stages=True)
    spent = time.process_time() - begun
    if plan is None:
        return "-", chain_bound_holds(problem, value), spent
    most = int(stage_loads(problem, plan).replicas.max())
    return f"{value:,.1f} ({len(plan.cores)}; {most})", chain_bound_holds(problem, value), spent


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--cores", type=int, default=64)
    parser.add_argument("--core-memory", type=float, default=None)
    parser.add_argument("--replicas", default="1,2,4,16")
    parser.add_argument("--bind", default="")
    o = parser.parse_args()
    given, counts = parse_bindings(o.bind), [int(r) for r in o.replicas.split(",")]
    heads = [f"{r} replica{'s' if r > 1 else ''}" for r in counts]
    print("| model | " + " | ".join(heads) + " | PipeDream | CPU s |\n|---|" + "---:|" * (len(counts) + 2))
    whole = True
    for path in o.models:
        graph = load_onnx(path)
        layers = layers_of(graph, {k: v for k, v in given.items() if k in symbols_of(graph)})
        base = pipeline_problem(
            layers, replace(ASSUMED, sync=0.0), o.cores, memory=o.core_memory, offchip=0.0
        )
        cells, problem = [], base
        for most in counts:
            problem = replace(base, groups=replace(base.groups, replicas=most))
            text, proved, spent = cell(problem)
            cells.append(text)
            whole &= proved
        alone = copies_of_cores(problem) if problem.groups.replicas > 1 else None
        dream = f"{alone[1]:,.1f} ({len(alone[0].cores)})" if alone else "-"
        print(f"| {path.stem} | " + " | ".join([*cells, dream, f"{spent:.2f}"]) + " |", flush=True)
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
