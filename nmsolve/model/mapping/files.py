"""``mapping.json``: where every node is, in columns."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.file_set import settle
from nmsolve.model.files import decode_json, read_limited, write_atomic
from nmsolve.model.graph import LogicGraph
from nmsolve.model.identity import Identity, MachineIdentity
from nmsolve.model.machine import Machine
from nmsolve.model.types import IntArray


class Route(msgspec.Struct):
    """A chosen route of one message part: board coordinates of every core on the way, both ends included."""

    source: int | str
    target: int | str
    path: list[tuple[int, int]]


class MappingFile(msgspec.Struct, omit_defaults=True):
    """The content of ``mapping.json``.

    Attributes
    ----------
    node : node ids in input order
    row, col : board coordinates of each node's core
    chip : number of the core's chip, ``chip_row * chip_columns + chip_col``; derived, so it may be left out
    routes : where routes were chosen rather than given by the machine's rule
    """

    graph: Identity
    machine: MachineIdentity
    node: list[int | str]
    row: list[int]
    col: list[int]
    chip: list[int] | None = None
    routes: list[Route] | None = None


def write_mapping(
    path: str | Path,
    graph: LogicGraph,
    machine: Machine,
    core: IntArray,
    routes: list[Route] | None = None,
) -> None:
    """Write ``mapping.json``, whole or not at all.

    Parameters
    ----------
    core : (n,) core number of every node

    Raises
    ------
    InputError : ``core`` does not belong to graph and machine, or the file cannot be written
    """
    core = np.asarray(core, np.int64)
    if core.shape != (graph.n,) or core.min() < 0 or core.max() >= machine.size:
        raise InputError(
            f"a mapping of shape {core.shape} for {graph.n} nodes",
            str(path),
            f"one core number from 0 to {machine.size - 1} per node",
        )
    row, col = np.divmod(core, machine.cols)
    content = MappingFile(
        **identities(graph, machine),
        node=list(range(graph.n)) if graph.ids is None else list(graph.ids),
        row=row.tolist(),
        col=col.tolist(),
        chip=machine.chip_of[core].tolist(),
        routes=routes,
    )
    write_atomic(path, msgspec.json.encode(content) + b"\n")


def identities(graph: LogicGraph, machine: Machine) -> dict[str, Any]:
    """Return what ``mapping.json`` says of graph and machine."""
    board = board_hash(machine)
    return {
        "graph": Identity(graph.name, graph.hash),
        "machine": MachineIdentity(machine.name, machine.hash, "" if board == machine.hash else board),
    }


def board_hash(machine: Machine) -> str:
    """Return the content hash of the machine as if every core and link were healthy and free."""
    return replace(machine, faulty_cores=(), taken_cores=(), faulty_links=(), held={}).hash


def read_mapping(
    path: str | Path, graph: LogicGraph, machine: Machine, *, other_faults: bool = False
) -> IntArray:
    """Return (n,) core number of every node of ``graph``, from ``mapping.json``.

    With ``other_faults`` the mapping may have been made when other cores and links of the same machine were faulty or
    taken. The file may list the nodes in any order. Capacities and side constraints are not looked at here
    (:func:`nmsolve.model.mapping.solution.check_mapping` does that).

    Raises
    ------
    InputError : made for another graph or machine (both hashes are stated), a node unknown, missing or listed twice,
        a core outside the board, columns of different lengths, a chip or route that contradicts them
    """
    settle(Path(path).parent)
    content = decode_json(read_limited(path), MappingFile, path)
    _check_identity("graph", content.graph, graph.name, graph.hash, path)
    same_board = board_hash(machine) in (content.machine.board, content.machine.hash)
    if not (other_faults and same_board):
        _check_identity("machine", content.machine, machine.name, machine.hash, path)
    for key, column in (("row", content.row), ("col", content.col), ("chip", content.chip)):
        if column is not None and len(column) != len(content.node):
            raise InputError(f"{len(column)} values", f"{path}: $.{key}", f"{len(content.node)}, as in node")
    node = _nodes(content.node, graph, path)
    row = _coordinates(content.row, machine.rows, f"{path}: $.row")
    col = _coordinates(content.col, machine.cols, f"{path}: $.col")
    core = np.full(graph.n, -1, np.int64)
    core[node] = row * machine.cols + col
    if content.chip is not None:
        expected = machine.chip_of[row * machine.cols + col]
        wrong = np.flatnonzero(_integers(content.chip) != expected)
        if len(wrong):
            i = int(wrong[0])
            raise InputError(
                f"chip {content.chip[i]} does not hold core [{row[i]}, {col[i]}]",
                f"{path}: $.chip[{i}]",
                str(expected[i]),
            )
    _check_routes(content.routes or [], graph, machine, core, path)
    return core


def _check_identity(what: str, stated: Identity, name: str, value: str, path: str | Path) -> None:
    if stated.hash not in ("", value):
        raise InputError(
            f"the mapping is for {what} {stated.name!r} with hash {stated.hash}, not for {name!r} with hash {value}",
            f"{path}: $.{what}.hash",
            f"a mapping of this {what}",
        )


def _nodes(ids: list[int | str], graph: LogicGraph, path: str | Path) -> IntArray:
    """Return the node index of every id; each node exactly once."""
    try:
        node = np.fromiter(map(graph.index_of.__getitem__, ids), np.int64, len(ids))
    except KeyError:
        i = next(i for i, v in enumerate(ids) if v not in graph.index_of)
        raise InputError(
            f"no node has id {ids[i]!r}", f"{path}: $.node[{i}]", f"a node of {graph.name}"
        ) from None
    count = np.bincount(node, minlength=graph.n)
    if (count != 1).any():
        u = int(np.flatnonzero(count != 1)[0])
        what = "is missing" if count[u] == 0 else f"is listed {count[u]} times"
        raise InputError(f"node {graph.node_id(u)!r} {what}", f"{path}: $.node", "every node once")
    return node


def _coordinates(values: list[int], end: int, where: str) -> IntArray:
    out = _integers(values)
    bad = np.flatnonzero((out < 0) | (out >= end))
    if len(bad):
        raise InputError(f"{values[bad[0]]} is outside the board", f"{where}[{bad[0]}]", f"0..{end - 1}")
    return out


def _integers(values: list[int]) -> IntArray:
    """As int64; whole numbers too large for it become -1, which is not a coordinate."""
    try:
        return np.array(values, np.int64)
    except OverflowError:
        return np.array([v if abs(v) < 2**62 else -1 for v in values], np.int64)


def _check_routes(
    routes: list[Route], graph: LogicGraph, machine: Machine, core: IntArray, path: str | Path
) -> None:
    """Each route leads over links of the mesh from its source's core to its target's."""
    for i, route in enumerate(routes):
        where = f"{path}: $.routes[{i}]"
        for v in (route.source, route.target):
            if v not in graph.index_of:
                raise InputError(f"no node has id {v!r}", where, f"a node of {graph.name}")
        cores = [r * machine.cols + c for r, c in route.path]
        if not cores or any(not (0 <= r < machine.rows and 0 <= c < machine.cols) for r, c in route.path):
            raise InputError("the route is empty or leaves the board", f"{where}.path", "[row, col] pairs")
        ends = [int(core[graph.index_of[v]]) for v in (route.source, route.target)]
        if [cores[0], cores[-1]] != ends:
            raise InputError("the route does not join the cores of its nodes", f"{where}.path")
        for p, q in pairwise(cores):
            if q not in machine.neighbours(p):
                raise InputError(
                    f"cores {list(divmod(p, machine.cols))} and {list(divmod(q, machine.cols))} share no link",
                    f"{where}.path",
                    "neighbouring cores",
                )
