"""What SANA-FE's networks say: groups of neurons, edges between neurons or whole groups, and the core of every neuron.

YAML of version 2, where edges between groups may be dense, sparse or a convolution; text of version 1: a line per group (``g``),
neuron (``n``), edge (``e``) and mapping (``&``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.files import believed_nodes, read_limited
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

#: More synapses than this are not read; SANA-FE itself takes tens of gigabytes for them.
MOST_SYNAPSES = 20_000_000
#: The section of our own (:mod:`.sanafe_own`).
SECTION = "nmsolve"


class Parsed(NamedTuple):
    """What a file says.

    ``groups``: name, number of neurons and soma of each; ``source``, ``target`` (synapses,): numbers of neurons, counted over all
    groups; ``tile``, ``place`` (neurons,): where the neurons are, -1 where that is not said; ``section``: ours, or None.
    """

    name: str
    groups: list[tuple[str, int, str]]
    source: IntArray
    target: IntArray
    tile: IntArray
    place: IntArray
    section: Mapping[str, Any] | None = None


class Place(NamedTuple):
    """A group (number of its first neuron, how many), and one neuron of it, counted over all groups, or None for the group."""

    first: int
    size: int
    neuron: int | None


class Groups:
    """The groups so far, in the order of the file; ``most`` neurons are believed."""

    def __init__(self, most: int) -> None:
        self.neurons = 0
        self._most = most
        self._of: dict[str, tuple[int, int, str]] = {}

    def believe(self, count: int, where: str) -> None:
        """Refuse a group that makes more neurons than a file of this size may have."""
        if self.neurons + count > self._most:
            raise InputError(
                f"{self.neurons + count:,} neurons", where, f"at most {self._most:,} for a file of this size"
            )

    def add(self, name: str, size: int, soma: str, where: str) -> None:
        """Add a group. InputError for a name that is taken, or that addresses could not hold."""
        if name in self._of or "." in name or "->" in name:
            what = f"a second group {name[:60]!r}" if name in self._of else f"a group called {name[:60]!r}"
            raise InputError(what, where, "another name, without point or arrow")
        self.believe(size, where)
        self._of[name] = self.neurons, size, soma
        self.neurons += size

    def rows(self) -> list[tuple[str, int, str]]:
        """Return name, size and soma of every group."""
        return [(name, size, soma) for name, (_, size, soma) in self._of.items()]

    def _group(self, name: str, where: str) -> tuple[int, int]:
        if name not in self._of:
            raise InputError(f"there is no group {name[:60]!r}", where, "a group of this network")
        return self._of[name][:2]

    def find(self, text: str, where: str) -> Place:
        """Return what ``group`` or ``group.number`` names. InputError if there is no such thing."""
        name, point, number = text.strip().partition(".")
        first, size = self._group(name, where)
        if not point:
            return Place(first, size, None)
        neuron = whole(number, where)
        if neuron >= size:
            raise InputError(f"neuron {text.strip()[:60]!r}", where, f"0..{size - 1} in this group")
        return Place(first, size, first + neuron)

    def neurons_of(self, text: str, where: str) -> slice:
        """Return the neurons of ``group``, ``group.3`` or ``group.0..7``. InputError if there are none such."""
        name, point, numbers = text.strip().partition(".")
        first, size = self._group(name, where)
        begin, end = span(numbers, where) if point else (0, size - 1)
        if end >= size:
            raise InputError(f"neuron {end} of group {name[:60]!r}", where, f"0..{size - 1}")
        return slice(first + begin, first + end + 1)


def _dense(table: dict[str, Any], a: Place, b: Place, where: str, room: int) -> IntArray:
    """Everything with everything, row by row of the weights."""
    del table  # weights, one for each: no traffic
    _fits(a.size * b.size, room, where)
    source, target = np.indices((a.size, b.size)).reshape(2, -1)
    return np.column_stack([a.first + source, b.first + target])


def _sparse(table: dict[str, Any], a: Place, b: Place, where: str, room: int) -> IntArray:
    key = "source_target_pairs"
    rows = listed(need(table, key, where), f"{where}.{key}")
    _fits(len(rows), room, where)
    out = np.empty((len(rows), 2), np.int64)
    for i, row in enumerate(rows):
        here = f"{where}.{key}[{i}]"
        if len(listed(row, here)) != 2:
            raise InputError(f"{len(row)} numbers", here, "source and target")
        for k, (value, group) in enumerate(zip(row, (a, b), strict=True)):
            number = whole(value, here)
            if number >= group.size:
                raise InputError(f"neuron {number} of a group of {group.size}", here, f"0..{group.size - 1}")
            out[i, k] = group.first + number
    return out


def _convolution(table: dict[str, Any], a: Place, b: Place, where: str, room: int) -> IntArray:
    """Two dimensions, no padding; neurons are numbered by channel, then row, then column."""

    def number(key: str) -> int:
        return whole(need(table, key, where), f"{where}.{key}", 1)

    channels, kernels = number("input_channels"), number("kernel_count")
    size, kernel, stride = (
        [number(f"{what}_{way}") for way in ("height", "width")] for what in ("input", "kernel", "stride")
    )
    if kernel[0] > size[0] or kernel[1] > size[1]:
        raise InputError(
            f"a kernel of {kernel[0]} x {kernel[1]}", where, f"at most {size[0]} x {size[1]}, the input"
        )
    out = [(s - k) // step + 1 for s, k, step in zip(size, kernel, stride, strict=True)]
    for what, group, wanted in (
        ("source", a, channels * size[0] * size[1]),
        ("target", b, kernels * out[0] * out[1]),
    ):
        if group.size != wanted:
            raise InputError(
                f"the {what} group has {group.size} neurons", where, f"{wanted}, as the convolution says"
            )
    _fits(b.size * channels * kernel[0] * kernel[1], room, where)
    to, down, across, channel, y, x = np.indices((kernels, *out, channels, *kernel)).reshape(6, -1)
    source = (channel * size[0] + down * stride[0] + y) * size[1] + across * stride[1] + x
    target = (to * out[0] + down) * out[1] + across
    return np.column_stack([a.first + source, b.first + target])


def _fits(count: int, room: int, where: str) -> None:
    if count > room:
        raise InputError(f"{count:,} synapses in one entry", where, f"at most {max(room, 0):,} more")


#: What the edges between two groups may be.
LAYERS: dict[str, Callable[[dict[str, Any], Place, Place, str, int], IntArray]] = {
    "dense": _dense, "conv2d": _convolution, "sparse": _sparse,
}  # fmt: skip


#: What a mapping says: the core, and the units in it, of which any does.
MAPPED = ("core", "axon_in", "synapse", "dendrite", "soma", "axon_out")
#: Of this package, which installs PyYAML.
EXTRA = "sanafe"


def parse_yaml(path: Path) -> Parsed:
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


#: A line of each kind, as messages show it.
KINDS = {
    "g": "g COUNT",
    "n": "n GROUP.NEURON",
    "e": "e GROUP.NEURON->GROUP.NEURON",
    "&": "& GROUP.NEURON@TILE.CORE",
}


def parse_netlist(path: Path) -> Parsed:
    """Return what a file says; attributes besides a group's ``soma_hw_name`` are not looked at.

    Raises
    ------
    InputError : not such a file (with the line), more than :data:`MOST_SYNAPSES` synapses
    """
    data = read_limited(path)
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError:
        raise InputError("not UTF-8 text", str(path), "SANA-FE's text of networks") from None
    groups, ends = Groups(believed_nodes(len(data))), []
    cores: dict[int, tuple[int, int]] = {}
    for number, line in enumerate(lines, 1):
        words, where = line.split(), f"{path}:{number}"
        if not words or words[0].startswith("#"):
            continue
        kind = words[0][0]
        if kind not in KINDS or len(words) < 2:
            raise InputError(
                f"found {line.strip()[:60]!r}", where, "a line such as " + ", ".join(KINDS.values())
            )
        if kind == "g":
            soma = next((w.partition("=")[2] for w in words[2:] if w.startswith("soma_hw_name=")), "")
            groups.add(str(len(groups.rows())), whole(words[1], where), soma, where)
        elif kind == "n":
            _neuron(groups, words[1], where, kind)
        elif kind == "e":
            begin, arrow, end = words[1].partition("->")
            if not arrow:
                raise InputError(f"found {words[1][:60]!r}", where, KINDS[kind])
            ends += [_neuron(groups, begin, where, kind), _neuron(groups, end.partition(":")[0], where, kind)]
            if len(ends) > 2 * MOST_SYNAPSES:
                raise InputError(f"{len(ends) // 2:,} synapses", where, f"at most {MOST_SYNAPSES:,}")
        else:
            name, _, core = words[1].partition("@")
            tile, point, place = core.partition(".")
            if not point:
                raise InputError(f"found {words[1][:60]!r}", where, KINDS[kind])
            cores[_neuron(groups, name, where, kind)] = whole(tile, where), whole(place, where)
    at = np.full((groups.neurons, 2), -1)
    if cores:
        at[list(cores)] = list(cores.values())
    pairs = np.array(ends, np.int64).reshape(-1, 2)
    return Parsed("", groups.rows(), pairs[:, 0], pairs[:, 1], at[:, 0], at[:, 1])


def _neuron(groups: Groups, text: str, where: str, kind: str) -> int:
    found = groups.find(text, where)
    if found.neuron is None:
        raise InputError(f"found {text[:60]!r}", where, KINDS[kind])
    return found.neuron
