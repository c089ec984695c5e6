"""``nmsolve pipeline --place``: a region of the machine for every stage, and their cores in it by the mapping search."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from nmsolve.cli import options as opt
from nmsolve.cli.answer import exit_code, prepare_folder
from nmsolve.cli.check_floorplan import FOLDER, GRAPH, REGIONS, board_of, link_words
from nmsolve.cli.map_answer import say, write_answer
from nmsolve.cli.progress import watching
from nmsolve.model import clock

if TYPE_CHECKING:
    from nmsolve.cli.commands import PipelineOptions
    from nmsolve.cli.patience import Patience
    from nmsolve.cli.pipeline_problem import Given
    from nmsolve.model.mapping.constraints import SideConstraint
    from nmsolve.model.pipeline.plan import PipelinePlan

#: Least seconds for regions, and for the search; part of the time that regions may take.
LEAST, REGIONS_PART = 0.5, 0.25


def place_tiles(
    o: PipelineOptions, given: Given, plan: PipelinePlan, until: float, run: str, patience: Patience
) -> int:  # fmt: skip
    """Give every stage a connected region and map one of its tiles to each core there, until ``until`` (``clock.now()``).

    What ``nmsolve map`` writes is written, signed ``run``. Returns the exit code.

    Raises
    ------
    DoesNotFitError : a tile needs more than a core of the machine holds
    """
    from nmsolve.hw.pipeline.to_graph import tile_graph
    from nmsolve.hw.routes import link_loads
    from nmsolve.model.formats import save_graph
    from nmsolve.model.mapping.constraints_file import save_constraints
    from nmsolve.model.mapping.fit import require_fit
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.solvers.mapping.api import solve

    machine = board_of(given, opt.size_in_bytes(o.core_memory, "--core-memory"))
    folder = o.out / FOLDER
    prepare_folder(folder)
    graph = tile_graph(given.problem, plan, given.whole, given.received)
    save_graph(graph, folder / GRAPH)
    objective = "multicast-hops" if graph.multicast.any() else "hops"
    found = _regions(o, given, plan, REGIONS_PART * (until - clock.now()))
    save_constraints(found, graph, machine, folder / REGIONS)
    problem = MappingProblem(graph, machine, objective, found, node_limit=1)
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
    if given.figures is not None and result.core is not None and machine.distance_matrix is None:
        print(link_words(given, plan, float(link_loads(graph, machine, result.core).max())), file=sys.stderr)
    return exit_code(result, report, None)


def _regions(
    o: PipelineOptions, given: Given, plan: PipelinePlan, seconds: float
) -> tuple[SideConstraint, ...]:
    """Return every stage's region as a constraint of its tiles, and say how they lie; none if no connected ones are found."""
    from nmsolve.heuristics.pipeline.floorplan import floorplan
    from nmsolve.hw.pipeline.to_graph import region_constraints, stage_traffic

    assert given.machine is not None
    if given.machine.distance_matrix is not None:
        return ()  # nothing is known of its links
    regions = floorplan(
        given.machine, plan.cores, stage_traffic(given.problem, plan), o.seed, max(LEAST, seconds)
    )
    if regions.pieces:
        print(
            "no floorplan with every stage in one piece was found: tiles are placed freely", file=sys.stderr
        )
        return ()
    said = f", but {regions.apart} do not touch the next one that they talk to" if regions.apart else ""
    print(f"\nfloorplan: every stage in one piece{said}", file=sys.stderr)
    return region_constraints(plan, regions.stage)


def _inputs(o: PipelineOptions, folder: Path, seconds: float) -> dict[str, object]:
    """Return what ``verify`` needs to load the same mapping problem again."""
    return {
        "graph": opt.whole(folder / GRAPH),
        "constraints": opt.whole(folder / REGIONS),
        "machine": opt.machine(o.machine),
        "chips": o.chips,
        "core_memory": opt.size_in_bytes(o.core_memory, "--core-memory"),
        "node_limit": 1,
        "time_limit": seconds,
    }
