"""Bad input through the command line: one clear line, exit code 2, no traceback, nothing half-written."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command_support import run_here

from nmsolve.model.host import cores

NMSOLVE = [sys.executable, "-m", "nmsolve"]


def graph_data() -> dict[str, object]:
    """Six nodes in a ring, fine as it is."""
    return {
        "directed": True,
        "multigraph": False,
        "graph": {"name": "ring"},
        "nodes": [{"id": f"n{i}", "sizes": {"neurons": 10}} for i in range(6)],
        "edges": [{"source": f"n{i}", "target": f"n{(i + 1) % 6}", "weight": 1 + i} for i in range(6)],
    }


def run(*arguments: object, limits: Callable[[], None] | None = None) -> subprocess.CompletedProcess[str]:
    """``nmsolve ARGUMENTS``, in a process of its own where that has limits."""
    if limits is None:
        return run_here(*arguments, code=None)
    command = [*NMSOLVE, *(str(a) for a in arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, preexec_fn=limits)


def refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """Exit code 2 and one line on stderr that holds all ``words``."""
    assert done.returncode == 2, (done.returncode, done.stderr)
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    assert len(lines) == 1 and lines[0].startswith("error: "), done.stderr
    for word in words:
        assert word in lines[0], lines[0]


def write(folder: Path, data: object, name: str = "g.json") -> Path:
    """A JSON file in ``folder``; a str is written as it is."""
    path = folder / name
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return path


def edge(**changes: object) -> dict[str, object]:
    """The ring with its fourth edge changed."""
    data = graph_data()
    data["edges"][3] |= changes  # type: ignore[index]
    return data


GRAPHS = {
    "wrong type deep inside": (edge(weight="heavy"), ("$.edges[3].weight",)),
    "edge to an unknown node": (edge(target="n77"), ("n77", "edges[3]")),
    "negative weight": (edge(weight=-2), ("edges[3]", "-2")),
    "NaN weight": (json.dumps(edge(weight=float("nan"))), ()),
    "infinite weight": (json.dumps(edge(weight=1)).replace('"weight": 1}', '"weight": 1e999}', 1), ()),
    "duplicate ids": (
        graph_data() | {"nodes": [{"id": "n0"}, {"id": "n1"}, {"id": "n0"}]},
        ("n0", "$.nodes[2]"),
    ),
    "no nodes": (graph_data() | {"nodes": [], "edges": []}, ("nodes",)),
    "not JSON": ('{"nodes": [', ()),
}


@pytest.mark.parametrize("case", GRAPHS, ids=list(GRAPHS))
def test_a_bad_graph_is_refused_by_name_and_place(case: str, tmp_path: Path) -> None:
    """Every mistake in a JSON graph is found before any search, with its place in the file."""
    data, words = GRAPHS[case]
    path = write(tmp_path, data)
    refused(run("map", path, "--machine", "mesh:2x3", "--out", tmp_path / "out"), "g.json", *words)
    assert not (tmp_path / "out").exists()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """No such file."""
    refused(run("map", tmp_path / "absent.json", "--machine", "mesh:2x2"), "absent.json")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("mesh:0x4", ("mesh:0x4",)),
        ("mesh:4x", ("mesh:4x",)),
        ("loihi7", ("loihi7", "loihi")),  # suggests the nearest
        ("mesh:99999999x99999999", ()),
        ("absent.toml", ("absent.toml",)),
    ],
)
def test_a_bad_machine_is_refused(spec: str, words: tuple[str, ...], tmp_path: Path) -> None:
    """Zero-size and absurd meshes, unknown presets."""
    refused(run("map", write(tmp_path, graph_data()), "--machine", spec, "--out", tmp_path / "out"), *words)


def test_a_machine_file_with_a_wrong_type_names_the_key(tmp_path: Path) -> None:
    """TOML mistakes are shown with their key."""
    path = tmp_path / "m.toml"
    path.write_text('name = "m"\nchips = [1, 1]\ncores = [2, "three"]\n')
    refused(run("hw", "show", path), "m.toml", "cores")


def test_no_machine_at_all_says_how_to_name_one(tmp_path: Path) -> None:
    """The error suggests the fix."""
    refused(run("map", write(tmp_path, graph_data())), "--machine")


def test_a_node_larger_than_any_core_is_named_with_the_numbers(tmp_path: Path) -> None:
    """Which node, which resource, how much, the limit."""
    data = graph_data()
    data["nodes"][2]["sizes"]["neurons"] = 5000  # type: ignore[index]
    done = run("map", write(tmp_path, data), "--machine", "loihi1", "--out", tmp_path / "out")
    refused(done, "n2", "neurons", "5000", "1024")


def test_a_network_too_large_for_the_machine_names_the_smallest_that_holds_it(tmp_path: Path) -> None:
    """Totals are compared before any search, and the smallest machine of that kind is named."""
    data = graph_data()
    data["nodes"] = [{"id": i, "sizes": {"neurons": 1000}} for i in range(300)]
    data["edges"] = []
    refused(
        run("map", write(tmp_path, data), "--machine", "loihi1", "--out", tmp_path / "o"),
        "neurons",
        "3 chips",
    )


def test_contradictory_constraints_are_named(tmp_path: Path) -> None:
    """Pinned to one core and forbidden on it."""
    rules = [
        {"name": "left", "kind": "pin", "nodes": ["n0"], "core": [0, 0]},
        {"name": "not left", "kind": "forbid", "nodes": ["n0"], "rectangle": [0, 0, 2, 1]},
    ]
    done = run(
        "map", write(tmp_path, graph_data()), "--machine", "mesh:2x3", "--out", tmp_path / "o",
        "--constraints", write(tmp_path, {"constraints": rules}, "c.json"),
    )  # fmt: skip
    refused(done, "left", "not left")


def test_a_constraint_on_an_unknown_node_is_named(tmp_path: Path) -> None:
    """Constraint files are checked against the graph."""
    rules = {"constraints": [{"name": "x", "kind": "pin", "nodes": ["ghost"], "core": [0, 0]}]}
    path = write(tmp_path, rules, "c.json")
    refused(
        run("map", write(tmp_path, graph_data()), "--machine", "mesh:2x3", "-c", path, "-o", tmp_path / "o"),
        "ghost",
    )


def test_truncated_files_are_refused(tmp_path: Path) -> None:
    """A cut-off .npz and a cut-off METIS file."""
    np.savez(
        tmp_path / "g.npz", indptr=np.array([0, 1, 2]), indices=np.array([1, 0]), weights=np.array([3, 3])
    )
    whole = (tmp_path / "g.npz").read_bytes()
    (tmp_path / "g.npz").write_bytes(whole[: len(whole) // 2])
    refused(run("info", tmp_path / "g.npz"), "g.npz")
    refused(run("info", write(tmp_path, "3 2\n2\n1 3\n", "g.graph")), "g.graph")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.graph", "1000000000000 1000000000000\n1\n"),
        ("g.graph", "4 1000000000000\n2\n1\n"),
        ("g.hgr", "1000000000000 4\n1 2\n"),
        ("g.mtx", "%%MatrixMarket matrix coordinate real general\n4 4 1000000000000\n1 2 1.0\n"),
        ("g.dat", "1000000\n1 2 3\n"),
    ],
)
def test_a_header_that_promises_too_much_allocates_nothing(name: str, text: str, tmp_path: Path) -> None:
    """Counts in a header are held against the file's size before any memory is taken (2 GiB would be too much)."""

    def two_gib() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))

    refused(run("info", write(tmp_path, text, name), limits=two_gib), name)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--time-limit", "0"),
        ("--time-limit", "soon"),
        ("--gap", "small"),
        ("--memory", "much"),
        ("--objective", "beauty"),
        ("--engines", "magic"),
        ("--balance", "-2"),
        ("--chips", "0x2"),
        ("--warm-start", "absent.json"),
        ("--prohibit-turns", "sideways"),
        ("--mip-solver", "oracle"),
        ("--workers", "0"),
        ("--workers", "most"),
    ],
)
def test_wrong_option_values_are_refused(option: str, value: str, tmp_path: Path) -> None:
    """Options are checked before any search."""
    done = run(
        "map", write(tmp_path, graph_data()), "--machine", "mesh:2x3", "--out", tmp_path / "o", option, value
    )
    refused(done, value)


