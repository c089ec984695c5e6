"""What method M1 keeps of a mapping: the logical nodes of every processor, and the core of every logical node."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np

from nmsolve.model.files import write_atomic
from nmsolve.model.graph import LogicGraph
from nmsolve.model.identity import Identity
from nmsolve.model.machine import Machine
from nmsolve.model.types import IntArray


class ProcessorsFile(msgspec.Struct):
    """The content of ``processors.json``: node ids by processor, in the order of the processors' numbers."""

    graph: Identity
    nodes: list[list[int | str]]


class CoresFile(msgspec.Struct):
    """The content of ``cores.json``: node ids in input order, and every node's processor and core within it, row by row."""

    graph: Identity
    node: list[int | str]
    processor: list[int]
    core: list[int]


def write_processors(folder: Path, graph: LogicGraph, machine: Machine, core: IntArray) -> None:
    """Write ``processors.json`` and ``cores.json`` of the mapping ``core`` (n,)."""
    chip = machine.chip_of[core]
    ids: list[int | str] = [*range(graph.n)] if graph.ids is None else [*graph.ids]
    nodes = [[ids[u] for u in np.flatnonzero(chip == c).tolist()] for c in range(machine.n_chips)]
    row, col = np.divmod(core, machine.cols)
    within = row % machine.cores[0] * machine.cores[1] + col % machine.cores[1]
    known = Identity(graph.name, graph.hash)
    write_atomic(folder / "processors.json", msgspec.json.encode(ProcessorsFile(known, nodes)))
    write_atomic(
        folder / "cores.json", msgspec.json.encode(CoresFile(known, ids, chip.tolist(), within.tolist()))
    )
