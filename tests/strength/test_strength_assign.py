"""Floors of the engines for assignments. Every test names the mutation that it must fail under;
``python tests/strength/mutants.py`` tries all of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from assign_rows_support import random_problem
from counted import Counted
from strength_cases import at_least, at_most

from nmsolve.heuristics.assignment.list_schedule import ListSchedule
from nmsolve.heuristics.assignment.min_conflicts import MinConflicts
from nmsolve.heuristics.assignment.network_search import NetworkSearch
from nmsolve.heuristics.assignment.rules import (
    ComplexScalars,
    GreedyGrowth,
    Priority,
    ScalarTensor,
    Threshold,
)
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.assignment.bounds import AssignBounds
from nmsolve.solvers.assignment.checker import AssignChecker
from nmsolve.solvers.assignment.cut import MinimumCut
from nmsolve.solvers.assignment.dual import DualAscent
from nmsolve.solvers.assignment.tree import TreeDecomposition


def run(engine: Any, problem: AssignProblem, **context: Any) -> Counted:
    """The context after a run of an engine that takes the problem."""
    checker = AssignChecker(problem)

    def value(packed: IntArray) -> float:
        return np.inf if checker.complaint(packed) is not None else checker.score(packed)

    assert engine.refuses(problem) is None, engine.refuses(problem)
    counted = Counted(value, **context)
    engine.run(problem, counted)
    return counted


def problem(seed: int, operators: int, units: int, **more: Any) -> AssignProblem:
    """Operators of whole times on units of a site each; every fifth tensor has several users."""
    return random_problem(seed, operators, units, units, possible=0.9, reach=4, most=60, **more)


PAIR = problem(8, 60, 2, groups=6)
FUSED = problem(2, 60, 2, groups=60)
THREE = problem(3, 40, 3, groups=20)
#: Accelerators take a third of the time for tensors, and three times as long for scalars.
_PLAIN = problem(9, 60, 3)
_FAST = np.where(_PLAIN.scalar[:, None], 3 * _PLAIN.time, _PLAIN.time // 3)
SHAPED = replace(
    _PLAIN, time=np.where((_PLAIN.time < 0) | _PLAIN.units.host, _PLAIN.time, _FAST),
    flows=replace(_PLAIN.flows, time=_PLAIN.flows.time // 3),
)  # fmt: skip
#: Likewise, but accelerators are quick with half of the scalars, those that take a host little time.
_LITTLE = _PLAIN.time[:, 0] <= np.median(_PLAIN.time[_PLAIN.scalar, 0])
MIXED = replace(
    SHAPED,
    time=np.where((_PLAIN.time < 0) | _PLAIN.units.host | ~_LITTLE[:, None], SHAPED.time, _PLAIN.time // 3),
)
LIMITED = problem(4, 40, 3, memories=3)
WIDE = replace(problem(5, 60, 4, tensors=2.5), name="wide")


def test_threshold() -> None:
    """Fails if what operators before got does not count."""
    at_most(run(Threshold(), FUSED).value, 2082)


def test_scalar_tensor() -> None:
    """Fails if scalar operators go to accelerators, too."""
    at_most(run(ScalarTensor(), SHAPED).value, 1480)


def test_complex_scalars() -> None:
    """Fails if the host gets the ordinary scalar operators."""
    at_most(run(ComplexScalars(), MIXED).value, 1188)


def test_priority() -> None:
    """Fails if hosts come first."""
    at_most(run(Priority(), SHAPED).value, 1480)


def test_greedy_growth() -> None:
    """Fails if neighbours do not join."""
    at_most(run(GreedyGrowth(), SHAPED).value, 1317)


def test_min_cut() -> None:
    """Fails if the bound is 10 % weaker; it is the value."""
    found = run(MinimumCut(), PAIR)
    at_least(found.bound(), 1885)
    at_most(found.value, 1885)


def test_counting() -> None:
    """Fails if it is 10 % weaker."""
    at_least(run(AssignBounds(), THREE).bound(), 575)


def test_load_counting() -> None:
    """Fails if all units weigh the same."""
    at_least(run(AssignBounds(), replace(THREE, objective="load")).bound(), 194)


def test_tree() -> None:
    """Fails after a few steps, and if it is 10 % weaker."""
    found = run(TreeDecomposition(), LIMITED, stops=60)
    at_least(found.bound(), 1405)


def test_dual() -> None:
    """Fails if messages are passed for a few sweeps only, and if it is 10 % weaker."""
    at_least(run(DualAscent(), WIDE, stops=300).bound(), 1896)


def test_subgraphs() -> None:
    """Fails after one short annealing."""
    at_most(float(np.mean([run(NetworkSearch(), LIMITED, seed=s, stops=150).value for s in (1, 2)])), 1424)


def test_min_conflicts() -> None:
    """Fails if no rule is repaired, or nothing gets cheaper after that."""
    at_most(float(np.mean([run(MinConflicts(), LIMITED, seed=s, stops=150).value for s in (1, 2)])), 1830)


def test_list_schedule() -> None:
    """Fails if it only starts."""
    order = replace(problem(6, 40, 3), objective="makespan", flows=_forward(problem(6, 40, 3)))
    at_most(float(np.mean([run(ListSchedule(), order, seed=s, stops=30).value for s in (1, 2)])), 430)


def _forward(p: AssignProblem) -> Any:
    """The tensors without those that go back in a loop."""
    f = p.flows
    keep = [t for t in range(f.count) if (f.users(t) > f.source[t]).all()]
    users = [f.users(t) for t in keep]
    until = [f.until[f.indptr[t] : f.indptr[t + 1]] for t in keep]
    return replace(
        f, names=tuple(f.names[t] for t in keep), source=f.source[keep], since=f.since[keep], bytes=f.bytes[keep],
        kept=f.kept[keep], time=f.time[keep], energy=f.energy[keep], targets=np.concatenate(users),
        until=np.concatenate(until), indptr=np.cumsum([0, *map(len, users)]),
    )  # fmt: skip
