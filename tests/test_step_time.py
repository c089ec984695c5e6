"""The time of a step: evaluator, verification, engine, exact models and bound against definitions and all mappings."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hw_reference import TIMES, objective, times

import nmsolve
from nmsolve.check.mapping.recheck import check_bound
from nmsolve.check.mapping.step_time import walked_step_time
from nmsolve.heuristics.mapping.steps.moves import move, search
from nmsolve.heuristics.mapping.steps.state import build, reset
from nmsolve.heuristics.rng import new_rng
from nmsolve.hw.scores import objective_value, score
from nmsolve.hw.step_time import FIGURES, step_loads, step_time
from nmsolve.model.between import BetweenCores
from nmsolve.model.errors import InputError
from nmsolve.model.generators import generate
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Figure, Machine
from nmsolve.model.mapping.axons_fit import axon_overflows
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.api import make_problem, solve
from nmsolve.solvers.mapping.bounds.bound_context import BoundContext
from nmsolve.solvers.mapping.bounds.step_load import step_load_bounds


def network(seed: int, n: int, whole: bool = True) -> LogicGraph:
    """A directed network; most nodes send one message to up to four others, the rest edge by edge."""
    rng = np.random.default_rng(seed)
    source, target, weight = [], [], []
    for u in range(n):
        for v in rng.choice(
            [v for v in range(n) if v != u], rng.integers(0, min(n - 1, 4) + 1), replace=False
        ):
            source.append(u)
            target.append(int(v))
            weight.append(float(rng.integers(1, 5)) if whole else float(rng.random()))
    return LogicGraph.from_edges(n, source, target, weight, multicast=rng.random(n) < 0.7)


def board(rows: int, cols: int, seed: int, *, aside: bool = True, room: int | None = None) -> Machine:
    """A mesh or torus with times; the link's differ with the seed, so that cores or links are the slowest.

    Every third seed has routers that copy messages.
    """
    figures = times(aside) | {"latency_link_message": Figure([0.0, 2.0, 11.0][seed % 3], "ns")}
    if seed % 9 in (2, 4, 8):
        figures["multicast_links"] = Figure(1.0, "1 or 0")
    capacity = {} if room is None else {"neurons": room}
    return Machine("m", (1, 1), (rows, cols), seed % 4 == 1, capacity, figures=figures)


def small(seed: int) -> MappingProblem:
    """A problem whose mappings can all be tried; every other one with a limit on the nodes of a core."""
    rows, cols = [(2, 2), (2, 3), (1, 4)][seed % 3]
    n = 4 if rows * cols == 6 else 5
    machine = board(rows, cols, seed, aside=seed % 2 == 0)
    return MappingProblem(
        network(seed, n, seed % 5 > 0), machine, "step-time", (), 2 if seed % 4 < 2 else None
    )


def optimum(problem: MappingProblem) -> float:
    """By trying every mapping."""
    most = problem.node_limit or problem.n
    return min(
        objective(problem.graph, problem.machine, np.array(core), problem.objective)
        for core in product(range(problem.cores), repeat=problem.n)
        if max(map(core.count, core)) <= most
    )


@pytest.mark.parametrize("seed", range(12))
def test_the_bound_never_passes_the_optimum_and_its_certificate_proves_it(seed: int) -> None:
    """Aimed at the optimum, at twice of it, and at nothing; a little more than is claimed is refused."""
    problem = small(seed)
    best = optimum(problem)
    for upper in (best, 2 * best, np.inf):
        bounds = list(step_load_bounds(problem, BoundContext(upper=lambda upper=upper: upper)))
        assert bounds
        for bound in bounds:
            check = check_bound(problem, bound)
            assert check.ok, check.text
            assert bound.value <= check.value <= best * (1 + 1e-9)
            assert not check_bound(problem, replace(bound, value=bound.value * 1.001)).ok


def all_to_all() -> MappingProblem:
    """Eight neurons that all send to all others, two per core."""
    n = 8
    pairs = [(u, v) for u in range(n) for v in range(n) if u != v]
    graph = LogicGraph.from_edges(
        n, *zip(*pairs, strict=True), np.ones(len(pairs)), multicast=np.ones(n, bool)
    )
    return MappingProblem(graph, board(2, 2, 0), "step-time", (), 2)


def test_copies_beyond_the_first_raise_the_bound() -> None:
    """Eight neurons that all send to all others, two per core: what the inner bound counts is more than a core's mean."""
    problem = all_to_all()
    first, *more = step_load_bounds(problem, BoundContext(upper=lambda: np.inf))
    assert more and more[-1].value >= 1.19 * first.value
    assert more[-1].value <= optimum_of_parts(problem)


