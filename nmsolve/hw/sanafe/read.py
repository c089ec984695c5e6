"""An architecture file of SANA-FE as a machine: tiles, cores, energies and times; what a machine cannot say is in its notes.

Where a tile has several cores, it becomes a chip of them. A hop costs energy and time only between tiles, so the figure
``crossing`` of energies and latencies carries what both axes cost, and the dearer axis has the rest, along which a tile has one
core only. Distances cannot be 0: a step within a tile weighs :data:`WITHIN`.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nmsolve.model.contained import Reply, one_reply
from nmsolve.model.errors import InputError, doubtful
from nmsolve.model.formats.sanafe_text import EXTRA, SECTION
from nmsolve.model.formats.yaml_text import (
    attributes,
    listed,
    name_of,
    name_unknown,
    need,
    read_yaml,
    real,
    shown,
    span,
    whole,
)
from nmsolve.model.machine import Figure, Machine
from nmsolve.model.tiles import CORES_PER_TILE
from nmsolve.model.types import IntArray

#: Cores that are believed, and the weight of a link within a tile, where the weight between tiles is 1.
MOST_CORES, WITHIN = 2**20, 2.0**-10
#: SANA-FE's joules and seconds are our pJ and ns.
SCALE = {"energy": 1e12, "latency": 1e9}
#: Our figures by the section of a core and SANA-FE's name.
FIGURES = (
    ("axon_in", "latency_message_in", "latency_axon_in"), ("axon_out", "latency_message_out", "latency_axon_out"),
    ("synapse", "energy_process_spike", "energy_synaptic_op"), ("synapse", "latency_process_spike", "latency_synaptic_op"),
    ("soma", "energy_access_neuron", "energy_neuron_access"), ("soma", "latency_access_neuron", "latency_neuron_access"),
    ("soma", "energy_update_neuron", "energy_neuron_update"), ("soma", "latency_update_neuron", "latency_neuron_update"),
    ("soma", "energy_spike_out", "energy_spike_out"), ("soma", "latency_spike_out", "latency_spike_out"),
)  # fmt: skip
#: What costs energy or time in SANA-FE and has no figure here.
UNSAID = (("axon_in", "energy_message_in"), ("dendrite", "energy_update"), ("dendrite", "latency_update"))
#: What a message costs at its source, which is among the energies.
MESSAGE = ("axon_out", "energy_message_out")
SECTIONS = ("axon_in", "synapse", "dendrite", "soma", "axon_out")
#: What stands in the file, in the section of the chip, and in a core.
ROOT = ("architecture", "network", "mappings", SECTION)
NOC = ("width", "height", "link_buffer_size", "topology", "sync_model", "latency_sync")
CORE = ("max_neurons_supported", "buffer_position", "buffer_inside_unit")
#: The only topology that SANA-FE has (2.2.9).
MESH = "mesh"
WAYS = {"x": ("east", "west"), "y": ("north", "south")}


class _Core(NamedTuple):
    """One kind of core: how many neurons it holds, and the attributes of the unit of each section that counts."""

    room: int
    units: dict[str, dict[str, Any]]
    others: list[str]
    where: str


class _Tile(NamedTuple):
    """One kind of tile: energy and latency of a hop along each axis (``energy_x``, in J and s), and its cores."""

    hops: dict[str, float]
    uneven: bool
    cores: list[_Core]


def read_architecture(path: str | Path) -> Machine:
    """Return the machine that a file describes; a warning says in one line what it cannot take over.

    Raises
    ------
    InputError : YAML is needed and PyYAML not installed; not such a file (with the entry), too many cores
    """
    file = Path(path)
    said = one_reply(partial(_reply, file), file)
    table = said.value
    if table["lost"]:
        doubtful(table["lost"], str(file), "one kind of tile, core and unit")
    grid, inner = tuple(table["grid"]), tuple(table["inner"])
    tiled = inner != (1, 1)
    room = said.arrays["room"].astype(np.int64)
    energy, latency = (
        {k: Figure(v, unit, table["source"], True) for k, v in table[kind].items()}
        for kind, unit in (("energy", "pJ"), ("latency", "ns"))
    )
    figures = {k: Figure(v, unit, table["source"], True) for k, (v, unit) in table["figures"].items()}
    most = int(room.max())
    figures["capacity.neurons"] = Figure(most, "per core", table["source"], True)
    return Machine(
        name=table["name"], chips=grid if tiled else (1, 1), cores=inner if tiled else grid, capacity={"neurons": most},
        link_weight=WITHIN if tiled else 1.0, energy=energy, latency=latency, figures=figures, notes=table["notes"],
        faulty_cores=tuple(np.flatnonzero(room < 0).tolist()),
        core_capacity={} if len(np.unique(room[room >= 0])) == 1 else {"neurons": np.maximum(room, 0)},
    )  # fmt: skip


def _reply(path: Path) -> Reply:
    content, where = read_yaml(path, EXTRA), f"{path}: $"
    if not isinstance(content, dict) or not isinstance(content.get("architecture"), dict):
        hint = " (this is a network)" if isinstance(content, dict) and "network" in content else ""
        raise InputError(f"there is no architecture{hint}", where, "SANA-FE's section architecture")
    name_unknown(content, ROOT, where)
    chip, where = content["architecture"], f"{where}.architecture"
    name_unknown(chip, ("name", "attributes", "tile"), where)
    noc = attributes(chip.get("attributes"), f"{where}.attributes")
    name_unknown(noc, NOC, f"{where}.attributes")
    if str(noc.get("topology", MESH)).lower() != MESH:
        doubtful(
            f"the topology {str(noc['topology'])[:40]!r} is read as a mesh: SANA-FE simulates no other",
            f"{where}.attributes.topology", MESH,
        )  # fmt: skip
    width, height = (whole(need(noc, k, where), f"{where}.attributes.{k}", 1) for k in ("width", "height"))
    tiles = _tiles(chip.get("tile"), f"{where}.tile")
    if len(tiles) > width * height:
        raise InputError(
            f"{len(tiles)} tiles", f"{where}.tile", f"at most {width * height}, {width} x {height}"
        )
    across = -(-len(tiles) // height)
    down = min(height, len(tiles))
    inner, costs, lost = _costs(tiles)
    per_tile = inner[0] * inner[1]
    if across * down * per_tile > MOST_CORES:
        raise InputError(f"{across * down * per_tile:,} cores", where, f"at most {MOST_CORES:,}")
    figures, notes, more = _figures(tiles, noc, f"{where}.attributes")
    if per_tile > 1:
        figures[CORES_PER_TILE] = (float(per_tile), "cores that share a router")
        notes.insert(
            0, f"A chip is a tile of SANA-FE. A step within a tile weighs {WITHIN:g} hops and costs nothing."
        )
    lost += more
    if lost:
        notes.append(f"Not taken over: {'; '.join(lost)}.")
    if across < width:
        notes.append(f"Of {width} columns of tiles {across} are there.")
    value = {
        "name": name_of(chip, where), "grid": (down, across), "inner": inner, "source": path.name, "figures": figures,
        "notes": " ".join(notes), "lost": "; ".join(lost), **costs,
    }  # fmt: skip
    return Reply(value, {"room": _room(tiles, (down, across), inner)})


def _repeated(row: Any, where: str) -> tuple[dict[str, Any], int]:
    """Return a tile or core, and how many there are of it: ``name[0..7]`` are eight."""
    if not isinstance(row, dict):
        raise InputError(f"found {shown(row)}", where, "a table with a name")
    name = name_of(row, where)
    if ".." not in name:
        return row, 1
    begin, end = span(name.partition("[")[2].rstrip("]") or name, f"{where}.name")
    return row, end - begin + 1


def _each(value: Any, where: str) -> list[Any]:
    return [value] if isinstance(value, dict) else listed(value, where)


def _tiles(value: Any, where: str) -> list[_Tile]:
    out: list[_Tile] = []
    for i, row in enumerate(_each(value, where)):
        here = f"{where}[{i}]"
        tile, count = _repeated(row, here)
        costs = attributes(tile.get("attributes"), f"{here}.attributes")
        name_unknown(tile, ("name", "attributes", "core"), here)
        known = [f"{what}_{way}_hop" for what in SCALE for ways in WAYS.values() for way in ways]
        name_unknown(costs, known, f"{here}.attributes")
        hops, uneven = {}, False
        for what in SCALE:
            for axis, ways in WAYS.items():
                keys = [f"{what}_{way}_hop" for way in ways]
                each = [real(need(costs, k, here), f"{here}.attributes.{k}") for k in keys]
                uneven |= each[0] != each[1]
                hops[f"{what}_{axis}"] = sum(each) / 2
        cores: list[_Core] = []
        for k, inner in enumerate(_each(tile.get("core"), f"{here}.core")):
            core, times = _repeated(inner, f"{here}.core[{k}]")
            if (len(cores) + times) * count + len(out) > MOST_CORES:
                raise InputError(f"{(len(cores) + times) * count:,} cores", here, f"at most {MOST_CORES:,}")
            cores += [_core(core, f"{here}.core[{k}]")] * times
        if not cores:
            raise InputError("a tile without cores", here, "at least one core")
        out += [_Tile(hops, uneven, cores)] * count
    if not out:
        raise InputError("there are no tiles", where, "at least one")
    return out


def _core(core: dict[str, Any], where: str) -> _Core:
    own = attributes(core.get("attributes"), f"{where}.attributes")
    name_unknown(core, ("name", "attributes", *SECTIONS), where)
    name_unknown(own, CORE, f"{where}.attributes")
    room = whole(need(own, "max_neurons_supported", where), f"{where}.attributes.max_neurons_supported")
    units: dict[str, dict[str, Any]] = {}
    others: list[str] = []
    for section in SECTIONS:
        here = f"{where}.{section}"
        rows = [
            _repeated(unit, f"{here}[{i}]")[0]
            for i, unit in enumerate(_each(need(core, section, where), here))
        ]
        if not rows:
            raise InputError("there is no unit", here, "at least one")
        each = [attributes(unit.get("attributes"), f"{here}[{i}].attributes") for i, unit in enumerate(rows)]
        priced = [key for part, key, _ in FIGURES if part == section]
        priced += [key for part, key in (*UNSAID, MESSAGE) if part == section]
        for i, (unit, costs) in enumerate(zip(rows, each, strict=True)):
            name_unknown(unit, ("name", "attributes"), f"{here}[{i}]")
            # Other attributes are those of the model that runs in the unit.
            paid = {key: v for key, v in costs.items() if str(key).startswith(("energy_", "latency_"))}
            name_unknown(paid, priced, f"{here}[{i}].attributes")
        counts = next((i for i, unit in enumerate(each) if str(unit.get("model", "")) != "input"), 0)
        units[section] = each[counts]
        others += [str(unit["name"]) for i, unit in enumerate(rows) if i != counts]
    return _Core(room, units, others, where)


def _costs(tiles: list[_Tile]) -> tuple[tuple[int, int], dict[str, dict[str, float]], list[str]]:
    """Return rows and columns of cores in a tile, the tables of energy and latency, and what they leave out."""
    most, hops, lost = max(len(t.cores) for t in tiles), tiles[0].hops, []
    value = {k: float(f"{v * SCALE[k.partition('_')[0]]:.12g}") for k, v in hops.items()}
    out = {what: {f"link_{axis}": value[f"{what}_{axis}"] for axis in "xy"} for what in SCALE}
    if any(t.hops != hops for t in tiles):
        lost.append("hops of other tiles than the first cost something else")
    if tiles[0].uneven:
        lost.append("directions of an axis cost different amounts, of which the mean counts")
    inner = (1, 1)
    if most > 1:
        dear = "y" if value["energy_y"] >= value["energy_x"] else "x"
        cheap, inner = ("x", (1, most)) if dear == "y" else ("y", (most, 1))
        for what in SCALE:
            less, more = value[f"{what}_{cheap}"], value[f"{what}_{dear}"]
            out[what] = {"crossing": less, f"link_{dear}": max(0.0, float(f"{more - less:.12g}"))}
            if more < less:
                lost.append(f"{what} of a hop is {more:g} on one axis, and counts as {less:g}")
    out["energy"]["message"] = float(
        f"{_value(tiles[0].cores[0], 'axon_out', 'energy_message_out') * SCALE['energy']:.12g}"
    )
    if not any(out["energy"].values()):
        lost.append("the network costs no energy, so Jin et al.'s units count")
    return inner, out, lost


def _value(core: _Core, section: str, key: str) -> float:
    return real(need(core.units[section], key, f"{core.where}.{section}"), f"{core.where}.{section}.{key}")


def _figures(
    tiles: list[_Tile], noc: dict[str, Any], where: str
) -> tuple[dict[str, tuple[float, str]], list[str], list[str]]:
    """Return figures with their units, notes, and what there is no figure for."""
    core, lost = tiles[0].cores[0], []
    notes = [
        "How long a message holds a link (latency_link_message, which step-time needs) is not said there."
    ]
    out: dict[str, tuple[float, str]] = {}
    for section, key, ours in FIGURES:
        kind = ours.partition("_")[0]
        out[ours] = (
            float(f"{_value(core, section, key) * SCALE[kind]:.12g}"),
            "pJ" if kind == "energy" else "ns",
        )
    table = (
        need(noc, "latency_sync", where)
        if str(noc.get("sync_model", "fixed")) == "table"
        else noc.get("latency_sync", 0.0)
    )
    steps = list(table.values()) if isinstance(table, dict) else table if isinstance(table, list) else [table]
    if not steps:
        raise InputError("no time of the barrier", f"{where}.latency_sync", "a number, or a table of them")
    out["latency_barrier"] = (
        float(f"{real(steps[-1], f'{where}.latency_sync') * SCALE['latency']:.12g}"),
        "ns",
    )
    out["link_buffer"] = (
        float(whole(need(noc, "link_buffer_size", where), f"{where}.link_buffer_size")),
        "messages",
    )
    out["receives_while_sending"] = (1.0, "1 or 0")
    if len(steps) > 1:
        notes.append("The barrier takes as long as for all tiles, the last of its table.")
    if core.others:
        shown_units = ", ".join(core.others[:6]) + (" ..." if len(core.others) > 6 else "")
        lost.append(f"units besides the first of a kind: {shown_units}")
    unsaid = [f"{section} {key}" for section, key in UNSAID if _value(core, section, key) > 0]
    if unsaid:
        lost.append(f"what {', '.join(unsaid)} cost")
    if any(c.units != core.units for t in tiles for c in t.cores if c is not core):
        lost.append("cores other than the first cost something else")
    return out, notes, lost


def _room(tiles: list[_Tile], grid: tuple[int, int], inner: tuple[int, int]) -> IntArray:
    """Return (cores,) how many neurons each core holds, in our order of cores; -1 where there is none."""
    down, across = grid
    room = np.full((across, down, inner[0] * inner[1]), -1, np.int64)
    for t, tile in enumerate(tiles):
        room[t // down, t % down, : len(tile.cores)] = [core.room for core in tile.cores]
    board = room.reshape(across, down, *inner).transpose(1, 2, 0, 3)
    return board.reshape(-1).copy()
