"""Mappings as CSV, as tables of other programs have them: a column of nodes, and their core or its row and column.

Columns are found by name, in any order; so are rows: ``node`` (or ``id``, ``name``), and ``core`` (counted row by row over the
whole board) or ``row`` and ``col`` (of the board); ``chip`` may be there, too. What says a core twice must agree.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from nmsolve.model.errors import InputError, listed, name_unread
from nmsolve.model.files import read_limited, write_atomic
from nmsolve.model.formats.text import whole_number
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.types import IntArray

#: Names of each column.
COLUMNS = {
    "node": ("node", "id", "name"),
    "core": ("core",),
    "row": ("row",),
    "col": ("col", "column"),
    "chip": ("chip",),
}
#: For messages.
EXPECTED = "a first line with the names node,core or node,row,col"


def is_table(path: Path) -> bool:
    """Return whether a file holds more than one number per line: its first line that is not empty is no whole number."""
    first = next((line for line in read_limited(path).splitlines() if line.strip()), b"0")
    return whole_number(first.strip()) is None


def read_csv(path: Path, graph: LogicGraph, machine: Machine) -> IntArray:
    """Return (n,) core of every node of ``graph``. An ``InputWarning`` names columns that are passed over.

    Raises
    ------
    InputError : no such columns; a node unknown, missing or listed twice; a core outside the board; with the line
    """
    index = _index(graph, path)
    core = np.full(graph.n, -1, np.int64)
    rows = _rows(path)
    _, names = next(rows, (1, []))
    column = _columns(names, machine, path)
    for line, fields in rows:
        where = f"{path}:{line}"
        if len(fields) != len(names):
            raise InputError(f"{len(fields)} fields", where, f"{len(names)}, as in the first line")
        node = fields[column["node"]]
        u = index.get(node)
        if u is None:
            raise InputError(f"no node has id {node[:80]!r}", where, f"a node of {graph.name}")
        if core[u] >= 0:
            raise InputError(f"node {node[:80]!r} is listed twice", where, "every node once")
        core[u] = _core(fields, column, machine, where)
    if (missing := np.flatnonzero(core < 0)).size:
        what = f"node {graph.node_id(int(missing[0]))!r} is missing"
        raise InputError(what, str(path), f"every node once ({len(missing)} of {graph.n} are missing)")
    return core


def _index(graph: LogicGraph, path: Path) -> dict[str, int]:
    """Return the index of every node by its id as text."""
    index = {str(graph.node_id(u)): u for u in range(graph.n)}
    if len(index) < graph.n:
        raise InputError("ids of nodes that are the same as text", str(path), "mapping.json for this graph")
    return index


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines that are not empty, with the numbers at which they end."""
    try:
        text = read_limited(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("not UTF-8 text", str(path), EXPECTED) from None
    first = text.lstrip().split("\n", 1)[0]
    mark = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark, skipinitialspace=True, strict=True)
    try:
        for fields in reader:
            if fields and fields != [""]:
                yield reader.line_num, fields
    except csv.Error as error:
        raise InputError(f"not CSV: {error}", f"{path}:{reader.line_num}", EXPECTED) from None


def _columns(names: list[str], machine: Machine, path: Path) -> dict[str, int]:
    """Return where each column is; names that are unknown are warned of, unless they may change what the others mean."""
    plain = [name.strip().lower() for name in names]
    column: dict[str, int] = {}
    for key, known in COLUMNS.items():
        found = [i for i, name in enumerate(plain) if name in known]
        if len(found) > 1:
            what = f"columns {', '.join(repr(names[i][:40]) for i in found)}"
            raise InputError(what, f"{path}:1", f"one column for the {key}")
        column.update((key, i) for i in found)
    if "node" not in column or not ("core" in column or {"row", "col"} <= column.keys()):
        shown = ", ".join(repr(name[:40]) for name in names[:8])
        raise InputError(f"the columns are {shown or 'none'}", f"{path}:1", EXPECTED)
    unread = [names[i] for i in range(len(names)) if i not in column.values() and plain[i]]
    unclear = [name for name in unread if any(word in name.lower() for word in ("chip", "core", "tile"))]
    if unclear:
        what = f"rows, columns and cores of the whole board of {machine.name}, and no other columns that name places"
        raise InputError(f"{listed('column', unclear)} unknown", f"{path}:1", what)
    name_unread("column", unread, f"{path}:1", "node, core, row, col, chip")
    return column


def _core(fields: list[str], column: dict[str, int], machine: Machine, where: str) -> int:
    """Return the core of a line, of whose columns each says the same."""
    ends = {"core": machine.size, "row": machine.rows, "col": machine.cols, "chip": machine.n_chips}
    at: dict[str, int] = {}
    for key in column.keys() - {"node"}:
        value = whole_number(fields[column[key]].strip())
        if value is None or value >= ends[key]:
            what = f"{key} {fields[column[key]][:40]!r}"
            raise InputError(what, where, f"0..{ends[key] - 1} on {machine.name}")
        at[key] = value
    core = at["core"] if "core" in at else at["row"] * machine.cols + at["col"]
    row, col = divmod(core, machine.cols)
    said = {"row": row, "col": col, "chip": int(machine.chip_of[core])}
    for key, value in said.items():
        if at.get(key, value) != value:
            raise InputError(
                f"{key} {at[key]} beside core {core}", where, f"{key} {value}, or no such column"
            )
    return core


def write_csv(path: Path, graph: LogicGraph, machine: Machine, core: IntArray) -> None:
    """Write a mapping (n,) with the columns node, core, row, col and chip.

    Raises
    ------
    InputError : ids of nodes that are the same as text, a file that cannot be written
    """
    _index(graph, path)
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["node", "core", "row", "col", "chip"])
    row, col = np.divmod(core, machine.cols)
    nodes = range(graph.n) if graph.ids is None else graph.ids
    columns = (core.tolist(), row.tolist(), col.tolist(), machine.chip_of[core].tolist())
    writer.writerows(zip(nodes, *columns, strict=True))
    write_atomic(path, out.getvalue())
