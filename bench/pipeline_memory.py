"""Models in floats and in 8 bits on small cores with off-chip memory: what they need, and the proved plan.

``python bench/pipeline_memory.py MODEL.onnx ... [--int8 FOLDER] [--cores 63] [--core-memory 512KiB] [--offchip 100GB/s] [--bind
batch=1,seq=128]`` prints a Markdown table. ``--int8``: where ``bench/quantise.py`` has put the quantised models, under the same
names. Ends with 1 if a plan is not proved, or a model whose weights are quantised (but for 5 %) needs more than a third of its
original.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

from nmsolve.check.pipeline.chain_bound import chain_bound_holds
from nmsolve.check.pipeline.reevaluate import reevaluated_loads
from nmsolve.heuristics.pipeline.baselines import one_group
from nmsolve.heuristics.pipeline.chain import ChainPartition
from nmsolve.hw.pipeline.stages import stage_loads
from nmsolve.hw.pipeline.tiles import pipeline_problem
from nmsolve.kinds.values import bandwidth, size_in_bytes
from nmsolve.model.formats.onnx import load_onnx
from nmsolve.model.operators.binding import parse_bindings, symbols_of
from nmsolve.model.operators.layers import layers_of
from nmsolve.model.operators.table import memory_of
from nmsolve.model.pipeline.figures import ASSUMED

MIB = 2**20


def row(path: Path, kind: str, o: argparse.Namespace) -> tuple[float, float, bool]:
    """Print a line of the table; return the bytes that the model needs, its weights' part in float32, and if it is proved."""
    graph = load_onnx(path)
    given = parse_bindings(o.bind)
    layers = layers_of(graph, {name: given[name] for name in symbols_of(graph) if name in given})
    memory, offchip = size_in_bytes(o.core_memory), bandwidth(o.offchip, "--offchip")
    problem = pipeline_problem(layers, ASSUMED, o.cores, memory=float(memory or 0), offchip=offchip)
    whole = stage_loads(problem, one_group(problem))
    begun = time.process_time()
    plan, value = ChainPartition(problem).in_order(np.arange(problem.count), fewest_stages=True)
    seconds = time.process_time() - begun
    assert plan is not None
    proved = (
        chain_bound_holds(problem, value)
        and abs(max(reevaluated_loads(problem, plan)) - value) <= 1e-9 * value
    )
    weights, live = float(problem.storage.sum()), float(whole.live[0])
    moved = float(stage_loads(problem, plan).streamed.sum())
    print(
        f"| {path.stem} | {kind} | {weights / MIB:.2f} | {live / MIB:.2f} | {value:,.1f} | {len(plan.cores)} | "
        f"{moved / MIB:.2f} | {'yes' if proved else 'NO'} | {seconds:.3f} |",
        flush=True,
    )
    widths = memory_of(graph, layers).weights
    return weights + live, widths.get("float32", 0) / sum(widths.values()), proved


def main() -> int:
    """Print the table; 1 if a claim does not hold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--int8", type=Path)
    parser.add_argument("--cores", type=int, default=63)
    parser.add_argument("--core-memory", default="512KiB")
    parser.add_argument("--offchip", default="100GB/s")
    parser.add_argument("--bind")
    o = parser.parse_args()
    print(
        "| model | type | weights, MiB | most live, MiB | period, us | stages | moved, MiB | proved | CPU s |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---|---:|")
    fine = True
    for path in o.models:
        needed, _, proved = row(path, "float32", o)
        fine &= proved
        if o.int8 is not None:
            less, floats, proved = row(o.int8 / path.name, "int8", o)
            fine &= proved and (less <= needed / 3 or floats > 0.05)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
