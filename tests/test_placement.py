"""Placement engines as the search sees them: best answers on small cases, side constraints, seeds, budgets, refusals."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_fakes import QuietContext

from nmsolve.heuristics.mapping.placement.data import placement_cost, placement_data
from nmsolve.heuristics.mapping.placement.engine import Anneal, nominal_seconds
from nmsolve.heuristics.mapping.placement.schedule import Cooling
from nmsolve.heuristics.mapping.placement.tabu import Tabu
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping

ONE = {"neurons": 1}


class FakeContext(QuietContext):
    """Time passes by questions asked, not by the clock, so that runs are the same on any machine."""

    def __init__(self, problem, seconds=0.2, seed=1, questions=400):
        super().__init__()
        self.problem, self.data, self.seed = problem, placement_data(problem), seed
        self.seconds, self.questions, self.asked, self.offers = seconds, questions, 0, []

    def time_left(self):
        return self.seconds * max(0.0, 1 - self.asked / self.questions)

    def should_stop(self):
        self.asked += 1
        return self.asked >= self.questions

    def offer(self, core, move=""):
        assert check_mapping(self.problem, core) == []
        cost = placement_cost(self.data, core)
        self.offers.append((move, cost, core.copy()))
        if cost < self.value:
            self.best, self.value = core.copy(), cost
            return True
        return False


def run(engine, problem, **kwargs):
    context = FakeContext(problem, **kwargs)
    assert engine().refuses(problem) is None
    engine().run(problem, context)
    return context


def least(problem):
    """Brute force over all placements."""
    data = placement_data(problem)
    best = np.inf
    for cores in itertools.permutations(range(problem.cores), problem.n):
        core = np.array(cores)
        if not check_mapping(problem, core):
            best = min(best, placement_cost(data, core))
    return best


@st.composite
def small(draw):
    """Up to 5 nodes on up to 6 cores: meshes, tori, matrices, faults and side constraints."""
    n = draw(st.integers(2, 5))
    kind = draw(st.sampled_from(["mesh", "torus", "matrix"]))
    m = draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    edges = rng.integers(0, n, (2, m))
    graph = LogicGraph.from_edges(n, edges[0], edges[1], rng.integers(0, 9, m).astype(float))
    if kind == "matrix":
        machine = Machine(
            kind, (1, 1), (1, 6), capacity=ONE, distance_matrix=rng.integers(0, 9, (6, 6)).astype(float)
        )
    else:
        faulty = (int(rng.integers(6)),) if draw(st.booleans()) else ()
        machine = Machine(kind, (1, 1), (2, 3), torus=kind == "torus", capacity=ONE, faulty_cores=faulty)
    constraints = ()
    if draw(st.booleans()):
        free = np.flatnonzero(machine.usable)
        constraints = (SideConstraint("pin", "pin", (0,), (int(rng.choice(free)),)),)
    return MappingProblem(graph, machine, constraints=constraints)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(small())
def test_small_cases_are_solved_to_the_optimum(problem):
    if not problem.one_per_core:
        return
    best = least(problem)
    for engine in (Anneal, Tabu):
        assert run(engine, problem, seconds=0.05, questions=200).value == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize(("engine", "questions"), [(Anneal, 3000), (Tabu, 25)])
def test_a_grid_finds_its_way_onto_the_mesh(engine, questions):
    nodes = np.arange(36).reshape(6, 6)
    src = np.r_[nodes[:, :-1].ravel(), nodes[:-1].ravel()]
    dst = np.r_[nodes[:, 1:].ravel(), nodes[1:].ravel()]
    shuffled = np.random.default_rng(2).permutation(36)
    graph = LogicGraph.from_edges(36, shuffled[src], shuffled[dst])
    machine = Machine("mesh", (1, 1), (7, 7), capacity=ONE, faulty_cores=(0, 6))
    context = run(engine, MappingProblem(graph, machine), seconds=1.0, questions=questions)
    assert context.value == 60


@pytest.mark.parametrize("engine", [Anneal, Tabu])
def test_same_seed_same_offers(engine):
    rng = np.random.default_rng(5)
    graph = LogicGraph.from_edges(20, rng.integers(0, 20, 60), rng.integers(0, 20, 60), rng.random(60))
    problem = MappingProblem(graph, Machine("mesh", (1, 1), (5, 5), capacity=ONE))
    first, again, other = (run(engine, problem, seed=s, seconds=0.1, questions=40) for s in (3, 3, 4))
    assert [(m, c, p.tolist()) for m, c, p in first.offers] == [
        (m, c, p.tolist()) for m, c, p in again.offers
    ]
    assert [p.tolist() for _, _, p in first.offers] != [p.tolist() for _, _, p in other.offers]


@pytest.mark.parametrize("engine", [Anneal, Tabu])
def test_no_time_and_no_traffic_still_give_an_answer(engine):
    machine = Machine("mesh", (1, 1), (3, 3), capacity=ONE)
    rng = np.random.default_rng(1)
    busy = LogicGraph.from_edges(8, rng.integers(0, 8, 20), rng.integers(0, 8, 20))
    assert run(engine, MappingProblem(busy, machine), seconds=0.0, questions=1).offers
    silent = LogicGraph.from_edges(8, [], [])
    assert run(engine, MappingProblem(silent, machine)).value == 0
    weightless = LogicGraph.from_edges(8, [0, 1], [1, 2], [0.0, 0.0])
    assert run(engine, MappingProblem(weightless, machine), questions=5).value == 0


def test_anneal_goes_on_from_a_better_incumbent():
    rng = np.random.default_rng(8)
    graph = LogicGraph.from_edges(16, rng.integers(0, 16, 50), rng.integers(0, 16, 50))
    problem = MappingProblem(graph, Machine("mesh", (1, 1), (4, 4), capacity=ONE))
    good = run(Tabu, problem, questions=20)
    context = FakeContext(problem, seconds=0.02, questions=60)
    context.offer(good.best, "warm start")
    Anneal().run(problem, context)
    assert context.value <= good.value


def test_refusals_say_why():
    graph = LogicGraph.from_edges(4, [0, 1, 2], [1, 2, 3])
    shared = MappingProblem(graph, Machine("mesh", (1, 1), (2, 2), capacity={"neurons": 2}))
    assert "several nodes" in Anneal().refuses(shared) and "several nodes" in Tabu().refuses(shared)
    large = MappingProblem(graph, Machine("mesh", (1, 1), (20, 20), capacity=ONE))
    assert Anneal().refuses(large) is None and "400" in Tabu().refuses(large)
    nets = MappingProblem(graph, Machine("mesh", (1, 1), (2, 2), capacity=ONE), objective="connectivity")
    assert "route tree" in Anneal().refuses(nets)


def test_plans_do_not_depend_on_small_differences_in_time():
    assert nominal_seconds(9.99) == nominal_seconds(9.91) == pytest.approx(9.9)
    assert nominal_seconds(0.1049) == pytest.approx(0.10) and nominal_seconds(-1) == 0
    assert nominal_seconds(61.3) == 61


def test_cooling_knows_where_it_froze():
    cooling = Cooling(np.array([8.0, 4.0, 2.0, 1.0, 0.5]), np.array([0.0, -50.0, -99.0, -99.995, -100.0]))
    assert cooling.frozen_below(1e-3) == 2.0 and cooling.frozen_below(1e-5) == 1.0
    assert Cooling(np.array([2.0, 1.0]), np.zeros(2)).frozen_below(0.1) == 1.0
