"""Step time beside other objectives: ceilings of either on the other, what they lend a bound, limits of the command, fronts."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from command_support import run_here
from hw_reference import objective
from test_step_time import board, network

from nmsolve.check.mapping.recheck import check_bound
from nmsolve.heuristics.mapping.steps.moves import move
from nmsolve.heuristics.mapping.steps.state import build, reset
from nmsolve.hw.scores import objective_value
from nmsolve.model.bound import Bound
from nmsolve.model.graph import LogicGraph
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.api import solve
from nmsolve.solvers.mapping.bounds.step_ceiling import refuses_step_ceiling, step_ceiling_bounds
from nmsolve.solvers.multi_objective import hypervolume

SUMS = ("hops", "multicast-hops", "cut", "connectivity")


def stated(seed: int) -> tuple[MappingProblem, MappingProblem, float, float]:
    """A step time under a ceiling on a sum, the reverse, and their optima by trying every mapping."""
    rng = np.random.default_rng(seed)
    rows, cols = [(2, 2), (2, 3), (1, 4)][seed % 3]
    n = 4 if rows * cols == 6 else 5
    machine, graph = board(rows, cols, 4 * seed, aside=seed % 2 == 0), network(seed, n, seed % 5 > 0)
    total = SUMS[seed % 4]
    mappings = [np.array(core) for core in product(range(rows * cols), repeat=n)]
    times = np.array([objective(graph, machine, core, "step-time") for core in mappings])
    sums = np.array([objective(graph, machine, core, total) for core in mappings])
    longest = float(np.quantile(np.unique(times), rng.random()))
    dearest = float(np.quantile(np.unique(sums), rng.random()))
    step = MappingProblem(graph, machine, "step-time", ceilings=((total, dearest),))
    paid = MappingProblem(graph, machine, total, ceilings=(("step-time", longest),))
    within_sum, within_time = sums <= dearest * (1 + 1e-12), times <= longest * (1 + 1e-12)
    return step, paid, float(times[within_sum].min()), float(sums[within_time].min())


@pytest.mark.parametrize("seed", range(12))
def test_bounds_under_a_ceiling_never_pass_the_optimum(seed: int) -> None:
    """And their certificates prove them; a little more than is claimed is refused."""
    step, paid, least_time, least_sum = stated(seed)
    for problem, best in ((step, least_time), (paid, least_sum)):
        for bound in step_ceiling_bounds(problem):
            check = check_bound(problem, bound)
            assert check.ok, check.text
            assert bound.value <= check.value * (1 + 1e-12) <= best * (1 + 1e-9)
            if bound.value > 0:
                assert not check_bound(problem, replace(bound, value=bound.value * 1.001 + 1.0)).ok


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
@pytest.mark.parametrize("engine", ["cpsat", "mip"])
def test_the_exact_models_end_at_the_optimum(seed: int, engine: str) -> None:
    step, paid, least_time, least_sum = stated(seed)
    for problem, best in ((step, least_time), (paid, least_sum)):
        result = solve(problem, time_limit=60, engines=[engine], seed=1)
        assert result.objective == pytest.approx(best, rel=1e-9)
        assert result.bound <= best * (1 + 1e-9)
        if engine == "cpsat":
            assert result.status == "optimal"


def crossing(seed: int, n: int = 24) -> tuple[LogicGraph, MappingProblem]:
    """A network of many nodes, and its step time on 3x3 cores."""
    graph = network(seed, n)
    return graph, MappingProblem(graph, board(3, 3, 4 * seed), "step-time")


@pytest.mark.parametrize("total", [*SUMS, "energy"])
def test_the_state_of_the_search_knows_the_sum(total: str) -> None:
    """After moves of all kinds: the sum is the evaluator's, and that after a fresh start; so is what is above a ceiling."""
    _, problem = crossing(3)
    problem = replace(problem, objective=total, ceilings=(("step-time", 150.0),))
    rng = np.random.default_rng(1)
    state = build(problem, rng.permutation(24) % 9)
    for _ in range(60):
        u, q = int(rng.integers(24)), int(rng.integers(9))
        if q != state.room.core[u]:
            move(state, u, q)
    core = np.array(state.room.core)
    assert state.paid[0] == pytest.approx(objective_value(replace(problem, ceilings=()), core), rel=1e-9)
    over = np.maximum(state.busy - state.heat[4], 0.0).sum()
    assert over > 0 and state.heat[5] == pytest.approx(over, rel=1e-9)
    found = float(state.paid[0])
    reset(state)
    assert found == pytest.approx(float(state.paid[0]), rel=1e-9)


