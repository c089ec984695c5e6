"""The programs of an answer: paths, units and predicted times from the problem as it was stated, and what the host computes in
numbers for them: arithmetic on lengths, and tiles (M3.2, M3.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nmsolve.hw.assignment.evaluate import all_objectives, jobs_of, moves_of
from nmsolve.hw.assignment.programs.exchange import write_exchange
from nmsolve.hw.assignment.programs.manifest import Manifest, UnitEntry
from nmsolve.hw.assignment.programs.write import Predicted, write_pieces
from nmsolve.hw.assignment.roofline import tiles_of
from nmsolve.hw.assignment.state import StatedAssignment
from nmsolve.hw.assignment.tiling import Extent, Tiles, extent_of, tile_program
from nmsolve.model.assignment.assignment import Assignment
from nmsolve.model.assignment.files import place_of
from nmsolve.model.formats.onnx.nodes import OperatorPath
from nmsolve.model.operators.costs import OperatorCost, operator_costs
from nmsolve.model.operators.graph import OperatorGraph
from nmsolve.model.operators.scalars.passes import optimised
from nmsolve.model.operators.scalars.program import Builder, ScalarProgram
from nmsolve.model.operators.scalars.trace import traced


def write_programs(
    model_path: str | Path,
    stated: StatedAssignment,
    answer: Assignment,
    folder: str | Path,
    *,
    graph: OperatorGraph | None = None,
    threads: Mapping[str, int] | None = None,
) -> Manifest:
    """Write a model per piece of an assignment, and ``manifest.json`` with what the problem says that everything takes.

    Beside them are the forms of other tools (:mod:`nmsolve.hw.assignment.programs.exchange`). What is predicted of an operator
    is in its piece, all turns of loops included; of a fused group all is at its last operator.

    Parameters
    ----------
    graph : the model as :func:`nmsolve.model.formats.onnx.load_onnx` reads it, symbols unbound; read here if not given
    threads : that stand for a unit when the programs are executed; those of the machine if not given

    Raises
    ------
    InputError : as :func:`nmsolve.hw.assignment.programs.write.write_pieces`
    """
    problem, paths = stated.problem, stated.operators
    names = problem.units.names
    _, time, _ = jobs_of(problem, answer)
    unit = answer.unit.tolist()
    moves = moves_of(problem, answer.unit)
    moved: Counter[tuple[OperatorPath, int, int]] = Counter()
    cost = problem.flows.time[moves]
    for t, origin, goal, value in zip(
        moves.tensor.tolist(), moves.origin.tolist(), moves.goal.tolist(), cost.tolist(), strict=True
    ):
        moved[stated.tensors[t], origin, goal] += value
    placement = {path: names[j] for path, j in zip(paths, unit, strict=True) if path}
    manifest = write_pieces(
        model_path,
        placement,
        _units(stated, threads or {}),
        folder,
        graph=graph,
        home=names[unit[0]],
        target=names[unit[-1]],
        standing=stated.left_out,
        bindings=stated.program.bindings,
        assignment=problem.content_hash,
        predicted=Predicted(
            all_objectives(problem, answer),
            {path: value for path, value in zip(paths, time.tolist(), strict=True) if path},
            moved,
        ),
    )
    write_exchange(model_path, placement, manifest, folder)
    return manifest


def _units(stated: StatedAssignment, threads: Mapping[str, int]) -> list[UnitEntry]:
    """Return the units as the manifest lists them."""
    units, machine = stated.problem.units, stated.machine
    out = []
    for j, name in enumerate(units.names):
        processor, core = place_of(name)
        own = machine.processors[int(machine.owner[j])]
        site = int(units.site[j])
        out.append(
            UnitEntry(
                name,
                processor,
                core,
                bool(units.host[j]),
                threads.get(name, own.threads),
                site,
                units.memories[int(units.memory[site])],
            )
        )
    return out


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