def optimum_of_parts(problem: MappingProblem) -> float:
    """The cost of one mapping with two neighbours per core, which no bound may pass."""
    return objective_value(problem, np.arange(problem.n) // 2)


def test_what_many_numbers_lose_by_rounding_is_kept_back() -> None:
    """A million synapses of broken rates: the first bound is confirmed."""
    rng = np.random.default_rng(1)
    n, fan = 2000, 500
    rate = np.repeat(rng.random(n), fan)
    target = np.concatenate([rng.choice(n, fan, replace=False) for _ in range(n)])
    graph = LogicGraph.from_edges(n, np.repeat(np.arange(n), fan), target, rate, multicast=np.ones(n, bool))
    problem = MappingProblem(graph, board(4, 4, 0), "step-time")
    check = check_bound(problem, next(iter(step_load_bounds(problem))))
    assert check.ok, check.text


@pytest.mark.parametrize("key", ["within", "inner"])
@pytest.mark.parametrize("value", [None, -1.0, "much", float("inf"), [1], True, 10**400])
def test_a_certificate_with_nonsense_is_refused(key: str, value: object) -> None:
    problem = all_to_all()
    bound = list(step_load_bounds(problem, BoundContext(upper=lambda: np.inf)))[-1]
    assert check_bound(problem, bound).ok and {"within", "inner"} <= bound.certificate.keys()
    assert not check_bound(problem, replace(bound, certificate={**bound.certificate, key: value})).ok


def test_a_machine_without_the_figures_is_no_traceback_in_checks() -> None:
    """A report about another machine: the bound is refused, the walked value says what is missing, other scores stand."""
    problem = all_to_all()
    bound = next(iter(step_load_bounds(problem, BoundContext(upper=lambda: np.inf))))
    for name in FIGURES:
        figures = {key: value for key, value in problem.machine.figures.items() if key != name}
        machine = replace(problem.machine, figures=figures)
        assert not check_bound(replace(problem, machine=machine), bound).ok
        core = np.arange(problem.n) // 2
        with pytest.raises(InputError, match=name):
            walked_step_time(BetweenCores(problem.graph, machine, core), machine)
    odd = {**problem.machine.figures, "latency_axon_in": Figure(4.0, "us")}
    assert "step-time" not in score(problem.graph, replace(problem.machine, figures=odd), core)
    huge = {**problem.machine.figures, "latency_axon_in": Figure(1e40, "ns")}
    with pytest.raises(InputError, match="1e30"):
        make_problem(problem.graph, replace(problem.machine, figures=huge), objective="step-time")


@pytest.mark.parametrize("engine", ["cpsat", "mip"])
def test_the_exact_models_end_at_the_optimum(engine: str) -> None:
    for seed in (0, 1, 2, 3):
        problem = small(seed)
        result = solve(problem, time_limit=30, engines=[engine], seed=1)
        best = optimum(problem)
        assert result.objective == pytest.approx(best, rel=1e-9), seed
        assert result.bound == pytest.approx(best, rel=1e-5)
        assert result.bound <= best * (1 + 1e-9)
        if engine == "cpsat":
            assert result.status == "optimal"


@pytest.mark.parametrize("seed", range(8))
def test_the_state_of_the_search_is_the_evaluators(seed: int) -> None:
    """After moves of all kinds: busy times equal those of the evaluator, and those after a fresh start."""
    machine = board(3, 3, seed, aside=seed % 2 == 0)
    if seed >= 4:
        machine = replace(machine, torus=False, faulty_links=((0, 1), (1, 0), (4, 7)))
    problem = MappingProblem(network(seed, 24), machine, "step-time", (), 6)
    rng = np.random.default_rng(seed)
    core = rng.permutation(24) % 9
    state = build(problem, core)
    for _ in range(60):
        u, q = int(rng.integers(24)), int(rng.integers(9))
        if q != state.room.core[u]:
            move(state, u, q)
    found = state.busy.copy()
    loads = step_loads(problem.graph, machine, np.array(state.room.core))
    sides = (
        [loads.sending, loads.receiving] if seed % 2 == 0 else [loads.sending + loads.receiving, np.zeros(9)]
    )
    assert found == pytest.approx(np.concatenate([*sides, loads.links]), abs=1e-9)
    heat = float(state.heat[0])
    reset(state)
    assert found == pytest.approx(state.busy, abs=1e-9)
    assert heat == pytest.approx(float(state.heat[0]), rel=1e-9)


def test_the_engine_spreads_what_energy_would_crowd() -> None:
    """The mapping of least energy sits on one core; the one for the step time is several times as fast, and near the bound."""
    graph = generate("reservoir", nodes=256, fan=8, seed=3)
    graph = replace(
        graph,
        resources=(),
        sizes=np.zeros((graph.n, 0), np.int64),
        rate=np.ones(graph.n),
        weights=np.ones(graph.m),
    )
    problem = MappingProblem(graph, board(4, 4, 0), "step-time")
    crowded = objective_value(problem, np.zeros(graph.n, np.int64))
    result = solve(problem, time_limit=2.0, seed=1)
    assert result.objective < crowded / 8
    assert result.bound is not None and result.objective < 2.0 * result.bound


def test_axon_tables_are_obeyed() -> None:
    """From a mapping that needs an entry more than there are, the search comes to one that obeys; runs offer no other."""
    graph, machine = network(5, 30), board(2, 3, 0)
    problem = MappingProblem(graph, machine, "step-time")
    start = np.random.default_rng(1).permutation(30) % 6
    used = int(score(graph, machine, start)["axons-in"])
    tight = replace(problem, machine=replace(machine, capacity={"axons_in": used - 2}))
    assert axon_overflows(tight, start)
    state, best = build(tight, start), start.copy()
    assert state.axons.on
    state.heat[3] = 10.0
    assert search(state, 0.0, 20_000, best, np.inf, new_rng(1)) < np.inf
    assert not axon_overflows(tight, best)
    found = solve(tight, time_limit=1.0, engines=["steps"], seed=1)
    assert found.objective == step_time(tight, found.core)
    assert not axon_overflows(tight, found.core)


def test_without_figures_it_is_refused_and_they_are_named() -> None:
    for name in FIGURES:
        figures = {key: value for key, value in times(True).items() if key != name}
        with pytest.raises(InputError, match=name):
            make_problem(network(1, 4), replace(board(2, 2, 0), figures=figures), objective="step-time")
    figures = times(True) | {"latency_axon_in": Figure(4.0, "pJ")}
    with pytest.raises(InputError, match="latency_axon_in"):
        make_problem(network(1, 4), replace(board(2, 2, 0), figures=figures), objective="step-time")
    assert "step-time" not in score(network(1, 4), nmsolve.machine("mesh:2x2"), np.zeros(4, np.int64))


def test_undirected_networks_and_groups_are_refused() -> None:
    graph, machine = network(1, 4), board(2, 2, 0)
    with pytest.raises(InputError, match="does not say who sends"):
        make_problem(replace(graph, directed=False), machine, objective="step-time")
    tied = (SideConstraint("pair", "together", (0, 1), ()),)
    with pytest.raises(InputError, match="together"):
        make_problem(graph, machine, objective="step-time", constraints=tied)


def test_one_core_and_a_network_without_messages() -> None:
    """All on one core: its own copies count; no messages: only the neurons' updates."""
    graph, machine = LogicGraph.from_edges(3, [0], [1], [2.0]), board(1, 1, 0)
    problem = MappingProblem(graph, machine, "step-time")
    core = np.zeros(3, np.int64)
    sends = 3 * (TIMES["latency_neuron_access"] + TIMES["latency_neuron_update"]) + 2 * (
        TIMES["latency_spike_out"] + TIMES["latency_axon_out"]
    )
    assert step_time(problem, core) == sends + TIMES["latency_barrier"]
    assert walked_step_time(BetweenCores(graph, machine, core), machine) == step_time(problem, core)
    silent = MappingProblem(LogicGraph.from_edges(4, [], [], []), board(2, 2, 0), "step-time")
    result = solve(silent, time_limit=1.0, seed=1)
    assert result.status == "optimal"
    assert result.objective == 3.0 + TIMES["latency_barrier"]


def test_the_command_maps_and_verifies(tmp_path: Path) -> None:
    """With the chip's preset; a step time that is not the mapping's is found out."""

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "nmsolve", *command], cwd=tmp_path, capture_output=True, text=True
        )

    run("generate", "reservoir", "--nodes", "64", "--fan", "6", "--out", "r.json")
    made = run(
        "map", "r.json", "-m", "loihi1", "--objective", "step-time", "-t", "3", "--seed", "1", "--out", "o"
    )
    assert made.returncode == 0, made.stderr
    checked = run("verify", "o", "--bound")
    assert checked.returncode == 0, checked.stdout
    report = json.loads((tmp_path / "o" / "report.json").read_text())
    report["objective"] *= 0.9
    (tmp_path / "o" / "report.json").write_text(json.dumps(report))
    assert run("verify", "o").returncode == 1
    refused = run("map", "r.json", "-m", "truenorth", "--objective", "step-time", "-t", "3")
    assert refused.returncode == 2
    assert all(name in refused.stderr for name in FIGURES) and "Traceback" not in refused.stderr