def test_the_engine_keeps_ceilings_and_lowers_what_is_asked() -> None:
    """Both ways; without the ceiling the same search goes beyond it."""
    graph, problem = crossing(5, 60)
    free = solve(problem, time_limit=1.0, engines=["steps"], seed=1)
    dear = objective_value(replace(problem, objective="hops"), free.core)
    held = replace(problem, ceilings=(("hops", dear / 2),))
    found = solve(held, time_limit=1.5, engines=["steps"], seed=1)
    assert found.core is not None and objective(graph, problem.machine, found.core, "hops") <= dear / 2
    assert found.objective > free.objective
    longest = 1.5 * free.objective
    cheap = replace(problem, objective="hops", ceilings=(("step-time", longest),))
    result = solve(cheap, time_limit=1.5, engines=["steps"], seed=1)
    assert objective(graph, problem.machine, result.core, "step-time") <= longest
    assert result.objective < 0.9 * dear


def all_with_all(n: int) -> MappingProblem:
    """A step time where each node sends to all others, and hops that do not suffice to cut one off."""
    u, v = np.nonzero(np.triu(np.ones((n, n)), 1))
    graph = LogicGraph.from_edges(n, u, v, np.ones(len(u)))
    return MappingProblem(graph, board(2, 2, 0), "step-time", ceilings=(("hops", n - 1.5),))


def test_where_nothing_may_cross_a_step_takes_what_one_core_does() -> None:
    """Fewer hops than cut one node off the others: all share a core, which is proved."""
    n = 8
    problem = all_with_all(n)
    best = objective_value(replace(problem, ceilings=()), np.zeros(n, np.int64))
    *_, bound = step_ceiling_bounds(problem)
    assert bound.value == pytest.approx(best, rel=1e-8)
    assert bound.certificate["nodes"] == n - 1
    assert solve(problem, time_limit=20, seed=1).status == "optimal"


def test_what_one_edge_alone_makes_too_dear_shares_a_core() -> None:
    """Two rings of heavy edges and a light edge between them: the step is that of the busier ring, proved, without any search."""
    ends = [(u, (u + 1) % 5) for u in range(5)] + [(5 + u, 5 + (u + 1) % 3) for u in range(3)] + [(0, 5)]
    weights = np.array([9.0] * 8 + [1.0])
    graph = LogicGraph.from_edges(8, [u for u, _ in ends], [v for _, v in ends], weights)
    problem = MappingProblem(graph, board(2, 2, 0), "step-time", ceilings=(("hops", 4.0),))
    first = next(iter(step_ceiling_bounds(problem)))
    apart = np.array([0] * 5 + [1] * 3)
    assert first.certificate == {"method": "step-ceiling", "together": True}
    step = objective_value(replace(problem, ceilings=()), apart)
    assert 0.95 * step < first.value <= step  # the light edge to the other core is what is missing
    assert check_bound(problem, first).ok
    assert not check_bound(problem, replace(first, value=step * 1.001)).ok
    # with a ceiling that heavy edges do not pass, nothing has to be together
    loose = replace(problem, ceilings=(("hops", 9.0),))
    assert not check_bound(loose, first).ok


@pytest.mark.parametrize("value", [None, 0, -1, True, 2.5, "3", 8, 10**400, [1]])
def test_a_certificate_with_another_number_of_nodes_proves_nothing(value: object) -> None:
    n = 8
    problem = all_with_all(n)
    *_, bound = step_ceiling_bounds(problem)
    assert check_bound(problem, bound).ok
    assert not check_bound(problem, replace(bound, certificate={**bound.certificate, "nodes": value})).ok


