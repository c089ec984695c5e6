"""docs/extend.md: its examples are added to the package as they stand there, and used; its files are counted."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import hw_reference
import numpy as np
import pytest
import test_formats
from command_support import run_here

import nmsolve
from nmsolve.benchmarks.suites import find_suite, load_suite
from nmsolve.benchmarks.worker import Order, run
from nmsolve.check.mapping.verify import verify
from nmsolve.hw.machines import list_presets, load_machine
from nmsolve.hw.scores import objective_value, score
from nmsolve.model import clock
from nmsolve.model.between import BetweenCores
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Figure
from nmsolve.model.mapping.objectives import OBJECTIVES
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.solvers.mapping.api import make_problem, solve

ROOT = Path(__file__).resolve().parent.parent
#: Most files of every section, and parts of paths that are a problem's own model.
MOST = {"An engine": 2, "A chip": 1, "A graph format": 2, "An objective": 8, "A problem": 9}
OWN = "nmsolve/model/jobs/"


class Block(NamedTuple):
    path: str
    table: str
    text: str


def blocks(section: str) -> list[Block]:
    """The code of one section of the page."""
    page = (ROOT / "docs" / "extend.md").read_text("utf-8")
    text = page.split(f"\n## {section}\n")[1].split("\n## ")[0]
    found = re.findall(r"^```\w+ (\S+) ?(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert text.count("\n```") == 2 * len(found), "every block names its file"
    return [Block(*parts) for parts in found]


def module_of(path: str) -> str:
    return ".".join(Path(path).with_suffix("").parts).removesuffix(".__init__")


@pytest.fixture
def add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], dict[str, Block]]]:
    """``add(section)``: new files can be imported, tables have their new lines; undone after the test."""
    before = set(sys.modules)

    def added(section: str) -> dict[str, Block]:
        found = blocks(section)
        for block in found:
            if block.table:
                table = importlib.import_module(module_of(block.path))
                lines = eval("{" + block.text + "}", vars(table))
                for key, line in lines.items():
                    monkeypatch.setitem(getattr(table, block.table), key, line)
            elif not (ROOT / block.path).exists():
                target = tmp_path / block.path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(block.text)
        for folder in [p for p in (tmp_path / "nmsolve").rglob("*") if p.is_dir()]:
            place = folder.relative_to(tmp_path)
            if (ROOT / place).is_dir():  # a package that is not loaded yet would not look there later either
                package = importlib.import_module(module_of(str(place)))
                monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
        importlib.invalidate_caches()
        return {block.path: block for block in found}

    yield added
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def extended(block: Block, module: ModuleType) -> dict[str, object]:
    """What a block adds to a module that exists."""
    names = dict(vars(module))
    exec(block.text, names)
    return names


@pytest.mark.parametrize("section", MOST)
def test_no_more_files_than_promised(section: str) -> None:
    """Files that exist are named as they are, the others are new; the table at the top says how many."""
    paths = {block.path for block in blocks(section) if not block.path.startswith(OWN)}
    assert 0 < len(paths) <= MOST[section]
    page = (ROOT / "docs" / "extend.md").read_text("utf-8")
    row = next(
        line for line in page.splitlines() if line.startswith(f"| {section[0].lower()}{section[1:]} |")
    )
    assert f"| {MOST[section]}" in row
    for block in blocks(section):
        if block.table:
            assert block.table in vars(importlib.import_module(module_of(block.path)))


def problem(objective: str = "hops", nodes: int = 12) -> MappingProblem:
    rng = np.random.default_rng(3)
    graph = LogicGraph.from_edges(nodes, rng.integers(0, nodes, 40), rng.integers(0, nodes, 40))
    energy = {"message": Figure(2.0, "pJ")}
    figures = hw_reference.times(True) | hw_reference.draws()
    machine = replace(load_machine("mesh:3x3"), figures=figures, energy=energy)
    return make_problem(graph, machine, balance=0.3, objective=objective)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_engine_maps(add: Callable[[str], dict[str, Block]], objective: str) -> None:
    """It is asked for by name, better than where it started, and refused where it would break a limit."""
    add("An engine")
    asked = problem(objective)
    result = solve(asked, engines=["wander"], time_limit=1.0)
    offers = [e.objective for e in result.events if e.kind == "incumbent"]
    assert result.objective == objective_value(asked, result.core) == offers[-1] < offers[0]
    assert not check_mapping(asked, result.core)
    if objective == "cut":
        limited = replace(asked, ceilings=(("hops", 50.0),))
        with pytest.raises(InputError, match="wander: it does not support ceilings"):
            solve(limited, engines=["wander"], time_limit=1.0)


def test_the_chip_is_a_preset(
    add: Callable[[str], dict[str, Block]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add("A chip")
    monkeypatch.setattr("nmsolve.hw.machines.resources.files", lambda name: tmp_path / name.replace(".", "/"))
    assert list_presets() == ["toychip"]
    machine = load_machine("toychip")
    assert machine.size == 16 and machine.capacity["neurons"] == 64
    graph = LogicGraph.from_edges(2, [0], [1], [3.0])
    assert score(graph, machine, np.array([0, 5]))["energy"] == 3 * (2 + 2 * 1)


def test_the_format_is_read_and_written(add: Callable[[str], dict[str, Block]], tmp_path: Path) -> None:
    """Also with damage, by the test of all formats."""
    add("A graph format")
    test_formats.test_random_damage_is_refused_in_one_line_or_harmless(tmp_path, ".arcs")
    graph = LogicGraph.from_edges(4, [0, 0, 2], [1, 3, 0], [1.0, 0.1, 7.0])
    nmsolve.save_graph(graph, tmp_path / "a.arcs")
    back = nmsolve.load_graph(tmp_path / "a.arcs")
    assert np.array_equal(test_formats.adjacency(back), test_formats.adjacency(graph))


def test_the_objective_is_searched_scored_and_verified(
    add: Callable[[str], dict[str, Block]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Formula, walk and both references agree; automatic mode maps with it; a wrong claim is found."""
    added = add("An objective")
    monkeypatch.syspath_prepend(ROOT / "tests" / "differential")
    diff_reference, diff_cases = map(importlib.import_module, ("diff_reference", "diff_cases"))
    bridge = importlib.import_module("diff_bridge")
    assert extended(added["tests/differential/diff_cases.py"], diff_cases)["OBJECTIVES"] == tuple(OBJECTIVES)
    exact = extended(added["tests/differential/diff_reference.py"], diff_reference)["Reference"]._longest
    plain = extended(added["tests/hw_reference.py"], hw_reference)["longest"]
    walked = importlib.import_module("nmsolve.check.mapping.longest").walked_longest
    seen = 0
    for seed in range(60):
        case = diff_cases.make_case(seed)
        graph, machine = bridge.graph_of(case), bridge.machine_of(case)
        if machine.distance_matrix is not None or not machine.usable.all():
            continue
        core = np.random.default_rng(seed).integers(0, machine.size, graph.n)
        value = objective_value(MappingProblem(graph, machine, "longest"), core)
        assert value == pytest.approx(float(exact(diff_reference.Reference(case), tuple(core.tolist()))))
        assert value == pytest.approx(walked(BetweenCores(graph, machine, core), machine))
        assert value == pytest.approx(plain(graph, machine, core))
        assert value == score(graph, machine, core)["longest"]
        seen += value > 0
    assert seen > 10
    asked = problem("longest")
    result = solve(asked, time_limit=2.0)
    assert result.objective == objective_value(asked, result.core) <= 3
    for value, ok in ((result.objective, True), (result.objective - 1, False)):
        claimed = {"objective_name": "longest", "objective": value, "status": "feasible"}
        told = verify(asked.graph, asked.machine, (), result.core, claimed)
        assert next(c for c in told.checks if c.name == "objective").ok == ok


