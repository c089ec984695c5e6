"""SANA-FE's networks in YAML: groups of neurons, edges between neurons or whole groups, and the core of every neuron."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.files import believed_nodes
from nmsolve.model.formats.sanafe_layers import LAYERS, MOST_SYNAPSES, SECTION, Groups, Parsed
from nmsolve.model.formats.yaml_text import (
    attributes,
    entry,
    listed,
    name_of,
    name_unknown,
    need,
    read_yaml,
    shown,
    span,
    whole,
)
from nmsolve.model.types import IntArray

#: What a mapping says: the core, and the units in it, of which any does.
MAPPED = ("core", "axon_in", "synapse", "dendrite", "soma", "axon_out")
#: Of this package, which installs PyYAML.
EXTRA = "sanafe"


def parse(path: Path) -> Parsed:
    """Return what a file says.

    Raises
    ------
    InputError : not such a file (with the entry), more than :data:`MOST_SYNAPSES` synapses
    """
    content, where = read_yaml(path, EXTRA), f"{path}: $"
    if not isinstance(content, dict) or "network" not in content:
        hint = (
            " (`--machine` reads this one)" if isinstance(content, dict) and "architecture" in content else ""
        )
        raise InputError(f"there is no network{hint}", where, "SANA-FE's sections network and mappings")
    network = content["network"]
    if not isinstance(network, dict):
        raise InputError(f"found {shown(network)}", f"{where}.network", "a table with groups and edges")
    name_unknown(content, ("network", "mappings", "architecture", SECTION), where)
    name_unknown(network, ("name", "groups", "edges"), f"{where}.network")
    groups = Groups(believed_nodes(path.stat().st_size))
    for i, group in enumerate(listed(need(network, "groups", f"{where}.network"), f"{where}.network.groups")):
        _group(group, groups, f"{where}.network.groups[{i}]")
    source, target = _edges(
        listed(need(network, "edges", f"{where}.network"), f"{where}.network.edges"), groups, where
    )
    tile, place = np.full(groups.neurons, -1), np.full(groups.neurons, -1)
    for i, row in enumerate(listed(content.get("mappings") or [], f"{where}.mappings")):
        here = f"{where}.mappings[{i}]"
        name, inside = entry(row, here)
        which = groups.neurons_of(name, here)
        inside = attributes(inside, here)
        name_unknown(inside, MAPPED, here)
        tile[which], place[which] = _core(need(inside, "core", here), here)
    title = network.get("name")
    section = content.get(SECTION)
    if section is not None and not isinstance(section, dict):
        raise InputError(f"found {shown(section)}", f"{where}.{SECTION}", "a table")
    return Parsed(
        str(title).strip() if title is not None else "", groups.rows(), source, target, tile, place, section
    )


def _group(group: Any, groups: Groups, where: str) -> None:
    if not isinstance(group, dict):
        raise InputError(f"found {shown(group)}", where, "a group: name, attributes, neurons")
    name_unknown(group, ("name", "attributes", "neurons"), where)
    common = attributes(group.get("attributes"), f"{where}.attributes")
    count, numbers = 0, []
    for i, row in enumerate(listed(need(group, "neurons", where), f"{where}.neurons")):
        here = f"{where}.neurons[{i}]"
        for text in row if isinstance(row, dict) else [row]:
            first, last = span(str(text), here)
            count += last - first + 1
            groups.believe(count, here)
            numbers.append((first, last, here))
    for _, last, here in numbers:
        if last >= count:
            raise InputError(f"neuron {last} of {count}", here, f"0..{count - 1}, every number once")
    groups.add(name_of(group, where), count, str(common.get("soma_hw_name", "")), where)


def _edges(rows: list[Any], groups: Groups, where: str) -> tuple[IntArray, IntArray]:
    """Return the neurons at both ends of all synapses, in the order of the file."""
    single: list[int] = []
    parts: list[IntArray] = []
    count = 0

    def settle() -> None:
        if single:
            parts.append(np.array(single, np.int64).reshape(-1, 2))
            single.clear()

    for i, row in enumerate(rows):
        here = f"{where}.network.edges[{i}]"
        if not isinstance(row, dict):
            raise InputError(f"found {shown(row)}", here, "source -> target: attributes")
        for name, inside in row.items():
            begin, arrow, end = name.partition("->")
            if not arrow:
                raise InputError(f"found {name[:60]!r}", here, "source -> target")
            a, b = groups.find(begin, here), groups.find(end, here)
            if (a.neuron is None) != (b.neuron is None):
                raise InputError(
                    f"{name[:60]!r} joins a neuron and a group", here, "two neurons, or two groups"
                )
            if a.neuron is not None and b.neuron is not None:
                single += (a.neuron, b.neuron)
                count += 1
            else:
                settle()
                table = attributes(inside, here)
                kind = str(need(table, "type", here))
                if kind not in LAYERS:
                    raise InputError(f"edges of type {kind[:40]!r}", here, "one of " + ", ".join(LAYERS))
                pairs = LAYERS[kind](table, a, b, here, MOST_SYNAPSES - count)
                count += len(pairs)
                parts.append(pairs)
        if count > MOST_SYNAPSES:
            raise InputError(f"{count:,} synapses", here, f"at most {MOST_SYNAPSES:,}")
    settle()
    pairs = np.concatenate(parts) if parts else np.zeros((0, 2), np.int64)
    return pairs[:, 0], pairs[:, 1]


def _core(value: Any, where: str) -> tuple[int, int]:
    """Return tile and place of ``"3.1"``."""
    tile, point, place = str(value).partition(".")
    if not point:
        raise InputError(f"found {shown(value)}", f"{where}.core", "TILE.CORE")
    return whole(tile, f"{where}.core"), whole(place, f"{where}.core")
