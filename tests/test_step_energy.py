"""The energy of a step and its product with the time: evaluator, verification, engine and bound against all mappings."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from command_support import run_here
from hw_reference import DRAW, ENERGY, draws
from test_step_time import board, network, optimum

import nmsolve
from nmsolve.check.certificates import certificate_from_json, certificate_to_json
from nmsolve.check.mapping.recheck import check_bound
from nmsolve.check.mapping.step_time import walked_energy_delay, walked_step_energy
from nmsolve.heuristics.mapping.steps.moves import move, value
from nmsolve.heuristics.mapping.steps.state import build, reset
from nmsolve.hw.power import FIGURES
from nmsolve.hw.scores import objective_value, score
from nmsolve.model.between import BetweenCores
from nmsolve.model.bound import Bound
from nmsolve.model.clock import now
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Figure, Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.api import make_problem, solve
from nmsolve.solvers.mapping.bounds.bound_context import BoundContext
from nmsolve.solvers.mapping.bounds.step_power import step_power_bounds

NAMES = ("step-energy", "energy-delay")


def drawing(machine: Machine, **others: float) -> Machine:
    """The machine with what its chips draw."""
    figures = {**machine.figures, **draws(**others)}
    return replace(machine, energy={k: Figure(v, "pJ") for k, v in ENERGY.items()}, figures=figures)


def small(seed: int) -> MappingProblem:
    """A problem whose mappings can all be tried: chips that draw much or little, cores that cost or do not."""
    rows, cols = [(2, 2), (2, 3), (1, 4)][seed % 3]
    n = 4 if rows * cols == 6 else 5
    machine = board(rows, cols, 4 * seed, aside=seed % 2 == 0)
    machine = drawing(
        machine, power_chip=[0.1, 2.0, 30.0][seed % 3], power_core=[0.0, 0.5, 9.0][seed // 3 % 3]
    )
    return MappingProblem(
        network(seed, n, seed % 5 > 0), machine, NAMES[seed % 2], (), 2 if seed % 4 == 3 else None
    )


@pytest.mark.parametrize("seed", range(9))
def test_the_bound_never_passes_the_optimum_and_its_certificate_proves_it(seed: int) -> None:
    """Aimed at twice the optimum; a little more than is claimed is refused; the engine ends near the optimum."""
    problem = small(seed)
    best = optimum(problem)
    bounds = list(step_power_bounds(problem, BoundContext(upper=lambda: 2 * best)))
    assert bounds
    for bound in bounds:
        check = check_bound(problem, bound)
        assert check.ok, check.text
        assert bound.value <= check.value <= best * (1 + 1e-9)
        assert not check_bound(problem, replace(bound, value=bound.value * 1.001)).ok
    found = solve(problem, time_limit=0.5, engines=["steps"], seed=1)
    assert best * (1 - 1e-9) <= found.objective <= 1.25 * best


def dense() -> MappingProblem:
    """Twelve nodes that all send to all others."""
    u, v = np.nonzero(~np.eye(12, dtype=bool))
    graph = LogicGraph.from_edges(12, u, v, np.ones(len(u)), multicast=np.ones(12, bool))
    return MappingProblem(graph, drawing(board(2, 3, 0), power_chip=2.0), "step-energy")


def bounds_of(problem: MappingProblem) -> list[Bound]:
    """What one second of work proves, with some mapping known."""
    known = objective_value(problem, np.arange(problem.n) % problem.cores)
    end = now() + 1.0
    return list(step_power_bounds(problem, BoundContext(lambda: known, lambda: now() > end, seconds=1.0)))


@cache
def strong() -> Bound:
    """The last of them."""
    return bounds_of(dense())[-1]


def test_pieces_of_the_times_prove_more_than_the_shortest_step() -> None:
    """Dense messages, a chip that draws little: the first bound is for no messages, the last is well above it."""
    problem = dense()
    first, *more = bounds_of(problem)
    assert more and more[-1].value > 1.1 * first.value
    last = more[-1]
    stored = json.loads(json.dumps(certificate_to_json(last.certificate)))
    again = replace(last, certificate=certificate_from_json(stored))
    assert check_bound(problem, again).ok


@pytest.mark.parametrize("key", ["until", "proofs"])
@pytest.mark.parametrize(
    "value",
    [None, 0, [1.0], [3.0, 2.0], [-1.0], [{}], "x", [[1.0]], [[1.0, 2.0], 3.0], [10**400], [None], {"a": 1}],
)
def test_a_certificate_with_nonsense_is_refused(key: str, value: object) -> None:
    problem = dense()
    bound = strong()
    assert check_bound(problem, bound).ok and len(bound.certificate["proofs"]) > 2
    assert not check_bound(problem, replace(bound, certificate={**bound.certificate, key: value})).ok


def test_what_chips_draw_decides_how_far_a_network_spreads() -> None:
    """Chips that draw nothing: least energy is one core. The more they draw, the more cores; the product spreads further."""
    problem = MappingProblem(network(7, 60), drawing(board(3, 3, 0)), "step-energy")
    cores = []
    for power in (0.0, 3.0, 1000.0):
        stated = replace(problem, machine=drawing(board(3, 3, 0), power_chip=power, power_core=0.0))
        found = solve(stated, time_limit=1.0, engines=["steps"], seed=1)
        cores.append(len(np.unique(found.core)))
    assert cores[0] == 1 < cores[2] and cores[1] <= cores[2]
    product_ = solve(replace(problem, objective="energy-delay"), time_limit=3.0, engines=["steps"], seed=1)
    energy = solve(problem, time_limit=3.0, engines=["steps"], seed=1)
    timed = replace(problem, objective="step-time")
    assert objective_value(timed, product_.core) < objective_value(timed, energy.core)


@pytest.mark.parametrize("seed", range(4))
def test_the_state_of_the_search_is_the_evaluators(seed: int) -> None:
    """After moves of all kinds: cores in use and energy equal those of the evaluator."""
    machine = replace(drawing(board(3, 3, seed, aside=seed % 2 == 0)), torus=False)
    problem = MappingProblem(network(seed, 12), machine, NAMES[seed % 2], (), 6)
    rng = np.random.default_rng(seed)
    state = build(problem, rng.permutation(12) % 9)
    for _ in range(60):
        u, q = int(rng.integers(12)), int(rng.integers(9))
        if q != state.room.core[u]:
            move(state, u, q)
    core = np.array(state.room.core)
    assert state.draw[5] == len(np.unique(core))
    state.heat[1:3] = state.busy.max(), 8.0
    reset(state)
    # the norm is a little above the longest time
    exact = objective_value(problem, core)
    assert exact * (1 - 1e-9) <= value(state) <= exact * 1.05


def test_without_figures_it_is_refused_and_they_are_named() -> None:
    graph, machine = network(1, 4), drawing(board(2, 2, 0))
    core = np.zeros(4, np.int64)
    for name in FIGURES:
        figures = {key: value for key, value in machine.figures.items() if key != name}
        lacking = replace(machine, figures=figures)
        for aim in NAMES:
            with pytest.raises(InputError, match=name):
                make_problem(graph, lacking, objective=aim)
            assert aim not in score(graph, lacking, core)
        for walked in (walked_step_energy, walked_energy_delay):
            with pytest.raises(InputError, match=name):
                walked(BetweenCores(graph, lacking, core), lacking)
        problem = MappingProblem(graph, machine, "step-energy")
        bound = next(iter(step_power_bounds(problem)))
        assert check_bound(problem, bound).ok
        assert not check_bound(replace(problem, machine=lacking), bound).ok
    for figure in (Figure(4.0, "pJ"), Figure(-1.0, "mW"), Figure(1e31, "mW")):
        with pytest.raises(InputError, match="power_core"):
            odd = replace(machine, figures={**machine.figures, "power_core": figure})
            make_problem(graph, odd, objective="step-energy")
    with pytest.raises(InputError, match="energy"):
        make_problem(graph, replace(machine, energy={}), objective="step-energy")
    assert DRAW.keys() == FIGURES.keys()


def test_the_command_maps_and_verifies_and_refuses_what_it_cannot(tmp_path: Path) -> None:
    run_here("generate", "reservoir", "--nodes", "60", "--fan", "6", "--out", tmp_path / "r.json")
    out = tmp_path / "o"
    run_here(
        "map",
        tmp_path / "r.json",
        "-m",
        "loihi1",
        "--objective",
        "energy-delay",
        "-t",
        "3",
        "--seed",
        "1",
        "--out",
        out,
    )
    report = json.loads((out / "report.json").read_text())
    both = report["scores"]["step-energy"] * report["scores"]["step-time"]
    assert report["objective"] == pytest.approx(both)
    assert "recomputed" in run_here("verify", out, "--bound").stdout
    report["objective"] *= 0.99
    (out / "report.json").write_text(json.dumps(report))
    run_here("verify", out, code=1)
    said = run_here(
        "map", tmp_path / "r.json", "-m", "truenorth", "--objective", "step-energy", code=2
    ).stderr
    assert "needs figures that this machine does not have" in said
    said = run_here("map", tmp_path / "r.json", "-m", "loihi1", "--pareto", "step-energy,hops", code=2).stderr
    assert "step-energy" in said
    assert nmsolve.machine("loihi1").figures["power_chip"].unit == "mW"
