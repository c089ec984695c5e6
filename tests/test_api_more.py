"""``nmsolve.gap``, ``explain`` and ``pareto``: what the commands say, for objects."""

from __future__ import annotations

import json
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from test_api_answers import command

import nmsolve

#: A path of four nodes on a row of four cores, far from the order of the path: 3 + 1 + 3 hops, where 3 are possible.
CHAIN, POOR = nx.path_graph(["a", "b", "c", "d"]), {"a": 0, "b": 3, "c": 2, "d": 1}


def test_the_gap_of_a_mapping_of_one_s_own(tmp_path: Path) -> None:
    """The best is 3; the given one stays as it is, with 5."""
    found = nmsolve.gap(POOR, CHAIN, "mesh:1x4", time_limit=30)
    assert (found.status, found.objective, found.bound) == ("feasible", 5.0, 3.0) and found.mapping == POOR
    assert found.gap == pytest.approx(0.4)
    if found.better:
        assert nmsolve.score(found.better, CHAIN, "mesh:1x4")["hops"] < 5.0
    assert nmsolve.verify(found.save(tmp_path / "gap"))
    assert json.loads((tmp_path / "gap" / "report.json").read_text())["bound"] == 3.0


def test_the_gap_of_an_answer_a_folder_and_the_command(tmp_path: Path) -> None:
    """All prove the same bound; a folder states its own problem, and what was proved before counts."""
    quick = nmsolve.map(
        CHAIN, "mesh:1x4", warm_start=POOR, engines=["first-fit"], time_limit=20, objective="cut"
    )
    by_hops = nmsolve.gap(quick, objective="hops", time_limit=30)
    folder = quick.save(tmp_path / "run")
    again = nmsolve.gap(folder, objective="hops", time_limit=30)
    command("gap", folder, "--objective", "hops", "-t", 30, "--out", tmp_path / "its")
    its = json.loads((tmp_path / "its" / "report.json").read_text())
    assert by_hops.bound == again.bound == its["bound"] == 3.0
    assert by_hops.objective == again.objective == its["objective"]
    proved = nmsolve.map(CHAIN, "mesh:1x4", time_limit=30)
    known = nmsolve.gap(proved.save(tmp_path / "best"), engines=["star"], time_limit=30)
    assert (proved.status, known.status, known.bound) == ("optimal", "optimal", 3.0)


def test_a_gap_needs_a_graph_and_a_legal_mapping() -> None:
    with pytest.raises(nmsolve.InputError, match="without its graph"):
        nmsolve.gap(POOR)
    with pytest.raises(nmsolve.InputError, match="nodes"):
        nmsolve.gap(dict.fromkeys("abcd", 0), CHAIN, "mesh:1x4")
    with pytest.raises(nmsolve.InputError, match="auto"):
        nmsolve.gap(POOR, CHAIN, "mesh:1x4", engines=["auto"])


def test_a_conflict_is_the_one_that_the_command_names(tmp_path: Path) -> None:
    """Two nodes that are pinned to one core and must be apart: three limits, each of them needed."""
    entries = [
        {"kind": "pin", "nodes": ["a"], "core": [0, 0], "name": "left"},
        {"kind": "pin", "nodes": ["b"], "core": [0, 0], "name": "also left"},
        {"kind": "apart", "nodes": ["a", "b"], "name": "apart"},
        {"kind": "pin", "nodes": ["c"], "core": [0, 3], "name": "right"},
    ]
    found = nmsolve.explain(CHAIN, "mesh:1x4", constraints=entries, balance=3, time_limit=20)
    assert (found.status, found.minimal, found.confirmed) == ("infeasible", True, True)
    assert {limit.name for limit in found.limits} == {"left", "also left", "apart"} and found.mapping == {}
    certificate = json.loads(found.save(tmp_path / "proof.json").read_text())
    nmsolve.save_graph(nmsolve.map(CHAIN, "mesh:1x4", time_limit=5).problem.graph, tmp_path / "g.json")
    (tmp_path / "c.json").write_text(json.dumps({"constraints": entries}))
    words = (
        "-m",
        "mesh:1x4",
        "-c",
        tmp_path / "c.json",
        "--balance",
        3,
        "-t",
        20,
        "--json",
        "--out",
        tmp_path / "p.json",
    )
    told = json.loads(command("explain", tmp_path / "g.json", *words, code=4))
    assert {limit["name"] for limit in told["conflict"]} == {"left", "also left", "apart"}
    assert json.loads((tmp_path / "p.json").read_text()) == certificate
    fits = nmsolve.explain(CHAIN, "mesh:1x4", constraints=entries[:1], balance=3, time_limit=20)
    assert fits.status == "feasible" and fits.mapping["a"] == 0 and fits.limits == ()
    assert nmsolve.score(fits.save(tmp_path / "m.json"), CHAIN, "mesh:1x4")["hops"] >= 0


def test_a_front_is_the_one_that_the_command_draws(tmp_path: Path) -> None:
    graph = tmp_path / "ring.json"
    ring = nx.cycle_graph(4, nx.DiGraph)
    ring.graph |= {"mesh": [2, 2], "capacity": {"neurons": 1}}
    graph.write_text(json.dumps(nx.node_link_data(ring, edges="edges")))
    front = nmsolve.pareto(graph, objectives="hops,max-link", points=3, time_limit=10)
    folder = front.save(tmp_path / "mine")
    command("map", graph, "--pareto", "hops,max-link", "--points", 3, "-t", 10, "--out", tmp_path / "its")
    mine, its = (json.loads((tmp_path / k / "pareto.json").read_text()) for k in ("mine", "its"))
    assert [p["values"] for p in mine["points"]] == [p["values"] for p in its["points"]]
    assert all(p.proven for p in front.points)
    for point in front.points:
        scores = nmsolve.score(point.mapping, graph)
        assert (scores["hops"], scores["max-link"]) == point.values
    command("verify", folder / "pareto.json", "--bound", "--trust-solver")
    assert front.verify()
    rows = front.to_dataframe()
    assert list(rows.columns) == ["hops", "max-link", "proven", "bound"] and len(rows) == len(front.points)
    front.plot().savefig(tmp_path / "front.png")
    with pytest.raises(nmsolve.InputError, match="1 objectives"):
        nmsolve.pareto(graph, objectives=["hops"])
    with pytest.raises(nmsolve.InputError, match="1 points"):
        nmsolve.pareto(graph, points=1)


def test_arrays_have_fronts_too() -> None:
    front = nmsolve.pareto(np.ones((4, 4)), "mesh:2x2", points=2, time_limit=10)
    assert front.names == ("hops", "max-link") and len(front.points) >= 1
