"""``nmsolve pipeline --place``: the tiles of a plan with their regions, and how hot links get beside the slowest stage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nmsolve.report.figures import number

if TYPE_CHECKING:
    from nmsolve.kinds.pipeline.statement import Given
    from nmsolve.model.graph import LogicGraph
    from nmsolve.model.machine import Machine
    from nmsolve.model.mapping.constraints import SideConstraint
    from nmsolve.model.pipeline.plan import PipelinePlan
    from nmsolve.model.types import IntArray

#: The objective of a placement whose links would decide the period.
COOL = "max-link"
#: A link is hotter than the slowest stage from this part more on.
SLACK = 1e-9


@dataclass(frozen=True, eq=False)
class Tiles:
    """The tiles of a plan, with their regions.

    Attributes
    ----------
    graph : one node per core of the plan
    regions : that the tiles of every stage stay in its region; empty: they may be anywhere
    pieces, apart : regions beyond one per stage, and pairs of stages in a row that do not touch; of a floorplan that was made
    """

    graph: LogicGraph
    regions: tuple[SideConstraint, ...]
    pieces: int = 0
    apart: int = 0


def tiles_of(given: Given, plan: PipelinePlan, seed: int, seconds: float) -> Tiles:
    """Return the tiles of ``plan``; their regions are sought for this many seconds. Regions that are not whole are dropped."""
    from nmsolve.heuristics.pipeline.floorplan import floorplan
    from nmsolve.hw.pipeline.to_graph import region_constraints, stage_traffic, tile_graph

    assert given.machine is not None
    graph = tile_graph(given.problem, plan, given.whole, given.received)
    if given.machine.distance_matrix is not None:
        return Tiles(graph, ())  # nothing is known of its links
    found = floorplan(given.machine, plan.cores, stage_traffic(given.problem, plan), seed, seconds)
    regions = () if found.pieces else region_constraints(plan, found.stage)
    return Tiles(graph, regions, found.pieces, found.apart)


def busy_us(given: Given, graph: LogicGraph, machine: Machine, core: IntArray) -> float:
    """Return how long the hottest link is busy per micro-batch, in us, at a core's bandwidth, with tiles on ``core`` (n,)."""
    from nmsolve.hw.routes import link_loads

    assert given.figures is not None
    return 1e6 * float(link_loads(graph, machine, core).max(initial=0.0)) / given.figures.bandwidth


def slowest_us(given: Given, plan: PipelinePlan) -> float:
    """Return the load of the slowest stage, in us."""
    from nmsolve.hw.pipeline.stages import stage_loads

    return float(stage_loads(given.problem, plan).load.max())


def link_words(busy: float, slowest: float) -> str:
    """Say how long the hottest link is busy, beside the slowest stage, both in us: the longer one decides the period."""
    text = f"the hottest link takes {number(busy)} us at a core's bandwidth, the slowest stage {number(slowest)} us"
    return text if busy <= slowest else f"{text}: links, not cores, decide the period"
