"""Which neurons of which population are on which core, in the words of Lava: for programs on Loihi.

Lava has no file of core assignments: its compiler for Loihi chooses cores itself, in a part that is not public. Its public part
(lava-nc 0.10) says where variables are by ``LoihiAddress``: chip and core, physical and logical, and a run of neighbouring
elements. The file holds such records, with their names.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nmsolve.hw.cost import checked_core
from nmsolve.model.files import atomic_file, made_folder
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.types import AnyArray, IntArray

#: What is written.
FILE = "core_assignment.json"
#: What the file is, for whoever reads it.
FORM = {"format": "core assignment", "version": 1}


@dataclass(frozen=True)
class LavaExport:
    """What was written: the path, how many populations, cores in use and runs of neurons, and notes on what it cannot say."""

    file: Path
    populations: int
    cores: int
    addresses: int
    notes: tuple[str, ...]


def export_lava(graph: LogicGraph, machine: Machine, core: AnyArray, folder: str | Path) -> LavaExport:
    """Write the mapping ``core`` (n,) into ``folder``, which is made if need be.

    A population is what stands before the last ``/`` in all ids, else the kinds of nodes, else all nodes together.

    Raises
    ------
    InputError : a wrong mapping, a folder that cannot be written
    """
    at = checked_core(graph, machine, core)
    of, names = populations_of(graph)
    place = _counted(of)
    first, length = _runs(of, place, at)
    target = made_folder(folder)
    used, logical = np.unique(_by_chip(machine)[at], return_inverse=True)
    rows: list[list[dict[str, int]]] = [[] for _ in names]
    chip, inside = _chip_and_core(machine)
    on_core = _counted(at)
    for u, count in zip(first.tolist(), length.tolist(), strict=True):
        p = int(at[u])
        rows[int(of[u])].append(
            {
                "first": int(place[u]), "length": count, "stride": 1, "physical_chip_id": int(chip[p]),
                "physical_core_id": int(inside[p]), "logical_chip_id": int(chip[p]), "logical_core_id": int(logical[u]),
                "logical_idx_addr": int(on_core[u]),
            }
        )  # fmt: skip
    with atomic_file(target / FILE) as file:
        about = {
            **FORM, "graph": graph.name, "machine": machine.name, "chips": list(machine.chips), "cores": list(machine.cores),
        }  # fmt: skip
        file.write((json.dumps(about)[:-1] + ', "populations": [\n').encode())
        for k, name in enumerate(names):
            nodes = np.flatnonzero(of == k)
            told: dict[str, object] = {"name": name, "neurons": len(nodes), "addresses": rows[k]}
            ids = [graph.node_id(u) for u in nodes.tolist()]
            if ids != [f"{name}/{i}" for i in range(len(ids))]:
                told["ids"] = ids
            file.write(((",\n" if k else "") + json.dumps(told)).encode())
        file.write(b"\n]}\n")
    return LavaExport(target / FILE, len(names), len(used), len(first), _notes(graph, machine))


def populations_of(graph: LogicGraph) -> tuple[IntArray, list[str]]:
    """Return (n,) the population of every node, and their names."""
    before = [str(v).rpartition("/")[0] for v in graph.ids or ()]
    if before and "" not in before:
        number = {name: k for k, name in enumerate(dict.fromkeys(before))}
        return np.array([number[name] for name in before], np.int64), list(number)
    if graph.kinds is not None:
        return np.asarray(graph.kinds.of, np.int64), [str(name) for name in graph.kinds.names]
    return np.zeros(graph.n, np.int64), ["nodes"]


def _counted(group: IntArray) -> IntArray:
    """Return (n,) how many nodes of the same group come before each."""
    order = np.argsort(group, kind="stable")
    ordered = group[order]
    out = np.empty(len(group), np.int64)
    out[order] = np.arange(len(group)) - np.searchsorted(ordered, ordered)
    return out


def _runs(of: IntArray, place: IntArray, at: IntArray) -> tuple[IntArray, IntArray]:
    """Return (runs,) the first node and the length of every run: one population, one core, neighbouring places on both."""
    order = np.lexsort((place, of))
    on_core = _counted(at)[order]
    begins = np.ones(len(order), bool)
    begins[1:] = (np.diff(of[order]) != 0) | (np.diff(at[order]) != 0) | (np.diff(on_core) != 1)
    start = np.flatnonzero(begins)
    return order[start], np.diff(np.append(start, len(order)))


def _chip_and_core(machine: Machine) -> tuple[IntArray, IntArray]:
    """Return (cores,) the chip of every core, and its number within the chip, row by row."""
    row, col = np.divmod(np.arange(machine.size), machine.cols)
    inside: IntArray = (row % machine.cores[0]) * machine.cores[1] + col % machine.cores[1]
    return machine.chip_of, inside


def _by_chip(machine: Machine) -> IntArray:
    """Return (cores,) numbers of cores that rise chip by chip."""
    chip, inside = _chip_and_core(machine)
    return chip * (machine.cores[0] * machine.cores[1]) + inside


def _notes(graph: LogicGraph, machine: Machine) -> tuple[str, ...]:
    notes = [
        "Lava's compiler takes no file of core assignments: this one is for programs that place neurons themselves"
    ]
    if "neurons" in graph.resources and (graph.sizes[:, graph.resources.index("neurons")] != 1).any():
        notes.append("nodes stand for several neurons; numbers in the file count nodes")
    if machine.distance_matrix is not None:
        notes.append("the machine is given by distances: all its cores are on chip 0")
    return tuple(notes)
