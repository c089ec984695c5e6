"""``nmsolve verify`` of the placement in a pipeline's folder: that its tiles are those of the plan, and where stages lie."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nmsolve.kinds.parts import CheckPart
from nmsolve.kinds.pipeline.links import busy_us, link_words, slowest_us

if TYPE_CHECKING:
    from nmsolve.kinds.pipeline.statement import Given
    from nmsolve.model.machine import Machine
    from nmsolve.model.pipeline.plan import PipelinePlan

#: The folder of the placement in that of the pipeline; its graph and its regions.
FOLDER, GRAPH, REGIONS = "placement", "tiles.json", "constraints.json"


def board_of(given: Given, memory: int | None) -> Machine:
    """Return the machine that tiles are placed on; ``memory`` bytes of a core, if stated, stand for its own."""
    from nmsolve.hw.pipeline.to_graph import RESOURCE

    assert given.machine is not None
    return given.machine if memory is None else given.machine.holding(RESOURCE, memory)


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
