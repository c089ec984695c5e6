"""What connected regions cost: tiles of a chain's stages placed freely and in the floorplan's regions, with the same search.

``python bench/pipeline_floorplan.py MODEL.onnx ... --machine wormhole [--bind batch=1,seq=128] [--seconds 15]`` prints a Markdown
table: stages, pieces that they are in if placed freely, hops of both (bytes times links), us of the hottest link at a core's
bandwidth, and the period. Ends with 1 if a stage of the floorplan is not in one piece.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from nmsolve.heuristics.pipeline.floorplan import floorplan
from nmsolve.hw.pipeline.regions import apart, region_pieces
from nmsolve.hw.pipeline.to_graph import region_constraints, stage_traffic, tile_graph
from nmsolve.hw.routes import link_loads
from nmsolve.kinds.pipeline.statement import PipelineInputs, state_problem
from nmsolve.model.formats.onnx import load_onnx
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.operators.binding import symbols_of
from nmsolve.solvers.mapping.api import solve
from nmsolve.solvers.pipeline.api import plan


def row(model: Path, machine: str, bind: str, seconds: float) -> tuple[str, bool]:
    """Return a row of the table, and whether regions are whole."""
    names = symbols_of(load_onnx(model))
    own = ",".join(x for x in bind.split(",") if x.partition("=")[0] in names) or None
    given = state_problem(PipelineInputs(model=str(model), machine=machine, bind=own))
    found = plan(given.problem, time_limit=seconds)
    best, board = found.solution, given.machine
    assert best is not None and board is not None and given.figures is not None
    graph, traffic = (
        tile_graph(given.problem, best, given.whole, given.received),
        stage_traffic(given.problem, best),
    )
    regions = floorplan(board, best.cores, traffic)
    stage = np.repeat(np.arange(len(best.cores)), best.cores)
    objective, pieces, hops, hottest = "multicast-hops" if graph.multicast.any() else "hops", [], [], []
    for constraints in ((), region_constraints(best, regions.stage)):
        problem = MappingProblem(graph, board, objective, constraints, node_limit=1)
        result = solve(problem, time_limit=seconds, seed=1)
        assert result.core is not None and result.objective is not None
        pieces.append(sum(region_pieces(board, result.core, stage).values()))
        hops.append(result.objective)
        hottest.append(1e6 * float(link_loads(graph, board, result.core).max()) / given.figures.bandwidth)
    near = len(apart(board, result.core, stage, traffic))
    text = (
        f"| {model.stem} | {machine} | {len(best.cores)} | {pieces[0]} | {near} | {hops[0]:,.0f} | {hops[1]:,.0f} "
        f"| {hottest[0]:.2f} | {hottest[1]:.2f} | {found.objective:,.1f} |"
    )
    return text, pieces[1] == len(best.cores)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--machine", action="append", required=True)
    parser.add_argument("--bind", default="")
    parser.add_argument("--seconds", type=float, default=15.0)
    o = parser.parse_args()
    print(
        "| model | machine | stages | pieces, free | apart | hops, free | hops | link, free, us | link, us | period, us |"
    )
    print("|---|---|" + "---:|" * 8)
    whole = True
    for machine in o.machine:
        for model in o.models:
            text, ok = row(model, machine, o.bind, o.seconds)
            print(text, flush=True)
            whole &= ok
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
