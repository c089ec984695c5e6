"""Placements, keys and routing tables of a mapping for SpiNNaker, as the JSON files that PACMAN 7 reads.

A core of the machine is a SpiNNaker chip (docs/machines.md). Nodes of one population on a chip become *slices*, one per
processor. A slice has a block of keys, one for each node, and goes to every processor with a slice that a node of it sends to.
Routers see slices, not nodes: a packet may pass more links than the message of its node does. Formats are those of PACMAN's
schemas (placements.json, routing_tables.json).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nmsolve.hw.cost import checked_core
from nmsolve.hw.routes import route
from nmsolve.model.errors import InputError
from nmsolve.model.file_set import file_set
from nmsolve.model.files import made_folder, write_atomic
from nmsolve.model.graph import LogicGraph, pieces
from nmsolve.model.links import require_links
from nmsolve.model.machine import Machine
from nmsolve.model.types import AnyArray, IntArray

#: What is written.
FILES = ("placements.json", "routing_tables.json", "keys.json")
#: SpiNNaker's numbers of the links east, west, towards growing rows (its north), towards smaller ones.
LINKS = (0, 3, 2, 5)
#: The capacity that says how many processors of a chip run programs.
PROCESSORS = "processors"
#: Bits of a key; the first processor that runs a program (0 watches the chip); entries of a router.
KEY_BITS, FIRST, ENTRIES = 32, 1, 1023
#: Neurons of a processor where the machine does not say.
USUAL = 256


@dataclass(frozen=True)
class PacmanExport:
    """What was written, and how full the chips are.

    Attributes
    ----------
    files : the paths
    slices, processors : number of slices; most of them on a chip
    entries : (P,) entries of every router before compression
    notes : what the files cannot say
    """

    files: tuple[Path, ...]
    slices: int
    processors: int
    entries: IntArray
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Slices:
    """Nodes of one population on one processor each.

    Attributes
    ----------
    of : (n,) slice of every node
    core, processor : (S,) chip and processor of every slice
    label : names: the population and a number
    """

    of: IntArray
    core: IntArray
    processor: IntArray
    label: list[str]


def export_pacman(graph: LogicGraph, machine: Machine, core: AnyArray, folder: str | Path) -> PacmanExport:
    """Write the mapping ``core`` (n,) into ``folder``, which is made if need be; all files at once, or none.

    Raises
    ------
    InputError : a machine whose cores are no SpiNNaker chips (no capacity ``processors``), a chip with more slices than
        processors, more keys than 32 bits hold, a wrong mapping, a folder that cannot be written
    """
    require_links(machine)
    if PROCESSORS not in machine.capacity:
        raise InputError(
            "its cores are no SpiNNaker chips: no capacity processors", machine.name, "spinnaker1, or a machine file with it"
        )  # fmt: skip
    at = checked_core(graph, machine, core)
    slices = slices_of(graph, machine, at)
    size = np.bincount(slices.of, minlength=len(slices.core))
    key, bits = _keys(size, graph.name)
    tables, entries = _tables(machine, slices, _reached(graph, slices), key, bits)
    target = made_folder(folder)
    with file_set(target, FILES) as inside:
        for name, content in zip(
            FILES, (_placements(machine, slices), tables, _told(graph, slices, key, bits)), strict=True
        ):
            write_atomic(inside / name, json.dumps(content) + "\n")
    most = int(np.bincount(slices.core, minlength=machine.size).max())
    files = tuple(target / name for name in FILES)
    return PacmanExport(files, len(size), most, entries, _notes(machine, entries))


def slices_of(graph: LogicGraph, machine: Machine, core: IntArray) -> Slices:
    """Return the slices of a mapping ``core`` (n,) onto chips, each with its own number of processors that run programs.

    A processor takes the chip's neurons over its processors, of one population: the graph's kinds, else what stands before the
    last ``/`` in all ids, else all nodes are of one. Where nodes stand for several neurons, the largest of a population counts.

    Raises
    ------
    InputError : a chip needs more processors, or a node has more neurons than one holds
    """
    usable, most = machine.limits(PROCESSORS), max(1, machine.capacity[PROCESSORS])
    room = machine.capacity.get("neurons", USUAL * most) // most or 1
    population, names = _populations(graph)
    order = np.lexsort((np.arange(graph.n), population, core))
    weight = (
        graph.sizes[:, graph.resources.index("neurons")]
        if "neurons" in graph.resources
        else np.ones(graph.n, np.int64)
    )
    group = core[order] * len(names) + population[order]
    starts = np.diff(group, prepend=-1) != 0
    which = np.cumsum(starts) - 1
    largest = np.maximum.reduceat(weight[order], np.flatnonzero(starts))
    if largest.max() > room:
        raise InputError(f"a node of {largest.max()} neurons", graph.name, f"at most {room} on a processor")
    rank = np.arange(graph.n) - np.flatnonzero(starts)[which]
    begins = starts | (rank % (room // np.maximum(largest, 1))[which] == 0)
    number = np.cumsum(begins) - 1
    of = np.empty(graph.n, np.int64)
    of[order] = number
    heads = order[begins]
    chip = core[heads]
    processor = np.arange(len(chip)) - np.searchsorted(chip, chip) + FIRST
    over = processor - FIRST - usable[chip]
    if (over >= 0).any():
        full = int(chip[np.argmax(over)])
        raise InputError(
            f"chip {divmod(full, machine.cols)} needs {int((chip == full).sum())} processors, one population each",
            graph.name, f"at most {usable[full]}: fewer nodes or populations on a chip (kinds_per_core, slices)",
        )  # fmt: skip
    kind = population[heads]
    by = np.argsort(kind, kind="stable")
    place = np.empty(len(heads), np.int64)  # among the slices of the population
    place[by] = np.arange(len(heads)) - np.searchsorted(kind[by], kind[by])
    label = [f"{names[k]}/{i}" for k, i in zip(kind.tolist(), place.tolist(), strict=True)]
    return Slices(of, chip, processor, label)


def _populations(graph: LogicGraph) -> tuple[IntArray, list[str]]:
    """Return (n,) the population of every node, and their names."""
    if graph.kinds is not None:
        return np.asarray(graph.kinds.of, np.int64), [str(name) for name in graph.kinds.names]
    before = [str(v).rpartition("/")[0] for v in graph.ids or ()]
    if len(before) < graph.n or "" in before:
        return np.zeros(graph.n, np.int64), ["nodes"]
    names = list(dict.fromkeys(before))
    number = {name: k for k, name in enumerate(names)}
    return np.array([number[name] for name in before], np.int64), names


def _keys(size: IntArray, name: str) -> tuple[IntArray, IntArray]:
    """Return the first key (S,) of every slice, and how many low bits count its nodes: powers of two, large ones first."""
    # One key of a block stays free: PACMAN's checker counts the key after the last one as the slice's, too.
    bits = np.ceil(np.log2(size + 1)).astype(np.int64)
    key, end = np.empty(len(size), np.int64), 0
    for s in np.argsort(-bits, kind="stable").tolist():  # aligned, as no later block is larger
        key[s], end = end, end + (1 << int(bits[s]))
    if end > 1 << KEY_BITS:
        raise InputError(f"{end} keys", name, f"at most 2^{KEY_BITS}")
    return key, bits


def _reached(graph: LogicGraph, slices: Slices) -> list[IntArray]:
    """Return for every slice those that one of its nodes sends to."""
    count = len(slices.core)
    pairs = np.zeros(0, np.int64)
    for rows, row in pieces(graph):
        key = slices.of[rows.source[row]] * count + slices.of[rows.targets]
        pairs = np.union1d(pairs, key)
    source, target = np.divmod(pairs, count)
    return [
        target[a:b]
        for a, b in zip(*(np.searchsorted(source, np.arange(count) + k) for k in (0, 1)), strict=True)
    ]


def _tables(
    machine: Machine, slices: Slices, reached: list[IntArray], key: IntArray, bits: IntArray
) -> tuple[list[dict[str, object]], IntArray]:
    """Return the routing tables of all chips that have entries, and (P,) their numbers."""
    rows: list[list[dict[str, object]]] = [[] for _ in range(machine.size)]
    ways: dict[tuple[int, int], list[int]] = {}
    for s, goals in enumerate(reached):
        if not len(goals):
            continue
        home = int(slices.core[s])
        out: dict[int, int] = {home: 0}
        came: dict[int, int] = {}
        for chip in np.unique(slices.core[goals]).tolist():
            if (home, chip) not in ways:
                ways[home, chip] = route(machine, home, chip)
            for link in ways[home, chip]:
                out[link >> 2] = out.get(link >> 2, 0) | 1 << LINKS[link & 3]
                end = _end(machine, link)
                out.setdefault(end, 0)
                came[end] = link & 3
        for t in goals.tolist():
            out[int(slices.core[t])] |= 1 << (6 + int(slices.processor[t]))
        for chip, way in out.items():
            straight = chip in came and way == 1 << LINKS[came[chip]]
            mask = (1 << KEY_BITS) - (1 << int(bits[s]))
            rows[chip].append(
                {"key": int(key[s]), "mask": mask, "defaultable": straight, "spinnaker_route": way}
            )
    tables: list[dict[str, object]] = [
        {"x": p % machine.cols, "y": p // machine.cols, "entries": own} for p, own in enumerate(rows) if own
    ]
    return tables, np.array([len(own) for own in rows])


def _end(machine: Machine, link: int) -> int:
    r, c = divmod(link >> 2, machine.cols)
    down, right = ((0, 1), (0, -1), (1, 0), (-1, 0))[link & 3]
    return (r + down) % machine.rows * machine.cols + (c + right) % machine.cols


def _placements(machine: Machine, slices: Slices) -> list[dict[str, object]]:
    return [
        {"vertex_label": label, "x": p % machine.cols, "y": p // machine.cols, "p": q}
        for label, p, q in zip(slices.label, slices.core.tolist(), slices.processor.tolist(), strict=True)
    ]


def _told(graph: LogicGraph, slices: Slices, key: IntArray, bits: IntArray) -> dict[str, object]:
    """Return which key belongs to which node: node k of a slice has its key plus k."""
    order = np.argsort(slices.of, kind="stable")
    first = np.searchsorted(slices.of[order], np.arange(len(slices.core) + 1))
    rows = [
        {
            "vertex_label": slices.label[s], "key": int(key[s]), "mask": (1 << KEY_BITS) - (1 << int(bits[s])),
            "nodes": [graph.node_id(i) for i in order[first[s] : first[s + 1]].tolist()],
        }
        for s in range(len(slices.core))
    ]  # fmt: skip
    return {"graph": graph.name, "vertices": rows}


def _notes(machine: Machine, entries: IntArray) -> tuple[str, ...]:
    size = f"{machine.cols} by {machine.rows}"
    notes = [
        f"chips are (x, y) = (column, row) of {size}, a rectangle; no board of 48 chips holds it, three boards (12 by 12 chips "
        "in PACMAN) do"
    ]
    if machine.torus:
        notes.append("routes round the edges need a machine of exactly this size")
    full = int((entries > ENTRIES).sum())
    if full:
        most = int(entries.max())
        notes.append(
            f"{full} routers have more than {ENTRIES} entries, {most} at most: compress them, as PACMAN does"
        )
    return tuple(notes)
