"""Mappings as CSV: columns by name in any order, nodes by their ids; what does not fit is refused by name."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from command_support import run_here
from formats_support import put

from nmsolve.hw.machines import load_machine
from nmsolve.model.errors import InputError, InputWarning
from nmsolve.model.formats import save_graph
from nmsolve.model.graph import LogicGraph
from nmsolve.model.mapping.any_file import read_any_mapping
from nmsolve.model.mapping.csv_file import write_csv

#: Two chips of 2 x 2 cores, side by side: core 6 is row 1, column 2, on chip 1.
BOARD = load_machine("mesh:2x2,1x2")
NAMES = ("a", 7, 'b, "c"', "7x")


def named(ids: tuple[int | str, ...] | None = NAMES) -> LogicGraph:
    return LogicGraph.from_edges(4, [0, 1, 2], [1, 2, 3], [3, 2, 1], ids=ids)


@pytest.mark.parametrize(
    "text",
    [
        'node,core\na,0\n7,6\n"b, ""c""",7\n7x,1\n',
        'core,node\n1,7x\n7,"b, ""c"""\n6,7\n0,a\n',
        'node,row,col\na,0,0\n7,1,2\n"b, ""c""",1,3\n7x,0,1\n',
        'Name;Column;Row\r\n"b, ""c""";3;1\r\na;0;0\r\n7;2;1\r\n7x;1;0\r\n',
        '\ufeffid\tcol\trow\n7x\t1\t0\na\t0\t0\n\n7\t2\t1\n"b, ""c"""\t3\t1\n',
        ',node,core,row,col,chip\n0,a,0,0,0,0\n1,7,6,1,2,1\n2,"b, ""c""",7,1,3,1\n3,7x,1,0,1,0\n',
        'node, core\na, 0\n7, 6\n"b, ""c""", 7\n7x, 1',
    ],
)
def test_columns_and_rows_come_in_any_order(tmp_path: Path, text: str) -> None:
    path = put(tmp_path, "m.csv", text)
    assert read_any_mapping(path, named(), BOARD).tolist() == [0, 6, 7, 1]


def test_unknown_columns_are_named(tmp_path: Path) -> None:
    path = put(tmp_path, "m.csv", "node,core,load,color\n0,0,9,red\n1,1,9,red\n2,2,9,red\n3,3,9,red\n")
    with pytest.warns(InputWarning, match=r"m.csv:1: columns 'load', 'color' are not read"):
        assert read_any_mapping(path, named(None), BOARD).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0,0\n1,1\n2,2\n3,3\n", "m.csv:1: the columns are '0', '0'; expected a first line with the names"),
        ("node,part\n0,0\n", "m.csv:1: the columns are 'node', 'part'"),
        ("node,row\n0,0\n", "m.csv:1: the columns are 'node', 'row'"),
        ("core\n0\n1\n", "m.csv:1: the columns are 'core'"),
        ("node,id,core\n0,0,0\n", "m.csv:1: columns 'node', 'id'; expected one column for the node"),
        ("node,chip_row,chip_col,row,col\n0,0,0,1,1\n", "columns 'chip_row', 'chip_col' are unknown"),
        ("node,core\n0,0\n1,1\n2,2\n", "node 3 is missing; expected every node once (1 of 4"),
        ("node,core\n0,0\n1,1\n1,1\n", "m.csv:4: node '1' is listed twice"),
        ("node,core\n0,0\n9,1\n", "m.csv:3: no node has id '9'"),
        ("node,core\n0,8\n", "m.csv:2: core '8'; expected 0..7"),
        ("node,core\n0,-1\n", "m.csv:2: core '-1'"),
        ("node,core\n0,1.5\n", "m.csv:2: core '1.5'"),
        ("node,row,col\n0,2,0\n", "m.csv:2: row '2'; expected 0..1"),
        ("node,row,col\n0,0,4\n", "m.csv:2: col '4'; expected 0..3"),
        ("node,core,row,col\n0,6,1,3\n", "m.csv:2: col 3 beside core 6"),
        ("node,core,chip\n0,6,0\n", "m.csv:2: chip 0 beside core 6"),
        ("node,core\n0,0,1\n", "m.csv:2: 3 fields; expected 2"),
        ('node,core\n"0,0\n', "not CSV"),
        ("\ufffe", "the columns are"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        read_any_mapping(put(tmp_path, "m.csv", text), named(None), BOARD)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_a_number_per_line_is_still_a_partition(tmp_path: Path) -> None:
    assert read_any_mapping(put(tmp_path, "p.csv", "3\n2\n1\n0\n"), named(), BOARD).tolist() == [3, 2, 1, 0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("m.csv.gz", 'node,core\na,3\n7,2\n"b, ""c""",1\n7x,0\n'),
        ("p.csv.gz", "3\n2\n1\n0\n"),
        ("p.txt.gz", "3\n2\n1\n0\n"),
    ],
)
def test_text_may_be_packed(tmp_path: Path, name: str, text: str) -> None:
    packed = put(tmp_path, name, gzip.compress(text.encode()))
    assert read_any_mapping(packed, named(), BOARD).tolist() == [3, 2, 1, 0]


def test_ids_that_are_the_same_as_text_are_refused(tmp_path: Path) -> None:
    graph, path = named((1, "1", "a", "b")), tmp_path / "m.csv"
    with pytest.raises(InputError, match="same as text"):
        write_csv(path, graph, BOARD, np.arange(4))
    with pytest.raises(InputError, match="same as text"):
        read_any_mapping(put(tmp_path, "m.csv", "node,core\n1,0\n"), graph, BOARD)


def test_commands_write_and_take_tables(tmp_path: Path) -> None:
    """What export writes scores the same, is verified, bounded, and a start of map; its rows may be shuffled."""
    graph, run = tmp_path / "g.json", tmp_path / "run"
    save_graph(named(), graph)
    search = ("--time-limit", "2", "--engines", "first-fit")
    run_here("map", graph, "--machine", "mesh:2x2,1x2", *search, "--out", run)
    run_here("export", run, "--to", "csv", "--out", tmp_path)
    lines = (tmp_path / "mapping.csv").read_text().splitlines()
    assert lines[0] == "node,core,row,col,chip" and len(lines) == 5
    table = put(tmp_path, "mapping.csv", "\n".join([lines[0], *lines[:0:-1]]))
    whole = ("--graph", graph, "--machine", "mesh:2x2,1x2")
    scores = [
        json.loads(run_here("score", *given, "--json").stdout)["scores"]
        for given in ((run,), (table, *whole))
    ]
    assert scores[0] == scores[1] and scores[0]["hops"] > 0
    run_here("verify", table, *whole)
    run_here("gap", table, *whole, "--time-limit", "2", "--out", tmp_path / "gap", code=None)
    run_here("verify", tmp_path / "gap")
    started = run_here(
        "map", graph, "--machine", "mesh:2x2,1x2", "--warm-start", table, *search, "--out", run
    )
    assert "warm-start (accepted)" in started.stderr
    put(
        tmp_path,
        "mapping.csv",
        "node,core,load\n" + "".join(f'"{str(v).replace(chr(34), chr(34) * 2)}",0,1\n' for v in NAMES),
    )
    strict = run_here("score", table, *whole, "--strict", code=2)
    assert "column 'load' is not read" in strict.stderr
