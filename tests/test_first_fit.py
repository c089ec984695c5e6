"""The fallback finds a feasible mapping wherever brute force does (equal sizes), and often enough elsewhere."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.heuristics.mapping.first_fit import filled, first_fit, snake
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping


def problem_of(n, shape, sizes=None, capacity=None, constraints=(), limit=None, edges=()):
    src, dst = [e[0] for e in edges], [e[1] for e in edges]
    graph = LogicGraph.from_edges(
        n, src, dst, sizes=None if sizes is None else np.array(sizes).reshape(n, -1)
    )
    machine = Machine("m", (1, 1), shape, capacity={"neurons": capacity} if capacity else {})
    return MappingProblem(graph, machine, "hops", tuple(constraints), limit)


def some_mapping(problem):
    """Brute force: any feasible mapping?"""
    every = itertools.product(range(problem.cores), repeat=problem.n)
    return any(not check_mapping(problem, np.array(m)) for m in every)


@st.composite
def equal_sizes(draw):
    n, cores = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    subset = st.lists(st.integers(0, cores - 1), min_size=1, max_size=cores, unique=True)
    rules = [
        SideConstraint(f"c{i}", draw(st.sampled_from(["region", "forbid"])), (u,), tuple(draw(subset)))
        for i, u in enumerate(draw(st.lists(st.integers(0, n - 1), max_size=6)))
    ]
    return problem_of(n, (1, cores), constraints=rules, limit=draw(st.integers(1, 3)))


@settings(max_examples=120, deadline=None, derandomize=True)
@given(equal_sizes())
def test_with_equal_sizes_it_is_exact(problem):
    core = first_fit(problem)
    if core is None:
        assert not some_mapping(problem)
    else:
        assert not check_mapping(problem, core)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(9, 14), st.data())
def test_whatever_it_returns_is_feasible(sizes, capacity, data):
    n = len(sizes)
    pair = data.draw(st.lists(st.integers(0, n - 1), max_size=n, unique=True))
    rules = [SideConstraint("a", "apart", tuple(pair))] if len(pair) > 1 else []
    problem = problem_of(n, (1, 3), sizes, capacity, rules)
    core = first_fit(problem)
    if core is not None:
        assert not check_mapping(problem, core)
    elif n <= 6:
        assert not some_mapping(problem)


def test_a_tight_packing_with_unequal_sizes_is_found():
    """Twelve cores of 100, each exactly filled by a 60, a 30 and a 10, given in the worst order."""
    sizes = [10] * 12 + [30] * 12 + [60] * 12
    problem = problem_of(36, (3, 4), sizes, 100)
    assert not check_mapping(problem, first_fit(problem))


def test_large_apart_groups_are_spread():
    rules = [
        SideConstraint("a", "apart", tuple(range(16))),
        SideConstraint("b", "apart", tuple(range(8, 24))),
    ]
    problem = problem_of(40, (4, 4), constraints=rules, limit=3)
    assert not check_mapping(problem, first_fit(problem))


def test_neighbours_stay_close():
    n = 64
    problem = problem_of(n, (8, 8), limit=1, edges=[(u, u + 1) for u in range(n - 1)])
    core = first_fit(problem)
    r, c = np.divmod(core, 8)
    assert (abs(np.diff(r)) + abs(np.diff(c)) == 1).all()


@pytest.mark.parametrize("torus", [False, True])
def test_the_snake_visits_every_core_once(torus):
    machine = Machine("m", (2, 3), (3, 2), torus=torus)
    path = snake(machine)
    assert sorted(path.tolist()) == list(range(36))
    assert (np.diff(machine.chip_of[path]) != 0).sum() == 5


def test_a_large_problem_takes_no_time_worth_mentioning():
    n = 50_000
    rng = np.random.default_rng(0)
    problem = problem_of(n, (32, 32), limit=-(-n // 1024), edges=rng.integers(0, n, (200_000, 2)).tolist())
    assert not check_mapping(problem, first_fit(problem))


def test_impossible_problems_get_none():
    assert first_fit(problem_of(3, (1, 2), limit=1)) is None


def test_filling_once_moves_nobody_to_make_room():
    """6, 4, 5 and 5 units in two cores of 10: as they come they fit; behind 5 and 4 the last one does not."""
    fits, tight = problem_of(4, (1, 2), [6, 4, 5, 5], 10), problem_of(4, (1, 2), [5, 4, 6, 5], 10)
    assert filled(fits).tolist() == [0, 0, 1, 1]
    assert filled(tight) is None
    assert check_mapping(tight, first_fit(tight)) == []
