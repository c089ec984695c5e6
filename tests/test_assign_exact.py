"""The exact models of assignments against every answer, and against each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from assign_support import optimum, random_problem, run_alone

from nmsolve.model.assignment.assignment import Assignment
from nmsolve.model.errors import InputError
from nmsolve.solvers.assignment.data import alike_units, assign_data
from nmsolve.solvers.assignment.exact import AssignCpSat, AssignHighs, cpsat_model, mip_model, models, refusal

KINDS = [
    {"objective": "latency"},
    {"objective": "energy", "limited": True},
    {"objective": "load", "shared": True},
    {"objective": "latency", "together": True, "limited": True},
    {"objective": "load", "ceilings": (("energy", 80.0),)},
    {"objective": "energy", "ceilings": (("load", 60.0), ("latency", 120.0))},
]


@pytest.mark.parametrize("number", range(len(KINDS)))
def test_both_models_find_and_prove_what_trying_everything_finds(number):
    for seed in range(3):
        problem = random_problem(10 * number + seed, operators=4, **KINDS[number])
        want = optimum(problem)
        for engine in (AssignCpSat(), AssignHighs()):
            ran = run_alone(engine, problem)
            assert (ran.value, ran.bound()) == (want, want), (engine.name, seed, ran.refused)


def scaled(problem, by):
    """All costs times ``by``."""
    flows, groups = problem.flows, problem.groups
    return replace(
        problem,
        time=np.where(problem.time < 0, -1, problem.time * by),
        energy=np.where(problem.energy < 0, -1, problem.energy * by),
        flows=replace(flows, time=flows.time * by, energy=flows.energy * by),
        groups=replace(groups, time=groups.time * by, energy=groups.energy * by),
    )


@pytest.mark.parametrize("objective", ["latency", "load"])
def test_bounds_hold_where_numbers_are_so_large_that_they_are_rounded(objective):
    small = random_problem(5, operators=4, objective=objective)
    by = 2**51 // 7
    problem, want = scaled(small, by), optimum(small) * by
    ran = run_alone(AssignCpSat(), problem)
    assert ran.value == want and want * (1 - 3e-9) <= ran.bound() <= want


def twins(seed, objective):
    """A problem whose last unit is a copy of the one before, at a site of its own."""
    p = random_problem(seed, operators=5, objective=objective)
    last = p.units.count - 1
    column = [*range(last), last - 1]
    time, energy = p.time[:, column], p.energy[:, column]
    site = np.array(column)
    moved = [table[:, site][:, :, site] for table in (p.flows.time, p.flows.energy)]
    for table in moved:
        same = table[:, [0], [last]].copy()
        table[:, last - 1, last] = table[:, last, last - 1] = same[:, 0]
    groups = replace(p.groups, time=p.groups.time[:, column], energy=p.groups.energy[:, column])
    flows = replace(p.flows, time=moved[0], energy=moved[1])
    return replace(p, time=time, energy=energy, groups=groups, flows=flows)


@pytest.mark.parametrize("objective", ["latency", "load"])
def test_of_units_that_are_alike_the_first_is_used_first(objective):
    for seed in range(4):
        problem = twins(seed, objective)
        last = problem.units.count - 1
        some = alike_units(problem)
        assert (last - 1, last) in some
        data = assign_data(problem)
        unit = np.zeros(problem.count, np.int64)
        able = np.flatnonzero(problem.time[:, last] >= 0)
        unit[able] = last
        renamed = data.in_order(unit)
        assert (renamed[able] == last - 1).all() and (np.delete(renamed, able) == 0).all()
        ran = run_alone(AssignCpSat(), problem)
        assert ran.value == ran.bound() == optimum(problem)


def test_units_are_told_apart_by_any_cost_way_or_memory():
    problem = twins(0, "latency")
    last = problem.units.count - 1
    time = problem.time.copy()
    row = int(np.flatnonzero(time[:, last] > 0)[0])
    time[row, last] += 1
    flows, groups = problem.flows, problem.groups
    capacity = problem.units.capacity.copy()
    capacity[last] = 100.0
    channel = problem.units.channel.copy()
    channel[0, last] = -1
    moved = flows.time.copy()
    moved[0, 0, last] += 1
    none = np.zeros((groups.count, problem.units.count), np.int64)
    for other in (
        replace(problem, time=time, groups=replace(groups, time=none)),
        replace(problem, units=replace(problem.units, capacity=capacity)),
        replace(problem, units=replace(problem.units, channel=channel)),
        replace(problem, flows=replace(flows, time=moved)),
    ):
        assert all(last not in some for some in alike_units(other))


def test_a_known_assignment_is_where_the_models_begin():
    problem = random_problem(3, operators=5)
    ran = run_alone(AssignCpSat(), problem)
    start = Assignment.unpacked(problem, ran.best)
    data = assign_data(problem)
    built = cpsat_model(data, start=start, bound=ran.value)
    assert len(built.model.proto.solution_hint.vars) == len(built.v.x) + len(built.v.fused)
    again = mip_model(data, start=start)
    assert (again.mapping(lambda x: bool(x.value)) == ran.best).all()


def test_models_are_written_for_sums_and_loads_only():
    highs, twin = models(random_problem(1, objective="load"))
    assert highs.claim.factor > 0 and twin.claim.exact
    with pytest.raises(InputError, match="schedule"):
        models(random_problem(1, objective="makespan"))
    assert "limit is 3" in refusal(random_problem(1), 3)
