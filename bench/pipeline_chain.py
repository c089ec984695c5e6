"""Chains of layers cut into stages: the certified optimum, its time, and the baselines.

``python bench/pipeline_chain.py [MODEL.onnx ...] [--cores 64,256,1024] [--bind batch=1,seq=128] [--recheck]`` prints a Markdown
table. Without models: two chains of random layers, as many as ResNet-50 and GPT-2 small have operators. Every model is cut
without limits, with computing and transfer at the same time, with 1.3 times what one group of all cores needs as limit of its
cores, and into at most 16 stages. ``--recheck`` proves every optimum again in plain NumPy.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from nmsolve.check.pipeline.chain_bound import chain_bound_holds
from nmsolve.heuristics.pipeline.baselines import equal_stages, one_group
from nmsolve.heuristics.pipeline.chain import ChainPartition
from nmsolve.hw.pipeline.stages import objective, stage_loads
from nmsolve.hw.pipeline.tiles import pipeline_problem
from nmsolve.model.operators.binding import parse_bindings
from nmsolve.model.operators.layers import Layers, layers_of
from nmsolve.model.pipeline.check import plan_complaint
from nmsolve.model.pipeline.figures import ASSUMED
from nmsolve.model.pipeline.problem import PipelineProblem, Tensors


def random_layers(name: str, count: int, seed: int) -> Layers:
    """A chain with a residual every fourth layer; half of the layers have MACs, the others only move elements."""
    draw = np.random.default_rng(seed)
    channels, rows = 2 ** draw.integers(6, 11, count), 2 ** draw.integers(6, 12, count)
    results = channels * rows
    heavy = draw.random(count) < 0.5
    uses = [[k + 1, k + 4] if k % 4 == 0 and k + 4 < count else [k + 1] for k in range(count - 1)]
    return Layers(
        name=name,
        names=tuple(f"l{k}" for k in range(count)),
        kinds=("Conv",) * count,
        operators=np.arange(count),
        macs=np.where(heavy, results * draw.integers(64, 1024, count), 0),
        elements=np.where(heavy, 0, results),
        weight_bytes=np.where(heavy, channels * draw.integers(256, 4096, count), 0),
        channels=channels,
        rows=rows,
        tensors=Tensors(
            np.arange(count - 1), np.cumsum([0, *map(len, uses)]), np.concatenate(uses), np.zeros(count - 1),
            4.0 * results[:-1],
        ),
    )  # fmt: skip


def variants(layers: Layers, cores: int) -> Iterator[tuple[str, PipelineProblem]]:
    """The problem under different limits, with a name for each."""
    free = pipeline_problem(layers, ASSUMED, cores)
    yield "", free
    yield "overlap", replace(free, overlap=True)
    together = stage_loads(free, one_group(free)).storage[0]
    yield "storage", replace(free, memory=float(math.floor(1.3 * together / cores)))
    yield "16 stages", replace(free, stages=16)


def row(name: str, limit: str, problem: PipelineProblem, recheck: bool) -> bool:
    """Print a line of the table; False if something that was claimed does not hold."""
    started = time.process_time()
    plan, value = ChainPartition(problem).in_order(np.arange(problem.count), fewest_stages=True)
    seconds = time.process_time() - started
    head = f"| {name} ({problem.count}) | {problem.cores} | {limit} "
    if plan is None:
        print(f"{head}| impossible | | {seconds:.4f} | | | |", flush=True)
        return True
    ideal = float((problem.time * np.arange(1, problem.cores + 1)).min(axis=1).sum()) / problem.cores
    others = []
    for other in (one_group(problem), equal_stages(problem, 16)):
        mark = "" if plan_complaint(problem, other) is None else " (breaks a limit)"
        others.append(f"{objective(problem, other) / value:.2f}x{mark}")
    fine = (
        problem.split == "chain"
        and plan_complaint(problem, plan) is None
        and objective(problem, plan) == value
    )
    second = ""
    if recheck:
        started = time.process_time()
        holds = chain_bound_holds(problem, value)
        second = f"{'holds' if holds else 'FAILS'}, {time.process_time() - started:.2f}"
        fine = fine and holds
    print(
        f"{head}| {value / ideal:.3f} | {len(plan.cores)} | {seconds:.4f} | {others[0]} | {others[1]} | {second} |",
        flush=True,
    )
    return fine


def main() -> int:
    """Print the table; 1 if a claim does not hold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--cores", default="64,128,256,512,1024")
    parser.add_argument("--bind")
    parser.add_argument("--recheck", action="store_true")
    options = parser.parse_args()
    from nmsolve.model.formats.onnx import load_onnx

    bindings = parse_bindings(options.bind)
    chains = [replace(layers_of(load_onnx(path), bindings), name=path.stem) for path in options.models]
    chains = chains or [random_layers("random", 170, 0), random_layers("random", 455, 1)]
    warm = pipeline_problem(random_layers("warm", 5, 0), ASSUMED, 4)
    ChainPartition(warm).in_order(np.arange(warm.count))  # load the kernels
    print(
        "| model (layers) | cores | limit | optimum / (work / N) | stages | CPU s | one group | 16 equal | second look |"
    )
    print("|---|---:|---|---:|---:|---:|---:|---:|---|")
    fine = True
    for layers in chains:
        for cores in map(int, options.cores.split(",")):
            for limit, problem in variants(layers, cores):
                fine &= row(layers.name, limit, problem, options.recheck)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
