"""SONATA circuits (``circuit_config.json``; Dai et al., PLoS Computational Biology 16:e1007696, 2020): populations of nodes with
their types, and every file of edges between them; configurations of simulations lead to their circuit.

Format: https://github.com/AllenInstitute/sonata/blob/master/docs/SONATA_DEVELOPER_GUIDE.md. Populations that an entry describes,
and their types, are those of https://sonata-extension.readthedocs.io.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from nmsolve.model.contained import Reply, one_reply
from nmsolve.model.errors import InputError, doubtful, listed, name_unread
from nmsolve.model.files import believed_nodes, decode_json, read_limited
from nmsolve.model.formats.hdf5 import column, members, opened, package
from nmsolve.model.formats.sonata import EdgeFile, connected
from nmsolve.model.formats.sonata_types import (
    NOTHING,
    RATES,
    SPIKELESS,
    SPIKING,
    spikeless_types,
    table,
)
from nmsolve.model.graph import NodeKinds
from nmsolve.model.network import Network
from nmsolve.model.types import IntArray, frozen

#: No configuration is longer (bytes); no path is made of more variables within variables, or is longer.
LARGEST_TEXT, DEEPEST, LONGEST_PATH = 2**26, 20, 4096
#: A variable in a path.
VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))", re.ASCII)
#: What a configuration may have; only ``networks``, ``network`` and ``manifest`` are read.
SECTIONS = (
    "networks", "network", "manifest", "components", "version", "node_sets_file", "node_sets", "metadata", "run", "inputs",
    "output", "outputs", "reports", "conditions", "simulation", "simulator", "target_simulator", "connection_overrides",
    "config_path", "config_dir", "dir_name", "mechanisms_dir", "beta_features", "compartment_sets_file", "log",
)  # fmt: skip
#: Types of populations of nodes that are neurons or inputs.
NEURONS = (
    "biophysical",
    "point_neuron",
    "point_process",
    "single_compartment",
    "virtual",
    "projection",
    "external",
)


class _Population(msgspec.Struct):
    type: str | None = None


class _Nodes(msgspec.Struct):
    nodes_file: str
    node_types_file: str | None = None
    populations: dict[str, _Population] | None = None


class _Edges(msgspec.Struct):
    edges_file: str
    edge_types_file: str | None = None
    populations: dict[str, _Population] | None = None


class _Networks(msgspec.Struct):
    nodes: list[_Nodes]
    edges: list[_Edges] = []


class _Config(msgspec.Struct):
    networks: _Networks
    manifest: dict[str, str] = {}


class _Simulation(msgspec.Struct):
    """A configuration of a simulation: ``network`` names its circuit, beside it if nothing is said."""

    network: str = "circuit_config.json"
    manifest: dict[str, str] = {}


def stream(path: Path) -> Network:
    """Return all nodes of a circuit, and its edges in blocks: directed, every node multicasts once per step.

    Ids are ``population/number``, or numbers if there is one population, by rising number; virtual nodes (inputs) are nodes
    like others. A kind is a type of nodes; it is called as its ``pop_name``, else as its population, where needed with the
    number of the type. Weights, delays and types of edges are not traffic and are not read.

    Raises
    ------
    InputError : h5py is not installed; a variable, file or column that is missing, a node or a population
        twice, types of nodes that no table has, edges of nodes that are not there
    """
    package("h5py", "sonata", path)
    path, config = _circuit(path)
    nodes: dict[str, IntArray] = {}
    kind: list[str] = []
    of: list[IntArray] = []
    for k, entry in enumerate(config.networks.nodes):
        where = f"{path}: $.networks.nodes[{k}]"
        file = _found(entry.nodes_file, config.manifest, path, f"{where}.nodes_file")
        types = {}
        if entry.node_types_file is not None and entry.node_types_file.upper() not in NOTHING:
            types = table(
                _found(entry.node_types_file, config.manifest, path, f"{where}.node_types_file"),
                "node_type_id",
            )
            _warn_of_rates({name for row in types.values() for name in row}, where)
        reply = one_reply(partial(_populations, file, entry.populations), file)
        for number, name in enumerate(reply.value):
            if name in nodes:
                raise InputError(f"population {name!r} is there twice", str(file), "every population once")
            numbers, which = np.unique(reply.arrays[f"types {number}"], return_inverse=True)
            nodes[name] = reply.arrays[f"numbers {number}"]
            of.append(which + len(kind))
            kind += _names(name, numbers.tolist(), types, file)
    if not nodes:
        raise InputError("there are no nodes", f"{path}: $.networks.nodes", "files of nodes")
    edges = [_edge_file(entry, k, config, path) for k, entry in enumerate(config.networks.edges)]
    if not edges:
        doubtful("there are no edges", f"{path}: $.networks.edges", "files of edges")
    _require_once(config, edges, path)
    return connected(path, edges, nodes, _kinds(kind, np.concatenate(of)))


def _circuit(path: Path) -> tuple[Path, _Config]:
    """Return the configuration of a circuit, and where it is: the file itself, or the circuit of a simulation."""
    data = read_limited(path, LARGEST_TEXT)
    content = decode_json(data, dict[str, Any], path)
    _warn_of_sections(content, path)
    if "networks" in content:
        if isinstance(content.get("network"), str):
            raise InputError("both networks and network are there", f"{path}: $.network", "one of them")
        return path, decode_json(data, _Config, path)
    simulation = decode_json(data, _Simulation, path)
    circuit = _found(simulation.network, simulation.manifest, path, f"{path}: $.network")
    data = read_limited(circuit, LARGEST_TEXT)
    content = decode_json(data, dict[str, Any], circuit)
    _warn_of_sections(content, circuit)
    if "networks" not in content:
        raise InputError("there are no networks", f"{circuit}: $", f"the circuit of {path.name}")
    return circuit, decode_json(data, _Config, circuit)


def _warn_of_sections(content: dict[str, Any], path: Path) -> None:
    """Warn of sections, and members of ``networks`` and its entries, that are not known; ``_comment`` is one."""
    networks = content.get("networks")
    known: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {"$": (content, SECTIONS)}
    if isinstance(networks, dict):
        known["$.networks"] = (networks, ("nodes", "edges", "gap_juncs"))
        if networks.get("gap_juncs"):
            what = "its connections are left out: they are gap junctions"
            doubtful(what, f"{path}: $.networks.gap_juncs", "edges that carry spikes")
        for key, struct in (("nodes", _Nodes), ("edges", _Edges)):
            entries = networks.get(key)
            for k, entry in enumerate(entries if isinstance(entries, list) else []):
                if isinstance(entry, dict):
                    known[f"$.networks.{key}[{k}]"] = (entry, struct.__struct_fields__)
    for where, (found, names) in known.items():
        odd = (name for name in found if name not in names and not name.startswith(("_", "/", "#")))
        name_unread("member", odd, f"{path}: {where}", ", ".join(names))


def _require_once(config: _Config, edges: Sequence[EdgeFile], path: Path) -> None:
    """Refuse edges that two entries name; two may name one file if each describes populations of its own."""
    named: dict[Path, set[str]] = {}
    for k, entry in enumerate(config.networks.edges):
        before, names = named.setdefault(edges[k].path.resolve(), set()), set(entry.populations or [""])
        if before and ("" in before | names or before & names):
            what, where = (
                f"the edges of {edges[k].path.name!r} are there twice",
                f"{path}: $.networks.edges[{k}]",
            )
            raise InputError(what, where, "every population of every file once")
        before |= names


def _edge_file(entry: _Edges, k: int, config: _Config, path: Path) -> EdgeFile:
    """Return a file of edges with its types; where there is no such table, a warning says what follows."""
    where = f"{path}: $.networks.edges[{k}]"
    file = _found(entry.edges_file, config.manifest, path, f"{where}.edges_file")
    without = {}
    for name, population in (entry.populations or {}).items():
        if population.type in SPIKELESS:
            without[name] = f"the population is of type {population.type!r}"
        elif population.type is not None and population.type not in SPIKING:
            place = f"{where}.populations.{name}.type"
            raise InputError(f"found {population.type!r}", place, ", ".join((*SPIKING, *SPIKELESS)))
    if entry.edge_types_file is None or entry.edge_types_file.upper() in NOTHING:
        return EdgeFile(file, None, without)
    place = f"{where}.edge_types_file"
    try:
        types = _found(entry.edge_types_file, config.manifest, path, place)
    except InputError as missing:
        doubtful(missing.what, place, missing.expected)
        return EdgeFile(file, None, without)
    return EdgeFile(file, spikeless_types(types), without)


def _found(text: str, manifest: dict[str, str], path: Path, where: str) -> Path:
    """Return the file that the text names: its variables put in, beside the configuration or else in the working folder.

    ``configdir`` and ``workingdir`` are variables that every configuration has.
    """
    values = {"configdir": str(path.parent.absolute()), "workingdir": os.getcwd()}
    values |= {name.strip("${}"): value for name, value in manifest.items()}
    name = text
    for _ in range(DEEPEST):
        before, name = name, VARIABLE.sub(lambda v: values.get(v[1] or v[2], v[0]), name)
        if name == before or len(name) > LONGEST_PATH:
            break
    if "$" in name or "\0" in name or len(name) > LONGEST_PATH:
        raise InputError(f"{text!r} becomes {name[:200]!r}", where, "variables that $.manifest has")
    for folder in (path.parent, Path()):
        file = folder / name
        if file.is_file():
            return file
    raise InputError(f"there is no file {str(path.parent / name)[:300]!r}", where, "a readable file")


def _populations(path: Path, described: dict[str, _Population] | None) -> Reply:
    """Return the names of the populations of a file, and (nodes,) rising numbers and types of the nodes of each.

    ``described`` are those that the configuration describes: others are left out.
    """
    out = {}
    with opened(path, "sonata") as file:
        nodes = members(file["nodes"], f"{path}: nodes") if "nodes" in file else {}
        groups = [
            (name, group) for name, group in nodes.items() if len(members(group, f"{path}: nodes/{name}"))
        ]
        if described:
            _check_described(described, [name for name, _ in groups], path)
            groups = [(name, group) for name, group in groups if name in described]
        if not groups:
            raise InputError("there are no nodes", f"{path}: nodes", "a SONATA nodes file")
        for k, (name, group) in enumerate(groups):
            where, most = f"{path}: nodes/{name}", believed_nodes(path.stat().st_size)
            out[f"numbers {k}"], out[f"types {k}"] = _in_order(group, where, most)
            _warn_of_rates(
                {v for key, part in group.items() if key.isdigit() and hasattr(part, "items") for v in part},
                where,
            )
        return Reply([name for name, _ in groups], out)


def _check_described(described: dict[str, _Population], there: list[str], path: Path) -> None:
    """Refuse populations that a file does not have; warn of those left out, and of those that are no neurons."""
    for name, population in described.items():
        where = f"{path}: nodes/{name}"
        if name not in there:
            raise InputError("there is no such population", where, ", ".join(there))
        if population.type is not None and population.type not in NEURONS:
            doubtful(
                f"its type is {population.type!r}: its nodes count as neurons", where, ", ".join(NEURONS)
            )
    if left := [name for name in there if name not in described]:
        doubtful(
            f"{listed('population', left)} left out", f"{path}: nodes", "populations of the configuration"
        )


def _warn_of_rates(names: set[str], where: str) -> None:
    odd = sorted(name for name in names if name.lower() in RATES)
    name_unread("attribute", odd, where, "recorded spikes (convert --rates)")


def _in_order(group: Any, where: str, most: int) -> tuple[IntArray, IntArray]:
    """Return (nodes,) int64 numbers of a population's nodes, rising, and their types."""
    types, numbers = column(group, "node_type_id"), column(group, "node_id")
    if types is None:
        raise InputError("the list of whole numbers 'node_type_id' is missing", where, "a SONATA nodes file")
    n = len(types)
    if not 1 <= n <= most:
        raise InputError(f"there are {n} nodes", where, f"1..{most} in a file of this size")
    found: IntArray = types[:].astype(np.int64)
    if "node_id" not in group or group["node_id"].shape is None:
        return np.arange(n), found
    if numbers is None or numbers.shape != (n,):
        raise InputError(f"node_id is no list of {n} whole numbers", where, "a number for every node")
    at = numbers[:].astype(np.int64)
    order = np.argsort(at, kind="stable")
    rising = at[order]
    if rising[0] < 0 or (np.diff(rising) == 0).any():
        bad = rising[0] if rising[0] < 0 else rising[np.flatnonzero(np.diff(rising) == 0)[0]]
        raise InputError(f"node_id {bad} is negative or there twice", where, "whole numbers >= 0, each once")
    return rising, found[order]


def _names(population: str, types: list[int], rows: dict[int, dict[str, str]], file: Path) -> list[str]:
    """Return what the kinds of a population's types are called."""
    out = []
    for number in types:
        if rows and number not in rows:
            raise InputError(f"no table has node type {number}", f"{file}: nodes/{population}", "its type")
        said = rows.get(number, {}).get("pop_name", "")
        own = population if len(types) == 1 else f"{population}/type {number}"
        out.append(own if said.upper() in NOTHING else said)
    return [
        f"{name} (type {number})" if out.count(name) > 1 else name
        for name, number in zip(out, types, strict=True)
    ]


def _kinds(names: list[str], of: IntArray) -> NodeKinds:
    """Return the kinds in the order in which nodes first have them; ``of`` (n,) are places in ``names``.

    Two populations may have types of the same name, which are the same kind.
    """
    number = {name: k for k, name in enumerate(dict.fromkeys(names))}
    which = np.array([number[name] for name in names])[of]
    used, first, again = np.unique(which, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    called = list(number)
    return NodeKinds(tuple(called[used[k]] for k in order), frozen(rank[again].astype(np.int32)))
