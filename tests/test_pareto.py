"""Several objectives: lexicographic order and the front of two, against trying every mapping."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from nmsolve.cli.main import app
from nmsolve.cli.pareto import write_front
from nmsolve.cli.patience import Patience
from nmsolve.heuristics.mapping.links.moves import move
from nmsolve.heuristics.mapping.links.state import build
from nmsolve.hw.routes import link_loads
from nmsolve.hw.scores import objective_value, score
from nmsolve.model.bound import Result
from nmsolve.model.errors import InputError
from nmsolve.model.formats import save_graph
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.solvers.mapping.api import solve
from nmsolve.solvers.mapping.several import lexicographic, pareto_front

NAMES = ("hops", "max-link")


def random_problem(seed: int, n: int = 5) -> MappingProblem:
    """A few nodes on four cores, two on a core."""
    rng = np.random.default_rng(seed)
    i, j = np.nonzero(rng.random((n, n)) < 0.6)
    graph = LogicGraph.from_edges(
        n, i, j, rng.integers(1, 9, len(i)).astype(float), multicast=rng.random(n) < 0.4
    )
    return MappingProblem(graph, Machine("m", (1, 1), (2, 2)), "hops", (), 2)


def value(problem: MappingProblem, name: str, core: np.ndarray) -> float:
    return objective_value(replace(problem, objective=name, ceilings=()), core)


def all_values(problem: MappingProblem) -> set[tuple[float, float]]:
    """Values of both objectives over all legal mappings."""
    out = set()
    for cores in itertools.product(range(problem.cores), repeat=problem.n):
        core = np.array(cores)
        if not check_mapping(problem, core):
            out.add((value(problem, NAMES[0], core), value(problem, NAMES[1], core)))
    return out


def by_search(problem, seconds, start):
    return solve(problem, time_limit=0.6, engines=["links"] if problem.ceilings else None, warm_start=start)


def by_trying(problem, seconds, start):
    """A solver that tries everything, in the shape the front wants it."""
    best, least = None, np.inf
    for cores in itertools.product(range(problem.cores), repeat=problem.n):
        core = np.array(cores)
        if check_mapping(problem, core) or any(value(problem, k, core) > v for k, v in problem.ceilings):
            continue
        if value(problem, problem.objective, core) < least:
            best, least = core, value(problem, problem.objective, core)
    return Result("optimal", "gap", problem.objective, best, least, least, 0.0)


@pytest.mark.parametrize("seed", [1, 2])
def test_points_of_the_front_are_on_the_true_front(seed):
    problem = random_problem(seed)
    values = all_values(problem)
    front = {v for v in values if not any(w != v and w[0] <= v[0] and w[1] <= v[1] for w in values)}
    found = pareto_front(problem, NAMES, 4, 5.0, by_trying)
    assert {p.values for p in found.points} <= front and all(p.proven for p in found.points)
    assert found.ideal == (min(v[0] for v in front), min(v[1] for v in front)) == found.bounds
    assert [p.values for p in found.points] == sorted(p.values for p in found.points)


def test_search_keeps_ceilings_and_files_hold_what_was_found(tmp_path):
    problem = random_problem(5, n=7)
    found = pareto_front(problem, NAMES, 3, 2.0, by_search)
    for p in found.points:
        assert p.values == (value(problem, "hops", p.core), value(problem, "max-link", p.core))
        assert p.ceiling is None or p.values[1] <= p.ceiling
    write_front(tmp_path, problem, found, {}, Patience())
    written = json.loads((tmp_path / "pareto.json").read_text())
    assert [tuple(row["values"].values()) for row in written["points"]] == [p.values for p in found.points]
    assert (
        "<svg" in (tmp_path / "pareto.svg").read_text() and "<svg" in (tmp_path / "pareto.html").read_text()
    )
    assert all((tmp_path / row["mapping"]).exists() for row in written["points"])


def test_lexicographic_holds_what_came_before():
    problem = random_problem(3)
    stages = lexicographic(problem, NAMES, 5.0, by_trying)
    least = min(all_values(problem))
    assert (stages[0][1].objective, stages[1][1].objective) == least
    assert stages[1][0].ceilings == (("hops", least[0]),)


def test_loads_and_sums_of_the_search_state_are_those_of_the_evaluator():
    rng = np.random.default_rng(0)
    names = ["hops", "multicast-hops", "cut", "connectivity", "energy"]
    for trial in range(9):
        graph = random_problem(trial, n=14).graph
        machine = [
            Machine("m", (1, 1), (3, 3)),
            Machine("m", (1, 1), (3, 3), torus=True),
            Machine("m", (1, 1), (3, 3), faulty_links=((0, 1), (4, 5))),
        ][trial % 3]
        kept = names if trial % 3 == 0 else names[:-1]
        problem = MappingProblem(graph, machine, "max-link", (), 9, ceilings=tuple((k, 1e9) for k in kept))
        state = build(problem, rng.integers(0, 9, 14))
        for _ in range(20):
            move(state, int(rng.integers(14)), int(rng.integers(9)))
        truth = score(graph, machine, state.core)
        assert state.loads == pytest.approx(link_loads(graph, machine, state.core))
        sums = state.factor @ state.sums + state.linked
        assert sums == pytest.approx([truth[k] for k in kept])


def test_command_line_front_order_and_bad_input(tmp_path):
    graph = tmp_path / "g.json"
    save_graph(random_problem(4).graph, graph)
    run = lambda *more: CliRunner().invoke(app, ["map", str(graph), "-m", "mesh:2x2", *more])  # noqa: E731
    done = run("--objective", "hops,max-link", "-t", "2", "-o", str(tmp_path / "lex"))
    assert done.exit_code == 0, done.output
    report = json.loads((tmp_path / "lex" / "report.json").read_text())
    assert report["objective_name"] == "max-link" and report["inputs"]["before"][0]["objective"] == "hops"
    for bad in (("--pareto", "hops"), ("--pareto", "hops,heat"), ("--objective", "hops,hops")):
        assert isinstance(run(*bad).exception, InputError)
    assert isinstance(run("--pareto", "hops,cut", "--points", "1").exception, InputError)
    assert isinstance(run("--pareto", "hops,cut", "--objective", "energy").exception, InputError)
    assert isinstance(run("--route", "joint", "--objective", "hops,cut").exception, InputError)
    assert isinstance(run("--route", "nowhere").exception, InputError)


def test_forged_bounds_of_a_front_are_only_claims(tmp_path: Path) -> None:
    """Code 6 for what a front says to be proved, 1 for what contradicts its own figures."""
    instance = Path(__file__).parent.parent / "nmsolve" / "cli" / "bench" / "instances" / "nug12.dat"

    def run(*words: object) -> tuple[int, str]:
        command = [sys.executable, "-m", "nmsolve", *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout

    run("map", instance, "--pareto", "hops,max-link", "--points", 2, "-t", 3, "-o", tmp_path)
    path = tmp_path / "pareto.json"
    front = json.loads(path.read_text())
    value = front["points"][0]["values"]["hops"]

    def forged(point: dict[str, object], rest: dict[str, object]) -> None:
        points = [front["points"][0] | point, *front["points"][1:]]
        path.write_text(json.dumps(front | {"points": points} | rest))

    for point, rest in (({"bound": value, "proven": True}, {}), ({}, {"bounds": [value / 2, None]})):
        forged(point, rest)
        assert run("verify", path, "--bound")[0] == 6 and "only claimed" in run("verify", path)[1]
        assert run("verify", path, "--bound", "--trust-solver")[0] == 0
    for point, rest in (
        ({"bound": value * 2}, {}), ({"bound": -1.0}, {}), ({"bound": value / 2, "proven": True}, {}),
        ({}, {"bounds": [value * 2, None]}), ({}, {"bounds": [-1.0, None]}), ({}, {"graph": {"hash": "0" * 16}}),
    ):  # fmt: skip
        forged(point, rest)
        assert run("verify", path, "--bound", "--trust-solver")[0] == 1, (point, rest)
