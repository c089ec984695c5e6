"""Re-mapping: repair by few moves, the engine under its budget, and the command line from fault to verified answer."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from exact_support import KINDS, Recorder, optimum, random_graph
from test_remap_exact import budgeted, fewest, random_rules
from typer.testing import CliRunner

import nmsolve
from nmsolve.cli.app import application
from nmsolve.heuristics.mapping.remap import Remap
from nmsolve.heuristics.mapping.remap.kernel import anneal
from nmsolve.heuristics.mapping.remap.repair import stay_put
from nmsolve.heuristics.mapping.remap.state import new_state, prices_of, rules_of
from nmsolve.hw.scores import objective_value
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.files import board_hash, read_mapping, write_mapping
from nmsolve.model.mapping.migration import Migration
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.reduce import merge_together
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.solvers.mapping import api
from nmsolve.solvers.mapping.auto import automatic, chosen
from nmsolve.solvers.mapping.registry import REGISTRY
from nmsolve.solvers.mapping.remapping import fewest_moves, repaired_start


class Clocked(Recorder):
    """A recorder whose time really ends. Every offer is checked against the rules, the budget among them."""

    def __init__(self, problem: MappingProblem, seconds: float = 60.0, seed: int = 1) -> None:
        super().__init__(problem)
        self.seed, self.end = seed, time.monotonic() + seconds

    def time_left(self) -> float:
        return max(0.0, self.end - time.monotonic())

    def should_stop(self) -> bool:
        return time.monotonic() >= self.end


@pytest.mark.parametrize("kind", KINDS)
def test_small_problems_are_solved_within_the_budget(kind: str) -> None:
    problem = budgeted(kind, 1)
    context = Clocked(problem)
    try:
        Remap().run(problem, context)
    except nmsolve.NmsolveError:  # the repair moved too many: the search asks CP-SAT then
        start, _ = fewest_moves(problem, None, 10.0)
        assert start is not None
        context.best, context.value = start, objective_value(problem, start)
        Remap().run(problem, context)
    assert context.value == pytest.approx(optimum(problem), rel=1e-12)


@pytest.mark.parametrize("kind", ["several-per-core", "torus", "matrix", "multicast-hops", "constraints"])
def test_the_tables_stay_right(kind: str) -> None:
    """After any number of changes: the moved nodes, the loads, who is away, and the summed changes are true."""
    problem = budgeted(kind, 4)
    core, _ = fewest_moves(problem, None, 10.0)
    assert core is not None and problem.migration is not None
    rules, prices = rules_of(problem), prices_of(problem)
    state = new_state(problem, rules, core)
    best, gain = core.copy(), np.array([0.0, 0.0, 1e-9])
    rng = np.array([7], np.uint64)
    begin = objective_value(problem, core)
    for heat in (1e9, 10.0, 1.0, 0.0):
        for _ in range(20):
            anneal(state, rules, prices, heat, 25, rng, best, gain)
            assert check_mapping(problem, state.room.core) == []
            assert state.tally[0] == problem.migration.moved(state.room.core)
            assert begin + gain[0] == pytest.approx(objective_value(problem, state.room.core), abs=1e-6)
            assert begin + gain[1] == pytest.approx(objective_value(problem, best), abs=1e-6)
            used = np.zeros_like(problem.capacity)
            np.add.at(used, state.room.core, problem.sizes)
            assert np.array_equal(state.room.load, used)
            away = set(np.flatnonzero(state.room.core != rules.home).tolist())
            assert set(state.away[: state.tally[1]].tolist()) == away


def test_no_budget_keeps_the_reference_and_full_budget_is_free() -> None:
    rng = np.random.default_rng(2)
    graph = random_graph(rng, 5)
    free = MappingProblem(graph, Machine("m", (1, 1), (2, 3)), node_limit=2)
    reference = np.array([0, 0, 1, 3, 5])
    still = replace(free, migration=Migration.of(reference, 0))
    result = api.solve(still, time_limit=60.0, engines=["remap", "cpsat"])
    assert result.core is not None and np.array_equal(result.core, reference) and result.status == "optimal"
    anywhere = replace(free, migration=Migration.of(reference, 5))
    assert not anywhere.limits_moves
    result = api.solve(anywhere, time_limit=10.0, engines=["remap", "cpsat"])
    assert result.objective == optimum(free) == optimum(anywhere)


def test_repair_moves_few() -> None:
    """Nobody who could stay moves, and CP-SAT agrees with trying every mapping about the fewest moves."""
    rng = np.random.default_rng(1)
    seen = best = 0
    for _ in range(80):
        n, cores = int(rng.integers(2, 6)), int(rng.integers(2, 5))
        graph = random_graph(rng, n, resources=("a",), sizes=rng.integers(1, 4, (n, 1)))
        dead = tuple(np.flatnonzero(rng.random(cores) < 0.2).tolist())
        machine = Machine("m", (1, 1), (1, cores), capacity={"a": int(rng.integers(3, 8))}, faulty_cores=dead)
        reference = rng.integers(0, cores, n)
        problem = MappingProblem(
            graph, machine, "hops", random_rules(rng, n, cores), None, Migration.of(reference, n)
        )
        try:
            needed = fewest(problem)
        except ValueError:
            continue
        seen += 1
        merged = merge_together(problem)
        assert merged.reduced.migration is not None
        core = stay_put(merged.reduced, merged.restrict(reference))
        if core is not None:
            assert check_mapping(problem, merged.lift(core)) == []
            best += merged.reduced.migration.moved(core) == needed
        exact, least = fewest_moves(merged.reduced, core, 10.0)
        assert least == needed and exact is not None
        assert check_mapping(problem, merged.lift(exact)) == []
        assert merged.reduced.migration.moved(exact) == needed
        tight = replace(merged.reduced, migration=Migration(reference, needed, merged.group))
        start = repaired_start(tight, merged.restrict(reference), 10.0)
        assert start is not None and check_mapping(tight, start) == []
        if needed:
            short = replace(merged.reduced, migration=Migration(reference, needed - 1, merged.group))
            with pytest.raises(nmsolve.InputError, match=f"at least {needed} nodes"):
                repaired_start(short, merged.restrict(reference), 10.0)
    assert seen > 30 and best > 0.8 * seen


def test_only_engines_that_count_moves_see_a_budget() -> None:
    problem = budgeted("several-per-core", 0)
    assert problem.limits_moves
    for name in REGISTRY:
        try:
            steps = chosen(problem, [name], lambda name, why: None)
        except nmsolve.InputError:
            continue
        assert steps[0].engine.refuses.handles("budget") or steps[0].engine.finds == "bounds"
    names = [s.engine.name for s in automatic(problem, 10.0, 1, lambda name, why: None)]
    assert "remap" in names and "cpsat" in names and "multilevel" not in names
    free = replace(problem, migration=None)
    assert Remap().refuses(free) is not None
    assert "remap" not in [s.engine.name for s in automatic(free, 10.0, 1, lambda name, why: None)]


def test_a_mapping_of_the_same_board_with_other_faults_can_be_read(tmp_path: Path) -> None:
    graph = LogicGraph.from_edges(3, [0, 1], [1, 2])
    healthy = Machine("m", (1, 1), (2, 2))
    one = replace(healthy, faulty_cores=(3,))
    two = replace(healthy, faulty_cores=(1, 3), taken_cores=(2,))
    core = np.array([0, 1, 2])
    for made in (healthy, one):
        write_mapping(tmp_path / "mapping.json", graph, made, core)
        assert np.array_equal(read_mapping(tmp_path / "mapping.json", graph, two, other_faults=True), core)
        with pytest.raises(nmsolve.InputError, match=f"{made.hash}.*{two.hash}"):
            read_mapping(tmp_path / "mapping.json", graph, two)
        other = Machine("wide", (1, 1), (1, 4))
        with pytest.raises(nmsolve.InputError, match=f"{made.hash}.*{other.hash}"):
            read_mapping(tmp_path / "mapping.json", graph, other, other_faults=True)
    assert board_hash(two) == healthy.hash


def write_inputs(folder: Path) -> None:
    """A ring of 14 nodes, a 4 x 4 mesh, and the same mesh with two dead cores."""
    ring = {"directed": False, "nodes": [{"id": i} for i in range(14)]}
    ring["edges"] = [{"source": i, "target": (i + 1) % 14} for i in range(14)]
    (folder / "ring.json").write_text(json.dumps(ring))
    (folder / "mesh.toml").write_text("cores = [4, 4]\n")
    (folder / "hurt.toml").write_text("cores = [4, 4]\nfaulty_cores = [[0, 0], [2, 1]]\n")


def test_from_fault_to_verified_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """map, lose two cores, map again within a budget into the same folder, verify; then tamper."""
    monkeypatch.chdir(tmp_path)
    write_inputs(tmp_path)
    nmsolve_cli = CliRunner()
    graph = nmsolve.load_graph("ring.json")
    board = nmsolve.machine("mesh.toml")
    core = np.array([0, 1, 2, 3, 7, 11, 15, 14, 13, 12, 8, 9, 5, 4])
    write_mapping("old.json", graph, board, core)

    def run(*args: str) -> tuple[int, str]:
        done = nmsolve_cli.invoke(application(), list(args))
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.output

    again = ["map", "ring.json", "-m", "hurt.toml", "-t", "2", "-o", "out", "--engines", "remap,star"]
    code, _ = run(*again, "--warm-start", "old.json", "--migration-budget", "3")
    assert code == 0
    moved = read_mapping("out/mapping.json", graph, nmsolve.machine("hurt.toml"))
    assert 0 < int((moved != core).sum()) <= 3
    code, text = run("verify", "out", "--bound")
    assert code == 0 and "FAILED" not in text
    code, _ = run(*again, "--warm-start", "out/mapping.json", "--migration-budget", "0")  # its own folder
    assert code == 0 and run("verify", "out")[0] == 0
    report = json.loads(Path("out/report.json").read_text())
    report["inputs"]["migration_budget"] = 1
    Path("out/report.json").write_text(json.dumps(report))
    reference = Path("out/reference.json").read_bytes()
    write_mapping("out/mapping.json", graph, nmsolve.machine("hurt.toml"), np.roll(moved, 1))
    code, text = run("verify", "out")
    assert code == 1 and "the budget is 1" in text
    report["inputs"]["reference"] = "0" * 16
    Path("out/report.json").write_text(json.dumps(report))
    done = nmsolve_cli.invoke(application(), ["verify", "out"])
    assert isinstance(done.exception, nmsolve.InputError) and "reference.json" in str(done.exception)
    assert Path("out/reference.json").read_bytes() == reference


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--migration-budget", "3"], "--warm-start"),
        (["--migration-budget", "-1", "--warm-start", "old.json"], "number of nodes >= 0"),
        (["--migration-budget", "1", "--warm-start", "old.json"], "at least 2 nodes must leave"),
    ],
)
def test_wrong_budgets_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_inputs(tmp_path)
    core = np.array([0, 1, 2, 3, 7, 11, 15, 14, 13, 12, 8, 9, 5, 4])
    write_mapping("old.json", nmsolve.load_graph("ring.json"), nmsolve.machine("mesh.toml"), core)
    done = CliRunner().invoke(application(), ["map", "ring.json", "-m", "hurt.toml", "-t", "1", *options])
    assert isinstance(done.exception, nmsolve.InputError) and words in str(done.exception)
    assert "explain" not in str(done.exception)


def test_results_are_never_worse_than_the_warm_start() -> None:
    """Whatever engine runs on, and the multilevel mapper goes on from a mapping that beats its first start."""
    rng = np.random.default_rng(5)
    n = 60
    i = np.repeat(np.arange(n), 3)
    graph = LogicGraph.from_edges(n, i, rng.integers(0, n, 3 * n), directed=False)
    problem = MappingProblem(graph, Machine("m", (1, 1), (3, 3)), node_limit=8)
    good = api.solve(problem, time_limit=2.0, engines=["multilevel"], seed=1)
    assert good.core is not None and good.objective is not None
    for engine in ("multilevel", "first-fit", "m2"):
        again = api.solve(problem, time_limit=0.5, engines=[engine], warm_start=good.core, seed=2)
        assert again.objective is not None and again.objective <= good.objective
