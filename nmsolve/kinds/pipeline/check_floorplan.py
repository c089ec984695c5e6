"""``nmsolve verify`` of the placement in a pipeline's folder: whether its tiles are those of the plan, and where stages lie."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nmsolve.kinds.parts import CheckPart
from nmsolve.report.figures import number

if TYPE_CHECKING:
    from nmsolve.kinds.pipeline.statement import Given
    from nmsolve.model.graph import LogicGraph
    from nmsolve.model.machine import Machine
    from nmsolve.model.pipeline.plan import PipelinePlan
    from nmsolve.model.types import IntArray

#: The folder of the placement in that of the pipeline; its graph and its regions.
FOLDER, GRAPH, REGIONS = "placement", "tiles.json", "constraints.json"


def board_of(given: Given, memory: int | None) -> Machine:
    """Return the machine that tiles are placed on; ``memory`` bytes of a core, if stated, stand for its own."""
    from nmsolve.hw.pipeline.to_graph import RESOURCE

    assert given.machine is not None
    return given.machine if memory is None else given.machine.holding(RESOURCE, memory)


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


def floorplan_checks(folder: Path, given: Given, plan: PipelinePlan, memory: int | None) -> list[CheckPart]:
    """Return what is checked of the placement in a pipeline's ``folder``; nothing where there is none.

    Where regions were stated (``constraints.json``), every stage has to be in one piece. What a mapping promises beyond that
    `nmsolve verify` of the placement's own folder checks. ``memory`` : bytes of a core, if the options state them.

    Raises
    ------
    InputError : a file of the placement is wrong
    """
    from nmsolve.hw.pipeline.regions import apart, region_pieces
    from nmsolve.hw.pipeline.to_graph import stage_traffic, tile_graph
    from nmsolve.model.formats import load_graph
    from nmsolve.model.mapping.constraints_file import load_constraints
    from nmsolve.model.mapping.files import read_mapping
    from nmsolve.model.pipeline.check import plan_complaint

    placed = folder / FOLDER
    if (
        given.machine is None
        or not (placed / "mapping.json").exists()
        or plan_complaint(given.problem, plan) is not None
    ):
        return []
    graph, again = load_graph(placed / GRAPH), tile_graph(given.problem, plan, given.whole, given.received)
    if graph.hash != again.hash:
        return [CheckPart("tiles", False, f"{FOLDER}/{GRAPH} is not the graph of this plan's tiles")]
    checks = [CheckPart("tiles", True, f"{graph.n} tiles, and what they send, are those of this plan")]
    machine = board_of(given, memory)
    if machine.distance_matrix is not None:
        return checks
    core = read_mapping(placed / "mapping.json", graph, machine)
    if len(np.unique(core)) < len(core):
        return [*checks, CheckPart("floorplan", False, "two tiles share a core")]
    stage = np.repeat(np.arange(len(plan.cores)), plan.cores)
    torn = {s: k for s, k in region_pieces(machine, core, stage).items() if k > 1}
    far = apart(machine, core, stage, stage_traffic(given.problem, plan))
    stated = (placed / REGIONS).exists() and bool(load_constraints(placed / REGIONS, graph, machine))
    text = f"stage {min(torn)} is in {torn[min(torn)]} pieces" if torn else "every stage is in one piece"
    text += (
        f"; stages {far[0][0]} and {far[0][1]} do not touch"
        if far
        else "; stages that follow each other touch"
    )
    if given.figures is not None:
        text += "; " + link_words(busy_us(given, graph, machine, core), slowest_us(given, plan))
    return [*checks, CheckPart("floorplan", not (stated and torn), text)]
