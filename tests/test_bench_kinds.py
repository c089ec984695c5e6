"""``nmsolve bench`` of routes and of pipelines: the suites, files of users, a kill, wrong answers, wrong options."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Called

from nmsolve.benchmarks.suites import find_suite, load_suite
from nmsolve.hw.machines import load_machine
from nmsolve.kinds.registry import bench
from nmsolve.kinds.time_left import TimeLeft
from nmsolve.model.formats import load_graph, save_graph
from nmsolve.model.graph import LogicGraph
from nmsolve.model.mapping.files import write_mapping

#: Milliseconds of five layers, and to send what they give to main memory or fetch it from there.
WORK, SENT = (3.0, 1.0, 4.0, 1.0, 5.0), 0.5


def models(tmp_path: Path) -> Path:
    """A chain of five layers as a cost graph, with a best known value that is too large."""
    nodes = [
        {"id": k, "supportedOnFpga": 1, "cpuLatency": w, "fpgaLatency": w, "isBackwardNode": 0}
        for k, w in enumerate(WORK)
    ]
    edges = [{"sourceId": k, "destId": k + 1, "cost": SENT} for k in range(4)]
    graph = {"maxSizePerFPGA": 1, "maxFPGAs": 1, "maxCPUs": 0, "nodes": nodes, "edges": edges}
    out = tmp_path / "models"
    out.mkdir()
    (out / "five.json").write_text(json.dumps(graph))
    (out / "best_known.csv").write_text("name,best_known\nfive,9\n")
    return out


def least_load(cores: int) -> float:
    """By trying: every cut of the chain into runs; a stage fetches and sends what crosses its ends."""
    best = sum(WORK)
    for cuts in product((False, True), repeat=4):
        if sum(cuts) < cores:
            ends = [0, *(k + 1 for k, cut in enumerate(cuts) if cut), 5]
            loads = [sum(WORK[a:b]) + SENT * ((a > 0) + (b < 5)) for a, b in pairwise(ends)]
            best = min(best, max(loads))
    return best


def runs(tmp_path: Path) -> Path:
    """A folder with one mapping: two flows between opposite corners of four cores, of 3 and 5 messages."""
    out = tmp_path / "runs"
    (out / "corners").mkdir(parents=True)
    save_graph(LogicGraph.from_edges(4, [0, 1], [3, 2], [3.0, 5.0]), tmp_path / "g.json")
    report = {"inputs": {"graph": str(tmp_path / "g.json"), "machine": "mesh:2x2"}}
    (out / "corners" / "report.json").write_text(json.dumps(report))
    write_mapping(
        out / "corners" / "mapping.json",
        load_graph(tmp_path / "g.json"),
        load_machine("mesh:2x2"),
        np.arange(4),
    )
    return out


def lines_of(done: tuple[int, str, str]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The runs of a benchmark with ``--json``, and its summary."""
    code, out, errors = done
    assert code == 0, errors
    *found, summary = [json.loads(line) for line in out.splitlines()]
    return found, {table["title"]: table for table in summary["tables"]}


def test_a_folder_of_pipelines(tmp_path: Path, call: Called) -> None:
    """The exact method wins, the one that only bounds and the one that refuses are counted as unsolved."""
    command = ["bench", models(tmp_path), "--problem", "pipeline", "--set", "cores=3", "--seeds", 1, "-t", 60]
    command += ["--set", "split=chain"]
    methods = "chain,pipeline-counting,downsets"
    found, tables = lines_of(call(*command, "--methods", methods, "--out", tmp_path / "o", "--json"))
    exact, counted = found
    assert (exact["method"], exact["status"]) == ("chain", "optimal")
    assert exact["objective"] == exact["bound"] == least_load(3) < 9
    assert counted["status"] == "unknown" and 0 < counted["bound"] <= least_load(3)
    (row,) = tables["Instances"]["rows"]
    assert tables["Instances"]["head"][2:4] == ["layers", "cores"] and row[2:4] == ["5", "3"]
    assert row[5].endswith("new") and "1/0/0" in tables["Wins and losses"]["rows"][0][2]
    assert "0/0/1" in tables["Wins and losses"]["rows"][1][1]
    assert {r[1] for r in tables["Unsolved"]["rows"]} == {"pipeline-counting", "downsets"}


