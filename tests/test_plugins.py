"""Engines of other packages and engines as objects: found, checked, run like our own, and never believed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nmsolve
from nmsolve.model.bound import Bound
from nmsolve.model.engine import Context
from nmsolve.model.errors import InputError
from nmsolve.model.mapping.problem import MappingProblem

ROOT = Path(__file__).resolve().parent.parent
RING = nmsolve.LogicGraph.from_edges(12, np.arange(12), (np.arange(12) + 1) % 12)
MESH = nmsolve.machine("mesh:3x4")


class Row:
    """Nodes by number on cores by number; ``claims`` is the bound that it says to have proved."""

    name = "row"
    finds = "both"

    def __init__(self, claims: Bound | None = None, core: Any = None) -> None:
        self.claims, self.core = claims, core

    def refuses(self, problem: MappingProblem) -> str | None:
        """Return a reason for boards of one row only."""
        return "one row" if problem.machine.rows == 1 else None

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Offer the mapping, and the bound."""
        context.offer(np.arange(problem.n) if self.core is None else self.core, "by number")
        if self.claims is not None:
            context.raise_bound(self.claims)


class RowApart(Row):
    """The same in a process of its own."""

    name = "row-apart"
    child = True


def run(*engines: Any, **options: Any) -> nmsolve.Result[Any]:
    return nmsolve.map(RING, MESH, engines=list(engines), **{"time_limit": 30, "seed": 1, **options})


@pytest.mark.parametrize("engine", [Row(), RowApart()])
def test_an_object_is_an_engine_here_and_in_a_process_of_its_own(engine: Row) -> None:
    result = run(engine)
    assert result.solution is not None and result.solution.tolist() == list(range(12))
    assert [share.engine for share in result.engines if share.incumbents] == [engine.name]


def test_automatic_mode_takes_an_engine_beside_its_own() -> None:
    result = run("auto", Row())
    assert {"row", "anneal"} <= {share.engine for share in result.engines}
    assert result.status == "optimal" and result.objective == 12


@pytest.mark.parametrize(
    "bound",
    [
        Bound(17.0, "row", "full", {}),
        Bound(17.0, "cpsat", "full", {"status": "optimal"}),
        Bound(17.0, "star", "full", {}),
        Bound(float("inf"), "row", "full", {"status": "infeasible"}),
    ],
)
@pytest.mark.parametrize("kind", [Row, RowApart])
def test_a_bound_that_nobody_can_recompute_does_not_count(kind: type[Row], bound: Bound) -> None:
    """Neither a method of its own, nor the word of a solver, nor another engine's name without a certificate."""
    result = run(kind(bound))
    assert result.bound is None and result.status == "feasible"
    assert any(e.kind == "error" and "bound rejected" in e.text for e in result.events)


def test_a_bound_with_a_certificate_counts() -> None:
    (star,) = [b for b in run("star").bounds if b.method == "star"]
    assert run(Row(star)).bound == star.value


@pytest.mark.parametrize("core", [np.zeros(12, int), np.arange(11), np.full(12, -1), np.full(12, 0.5)])
def test_a_mapping_that_breaks_a_rule_is_refused(core: Any) -> None:
    result = run(Row(core=core))
    assert any(e.kind == "error" and "offer rejected" in e.text for e in result.events)