def test_a_bound_that_a_ceiling_lent_counts_under_no_other() -> None:
    """Without the ceiling, or under a looser one, the same certificate is refused."""
    _, problem = crossing(2, 24)
    least = objective_value(problem, np.arange(24) % 9)
    tight = replace(problem, objective="cut", ceilings=(("step-time", 1.1 * least),))
    *_, bound = step_ceiling_bounds(tight)
    assert bound.value > 0 and check_bound(tight, bound).ok
    for ceilings in ((), (("step-time", 1e6 * least),), (("hops", 1.0),)):
        assert not check_bound(replace(tight, ceilings=ceilings), bound).ok
    assert not check_bound(replace(problem, ceilings=()), bound).ok
    assert refuses_step_ceiling(problem) is not None
    claim = Bound(bound.value, "step-load", "full", {**bound.certificate, "method": "step-load"})
    assert not check_bound(tight, claim).ok


def test_the_hypervolume_is_the_part_that_points_dominate() -> None:
    assert hypervolume([(0.0, 4.0), (1.0, 1.0), (4.0, 0.0)]) == pytest.approx((3 * 3) / 16)
    assert hypervolume([(0.0, 1.0), (1.0, 0.0)]) == 0.0
    assert hypervolume([(3.0, 2.0)]) is None


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a network and a mapping of it whose step has a limit."""
    out = tmp_path_factory.mktemp("ceilings")
    run_here("generate", "reservoir", "--nodes", "40", "--fan", "4", "--out", out / "r.json")
    limit = ("--objective", "energy", "--limit", "step-time=7us")
    run_here("map", out / "r.json", "-m", "loihi1", *limit, "-t", "3", "--seed", "1", "--out", out / "o")
    return out


def test_the_command_keeps_a_limit_and_verify_knows_it(files: Path) -> None:
    """It is in the report, in words, and in what ``resume`` goes on with; one that the mapping breaks is found out."""
    report = json.loads((files / "o" / "report.json").read_text())
    assert report["inputs"]["limits"] == {"step-time": 7000.0}
    assert report["scores"]["step-time"] <= 7000.0
    assert "held step-time" in run_here("verify", files / "o", "--bound").stdout
    run_here("resume", files / "o", "-t", "2", "--out", files / "again")
    resumed = json.loads((files / "again" / "report.json").read_text())
    assert resumed["inputs"]["limits"] == {"step-time": 7000.0}
    report["inputs"]["limits"] = {"step-time": 5000.0}
    (files / "o" / "report.json").write_text(json.dumps(report))
    assert "held at 5,000" in run_here("verify", files / "o", code=1).stdout


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("step=3", "unknown objective 'step'"), ("reward=3", "unknown objective 'reward'"), ("hops", "limit 'hops'"),
        ("step-time=-1", "limit 'step-time=-1'"), ("step-time=3kg", "in ns, us, ms, s"), ("energy=nan", "limit"),
        ("cut=1e31", "below 1e30"), ("energy=5", "energy is an objective and has a limit"),
        ("step-time=1us", "no step is shorter than"),
    ],
)  # fmt: skip
def test_a_limit_that_makes_no_sense_is_one_line(files: Path, limit: str, said: str) -> None:
    command = ("map", files / "r.json", "-m", "loihi1", "--objective", "energy", "--limit", limit, "-t", "1")
    done = run_here(*command, "--out", files / "none", code=2)
    assert said in done.stderr and done.stderr.count("\n") == 1
    assert not (files / "none").exists()


@pytest.mark.parametrize("more", [("--pareto", "cut,step-time"), ("--route", "joint")])
def test_limits_beside_a_front_or_free_routes_are_refused(files: Path, more: tuple[str, str]) -> None:
    command = ("map", files / "r.json", "-m", "loihi1", "--limit", "hops=9", *more, "-t", "1")
    assert "--limit" in run_here(*command, code=2).stderr


def test_a_front_of_energy_and_step_time(files: Path) -> None:
    """Its ends differ, it is re-checked, and another hypervolume is found out."""
    front = files / "front"
    asked = ("--pareto", "energy,step-time", "--points", "4", "-t", "8", "--seed", "1", "--out", front)
    assert "hypervolume: " in run_here("map", files / "r.json", "-m", "loihi1", *asked).stdout
    content = json.loads((front / "pareto.json").read_text())
    first, last = (content["points"][k]["values"] for k in (0, -1))
    assert first["energy"] < last["energy"] and first["step-time"] > last["step-time"]
    run_here("verify", front, "--bound")
    content["hypervolume"] = 0.5 * content["hypervolume"] + 0.5
    (front / "pareto.json").write_text(json.dumps(content))
    assert "hypervolume" in run_here("verify", front, code=1).stdout