def test_the_problem_runs(
    add: Callable[[str], dict[str, Block]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From Python by its own test, as a command, and in a benchmark, whose check finds a wrong answer."""
    added = add("A problem")
    tests: dict[str, object] = {}
    exec(added["tests/test_jobs.py"].text, tests)
    for name, test in tests.items():
        if name.startswith("test_") and callable(test):
            test()
    commands = importlib.import_module("nmsolve.cli.commands")
    for name, value in extended(added["nmsolve/cli/commands.py"], commands).items():
        monkeypatch.setattr(commands, name, value, raising=False)
    said = run_here("jobs", "5,4,3,3,3", "--machines", "2").stdout
    assert said.startswith("feasible: 10 hours, at least 9;"), said
    five, seven = load_suite(find_suite("jobs", None), None, {}, tmp_path / "kept")
    monkeypatch.setattr("nmsolve.kinds.clock.STARTED", clock.now())  # time limits count from here
    order = Order("jobs", dict(five.options), five.problem.hash, None, 1, 60.0, 0)
    found = run(order)
    assert (found["status"], found["text"], found["objective"], found["bound"]) == ("feasible", "", 10, 9)
    monkeypatch.setattr("nmsolve.solvers.jobs.task.JobsChecker.score", lambda self, lifted: 9.0)
    assert run(order)["text"] == "independent checks failed: hours"
    assert (seven.suite, seven.problem.sizes) == ("jobs", {"jobs": 7, "machines": 3})