def test_a_folder_of_runs_of_map_killed_and_resumed(tmp_path: Path, call: Called) -> None:
    """SIGKILL after the first run: it is kept, and the next call does the other one; so it does if the file is named alone."""
    folder, page, store = runs(tmp_path), tmp_path / "page.md", tmp_path / "o" / "results.sqlite"
    rest = [
        "--problem",
        "route",
        "--methods",
        "named,flow-lp",
        "--seeds",
        "1",
        "-t",
        "20",
        "--out",
        str(tmp_path / "o"),
    ]
    command = [sys.executable, "-m", "nmsolve", "bench", str(folder), *rest]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, process_group=0) as process:
        assert process.stderr is not None
        said = next(line for line in process.stderr if line.startswith("["))
        os.killpg(process.pid, signal.SIGKILL)
    assert said.startswith("[1/2] corners named seed 1: feasible, 5, bound 3;"), said
    with sqlite3.connect(store) as db:
        (kept,) = db.execute("SELECT * FROM runs").fetchall()
    (run,), tables = lines_of(call("bench", folder / "corners", *rest, "--json", "--page", page))
    assert (run["suite"], run["instance"], run["method"], run["problem"]) == (*kept[:2], "flow-lp", kept[2])
    assert run["status"] == "unknown" and 3 <= run["bound"] <= 5
    assert tables["Instances"]["rows"][0][:6] == ["corners", "max-link", "2", "4", "-", "5"]
    assert (
        tables["Methods"]["rows"][1][:4] == ["flow-lp", "1", "0", "1"] and "## Suite runs" in page.read_text()
    )
    with sqlite3.connect(store) as db:
        assert kept in (rows := db.execute("SELECT * FROM runs").fetchall()) and len(rows) == 2


@pytest.mark.parametrize("name", ["routes", "pipelines", "assignments"])
def test_suites_are_the_same_every_time(tmp_path: Path, name: str) -> None:
    """All instances can be stated, differ, and are what the options kept for the runs state."""
    source = find_suite(name, None)
    first = load_suite(source, None, {}, tmp_path / "x")
    again = load_suite(source, None, {}, tmp_path / "y")
    hashes = [one.problem.hash for one in first]
    assert hashes == [one.problem.hash for one in again] and len(set(hashes)) == len(hashes) > 8
    for one in first[:3]:
        stated = bench(one.kind).load(json.loads(json.dumps(one.options)))
        assert stated.hash == one.problem.hash and stated.objective == one.problem.objective


def test_wrong_answers_do_not_pass(tmp_path: Path) -> None:
    """A plan or routes with another value than they have are found by the checks of a run."""
    plans = bench("pipeline").load({"model": str(models(tmp_path) / "five.json"), "cores": "3"})
    routes = bench("route").load({"mapping": str(runs(tmp_path) / "corners"), "table_limit": 4})
    for problem, engine in ((plans, "downsets"), (routes, "named")):
        result = problem.solve(time_limit=60.0, started=None, seed=1, engines=[engine], workers=1)
        wrong = replace(result, objective=result.objective - 1, scores={"max-link": 4.0})
        for given, fine in ((result, True), (wrong, False)):
            with TimeLeft() as time_left:
                checks, left = problem.check(given, time_left)
            assert not left and len(checks) > 1 and all(c.ok for c in checks) == fine
        assert result.objective == min(e.objective for e in result.events if e.kind == "incumbent")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("routes --methods tabu", "unknown engine 'tabu' for suite routes"),
        ("mesh routes --methods reroute", "unknown engine 'reroute' for suite mesh"),
        ("pipelines --methods downset", "did you mean 'downsets'"),
        ("route", "no suite or folder 'route'; expected did you mean routes"),
        ("routes --problem pipeline", "suite routes is of problem route"),
        ("routes --only zzz", "no instance is called 'zzz'"),
        ("pipelines --set cores=3", "suite pipelines has its own"),
        ("models --problem pipelin", "unknown problem 'pipelin'; expected one of map, route, pipeline"),
        ("models --problem pipeline --set corez=3", "this problem has no option 'corez'; expected one of cores"),
        ("models --problem pipeline --set cores=x", "cores is 'x'; expected `int"),
        ("models --problem pipeline --set cores=0", "cores is '0'; expected `int` >= 1"),
        ("models --problem pipeline --set cores", "'cores' states nothing; expected an option and its value"),
        ("models --problem pipeline --machine mesh:2x2 --set machine=mesh:2x2", "states it again"),
        ("models --problem pipeline --balance 0.1", "this problem has no option 'balance'"),
        ("models --problem route", "no instances"),
        ("runs --problem route --objective max-link,turns", "objective 'max-link,turns'; expected one of max-link"),
        ("runs --problem route --set detour=-1", "detour -1"),
        ("runs/corners/mapping.json --problem route --machine mesh:1x3", "mapping.json"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Called, arguments: str, message: str
) -> None:
    """Exit code 2 before any run, and no store."""
    models(tmp_path), runs(tmp_path)
    monkeypatch.chdir(tmp_path)
    code, _, errors = call("bench", *arguments.split(), "--out", "o")
    assert code == 2 and errors.count("\n") == 1 and message in errors, errors
    assert not (tmp_path / "o" / "results.sqlite").exists()