@pytest.mark.parametrize(
    ("engines", "message"),
    [
        ([Row], "is a class"),
        ([object()], "it has no name, refuses, run, finds"),
        ([Row(), Row()], "two engines are called 'row'"),
        ([3], "it has no name"),
        (["rwo"], "unknown engine 'rwo'"),
    ],
)
def test_what_is_no_engine_is_refused_in_one_line(engines: list[Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        run(*engines)
    assert "\n" not in str(caught.value)


def test_a_refusal_of_an_own_engine_is_said() -> None:
    with pytest.raises(InputError, match="row: one row"):
        nmsolve.map(RING, nmsolve.machine("mesh:1x12"), engines=[Row()], time_limit=1)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the example was installed to, as pip does it."""
    pytest.importorskip(
        "setuptools", minversion="77", reason="pip install 'setuptools>=77' to build the example"
    )
    folder = tmp_path_factory.mktemp("plugins")
    source = folder / "source"
    subprocess.run(["cp", "-r", ROOT / "examples" / "plugin", source], check=True)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*pip, "--target", folder / "site", source], check=True, capture_output=True)
    return folder / "site"


def call(path: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "nmsolve", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(path)}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def test_an_installed_package_is_found_and_used(installed: Path, tmp_path: Path) -> None:
    """Alone, beside automatic mode in two processes, and in a benchmark whose kept runs know its code."""
    graph = ROOT / "examples" / "first.json"
    done = call(installed, "map", graph, "--engines", "snake", "-t", "20s", "-o", tmp_path / "alone")
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in (tmp_path / "alone" / "events.jsonl").read_text().splitlines()]
    assert any(e["type"] == "incumbent" and e["engine"] == "snake" for e in events)
    beside = ("--engines", "auto,snake", "--workers", "2", "-t", "20s", "-o", tmp_path / "beside")
    done = call(installed, "map", graph, *beside)
    assert done.returncode == 0 and "\nsnake " in done.stderr + done.stdout
    bench = (
        "bench",
        graph,
        "-m",
        "mesh:2x3",
        "--methods",
        "snake",
        "--seeds",
        "1",
        "-t",
        "5s",
        "-o",
        tmp_path / "bench",
    )
    assert "[1/1]" in call(installed, *bench).stderr
    assert "1 of 1 runs are in" in call(installed, *bench).stderr
    with (installed / "nmsolve_snake" / "__init__.py").open("a") as file:
        file.write("# another version\n")
    assert "[1/1]" in call(installed, *bench).stderr


def test_without_the_package_its_engine_is_unknown(tmp_path: Path) -> None:
    done = call(
        tmp_path, "map", ROOT / "examples" / "first.json", "--engines", "snake", "-o", tmp_path / "out"
    )
    assert done.returncode == 2 and "unknown engine 'snake'" in done.stderr


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import nothing_like_it", "cannot be loaded (ModuleNotFoundError"),
        ("class E: pass", "is no engine: it has no name"),
        (
            "class E:\n name, finds = 'other', 'mappings'\n def refuses(self, p): pass\n def run(self, p, c): pass",
            "calls itself 'other'",
        ),
        ("class E:\n def __init__(self): 1 / 0", "cannot be loaded (ZeroDivisionError"),
    ],
)
def test_a_package_that_is_broken_costs_one_line_where_it_is_asked_for(
    code: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "broken_one.py").write_text(code)
    info = tmp_path / "broken_one-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-one\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[nmsolve.engines]\nbroken = broken_one:E\nmultilevel = broken_one:E\n"
    )
    graph = ROOT / "examples" / "first.json"
    done = call(tmp_path, "map", graph, "--engines", "broken", "-o", tmp_path / "out")
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert "broken of broken-one 1.0" in done.stderr and message in done.stderr
    done = call(tmp_path, "map", graph, "--engines", "multilevel", "-t", "2s", "-o", tmp_path / "own")
    assert done.returncode == 0, "our own names come first"


@dataclass
class Written(Row):
    """An engine that is compared by its fields, so that it cannot be a key."""

    size: int = 3
    claims: None = None
    core: None = None
    name: str = "written"
    finds: str = "both"


def test_an_engine_need_not_be_hashable_and_names_may_repeat() -> None:
    result = run("star", Written(), "star")
    assert [share.engine for share in result.engines if share.incumbents] == ["written"]
    assert result.bound is not None


def test_auto_is_no_engine_where_only_bounds_are_wanted() -> None:
    from nmsolve.solvers.mapping.api import bound_mapping, make_problem

    with pytest.raises(InputError, match="'auto' looks for mappings"):
        bound_mapping(make_problem(RING, MESH), np.arange(12), engines=["auto"], time_limit=1)
