"""What the host computes in numbers for the programs of an assignment: arithmetic on lengths, and tiles (M3.2, M3.3)."""

from __future__ import annotations

from typing import Any

from nmsolve.hw.assignment.extents import extent_of
from nmsolve.hw.assignment.roofline import tiles_of
from nmsolve.hw.assignment.state import StatedAssignment
from nmsolve.hw.assignment.tiling import Extent, Tiles, tile_program
from nmsolve.model.assignment.assignment import Assignment
from nmsolve.model.operators.costs import OperatorCost, operator_costs
from nmsolve.model.operators.graph import OperatorGraph
from nmsolve.model.operators.scalars.passes import optimised
from nmsolve.model.operators.scalars.program import Builder, ScalarProgram
from nmsolve.model.operators.scalars.trace import traced


def scalar_program(graph: OperatorGraph, stated: StatedAssignment, answer: Assignment) -> ScalarProgram:
    """Return one program for the arithmetic of the model and the tiles of all operators where they are.

    Parameters
    ----------
    graph : the model with its symbols, which stay symbols
    """
    builder = Builder(shared=True)
    parts = [optimised(traced(graph))[0]]
    costs = operator_costs(graph)
    for i, tiles in tiled_operators(stated, answer).items():
        extent = _symbolic(graph, costs, stated.operators[i])
        if extent is not None:
            parts.append(tile_program(stated.problem.labels[i], extent, tiles))
    for part in parts:
        place: list[int] = []
        for step in part.steps:
            place.append(builder.add(step.kind, *(place[a] for a in step.args), value=step.value))
        builder.results |= {name: place[k] for name, k in part.results.items()}
    return builder.program()


def tiled_operators(stated: StatedAssignment, answer: Assignment) -> dict[int, Tiles]:
    """Return the tiles of the operators that do not fit on chip where they are, by number."""
    machine, found = stated.machine, {}
    for i, j in enumerate(answer.unit.tolist()):
        work = stated.estimates.works[i]
        tiles = None if work is None else tiles_of(machine.processors[int(machine.owner[j])], work)
        if tiles is not None:
            found[i] = tiles
    return found


def _symbolic(graph: OperatorGraph, costs: tuple[OperatorCost, ...], path: tuple[int, ...]) -> Extent | None:
    """Return the extent of an operator, by its path, in the model's symbols."""
    own: Any = costs
    for at in range(0, len(path) - 1, 2):
        graph, own = graph.operators[path[at]].bodies[path[at + 1]], own[path[at]].bodies[path[at + 1]]
    return extent_of(graph, graph.operators[path[-1]], own[path[-1]].macs)
