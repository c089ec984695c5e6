"""Floors of the engines that choose routes too. Every test names the mutation that it must fail under;
``python tests/strength/mutants.py`` tries all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from counted import Counted
from strength_cases import at_least, at_most, board, casts, dense, placement

from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.reduce import merge_together
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.joint.engines import (
    AnyRouteBounds,
    TreePartitions,
    TreeSearch,
)
from nmsolve.solvers.mapping.joint.problem import JointChecker


def run(engine: Any, problem: MappingProblem, core: IntArray | None = None, **context: Any) -> Counted:
    """The context after a run of an engine that takes the problem, from the mapping ``core`` (n,) with XY routes."""
    checker = JointChecker(merge_together(problem))
    joint = checker.problem

    def value(solution: IntArray) -> float:
        assert checker.complaint(solution) is None
        return checker.score(solution)

    assert engine.refuses(joint) is None, engine.refuses(joint)
    start = None if core is None else joint.join(core, joint.given_routes(core))
    counted = Counted(value, start=start, **context)
    engine.run(joint, counted)
    return counted


def found(engine: Any, problem: MappingProblem, seeds: int, **context: Any) -> float:
    """Mean objective over runs with this number of seeds."""
    return float(np.mean([run(engine, problem, seed=s, **context).value for s in range(1, seeds + 1)]))


MANY = MappingProblem(casts(48, 4), board(3, 3), "multicast-hops", (), 6)
FEW = MappingProblem(casts(12, 3), board(2, 3), "multicast-hops", (), 3)
PARTS = MappingProblem(casts(16, 3), board(2, 3), "multicast-hops", (), 3)


def test_tree_search() -> None:
    """Fails if it never cools, or only moves nodes, or only exchanges them."""
    at_most(found(TreeSearch(), MANY, 3, core=np.arange(48) % 9, stops=8), 282)


def test_tree_partitions() -> None:
    """Fails if partitions are compared with the first answer, and not with the best so far: the proof then takes longer."""
    at_least(run(TreePartitions(), PARTS, np.arange(16) % 6, stops=420).bound(), 101)


def test_any_route_bounds() -> None:
    """Fails without the bound on what every core must receive."""
    at_least(run(AnyRouteBounds(), FEW, np.arange(12) % 6, stops=150).bound(), 64)


def test_any_route_loads() -> None:
    """Fails without the bound on the loads of links."""
    problem = placement(dense(36, 1), board(4, 9), "max-link")
    at_least(run(AnyRouteBounds(), problem, np.arange(36), stops=200).bound(), 47)
