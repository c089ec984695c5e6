"""``nmsolve pipeline --place``: the cores of the stages on the machine, by the mapping search."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from nmsolve.cli import options as opt
from nmsolve.cli.answer import exit_code, prepare_folder
from nmsolve.cli.map_answer import say, write_answer
from nmsolve.cli.progress import watching
from nmsolve.model import clock

if TYPE_CHECKING:
    from nmsolve.cli.commands import PipelineOptions
    from nmsolve.cli.patience import Patience
    from nmsolve.cli.pipeline_problem import Given
    from nmsolve.model.pipeline.plan import PipelinePlan

#: Least seconds for the search.
LEAST = 0.5
#: The folder of the placement in that of the pipeline, and its graph.
FOLDER, GRAPH = "placement", "tiles.json"


def place_tiles(
    o: PipelineOptions, given: Given, plan: PipelinePlan, until: float, run: str, patience: Patience
) -> int:  # fmt: skip
    """Map one tile to each core until ``until`` (``clock.now()``) and write what ``nmsolve map`` writes, signed ``run``;
    returns the exit code.

    Raises
    ------
    DoesNotFitError : a tile needs more than a core of the machine holds
    """
    from nmsolve.hw.pipeline.to_graph import RESOURCE, tile_graph
    from nmsolve.model.formats import save_graph
    from nmsolve.model.mapping.fit import require_fit
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.solvers.mapping.api import solve

    assert given.machine is not None
    machine, memory = given.machine, opt.size_in_bytes(o.core_memory, "--core-memory")
    if memory is not None:
        machine = machine.holding(RESOURCE, memory)
    folder = o.out / FOLDER
    prepare_folder(folder)
    graph = tile_graph(given.problem, plan, given.whole)
    save_graph(graph, folder / GRAPH)
    objective = "multicast-hops" if graph.multicast.any() else "hops"
    problem = MappingProblem(graph, machine, objective, (), node_limit=1)
    require_fit(problem)
    print(f"\nplacing {graph.n:,} tiles on {machine.name}", file=sys.stderr)
    seconds = max(LEAST, until - clock.now())
    with watching(o.json) as observers:
        result = solve(
            problem, time_limit=seconds, gap=opt.fraction(o.gap) or 0.0, seed=o.seed, workers=o.workers,
            memory=opt.size_in_bytes(o.memory), observers=observers,
        )  # fmt: skip
    report = write_answer(folder, problem, result, _inputs(o, folder, seconds), None, patience, run=run)
    say(folder, report, o.json)
    return exit_code(result, report, None)


def _inputs(o: PipelineOptions, folder: Path, seconds: float) -> dict[str, object]:
    """Return what ``verify`` needs to load the same mapping problem again."""
    return {
        "graph": opt.whole(folder / GRAPH),
        "machine": opt.machine(o.machine),
        "chips": o.chips,
        "core_memory": opt.size_in_bytes(o.core_memory, "--core-memory"),
        "node_limit": 1,
        "time_limit": seconds,
    }
