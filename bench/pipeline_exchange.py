"""What exchange inside groups of cores does to the best chain: with and without it, on Wormhole's figures and on assumed cores.

``python bench/pipeline_exchange.py MODEL.onnx ... [--cores 64] [--bind batch=1,seq=128]`` prints a Markdown table: period, number
of stages, part of all layers' time that is exchange, CPU seconds of the table of times. There is no limit on memory. Ends with 1
if a plan is not proved, or the second program finds other times.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from nmsolve.check.pipeline.chain_bound import chain_bound_holds
from nmsolve.check.pipeline.reevaluate_exchange import reevaluated_times
from nmsolve.heuristics.pipeline.chain import ChainPartition
from nmsolve.hw.machines import load_machine
from nmsolve.hw.pipeline.exchange import best_splits
from nmsolve.hw.pipeline.tiles import pipeline_problem
from nmsolve.model.formats.onnx import load_onnx
from nmsolve.model.operators.binding import parse_bindings, symbols_of
from nmsolve.model.operators.layers import Layers, layers_of
from nmsolve.model.pipeline.figures import ASSUMED, CoreFigures, machine_figures


def cell(layers: Layers, figures: CoreFigures, cores: int) -> tuple[str, bool]:
    """Return a cell of the table, and whether all of it is proved."""
    problem = pipeline_problem(layers, figures, cores)
    plan, value = ChainPartition(problem).in_order(np.arange(problem.count), fewest_stages=True)
    assert plan is not None
    proved, part = chain_bound_holds(problem, value), ""
    if figures.sync is not None:
        begun = time.process_time()
        found = best_splits(layers, figures, cores)
        seconds = time.process_time() - begun
        at = np.arange(layers.count), plan.cores[plan.stage] - 1
        part = f"; {found.exchange[at].sum() / found.time[at].sum():.0%}; {seconds:.2f} s"
        proved &= np.allclose(reevaluated_times(layers, figures, cores), found.time, 1e-9, 0.0)
    return f"{value:,.1f} us ({len(plan.cores)}{part})", bool(proved)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--cores", type=int, default=64)
    parser.add_argument("--bind", default="")
    o = parser.parse_args()
    given = parse_bindings(o.bind)
    wormhole = replace(machine_figures(load_machine("wormhole")), memory=None)
    print(
        "| model | Wormhole, not counted | counted | assumed core, not counted | counted |\n|---|---:|---:|---:|---:|"
    )
    whole = True
    for path in o.models:
        graph = load_onnx(path)
        layers = layers_of(graph, {name: given[name] for name in symbols_of(graph) if name in given})
        cells = [
            cell(layers, replace(f, sync=sync), o.cores) for f in (wormhole, ASSUMED) for sync in (None, 0.0)
        ]
        whole &= all(proved for _, proved in cells)
        print(f"| {path.stem} | " + " | ".join(text for text, _ in cells) + " |", flush=True)
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
