"""Mappings as CSV, of a graph beside them: columns and rows in any order, other separators, quotes, and what does not fit."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from random import Random

from nmsolve.hw.machines import load_machine
from nmsolve.model.formats import load_graph
from nmsolve.model.mapping.any_file import read_any_mapping
from sweeps import REFUSED, Variant

#: Two by two chips of 2 x 3 cores.
BOARD, ROWS, COLS = "mesh:2x3,2x2", 4, 6
IDS = ("a", "b c", 'say "x"', "n,1", "n;2", "ä", 3, 14, "0", "L4E/17")


def read(path: Path) -> object:
    """Return the core of every node."""
    graph = load_graph(path.with_name("graph.json"))
    return read_any_mapping(path, graph, load_machine(BOARD)).tolist()


def variant(rng: Random) -> Variant:
    """Return the mapping of up to seven nodes, two in five of them with something wrong."""
    ids = rng.sample(IDS, rng.randint(1, 7)) if rng.random() < 0.7 else list(range(rng.randint(1, 7)))
    graph = {"directed": True, "nodes": [{"id": v} for v in ids], "edges": []}
    core = [rng.randrange(ROWS * COLS) for _ in ids]
    columns = _columns(rng, ids, core)
    named: tuple[str, ...] = ()
    expected: object = core
    if rng.random() < 0.2:
        columns["load"] = [str(rng.random()) for _ in ids]
        named = ("'load'",)
    if rng.random() < 0.4:
        expected, named = REFUSED, (_damage(rng, columns),)
    names = list(columns)
    rng.shuffle(names)
    rows = [[columns[name][k] for name in names] for k in range(len(columns[names[0]]))]
    rng.shuffle(rows)
    if named and named[0].startswith("fields:"):
        k = rng.randrange(len(rows))
        rows[k] = [*rows[k], "1"]
        named = (f"{len(names) + 1} fields",)
    heads = [LATER.get(name, name) for name in names]
    return Variant(
        {"m.csv": _csv(rng, heads, rows), "graph.json": json.dumps(graph).encode()}, expected, named
    )


#: Columns that a dictionary cannot hold under their own name.
LATER = {"node again": "node", "index": ""}


def _columns(rng: Random, ids: list[str | int], core: list[int]) -> dict[str, list[str]]:
    """Return columns that say where the nodes are."""
    case = rng.choice((str, str.upper, str.title))
    chip = [(p // COLS // 2) * 2 + p % COLS // 3 for p in core]
    columns = {case(rng.choice(("node", "id", "name"))): [str(v) for v in ids]}
    form = rng.randrange(3)
    if form != 1:
        columns[case("core")] = [str(p) for p in core]
    if form != 0:
        columns[case("row")] = [str(p // COLS) for p in core]
        columns[case(rng.choice(("col", "column")))] = [str(p % COLS) for p in core]
    if rng.random() < 0.3:
        columns[case("chip")] = [str(c) for c in chip]
    if rng.random() < 0.2:
        columns["index"] = [str(k) for k in range(len(ids))]
    return columns


def _damage(rng: Random, columns: dict[str, list[str]]) -> str:
    """Make something wrong; return what must be said."""
    node = next(name for name in columns if name.lower() in ("node", "id", "name"))
    place = next(name for name in columns if name.lower() in ("core", "row"))
    k, kind = rng.randrange(len(columns[node])), rng.randrange(7)
    if kind == 0:
        columns[node][k] = "nowhere"
        return "'nowhere'"
    if kind == 1:
        for values in columns.values():
            values.append(values[k])
        return "is listed twice"
    if kind == 2 and len(columns[node]) > 1:
        for values in columns.values():
            del values[k]
        return "is missing"
    if kind == 3:
        columns[place][k] = rng.choice(("99", "-1", "1.0", "", "x"))
        return repr(columns[place][k])
    if kind == 4:
        columns["chip_row"] = ["0"] * len(columns[node])
        return "'chip_row'"
    if kind == 5:
        del columns[place]
        columns.pop(next((c for c in columns if c.lower() in ("col", "column")), ""), None)
        columns.pop(next((c for c in columns if c.lower() in ("row",)), ""), None)
        return "node,core or node,row,col"
    return "fields:"


def _csv(rng: Random, heads: list[str], rows: list[list[str]]) -> bytes:
    """Return the table as other programs write it."""
    out = io.StringIO(newline="")
    quoting = rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
    writer = csv.writer(
        out, delimiter=rng.choice(",;\t"), lineterminator=rng.choice(("\n", "\r\n")), quoting=quoting
    )
    writer.writerows([heads, *rows])
    return (b"\xef\xbb\xbf" if rng.random() < 0.2 else b"") + out.getvalue().encode()
