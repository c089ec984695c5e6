"""The fastest chains for batches of several sizes, or those of the least energy, against simpler plans and that of the least
period.

``python bench/pipeline_batch.py MODEL.onnx ... [--cores 64] [--batches 1,8,32,256] [--core-memory BYTES]
[--bind batch=1,seq=128]`` prints a Markdown table: time of the batch, its gap, stages, how much longer the plan of the least
period, one group of all cores, and the best cut by hand take, CPU seconds of the search and of the second proof. Ends with 1 if
a bound is not proved again.

``--objective energy [--group-sync 500] [--offchip-bandwidth 100e9]`` prints for every number of ``--cores 64,256`` the least
energy of a micro-batch in uJ, its parts, the plan's period against the least, and what the same simpler plans need.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from nmsolve.check.pipeline.recheck import check_plan_bound
from nmsolve.heuristics.pipeline.baselines import RULES, best_by_hand, one_group
from nmsolve.heuristics.pipeline.batch import Descent, fastest_batch
from nmsolve.heuristics.pipeline.chain import ChainPartition
from nmsolve.hw.pipeline.energy import energy_of
from nmsolve.hw.pipeline.stages import objective, stage_loads
from nmsolve.hw.pipeline.tiles import pipeline_problem
from nmsolve.model.errors import InputError
from nmsolve.model.formats.onnx import load_onnx
from nmsolve.model.operators.binding import parse_bindings, symbols_of
from nmsolve.model.operators.layers import Layers, layers_of
from nmsolve.model.pipeline.check import plan_complaint
from nmsolve.model.pipeline.figures import ASSUMED
from nmsolve.model.pipeline.goals import SLOWEST, Batch
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.solvers.pipeline.fit import require_fit
from nmsolve.solvers.pipeline.partition import bound_of

#: Columns of the tables.
HEADS = {
    "batch": [
        "model", "micro-batches", "time, us", "gap", "stages", "least period", "one group", "by hand", "CPU s", "proof, CPU s",
    ],
    "energy": [
        "model", "cores", "energy, uJ", "gap", "operations", "transfer", "exchange", "off chip", "static", "stages", "period",
        "least period", "one group", "by hand", "CPU s", "proof, CPU s",
    ],
}  # fmt: skip


def energy_row(layers: Layers, o: argparse.Namespace, cores: int) -> tuple[str, bool]:
    """Return a row of the table of energies, and whether its bound was proved again."""
    figures = replace(ASSUMED, sync=o.group_sync)
    memory = None if o.core_memory is None else float(o.core_memory)
    energy = energy_of(layers, figures, cores, cores)
    problem = replace(
        pipeline_problem(layers, figures, cores, memory=memory, offchip=o.offchip_bandwidth),
        goal=energy or SLOWEST,
    )
    try:
        require_fit(problem)
    except InputError as error:
        return f"| {layers.name} | {cores} | {error.what} |", True
    found, spent = searched(problem, o.seconds)
    if found.plan is None or energy is None:
        return f"| {layers.name} | {cores} | no plan |", math.isinf(found.bound)
    value, begun = objective(problem, found.plan), time.process_time()
    bound = bound_of(problem, found)
    check = check_plan_bound(problem, bound, value, 300.0)
    again = time.process_time() - begun
    partition = ChainPartition(replace(problem, goal=SLOWEST))
    period, least = partition.in_order(np.arange(problem.count), fewest_stages=True)
    parts = energy.parts(found.plan.stage, stage_loads(problem, found.plan))
    cells = [
        f"{value:,.0f}", gap_of(value, bound.value), *(f"{part / value:.1%}" for part in parts), f"{len(found.plan.cores)}",
        f"{parts.static / energy.power / least:.2f}x", "-" if period is None else times(problem, value, period, 4),
        times(problem, value, one_group(problem), 4), by_hand(problem, value, 4),
        f"{spent:.2f}", f"{again:.2f}" if check.ok else f"NOT PROVED: {check.text}",
    ]  # fmt: skip
    return f"| {layers.name} | {cores} | " + " | ".join(cells) + " |", check.ok


def searched(problem: PipelineProblem, seconds: float) -> tuple[Descent, float]:
    """Return what a search found, and its CPU seconds."""
    begun = time.process_time()
    *_, found = fastest_batch(problem, lambda: begun + seconds - time.process_time())
    return found, time.process_time() - begun


def gap_of(value: float, bound: float) -> str:
    """Return the gap, 0 below the digits that a bound is rounded by."""
    gap = max(0.0, 1 - bound / value)
    return f"{0.0 if gap < 1e-8 else gap:.2%}"


def by_hand(problem: PipelineProblem, value: float, digits: int = 2) -> str:
    """Return how much more the best cut by rules of thumb takes, - if all break a rule."""
    hands = [best_by_hand(problem, rule)[0] for rule in RULES]
    hands = [p for p in hands if plan_complaint(problem, p) is None]
    return f"{min(objective(problem, p) for p in hands) / value:.{digits}f}x" if hands else "-"


def times(problem: PipelineProblem, value: float, plan: PipelinePlan, digits: int = 2) -> str:
    """Return how much more a plan takes, - if it breaks a rule."""
    return "-" if plan_complaint(problem, plan) else f"{objective(problem, plan) / value:.{digits}f}x"


def row(layers: Layers, o: argparse.Namespace, rounds: int) -> tuple[str, bool]:
    """Return a row of the table, and whether its bound was proved again."""
    memory = None if o.core_memory is None else float(o.core_memory)
    problem = replace(
        pipeline_problem(layers, ASSUMED, int(o.cores), memory=memory, offchip=0.0), goal=Batch(rounds)
    )
    try:
        require_fit(problem)
    except InputError as error:
        return f"| {layers.name} | {rounds} | {error.what} |", True
    found, spent = searched(problem, o.seconds)
    begun = time.process_time()
    if found.plan is None:
        return f"| {layers.name} | {rounds} | no plan |", math.isinf(found.bound)
    value, bound = objective(problem, found.plan), bound_of(problem, found)
    check = check_plan_bound(problem, bound, value, 120.0)
    again = time.process_time() - begun
    period, _ = ChainPartition(replace(problem, goal=SLOWEST)).in_order(
        np.arange(problem.count), fewest_stages=True
    )
    cells = [
        f"{value:,.1f}", gap_of(value, bound.value), f"{len(found.plan.cores)}",
        "-" if period is None else times(problem, value, period), times(problem, value, one_group(problem)),
        by_hand(problem, value),
        f"{spent:.2f}", f"{again:.2f}" if check.ok else f"NOT PROVED: {check.text}",
    ]  # fmt: skip
    return f"| {layers.name} | {rounds} | " + " | ".join(cells) + " |", check.ok


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--objective", choices=("batch", "energy"), default="batch")
    parser.add_argument("--cores", default="64")
    parser.add_argument("--batches", default="1,8,32,256")
    parser.add_argument("--core-memory", type=int)
    parser.add_argument("--group-sync", type=float)
    parser.add_argument("--offchip-bandwidth", type=float, default=0.0)
    parser.add_argument("--bind", default="")
    parser.add_argument("--seconds", type=float, default=60.0)
    o = parser.parse_args()
    given = parse_bindings(o.bind)
    one, sizes = (energy_row, o.cores) if o.objective == "energy" else (row, o.batches)
    heads = HEADS[o.objective]
    print("| " + " | ".join(heads) + " |")
    print("|---|" + "---:|" * (len(heads) - 1))
    whole = True
    for path in o.models:
        graph = load_onnx(path)
        layers = layers_of(graph, {name: given[name] for name in symbols_of(graph) if name in given})
        for size in map(int, sizes.split(",")):
            text, proved = one(replace(layers, name=path.stem), o, size)
            whole &= proved
            print(text, flush=True)
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