def test_all_workers_are_the_cores_of_this_machine(tmp_path: Path) -> None:
    """The report has their number."""
    words = ("map", write(tmp_path, graph_data()), "--machine", "mesh:2x3", "--out", tmp_path / "o", "-t", 2)
    assert run(*words, "--workers", "all").returncode == 0
    report = json.loads((tmp_path / "o" / "report.json").read_text())
    assert report["inputs"]["workers"] == cores()


def test_engines_that_take_no_later_objective_are_refused_before_the_first(tmp_path: Path) -> None:
    """First fit knows no ceilings: its first answer was found, then lost."""
    words = ("--machine", "mesh:2x3", "--objective", "hops,max-link", "--engines", "first-fit")
    refused(
        run("map", write(tmp_path, graph_data()), *words, "--out", tmp_path / "o"), "first-fit", "ceilings"
    )
    assert not (tmp_path / "o").exists()


def test_an_output_folder_that_is_a_file_is_refused_before_the_search(tmp_path: Path) -> None:
    """Nobody waits a minute to learn that the answer cannot be written."""
    blocked = write(tmp_path, "occupied", "out")
    refused(run("map", write(tmp_path, graph_data()), "--machine", "mesh:2x3", "--out", blocked), "out")
    assert blocked.read_text() == "occupied"


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    """Writing stops at a file size limit, as on a full disk: the old file survives and no scrap stays behind."""
    graph, out = write(tmp_path, graph_data()), tmp_path / "copy.json"
    out.write_text("old")

    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    done = run("convert", graph, out, limits=full)
    assert done.returncode == 2, done.stderr
    assert out.read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["copy.json", "g.json"]
