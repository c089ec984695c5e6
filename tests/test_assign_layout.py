"""Where the picture of an assignment puts operators, and what is folded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from assignments_support import random_assignment, random_problem

from nmsolve.kinds.assignment.layout import MOST, ROW, drawing
from nmsolve.model.assignment.problem import AssignProblem


def large(operators: int, module: bool) -> AssignProblem:
    """More operators than are drawn one by one; with ``module`` 25 of a kind share the first part of their names."""
    problem = random_problem(3, operators=operators)
    names = [f"block{k // 25}/op{k}" if module else f"op{k}" for k in range(operators)]
    return replace(problem, labels=("@in", *names, "@out"))


@pytest.mark.parametrize("operators", [3, 60, 200])
def test_few_operators_are_drawn_one_by_one(operators: int) -> None:
    """In layers along the data, no two at one place, rows no longer than they may be."""
    problem = random_problem(5, operators=operators)
    found = drawing(problem, random_assignment(problem, 1).unit)
    assert not found.folded and found.members.tolist() == [1] * operators == [1] * len(found.names)
    layer = found.row * ROW + found.place[:, 0]
    assert (layer[found.ends[:, 0]] < layer[found.ends[:, 1]]).all() and found.place[:, 0].max() < ROW
    places = {(int(r), *p) for r, p in zip(found.row, found.place.tolist(), strict=True)}
    assert len(places) == operators


@pytest.mark.parametrize("module", [True, False])
def test_many_operators_are_folded_and_none_is_lost(module: bool) -> None:
    """By module and unit, or in a row on one unit; every square has one colour."""
    problem = large(900, module)
    unit = random_assignment(problem, 2).unit
    if not module:
        unit = np.repeat(np.arange(31) % 2, 30)[: problem.count]
    found = drawing(problem, unit)
    assert found.folded and len(found.names) <= MOST and found.members.sum() == 900
    if module:
        assert set(found.names) == {f"block{k}" for k in range(36)}
        pairs = {
            (label.split("/")[0], int(j)) for label, j in zip(problem.labels[1:-1], unit[1:-1], strict=True)
        }
        assert len(pairs) == len(found.names)
    else:
        assert all(" to " in name for name in found.names)
        shares = np.bincount(unit[1:-1], minlength=3)
        assert [int(found.members[found.unit == j].sum()) for j in range(3)] == shares.tolist()
