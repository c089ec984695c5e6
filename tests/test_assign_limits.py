"""Limits of assignments: a smallest conflict is found, no larger than needed, and confirmed by trying everything."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from assignments_support import random_problem

from nmsolve.check.assignment.conflict import impossible
from nmsolve.hw.assignment.constraints import AssignConstraints
from nmsolve.hw.assignment.machine_file import load_processors
from nmsolve.model.assignment.assignment import Assignment, assignment_complaint
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.solvers.assignment.limits import AssignLimits
from nmsolve.solvers.search.conflict import recheck_conflict, smallest_conflict


def on_laptop(seed: int = 2, operators: int = 4) -> AssignProblem:
    """A small problem on the two units of a preset."""
    problem = random_problem(seed, operators=operators, units=2)
    free = np.zeros((problem.flows.count, 2, 2), np.int64)
    return replace(
        problem,
        units=load_processors("laptop-npu").units,
        time=np.maximum(problem.time, 0),
        energy=np.abs(problem.energy),
        flows=replace(problem.flows, time=free, energy=free),
    )


@pytest.mark.parametrize(
    ("constraints", "conflict"),
    [
        ({"pin": {"op1": "npu"}, "forbid": {"op2": "npu"}}, None),
        ({"pin": {"op1": "npu", "op*": "cpu", "op3": "cpu"}}, {"op1", "op*"}),
        ({"pin": {"op1": "cpu"}, "forbid": {"kind:Add": "npu", "op2": "cpu"}}, {"op2", "kind:Add"}),
        ({"pin": {"op1": "npu", "op3": "cpu"}, "together": [["op1", "op2"], ["op2", "op3"]]}, {"0", "1", "op1", "op3"}),
        ({"memory": {"dram": 3}}, {"dram"}),
        ({"pin": {"op1": "cpu"}, "forbid": {"op2": ["cpu", "npu"]}}, {"op2"}),
    ],
)  # fmt: skip
def test_the_smallest_conflict_is_found_and_confirmed(
    constraints: dict[str, object], conflict: set[str] | None
) -> None:
    problem, machine = on_laptop(), load_processors("laptop-npu")
    limits = AssignLimits(problem, AssignConstraints(**constraints), machine)  # type: ignore[arg-type]
    found = smallest_conflict(limits, 30.0)
    if conflict is None:
        assert found.status == "feasible"
        assert limits.complaint(limits.every, limits.written(found.solution)) is None
        return
    assert found.status == "infeasible" and found.conflict is not None
    assert {x.name for x in found.conflict.limits} == conflict and found.conflict.minimal
    assert found.conflict.text
    assert recheck_conflict(limits, found.conflict.certificate, 30.0)


@pytest.mark.parametrize("seed", range(30))
def test_trying_everything_agrees_with_the_rules(seed: int) -> None:
    """For random memories, whether any assignment is legal, by brute force over the checker."""
    rng = np.random.default_rng(seed)
    problem = random_problem(seed, operators=4, units=3)
    capacity = rng.integers(4, 26, 3).astype(float)
    together = np.where(rng.random(problem.count) < 0.3, 0, -1)
    allowed = problem.time >= 0
    limited = replace(problem, units=replace(problem.units, capacity=capacity), together=together)
    legal = False
    for unit in itertools.product(range(3), repeat=problem.count):
        none = np.zeros(problem.groups.count, bool)
        answer = Assignment(np.array(unit), none, np.arange(problem.count))
        if assignment_complaint(limited, answer) is None:
            legal = True
            break
    assert impossible(problem, allowed, together, capacity, 60.0) == (not legal)
