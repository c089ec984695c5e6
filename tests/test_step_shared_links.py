"""Routers that copy messages (``multicast_links``): a message is on a link of its tree once; all implementations of it agree."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from command_support import run_here
from hw_reference import objective, times

from nmsolve.check.mapping.recheck import check_bound
from nmsolve.check.mapping.step_time import walked_step_time
from nmsolve.heuristics.mapping.steps.moves import move
from nmsolve.heuristics.mapping.steps.state import build, reset
from nmsolve.hw.machines import load_machine
from nmsolve.hw.scores import score
from nmsolve.hw.step_time import step_costs, step_loads, step_time
from nmsolve.model.between import BetweenCores
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Figure, Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.api import make_problem, solve
from nmsolve.solvers.mapping.bounds.bound_context import BoundContext
from nmsolve.solvers.mapping.bounds.step_load import step_load_bounds


def board(shape: tuple[int, int], *, torus: bool = False, dear: float = 11.0, shared: float = 1.0) -> Machine:
    """Cores for whose links a message is dear."""
    more = {"latency_link_message": Figure(dear, "ns"), "multicast_links": Figure(shared, "1 or 0")}
    return Machine("m", (1, 1), shape, torus, figures=times(False) | more)


def network(seed: int, n: int) -> LogicGraph:
    """Most nodes send one message to several others, some edge by edge; several messages per node."""
    rng = np.random.default_rng(seed)
    source = np.repeat(np.arange(n), 3)
    target = (source + rng.integers(1, n, 3 * n)) % n
    pairs = np.unique(np.column_stack([source, target]), axis=0)
    weight = rng.integers(1, 5, len(pairs)).astype(float)
    return LogicGraph.from_edges(n, pairs[:, 0], pairs[:, 1], weight, multicast=rng.random(n) < 0.8)


def test_one_message_to_two_cores_behind_one_link() -> None:
    """From core 0 to 1 and 2 of a line: two links carry it once each; copies would be twice on the first."""
    graph = LogicGraph.from_edges(3, [0, 0], [1, 2], [2.0, 2.0], multicast=np.array([True, False, False]))
    core = np.arange(3)
    for shared, first in ((1.0, 22.0), (0.0, 44.0)):
        machine = board((1, 3), shared=shared)
        assert sorted(step_loads(graph, machine, core).links.tolist(), reverse=True)[:2] == [first, 22.0]
    edges = replace(graph, multicast=np.zeros(3, bool))  # two messages: nothing to share
    machine = board((1, 3))
    assert step_loads(edges, machine, core).links.max() == 44.0


@pytest.mark.parametrize("seed", range(12))
def test_evaluator_and_verify_agree_with_the_definition(seed: int) -> None:
    """On meshes and tori, with dead links and without."""
    rng = np.random.default_rng(seed)
    machine = board((3, 4), torus=seed % 3 == 1)
    if seed % 3 == 2:
        machine = replace(machine, faulty_links=((0, 1), (1, 0), (5, 9), (6, 7)))
    graph = network(seed, 30)
    core = rng.integers(0, 12, 30)
    problem = MappingProblem(graph, machine, "step-time")
    found = step_time(problem, core)
    assert walked_step_time(BetweenCores(graph, machine, core), machine) == pytest.approx(found, rel=1e-12)
    if seed % 3 < 2:
        assert objective(graph, machine, core, "step-time") == pytest.approx(found, rel=1e-12)
    alone = replace(machine, figures=machine.figures | {"multicast_links": Figure(0.0, "1 or 0")})
    assert step_time(replace(problem, machine=alone), core) >= found
    assert (step_loads(graph, alone, core).links >= step_loads(graph, machine, core).links - 1e-9).all()


@pytest.mark.parametrize("seed", range(9))
def test_the_state_of_the_search_is_the_evaluators(seed: int) -> None:
    """After moves of all kinds, also with tables of counts by hash (many cores, few targets)."""
    shape = (3, 3) if seed % 2 else (6, 6)
    machine = board(shape, torus=seed % 3 == 1)
    if seed % 3 == 2:
        machine = replace(machine, faulty_links=((0, 1), (1, 0), (4, machine.cols + 4)))
    n, size = 40, machine.size
    problem = MappingProblem(network(seed, n), machine, "step-time", (), 6)
    rng = np.random.default_rng(seed)
    state = build(problem, rng.permutation(n) % size)
    for _ in range(80):
        u, q = int(rng.integers(n)), int(rng.integers(size))
        if q != state.room.core[u]:
            move(state, u, q)
    found = state.busy.copy()
    loads = step_loads(problem.graph, machine, np.array(state.room.core))
    wanted = np.concatenate([loads.sending + loads.receiving, np.zeros(size), loads.links])
    assert found == pytest.approx(wanted, abs=1e-9)
    heat = float(state.heat[0])
    reset(state)
    assert found == pytest.approx(state.busy, abs=1e-9)
    assert heat == pytest.approx(float(state.heat[0]), rel=1e-9)


@pytest.mark.parametrize("engine", ["cpsat", "mip"])
@pytest.mark.parametrize("seed", range(3))
def test_the_exact_models_end_at_the_optimum_and_no_bound_passes_it(engine: str, seed: int) -> None:
    """Links are so dear that they are what a step waits for."""
    graph = network(seed, 5)
    problem = MappingProblem(graph, board([(2, 2), (1, 4), (2, 2)][seed], dear=40.0), "step-time", (), 2)
    best = min(
        objective(graph, problem.machine, np.array(core), "step-time")
        for core in product(range(4), repeat=5)
        if max(map(core.count, core)) <= 2
    )
    result = solve(problem, time_limit=40, engines=[engine], seed=1)
    assert result.objective == pytest.approx(best, rel=1e-9)
    assert result.bound == pytest.approx(best, rel=1e-5) and result.bound <= best * (1 + 1e-9)
    for bound in step_load_bounds(problem, BoundContext(upper=lambda: best)):
        assert bound.value <= best * (1 + 1e-9) and check_bound(problem, bound).ok


def test_spinnaker_copies_messages_and_loihi_does_not(tmp_path: Path) -> None:
    assert step_costs(load_machine("spinnaker1")).shared and not step_costs(load_machine("loihi1")).shared
    run_here("generate", "reservoir", "--nodes", "80", "--fan", "20", "--out", tmp_path / "r.json")
    out = tmp_path / "o"
    run_here("map", tmp_path / "r.json", "-m", "spinnaker1", "-t", "3", "--seed", "1", "--out", out)
    assert "ok      objective" in run_here("verify", out, "--bound").stdout
    report = json.loads((out / "report.json").read_text())
    report["objective"] *= 1.001
    (out / "report.json").write_text(json.dumps(report))
    run_here("verify", out, code=1)


def test_the_figure_in_another_unit_is_refused() -> None:
    graph, machine = network(1, 6), board((2, 2))
    wrong = replace(machine, figures=machine.figures | {"multicast_links": Figure(1.0, "ns")})
    with pytest.raises(InputError, match="multicast_links"):
        make_problem(graph, wrong, objective="step-time")
    assert "step-time" not in score(graph, wrong, np.zeros(6, np.int64))


@pytest.mark.parametrize("engine", ["cpsat", "mip"])
@pytest.mark.parametrize(("shared", "busiest"), [(1.0, 40.0), (0.0, 80.0)])
def test_the_exact_models_know_the_difference(engine: str, shared: float, busiest: float) -> None:
    """A message to three nodes on a line of four cores, one node each: two of them are on one side of its source."""
    graph = LogicGraph.from_edges(
        4, [0, 0, 0], [1, 2, 3], [1.0] * 3, multicast=np.array([True, False, False, False])
    )
    problem = MappingProblem(graph, board((1, 4), dear=40.0, shared=shared), "step-time", (), 1)
    result = solve(problem, time_limit=20, engines=[engine], seed=1)
    barrier = 20.0
    assert result.objective == busiest + barrier
    assert result.bound == pytest.approx(busiest + barrier, rel=1e-5)
