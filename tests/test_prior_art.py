"""The metaheuristics of the sources (M1.10): steps are exact, mappings legal, answers good on small problems."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nmsolve
from nmsolve.heuristics.mapping.common.rng import new_rng
from nmsolve.heuristics.mapping.prior_art.annealing import Annealing
from nmsolve.heuristics.mapping.prior_art.ant_colony import AntColony
from nmsolve.heuristics.mapping.prior_art.arena import (
    change,
    copied,
    cost_of,
    descend,
    new_arena,
    new_mapping,
    partner,
    send,
    shake,
)
from nmsolve.heuristics.mapping.prior_art.genetic import Genetic, _cross
from nmsolve.heuristics.mapping.prior_art.particle_swarm import ParticleSwarm
from nmsolve.hw.scores import objective_value
from nmsolve.model.errors import InputError
from nmsolve.model.formats import load_instance
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.solvers.mapping.api import make_problem, solve

ENGINES = ("simple-annealing", "genetic", "ant-colony", "particle-swarm")
NUG12 = Path(__file__).parent.parent / "nmsolve" / "cli" / "bench" / "instances" / "nug12.dat"


def random_problem(seed: int, several: bool) -> tuple[MappingProblem, np.ndarray]:
    """A random problem with sizes (several nodes per core) or one node per core, and a feasible mapping."""
    rng = np.random.default_rng(seed)
    n, m = (20, 60) if several else (10, 30)
    graph = nmsolve.LogicGraph.from_edges(
        n, rng.integers(0, n, m), rng.integers(0, n, m), rng.integers(1, 9, m)
    )
    machine = nmsolve.machine("mesh:3x4")
    region = SideConstraint("left", "region", (0, 1), (0, 4, 8, 1, 5))
    problem = make_problem(graph, machine, constraints=[region], balance=0.5 if several else None)
    order = rng.permutation(12)
    order = np.concatenate([[0, 4], order[(order != 0) & (order != 4)]])
    return problem, np.resize(order, n)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_steps_keep_rules_loads_and_cost(seed: int, several: bool) -> None:
    problem, start = random_problem(seed, several)
    arena, rng = new_arena(problem), new_rng(seed)
    m = new_mapping(arena, start)
    assert m.cost[0] == pytest.approx(objective_value(problem, m.core))
    for u in range(problem.n):
        q = int(arena.free[(7 * u + seed) % len(arena.free)])
        v = partner(arena, m, u, q, rng)
        if v > -2:
            send(arena, m, u, q, v, change(arena, m, u, q, v))
            assert m.core[u] == q
    shake(arena, m, 30, rng)
    before = m.cost[0]
    descend(arena, m, 50, rng)
    assert m.cost[0] <= before
    assert not check_mapping(problem, m.core)
    assert (
        m.cost[0] == pytest.approx(objective_value(problem, m.core)) == pytest.approx(cost_of(arena, m.core))
    )
    assert (m.load == new_mapping(arena, m.core).load).all()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_a_child_is_legal_and_between_its_parents(seed: int, several: bool) -> None:
    problem, start = random_problem(seed, several)
    arena, rng = new_arena(problem), new_rng(seed)
    one, other = new_mapping(arena, start), new_mapping(arena, start)
    shake(arena, other, 40, rng)
    child = copied(one)
    _cross(arena, child, other, copied(one), rng)
    assert not check_mapping(problem, child.core)
    assert child.cost[0] == pytest.approx(objective_value(problem, child.core))
    assert (child.core == other.core).sum() >= (one.core == other.core).sum() or several


@pytest.mark.parametrize(
    ("method", "slices"), [(Annealing, 20), (Genetic, 500), (AntColony, 200), (ParticleSwarm, 12_000)]
)
def test_comes_near_a_published_optimum(method: type, slices: int) -> None:
    graph, machine = load_instance(NUG12)
    assert machine is not None
    problem = make_problem(graph, machine)
    arena = new_arena(problem)
    found = []
    for seed in (1, 2, 2):
        search = method(arena, new_mapping(arena, np.arange(12)), new_rng(seed))
        for _ in range(slices):
            best = search.advance()
        assert best.cost[0] == objective_value(problem, best.core)
        found.append(float(best.cost[0]))
    assert found[1] == found[2]  # deterministic by seed
    assert 578 <= min(found) <= 586  # 578 is optimal; random mappings cost about 800


@pytest.mark.parametrize("engine", ENGINES)
def test_many_nodes_per_core_under_side_constraints(engine: str) -> None:
    problem, start = random_problem(1, several=True)
    result = solve(problem, time_limit=1, engines=[engine], seed=1)
    assert result.core is not None and result.objective is not None
    assert not check_mapping(problem, result.core)
    assert result.objective < objective_value(problem, start)


@pytest.mark.parametrize("engine", ENGINES)
def test_refuses_in_words(engine: str) -> None:
    problem, _ = random_problem(1, several=True)
    rows = nmsolve.LogicGraph.from_edges(4, [0, 1, 2], [1, 2, 3])
    apart = make_problem(rows, problem.machine, constraints=[SideConstraint("a", "apart", (0, 1))])
    nets = MappingProblem(problem.graph, problem.machine, "connectivity", (), problem.node_limit)
    with pytest.raises(InputError, match="apart"):
        solve(apart, time_limit=1, engines=[engine])
    with pytest.raises(InputError, match="every edge on its own"):
        solve(nets, time_limit=1, engines=[engine])
