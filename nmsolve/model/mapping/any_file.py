"""Mappings from any tool: ``mapping.json``, CSV, QAPLIB ``.sln``, METIS ``.part.k``, core numbers, AxonCUDA's, SANA-FE's."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.files import extension, read_limited
from nmsolve.model.formats.text import read_integer_lines
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.csv_file import is_table, read_csv
from nmsolve.model.mapping.files import read_mapping
from nmsolve.model.mapping.sln import read_sln
from nmsolve.model.tiles import core_at, tile_grid
from nmsolve.model.types import IntArray

#: Tables with a line of names, unless they hold one number per line.
TABLES = (".csv", ".tsv")
#: Networks of SANA-FE say where their neurons are.
SANAFE = (".yaml", ".yml", ".net")


def read_any_mapping(
    path: str | Path,
    graph: LogicGraph,
    machine: Machine,
    placement: str | Path | None = None,
    *,
    other_faults: bool = False,
) -> IntArray:
    """Return (n,) core number of every node of ``graph``; the extension says what the file is.

    Parameters
    ----------
    path : ``.json`` (nmsolve), ``.csv``, ``.tsv`` (:mod:`.csv_file`), ``.sln`` (QAPLIB), ``.yaml`` or ``.net`` (a network of
        SANA-FE with its mapping),
        or text with one whole number per node in input order: its part (METIS ``.part.k``) or its core, counted from 0, row by
        row over the whole board; each also packed, as ``.csv.gz``
    placement : text with the core of part 0, 1, ..., or AxonCUDA's binary of their columns and rows; without it part p is core p
    other_faults : a ``.json`` made when other cores of the same machine were faulty or taken will do

    Raises
    ------
    InputError : anything wrong with a file, or a core outside the board
    """
    file = Path(path)
    kind = extension(file)
    table = kind in TABLES and is_table(file)
    if table or kind in (".json", ".sln", *SANAFE):
        if placement is not None:
            raise InputError(
                f"a {kind} file already gives the core of every node",
                "--placement",
                "a file of parts such as METIS writes",
            )
        if table:
            return read_csv(file, graph, machine)
        if kind == ".sln":
            return read_sln(file, graph, machine)
        if kind in SANAFE:
            return _of_sanafe(file, graph, machine)
        return read_mapping(file, graph, machine, other_faults=other_faults)
    part = _numbers(file)
    if len(part) != graph.n:
        raise InputError(f"{len(part)} numbers", str(file), f"{graph.n}, one per node of {graph.name}")
    if placement is None:
        return _on_board(part, machine, file)
    core = _placed(Path(placement), machine)
    if part.max() >= len(core):
        raise InputError(
            f"{len(core)} cores for parts up to {part.max()}", str(placement), "the core of every part"
        )
    return core[part]


def _of_sanafe(path: Path, graph: LogicGraph, machine: Machine) -> IntArray:
    """Return (n,) core of every node as the network's file says."""
    from nmsolve.model.formats.sanafe import placement

    tile, place = placement(path, graph)
    core = core_at(machine, tile, place)
    if (outside := np.flatnonzero(core < 0)).size:
        u, (rows, cols) = int(outside[0]), tile_grid(machine)
        what = f"node {graph.node_id(u)!r} is on core {tile[u]}.{place[u]}"
        raise InputError(what, str(path), f"a core of {machine.name}, which has {cols} x {rows} tiles")
    return core


def _placed(path: Path, machine: Machine) -> IntArray:
    """Return (parts,) the core of every part.

    AxonCUDA's binary (``coords_to_file``) is a 64-bit count and as many pairs of 32-bit x and y, little-endian. Text has no zero
    bytes; the count always has some.
    """
    data = read_limited(path) if path.is_file() else b""  # a pipe can be read only once
    if b"\0" not in data[:8]:
        return _on_board(_numbers(path), machine, path)
    count = int.from_bytes(data[:8], "little")
    if len(data) != 8 + 8 * count:
        raise InputError(
            f"it promises {count} places and has {len(data)} bytes", str(path), f"{8 + 8 * count} bytes"
        )
    place = np.frombuffer(data, "<i4", offset=8).reshape(-1, 2).astype(np.int64)
    outside = np.flatnonzero(((place < 0) | (place >= (machine.cols, machine.rows))).any(axis=1))
    if len(outside):
        x, y = place[outside[0]].tolist()
        where = f"x, y within {machine.cols} x {machine.rows}"
        raise InputError(f"part {outside[0]} is at {x}, {y}", str(path), where)
    cores: IntArray = place[:, 1] * machine.cols + place[:, 0]
    return cores


def _numbers(path: Path) -> IntArray:
    """Return the numbers of a file that has one in every line (empty lines do not count)."""
    lines = read_integer_lines(path)
    crowded = np.flatnonzero(np.diff(lines.start) > 1)
    if len(crowded):
        k = int(crowded[0])
        raise InputError(f"{len(lines.line(k))} numbers", lines.where(k), "one number per line")
    return lines.tokens


def _on_board(core: IntArray, machine: Machine, path: Path) -> IntArray:
    outside = np.flatnonzero(core >= machine.size)
    if len(outside):
        i = int(outside[0])
        raise InputError(
            f"number {i} is {core[i]}", str(path), f"a core from 0 to {machine.size - 1} of {machine.name}"
        )
    return core