def test_a_mapping_that_leaves_cores_idle_says_what_a_step_waits_for(tmp_path: Path) -> None:
    """On the terminal and on the page; one for the step time has nothing to say."""

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "nmsolve", *command], cwd=tmp_path, capture_output=True, text=True
        )

    run("generate", "snn", "--nodes", "512", "--synapses", "6000", "--directed", "1", "--out", "s.json")
    crowded = run(
        "map", "s.json", "-m", "loihi1", "--objective", "energy", "-t", "2", "--seed", "1", "--out", "e"
    )
    assert "A step waits " in crowded.stdout and "127 of 128 cores have nothing to do" in crowded.stdout
    assert "A step waits " in (tmp_path / "e" / "report.html").read_text()
    spread = run(
        "map", "s.json", "-m", "loihi1", "--objective", "step-time", "-t", "3", "--seed", "1", "--out", "s"
    )
    assert spread.returncode == 0 and "A step waits" not in spread.stdout


def test_a_core_that_no_route_reaches_carries_nothing_and_scores_are_refused() -> None:
    """An illegal mapping onto a dead core behind dead links."""
    graph = LogicGraph.from_edges(2, [0], [1], [1.0])
    dead = ((1, 3), (3, 1), (2, 3), (3, 2))
    machine = replace(board(2, 2, 1), torus=False, faulty_cores=(3,), faulty_links=dead)
    assert step_loads(graph, machine, np.array([0, 3])).links.sum() == 0
    for core in ([0, 3], [3, 0]):
        with pytest.raises(InputError, match="which dead links cut off"):
            score(graph, machine, np.array(core))
