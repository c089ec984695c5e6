"""SONATA circuits (``circuit_config.json``; Dai et al., PLoS Computational Biology 16:e1007696, 2020): populations of nodes with
their types, and every file of edges between them.

Format: https://github.com/AllenInstitute/sonata/blob/master/docs/SONATA_DEVELOPER_GUIDE.md. Node types are text: a line of names,
then a line per type, separated by blanks.
"""

from __future__ import annotations

import csv
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from nmsolve.model.contained import Reply, one_reply
from nmsolve.model.errors import InputError
from nmsolve.model.files import believed_nodes, decode_json, read_limited
from nmsolve.model.formats.hdf5 import opened, package
from nmsolve.model.formats.sonata import connected
from nmsolve.model.graph import LogicGraph, NodeKinds
from nmsolve.model.network import Network, graph
from nmsolve.model.types import IntArray, frozen

#: No configuration and no table of types is longer (bytes), and no path is made of more variables within variables.
LARGEST_TEXT, DEEPEST = 2**26, 20
#: What stands in a table of types for nothing.
NOTHING = ("", "NULL", "NONE", "NA")


class _Nodes(msgspec.Struct):
    nodes_file: str
    node_types_file: str | None = None


class _Edges(msgspec.Struct):
    edges_file: str


class _Networks(msgspec.Struct):
    nodes: list[_Nodes]
    edges: list[_Edges]


class _Config(msgspec.Struct):
    networks: _Networks
    manifest: dict[str, str] = {}


def load(path: Path) -> LogicGraph:
    """Read a circuit into memory; :func:`stream` says what becomes of it.

    Raises
    ------
    InputError : as :func:`stream`
    """
    return graph(stream(path))


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
    config = decode_json(read_limited(path, LARGEST_TEXT), _Config, path)
    nodes: dict[str, IntArray] = {}
    kind: list[str] = []
    of: list[IntArray] = []
    for k, entry in enumerate(config.networks.nodes):
        where = f"{path}: $.networks.nodes[{k}]"
        file = _found(entry.nodes_file, config.manifest, path, f"{where}.nodes_file")
        table = {}
        if entry.node_types_file is not None and entry.node_types_file not in NOTHING:
            table = _types(_found(entry.node_types_file, config.manifest, path, f"{where}.node_types_file"))
        reply = one_reply(partial(_populations, file), file)
        for number, name in enumerate(reply.value):
            if name in nodes:
                raise InputError(f"population {name!r} is there twice", str(file), "every population once")
            types, which = np.unique(reply.arrays[f"types {number}"], return_inverse=True)
            nodes[name] = reply.arrays[f"numbers {number}"]
            of.append(which + len(kind))
            kind += _names(name, types.tolist(), table, file)
    if not nodes:
        raise InputError("there are no nodes", f"{path}: $.networks.nodes", "files of nodes")
    edges = [
        _found(entry.edges_file, config.manifest, path, f"{path}: $.networks.edges[{k}].edges_file")
        for k, entry in enumerate(config.networks.edges)
    ]
    return connected(path, edges, nodes, _kinds(kind, np.concatenate(of)))


def _found(text: str, manifest: dict[str, str], path: Path, where: str) -> Path:
    """Return the file that the text names: its variables put in, beside the configuration or else in the working folder."""
    name = text
    for _ in range(DEEPEST):
        known = [v for v in manifest if v.strip("${}") and v.strip("${}") in name]
        before = name
        for variable in sorted(known, key=len, reverse=True):
            word = variable.strip("${}")
            name = name.replace("${" + word + "}", manifest[variable]).replace(f"${word}", manifest[variable])
        if name == before:
            break
        if len(name) > 4096:
            break
    if "$" in name or "\0" in name or len(name) > 4096:
        raise InputError(f"{text!r} becomes {name[:200]!r}", where, "variables that $.manifest has")
    for folder in (path.parent, Path()):
        file = folder / name
        if file.is_file():
            return file
    raise InputError(f"there is no file {str(path.parent / name)[:300]!r}", where, "a readable file")


def _types(path: Path) -> dict[int, dict[str, str]]:
    """Return the rows of a table of node types by number."""
    try:
        text = read_limited(path, LARGEST_TEXT).decode()
        rows = [row for row in csv.reader(text.splitlines(), delimiter=" ", skipinitialspace=True) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"cannot be read ({error})", str(path), "text, separated by blanks") from None
    if not rows or "node_type_id" not in rows[0]:
        raise InputError("there is no column node_type_id", f"{path}:1", "a table of node types")
    out: dict[int, dict[str, str]] = {}
    for k, row in enumerate(rows[1:], 2):
        cells = dict(zip(rows[0], row, strict=False))
        number = cells.get("node_type_id", "")
        if not (number.isascii() and number.isdigit() and len(number) < 19):
            raise InputError(f"found node_type_id {number!r}", f"{path}:{k}", "a whole number")
        if int(number) in out:
            raise InputError(f"node type {number} is there twice", f"{path}:{k}", "every type once")
        out[int(number)] = cells
    return out


def _populations(path: Path) -> Reply:
    """Return the names of the populations of a file, and (nodes,) rising numbers and types of the nodes of each."""
    out = {}
    with opened(path, "sonata") as file:
        groups = sorted((name, group) for name, group in file.get("nodes", {}).items() if len(group))
        if not groups:
            raise InputError("there are no nodes", f"{path}: nodes", "a SONATA nodes file")
        for k, (name, group) in enumerate(groups):
            most = believed_nodes(path.stat().st_size)
            out[f"numbers {k}"], out[f"types {k}"] = _in_order(group, f"{path}: nodes/{name}", most)
        return Reply([name for name, _ in groups], out)


def _in_order(group: Any, where: str, most: int) -> tuple[IntArray, IntArray]:
    """Return (nodes,) int64 numbers of a population's nodes, rising, and their types."""
    types, numbers = group.get("node_type_id"), group.get("node_id")
    if types is None or types.ndim != 1 or types.dtype.kind not in "iu":
        raise InputError("the list of whole numbers 'node_type_id' is missing", where, "a SONATA nodes file")
    n = len(types)
    if not 1 <= n <= most:
        raise InputError(f"there are {n} nodes", where, f"1..{most} in a file of this size")
    found: IntArray = types[:].astype(np.int64)
    if numbers is None:
        return np.arange(n), found
    if numbers.shape != (n,) or numbers.dtype.kind not in "iu":
        raise InputError(f"node_id is no list of {n} whole numbers", where, "a number for every node")
    at = numbers[:].astype(np.int64)
    order = np.argsort(at, kind="stable")
    rising = at[order]
    if rising[0] < 0 or (np.diff(rising) == 0).any():
        bad = rising[0] if rising[0] < 0 else rising[np.flatnonzero(np.diff(rising) == 0)[0]]
        raise InputError(f"node_id {bad} is negative or there twice", where, "whole numbers >= 0, each once")
    return rising, found[order]


def _names(population: str, types: list[int], table: dict[int, dict[str, str]], file: Path) -> list[str]:
    """Return what the kinds of a population's types are called."""
    out = []
    for number in types:
        if table and number not in table:
            raise InputError(f"no table has node type {number}", f"{file}: nodes/{population}", "its type")
        said = table.get(number, {}).get("pop_name", "")
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
