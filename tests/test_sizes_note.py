"""``--balance`` counts nodes; ``--gap`` above 1 has its sign of per cent. Both are said, not assumed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_support import run_here
from formats_support import put

#: Eight vertices in a ring; the first weighs 20, the others 1 to 2.
WEIGHED = "8 8 010\n20 2 8\n" + "".join(f"{1 + u % 2} {u} {u % 8 + 2 if u < 7 else 1}\n" for u in range(1, 8))


def test_sizes_that_only_the_number_of_nodes_evens_out_are_named(tmp_path: Path) -> None:
    """The capacity that the warning proposes makes it go away, and binds."""
    graph = put(tmp_path, "g.graph", WEIGHED)
    options = ("--time-limit", "1", "--engines", "first-fit", "--out", tmp_path / "run")
    done = run_here("map", graph, "--machine", "mesh:2x2", "--balance", "0", *options)
    said = "warning: mesh:2x2: nodes are limited to 2 per core, neurons are not, though nodes have 1 to 20 of them"
    assert said in done.stderr and "neurons = 20 (1.03 times" in done.stderr
    run_here("map", graph, "--machine", "mesh:2x2", "--balance", "0", *options, "--strict", code=2)
    board = put(tmp_path, "m.toml", "cores = [2, 2]\n[capacity]\nneurons = 20\n")
    assert "warning" not in run_here("map", graph, "--machine", board, *options).stderr
    rows = json.loads((tmp_path / "run" / "mapping.json").read_text())
    assert sum(p == (rows["row"][0], rows["col"][0]) for p in zip(rows["row"], rows["col"], strict=True)) == 1


def test_a_balance_above_1_is_said(tmp_path: Path) -> None:
    graph = put(tmp_path, "g.graph", "4 3\n2\n1 3\n2 4\n3\n")
    options = (
        "--machine",
        "mesh:2x2",
        "--time-limit",
        "1",
        "--engines",
        "first-fit",
        "--out",
        tmp_path / "run",
    )
    done = run_here("map", graph, "--balance", "3", *options)
    assert (
        "warning: --balance: balance 3 lets cores hold 4 times an even share of nodes; expected 0.03 for 3 %"
        in done.stderr
    )
    assert "warning" not in run_here("map", graph, "--balance", "1", *options).stderr


@pytest.mark.parametrize("file", ["g.graph", "even.graph"])
def test_even_sizes_and_one_node_per_core_need_no_word(tmp_path: Path, file: str) -> None:
    graph = put(tmp_path, file, WEIGHED if file == "g.graph" else "4 3\n2\n1 3\n2 4\n3\n")
    board = "mesh:2x4" if file == "g.graph" else "mesh:1x2"
    options = ("--machine", board, "--time-limit", "1", "--engines", "first-fit", "--out", tmp_path / "run")
    assert "warning" not in run_here("map", graph, *options).stderr


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("5", "gap '5' is 500 %; expected 5% or 0.05"),
        ("2.5", "2.5% or 0.025"),
        ("150", "is 15000 %; expected a fraction such as 0.05, or 5%"),
    ],
)
@pytest.mark.parametrize("command", ["map", "gap", "resume"])
def test_a_gap_above_1_is_refused(tmp_path: Path, command: str, given: str, expected: str) -> None:
    graph = put(tmp_path, "g.graph", "4 3\n2\n1 3\n2 4\n3\n")
    where: tuple[object, ...] = ("--machine", "mesh:2x2", "--time-limit", "1", "--out", tmp_path / "run")
    run_here("map", graph, *where, "--engines", "first-fit")
    what = graph if command == "map" else tmp_path / "run"
    done = run_here(command, what, *(where if command == "map" else ()), "--gap", given, code=2)
    assert expected in done.stderr
