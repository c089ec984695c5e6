"""``nmsolve pipeline --place``: a region of the machine for every stage, and their cores in it by the mapping search."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmsolve.kinds import values as opt
from nmsolve.kinds.answer import finish, prepare_folder
from nmsolve.kinds.mapping.given import Given as GivenMapping
from nmsolve.kinds.mapping.kind import KIND as MAPPINGS
from nmsolve.kinds.mapping.options import MapOptions
from nmsolve.kinds.pipeline.check_floorplan import (
    FOLDER,
    GRAPH,
    REGIONS,
    board_of,
    busy_us,
    link_words,
    slowest_us,
)
from nmsolve.kinds.progress import watching
from nmsolve.model import clock

if TYPE_CHECKING:
    from nmsolve.kinds.pipeline.options import PipelineOptions
    from nmsolve.kinds.pipeline.statement import Given
    from nmsolve.kinds.time_left import TimeLeft
    from nmsolve.model.mapping.constraints import SideConstraint
    from nmsolve.model.pipeline.plan import PipelinePlan

#: Least seconds for regions, and for the search; part of the time that regions may take.
LEAST, REGIONS_PART = 0.5, 0.25
#: Part of the search that is kept for cooler links, which only then take it where links would decide the period.
COOL_PART = 0.3
#: The objective of a placement whose links would decide the period.
COOL = "max-link"
#: A link is hotter than the slowest stage from this part more on.
SLACK = 1e-9


def place_tiles(
    o: PipelineOptions, given: Given, plan: PipelinePlan, until: float, run: str, time_left: TimeLeft
) -> int:  # fmt: skip
    """Give every stage a connected region and map one of its tiles to each core there, until ``until`` (``clock.now()``).

    What ``nmsolve map`` writes is written, signed ``run``. Returns the exit code.

    Raises
    ------
    DoesNotFitError : a tile needs more than a core of the machine holds
    """
    from nmsolve.hw.pipeline.to_graph import tile_graph
    from nmsolve.model.formats import save_graph
    from nmsolve.model.mapping.constraints_file import save_constraints
    from nmsolve.model.mapping.fit import require_fit
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.solvers.mapping.api import solve

    machine = board_of(given, opt.size_in_bytes(o.core_memory, "--core-memory"))
    folder = o.out / FOLDER
    prepare_folder(folder)
    graph = tile_graph(given.problem, plan, given.whole, given.received)
    regions = _regions(given, plan, o.seed, max(LEAST, REGIONS_PART * (until - clock.now())))
    save_graph(graph, folder / GRAPH)
    save_constraints(regions, graph, machine, folder / REGIONS)
    objective = "multicast-hops" if graph.multicast.any() else "hops"
    problem = MappingProblem(graph, machine, objective, regions, node_limit=1)
    require_fit(problem)
    print(f"\nplacing {graph.n:,} tiles on {machine.name}", file=sys.stderr)
    linked, slowest = given.figures is not None and machine.distance_matrix is None, slowest_us(given, plan)
    seconds = max(LEAST, until - clock.now())
    how: dict[str, Any] = {
        "gap": opt.fraction(o.gap) or 0.0, "seed": o.seed, "workers": o.workers, "memory": opt.size_in_bytes(o.memory),
        "cluster": o.cluster,
    }  # fmt: skip
    busy = 0.0
    with watching(o.json, out=o.out) as observers:
        result = solve(problem, time_limit=seconds * (1 - COOL_PART * linked), observers=observers, **how)
        if linked and result.core is not None:
            busy = busy_us(given, graph, machine, result.core)
        if busy > slowest * (1 + SLACK):
            print(f"{link_words(busy, slowest)}; cooler links are sought", file=sys.stderr)
            problem = replace(problem, objective=COOL)
            result = solve(
                problem, time_limit=max(LEAST, until - clock.now()), warm_start=result.core, observers=observers, **how
            )  # fmt: skip
    told = MapOptions(folder / GRAPH, out=folder, json=o.json)
    placed = GivenMapping(problem, told)
    report = MAPPINGS.write(told, placed, result, _inputs(o, folder, seconds), time_left, run)
    files = (MAPPINGS.page, MAPPINGS.report)
    code = finish(told, result, report, MAPPINGS.words(report), files, None, "")
    if linked and result.core is not None:
        print(link_words(busy_us(given, graph, machine, result.core), slowest), file=sys.stderr)
    return code


def _regions(given: Given, plan: PipelinePlan, seed: int, seconds: float) -> tuple[SideConstraint, ...]:
    """Return that the tiles of every stage stay in its region, which is sought for this many seconds; say how regions lie.

    None where a stage would be in pieces, and on machines of whose links nothing is known.
    """
    from nmsolve.heuristics.pipeline.floorplan import floorplan
    from nmsolve.hw.pipeline.to_graph import region_constraints, stage_traffic

    assert given.machine is not None
    if given.machine.distance_matrix is not None:
        return ()
    found = floorplan(given.machine, plan.cores, stage_traffic(given.problem, plan), seed, seconds)
    if found.pieces:
        print(
            "no floorplan with every stage in one piece was found: tiles are placed freely", file=sys.stderr
        )
        return ()
    said = f", but {found.apart} do not touch the next one that they talk to" if found.apart else ""
    print(f"\nfloorplan: every stage in one piece{said}", file=sys.stderr)
    return region_constraints(plan, found.stage)


def _inputs(o: PipelineOptions, folder: Path, seconds: float) -> dict[str, object]:
    """Return what ``verify`` needs to load the same mapping problem again."""
    return {
        "graph": opt.whole(folder / GRAPH),
        "constraints": opt.whole(folder / REGIONS),
        "machine": opt.text_or_file(o.machine),
        "chips": o.chips,
        "core_memory": opt.size_in_bytes(o.core_memory, "--core-memory"),
        "node_limit": 1,
        "time_limit": seconds,
    }
