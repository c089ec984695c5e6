"""Two evaluators of assignments that share no code agree on every objective; files of assignments keep what they were given."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from assignments_support import random_assignment, random_problem

from nmsolve.check.assignment.reevaluate import reevaluated_loads, reevaluated_objectives
from nmsolve.hw.assignment.evaluate import all_objectives, loads_of
from nmsolve.hw.assignment.reasons import alternatives, memory_over_time, shares
from nmsolve.model.assignment.assignment import Assignment, assignment_complaint
from nmsolve.model.assignment.files import (
    read_assignment,
    read_strategies,
    write_assignment,
    write_strategies,
)
from nmsolve.model.assignment.network import CostNetwork
from nmsolve.model.assignment.problem import AssignProblem, Groups
from nmsolve.model.errors import InputError


@pytest.mark.parametrize("seed", range(60))
def test_both_evaluators_agree(seed: int) -> None:
    """On random problems with costs of 0, channels and groups, in random orders."""
    problem = random_problem(seed, operators=4 + seed % 9, units=2 + seed % 3, objective="makespan")
    for k in range(4):
        answer = random_assignment(problem, 100 * seed + k)
        assert assignment_complaint(problem, answer) is None
        assert reevaluated_objectives(problem, answer) == all_objectives(problem, answer)
        assert reevaluated_loads(problem, answer) == loads_of(problem, answer)


def test_the_walk_counts_a_tensor_once_per_site_and_what_fusion_saves() -> None:
    """By hand: two units, everything on the second but the ends."""
    problem = random_problem(1, operators=3, units=2)
    flat = replace(problem, time=np.where(problem.time < 0, -1, 10))
    answer = random_assignment(flat, 3)
    answer = replace(answer, unit=np.array([0, 1, 1, 1, 0]), fused=np.zeros(problem.groups.count, bool))
    flat = replace(flat, time=np.full((5, 2), 10), energy=np.zeros((5, 2), np.int64))
    moved = 0
    for t in range(flat.flows.count):
        maker = int(flat.flows.source[t])
        sites = {int(answer.unit[k]) for k in flat.flows.users(t)} - {int(answer.unit[maker])}
        moved += sum(int(flat.flows.time[t, answer.unit[maker], s]) for s in sites)
    assert reevaluated_objectives(flat, answer)["latency"] == 50 + moved


@pytest.mark.parametrize("objective", ["latency", "makespan"])
def test_an_assignment_is_read_as_it_was_written(objective: str, tmp_path: Path) -> None:
    problem = random_problem(5, objective=objective)
    answer, path = random_assignment(problem, 5), tmp_path / "assignment.json"
    write_assignment(path, problem, answer)
    found = read_assignment(path, problem)
    for name in ("unit", "fused", "rank"):
        assert np.array_equal(getattr(found, name), getattr(answer, name)), name


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": "0" * 64}, "for another model"),
        ({"problem": {"name": "x", "hash": "0" * 64}}, "for another problem"),
        ({"operator": ["@in"]}, "1 operators"),
        ({"processor": ["gpu"] * 10}, "'gpu' has no core"),
        ({"core": [7] * 10}, "has no core 7"),
        ({"core": [0]}, "1 values"),
        ({"fused": [["op1", "nobody"]]}, "can be fused"),
        ({"order": ["op1"]}, "not an order"),
        ({"core": [-1] * 10}, "$.core"),
    ],
)
def test_a_wrong_file_is_refused_in_a_line(change: dict[str, object], words: str, tmp_path: Path) -> None:
    problem = random_problem(5)
    path = tmp_path / "assignment.json"
    write_assignment(path, problem, random_assignment(problem, 5))
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError) as refused:
        read_assignment(path, problem)
    assert words in str(refused.value) and "\n" not in str(refused.value)


def test_an_assignment_serves_another_objective_of_the_same_model(tmp_path: Path) -> None:
    problem, path = random_problem(5), tmp_path / "a.json"
    answer = random_assignment(problem, 5)
    write_assignment(path, problem, answer)
    other = replace(problem, objective="energy")
    with pytest.raises(InputError, match="another problem"):
        read_assignment(path, other)
    assert np.array_equal(read_assignment(path, other, other_rules=True).unit, answer.unit)


def test_strategies_are_read_as_written_and_as_a_bare_list(tmp_path: Path) -> None:
    network = CostNetwork(
        "two", np.array([0, 2, 4]), np.array([1, 2, 3, 4]), np.array([[0, 1]]), np.array([0, 4]), np.array([0, 5, 5, 0]),
        np.zeros((0, 5), np.int64), np.zeros(0),
    )  # fmt: skip
    path = tmp_path / "a.json"
    write_strategies(path, network, np.array([1, 0]))
    assert read_strategies(path, network).tolist() == [1, 0]
    path.write_text("[0, 1]")
    assert read_strategies(path, network).tolist() == [0, 1]
    for text, words in (("[0]", "1 values"), ("[0, 2]", "does not exist"), ('{"strategy": 3}', "$")):
        path.write_text(text)
        with pytest.raises(InputError, match=words.replace("$", "\\$")):
            read_strategies(path, network)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("objective", ["latency", "energy", "load", "makespan"])
def test_an_alternative_costs_what_the_evaluator_says(objective: str, seed: int) -> None:
    """The change that is told is that of the whole objective; without groups nothing has to be decided anew."""
    problem = without_groups(random_problem(seed, objective=objective))
    answer = random_assignment(problem, seed)
    before = all_objectives(problem, answer)[objective]
    told = 0
    for i, rows in enumerate(alternatives(problem, answer, most=3)):
        assert len({a.unit for a in rows} | {int(answer.unit[i])}) == len(rows) + 1
        for a in rows:
            unit = answer.unit.copy()
            unit[i] = a.unit
            assert all_objectives(problem, replace(answer, unit=unit))[objective] == before + a.change
            told += 1
            if objective in ("latency", "energy"):
                assert a.run + a.transfer == a.change
    assert told > problem.count


def without_groups(problem: AssignProblem) -> AssignProblem:
    none = np.zeros((0, problem.units.count), np.int64)
    return replace(problem, groups=Groups(np.zeros(1, np.int64), np.zeros(0, np.int64), none, none))


@pytest.mark.parametrize("seed", range(8))
def test_memory_over_time_is_what_the_rules_count(seed: int) -> None:
    """A capacity of the largest amount is kept, one byte less is not."""
    problem = random_problem(seed)
    answer = random_assignment(problem, seed)
    held = memory_over_time(problem, answer)
    for m in np.flatnonzero(held.max(axis=1)).tolist():
        for room, fits in ((held[m].max(), True), (held[m].max() - 1, False)):
            capacity = problem.units.capacity.copy()
            capacity[m] = room
            limited = replace(problem, units=replace(problem.units, capacity=capacity))
            assert (assignment_complaint(limited, answer) is None) == fits


def test_shares_add_up_to_the_latency() -> None:
    problem = random_problem(4)
    answer = random_assignment(problem, 4)
    parts = shares(problem, answer)
    whole = sum(p.run + p.transfer for p in parts)
    assert abs(whole - all_objectives(problem, answer)["latency"]) <= len(parts)
    assert sum(p.operators for p in parts) == problem.count - 2


def test_a_cheaper_place_without_room_is_named() -> None:
    """With a memory that is full, moving there is told to break its limit."""
    problem = without_groups(random_problem(4, room=0.0))
    problem = replace(problem, units=replace(problem.units, capacity=np.array([np.inf, 0.0, 0.0])))
    answer = Assignment(np.zeros(problem.count, np.int64), np.zeros(0, bool), np.arange(problem.count))
    problem = replace(problem, time=np.maximum(problem.time, 0), energy=np.maximum(problem.energy, 0))
    assert assignment_complaint(problem, answer) is None
    rows = [a for found in alternatives(problem, answer) for a in found]
    assert rows and all("memory" in a.broken for a in rows if a.change < 0)
    assert any(a.broken for a in rows)
