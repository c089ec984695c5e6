"""``nmsolve pipeline --place``: links that stay cooler than the slowest stage, by where tiles lie and by where layers are cut."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nmsolve.kinds.pipeline.statement import slower_problem
from nmsolve.model import clock
from nmsolve.report.figures import number

if TYPE_CHECKING:
    from nmsolve.kinds.pipeline.statement import Given, PipelineInputs
    from nmsolve.model.bound import Result
    from nmsolve.model.graph import LogicGraph
    from nmsolve.model.machine import Machine
    from nmsolve.model.mapping.constraints import SideConstraint
    from nmsolve.model.pipeline.plan import PipelinePlan
    from nmsolve.model.types import IntArray

#: The objective of a placement whose links would decide the period.
COOL = "max-link"
#: How often layers are cut again at most; parts of the time that is left: one look at a plan's links, and one search for a plan.
ROUNDS, LOOK_PART, CUT_PART = 3, 0.1, 0.1
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


def cut_for_links(
    given: Given, inputs: PipelineInputs, machine: Machine, result: Result[PipelinePlan], until: float, how: dict[str, Any]
) -> Result[PipelinePlan]:  # fmt: skip
    """Return the result with the plan of the least period that was found when links count: its own, or one that is cut again.

    The tiles of a plan are placed for a moment, so that the hottest link is as cool as it gets. Where even then it is busy for
    longer than the slowest stage, layers are cut as if cores sent by that factor slower, so that less passes between stages;
    and so on. Bounds stay as they are: they hold for every plan.

    Parameters
    ----------
    machine : the board
    until : ``clock.now()`` at which all has to be done; the first look takes a tenth of what is left
    how : further options of searches
    """
    from nmsolve.model.bound import gap
    from nmsolve.model.pipeline.objectives import PERIOD
    from nmsolve.solvers.pipeline.api import plan

    own, seconds = result.solution, until - clock.now()
    if (
        own is None
        or given.figures is None
        or machine.distance_matrix is not None
        or given.problem.goal.name != PERIOD
        or given.problem.goal.held is not None
    ):
        return result
    best = tried = own
    rate, least, first = given.figures.bandwidth, 0.0, 0.0
    for k in range(ROUNDS + 1):
        busy, slowest = _look(given, machine, tried, LOOK_PART * seconds, how), slowest_us(given, tried)
        period = max(busy, slowest)
        if k == 0 or period < least:
            best, least = tried, period
        first = first or period
        left = until - clock.now()
        if busy <= slowest * (1 + SLACK) or left < (LOOK_PART + CUT_PART) * seconds or k == ROUNDS:
            break
        rate *= slowest / busy
        found = plan(slower_problem(inputs, given, rate), time_limit=CUT_PART * seconds, **how)
        if found.solution is None:
            break
        tried = found.solution
    if best is own:
        return result
    load = slowest_us(given, best)
    print(
        f"cut again for slower links: {number(least)} us in place of {number(first)} us, "
        f"with {len(best.cores)} stages in place of {len(own.cores)}",
        file=sys.stderr,
    )
    status = "optimal" if load == result.bound else "feasible"
    return replace(result, solution=best, objective=load, gap=gap(load, result.bound), status=status)


def _look(given: Given, machine: Machine, plan: PipelinePlan, seconds: float, how: dict[str, Any]) -> float:
    """Return how long the hottest link is busy, in us, after a short search for the coolest placement."""
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.solvers.mapping.api import solve

    tiles = tiles_of(given, plan, how["seed"], seconds / 2)
    result = solve(
        MappingProblem(tiles.graph, machine, COOL, tiles.regions, node_limit=1), time_limit=seconds / 2, **how
    )
    assert result.core is not None
    return busy_us(given, tiles.graph, machine, result.core)
