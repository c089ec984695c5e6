"""Sides and ports: nodes that have to be where input and output reach the board."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from command_support import run_here
from hw_reference import objective

from nmsolve.check.mapping.rules import place_complaints
from nmsolve.check.mapping.verify import verify
from nmsolve.hw.machine_write import save_machine
from nmsolve.hw.machines import load_machine
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import SIDES, Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.constraints_file import load_constraints, save_constraints
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.api import solve

CHAIN = {
    "directed": True,
    "nodes": [{"id": name} for name in "abcdef"],
    "edges": [{"source": u, "target": v, "weight": 1} for u, v in zip("abcde", "bcdef", strict=True)],
}
BOARD = 'cores = [3, 4]\n[capacity]\nneurons = 1\n[ports]\ncamera = "east"\nhost = [[1, 1], [1, 2], [1, 1]]\n'


def written(folder: Path, *entries: dict[str, object], board: str = BOARD) -> tuple[Path, Path, Path]:
    """Graph, machine and constraints as files."""
    paths = folder / "g.json", folder / "m.toml", folder / "c.json"
    for path, text in zip(
        paths, (json.dumps(CHAIN), board, json.dumps({"constraints": entries})), strict=True
    ):
        path.write_text(text)
    return paths


@pytest.mark.parametrize("seed", range(8))
def test_sides_are_the_outer_rows_and_columns_of_the_board(seed: int) -> None:
    """Against the neighbours of a core; the check of ``verify``, which counts otherwise, agrees core by core."""
    rng = np.random.default_rng(seed)
    machine = Machine("m", tuple(rng.integers(1, 3, 2).tolist()), tuple(rng.integers(1, 4, 2).tolist()))
    machine = replace(machine, ports={"p": "west", "q": (machine.size - 1, 0)})
    beyond = {"north": -machine.cols, "south": machine.cols, "west": -1, "east": 1}
    for side, step in beyond.items():
        lonely = [p for p in range(machine.size) if p + step not in machine.neighbours(p)]
        if machine.cols > 1:  # of one column, the next core of a row is the next row's
            assert list(machine.at(side)) == lonely
    assert set(machine.at("edge")) == set().union(*(machine.at(side) for side in beyond))
    assert machine.at("p") == machine.at("west") and machine.at("q") == tuple(sorted({0, machine.size - 1}))
    graph = LogicGraph.from_edges(1, [], [], [])
    for place, kind in product((*SIDES, "p", "q"), ("region", "forbid")):
        told = (SideConstraint("c", kind, (0,), machine.at(place), place),)
        right = [p for p in range(machine.size) if not place_complaints(graph, machine, told, np.array([p]))]
        inside = set(machine.at(place))
        assert set(right) == (inside if kind == "region" else set(range(machine.size)) - inside)


def test_a_place_is_the_ordinary_region_of_its_cores(tmp_path: Path) -> None:
    """Read, written and read again; the problem is that of the list of cores, to its hash."""
    graph, board, path = written(
        tmp_path,
        {"name": "in", "kind": "region", "nodes": ["a", "b"], "at": "camera"},
        {"name": "out", "kind": "region", "nodes": ["f"], "at": "host"},
        {"name": "not", "kind": "forbid", "nodes": ["c"], "at": "edge"},
    )
    network, machine = nm_graph(graph), load_machine(str(board))
    read = load_constraints(path, network, machine)
    assert [c.cores for c in read] == [(3, 7, 11), (5, 6), (0, 1, 2, 3, 4, 7, 8, 9, 10, 11)]
    assert [c.at for c in read] == ["camera", "host", "edge"]
    save_constraints(read, network, machine, path)
    again = load_constraints(path, network, machine)
    assert again == read and [c.at for c in again] == [c.at for c in read]
    listed = tuple(SideConstraint(c.name, c.kind, c.nodes, c.cores) for c in read)
    assert (
        MappingProblem(network, machine, "hops", read).hash
        == MappingProblem(network, machine, "hops", listed).hash
    )


def nm_graph(path: Path) -> LogicGraph:
    from nmsolve.model.formats import load_graph

    return load_graph(path)


def test_the_best_mapping_with_its_ends_at_two_sides(tmp_path: Path) -> None:
    """Proved by the exact engine, and by all mappings of four nodes on six cores."""
    graph = LogicGraph.from_edges(4, [0, 1, 2, 0], [1, 2, 3, 3], [1.0, 2.0, 1.0, 1.0])
    machine = Machine("m", (1, 1), (2, 3))
    told = (
        SideConstraint("in", "region", (0,), machine.at("west"), "west"),
        SideConstraint("out", "region", (3,), machine.at("east"), "east"),
    )
    problem = MappingProblem(graph, machine, "hops", told, 1)
    found = solve(problem, time_limit=20, engines=["cpsat"], seed=1)
    best = min(
        objective(graph, machine, np.array(core), "hops")
        for core in product(range(6), repeat=4)
        if len(set(core)) == 4 and core[0] % 3 == 0 and core[3] % 3 == 2
    )
    assert found.status == "optimal" and found.objective == best > 4
    checks = {c.name: c for c in verify(graph, machine, told, found.core).checks}
    assert checks["sides and ports"].ok and "west, east" in checks["sides and ports"].text


def test_the_command_maps_and_verify_finds_a_node_that_is_not_there(tmp_path: Path) -> None:
    graph, board, path = written(
        tmp_path,
        {"name": "in", "kind": "region", "nodes": ["a"], "at": "camera"},
        {"name": "out", "kind": "region", "nodes": ["f"], "at": "west"},
        {"name": "inner", "kind": "forbid", "nodes": ["c"], "at": "edge"},
    )
    out = tmp_path / "o"
    run_here("map", graph, "-m", board, "--constraints", path, "-t", "2", "--seed", "1", "--out", out)
    assert "ok      sides and ports" in run_here("verify", out, "--bound").stdout
    mapping = json.loads((out / "mapping.json").read_text())
    places = dict(zip(mapping["node"], zip(mapping["row"], mapping["col"], strict=True), strict=True))
    assert places["a"][1] == 3 and places["f"][1] == 0 and places["c"] in [(1, 1), (1, 2)]
    a, c = mapping["node"].index("a"), mapping["node"].index("c")
    for key in ("row", "col"):
        mapping[key][a], mapping[key][c] = mapping[key][c], mapping[key][a]
    (out / "mapping.json").write_text(json.dumps(mapping))
    said = run_here("verify", out, code=1).stdout
    line = next(text for text in said.splitlines() if "sides and ports" in text)
    assert line.startswith("FAILED") and "node 'a'" in line and "not at camera" in line and "node 'c'" in line


def test_explain_names_the_side_that_has_too_little_room(tmp_path: Path) -> None:
    rule = {"name": "sensors", "kind": "region", "nodes": ["a", "b", "c", "d"], "at": "west"}
    graph, board, path = written(tmp_path, rule)
    said = run_here("explain", graph, "-m", board, "--constraints", path, code=4)
    assert "sensors" in said.stdout


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"kind": "region", "at": "left"}, ("$.constraints[0].at", "'left'", "camera, host")),
        ({"kind": "region", "at": ""}, ("$.constraints[0].at", "''")),
        ({"kind": "region", "at": 3}, ("$.constraints[0].at",)),
        ({"kind": "region", "at": "west", "chips": [0]}, ("chips and at",)),
        ({"kind": "pin", "at": "west"}, ("pin with at", "expected core")),
        ({"kind": "together", "nodes": ["a", "b"], "at": "west"}, ("together with at", "nodes only")),
    ],
)
def test_places_that_do_not_exist_are_refused(
    tmp_path: Path, entry: dict[str, object], words: tuple[str, ...]
) -> None:
    graph, board, path = written(tmp_path, {"nodes": ["a"], **entry})
    said = run_here("map", graph, "-m", board, "--constraints", path, code=2).stderr
    assert len(said.strip().splitlines()) == 1 and all(word in said for word in words), said


@pytest.mark.parametrize(
    ("ports", "words"),
    [
        ('p = "left"', ("'p'", "'left'", "north")),
        ("p = []", ("'p'", "no cores")),
        ("p = [[0, 0], [0, 9]]", ("$.ports.p[1]", "[0, 9]")),
        ("p = 3", ("$.ports",)),
        ("p = [[0]]", ("$.ports",)),
        ('edge = "west"', ("'edge'", "no side of the board")),
        ('"" = "west"', ("a port called ''",)),
    ],
)
def test_ports_that_are_none_are_refused(tmp_path: Path, ports: str, words: tuple[str, ...]) -> None:
    _, board, _ = written(tmp_path, board=f"cores = [3, 4]\n[ports]\n{ports}\n")
    said = run_here("hw", "show", board, code=2).stderr
    assert len(said.strip().splitlines()) == 1 and all(word in said for word in words), said


def test_a_torus_has_no_sides_but_may_have_ports(tmp_path: Path) -> None:
    rule = {"kind": "region", "nodes": ["a"], "at": "west"}
    graph, board, path = written(tmp_path, rule, board="cores = [3, 4]\ntorus = true\n")
    said = run_here("map", graph, "-m", board, "--constraints", path, code=2).stderr
    assert "a torus has no west side" in said and "$.constraints[0].at" in said
    torus = Machine("t", (1, 1), (3, 3), torus=True, ports={"p": (4,)})
    assert torus.at("p") == (4,)
    with pytest.raises(InputError, match="a torus has no east side"):
        replace(torus, ports={"p": "east"})
    far = Machine("d", (1, 1), (1, 2), distance_matrix=np.array([[0.0, 1], [1, 0]]))
    with pytest.raises(InputError, match="distance matrix has no edge side"):
        far.at("edge")


def test_ports_survive_files_and_more_chips(tmp_path: Path) -> None:
    machine = load_machine(str(written(tmp_path)[1]))
    save_machine(machine, tmp_path / "again.toml")
    again = load_machine(str(tmp_path / "again.toml"))
    assert {name: again.at(name) for name in again.ports} == {"camera": (3, 7, 11), "host": (5, 6)}
    more = load_machine(str(tmp_path / "again.toml"), chips=(1, 2))
    assert more.ports == {"camera": "east"} and more.at("camera") == (7, 15, 23)
    assert replace(machine, ports={}).hash == machine.hash
    shown = run_here("hw", "show", tmp_path / "again.toml").stdout
    assert "port camera" in shown and "east" in shown and "2 cores" in shown
