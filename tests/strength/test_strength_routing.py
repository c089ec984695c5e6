"""Floors of the engines for routes. Every test names the mutation that it must fail under;
``python tests/strength/mutants.py`` tries all of them.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from counted import Counted
from strength_cases import at_least, at_most, board

from nmsolve.heuristics.routing.engine import Reroute
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.stage import RoutingStage
from nmsolve.model.types import IntArray
from nmsolve.solvers.routing import column_lns
from nmsolve.solvers.routing.checker import RoutingChecker
from nmsolve.solvers.routing.column_lns import ColumnLns
from nmsolve.solvers.routing.flow_bound import PriceBound
from nmsolve.solvers.routing.lp import FlowLp
from nmsolve.solvers.routing.named import NamedRules


def layered(side: int, layers: int, count: int) -> Flows:
    """``count`` flows of rate 1 to 10 between cores of neighbouring layers; every core is in one layer."""
    rng = np.random.default_rng(0)
    cores = rng.permutation(side * side).reshape(layers, -1)
    pairs = [pq for a, b in itertools.pairwise(cores) for pq in itertools.product(a.tolist(), b.tolist())]
    some = rng.choice(len(pairs), count, replace=False)
    return Flows.of_pairs(*np.array([pairs[i] for i in some]).T, rng.integers(1, 11, count))


STAGE = RoutingStage(RoutingProblem(board(6, 6), layered(6, 3, 160)), "max-link")


def run(engine: Any, **context: Any) -> Counted:
    """The context after a run on the flows above."""
    checker = RoutingChecker(STAGE)

    def value(solution: IntArray) -> float:
        assert checker.complaint(solution) is None
        return checker.score(solution)

    assert engine.refuses(STAGE) is None
    counted = Counted(value, **context)
    engine.run(STAGE, counted)
    return counted


def test_named() -> None:
    """Fails if XY routes are all that is tried."""
    at_most(run(NamedRules()).value, 55)


def test_reroute() -> None:
    """Fails without the sweeps within the order of channels."""
    at_most(float(np.mean([run(Reroute(), seed=s).value for s in (1, 2, 3, 4, 5)])), 54.2)


def test_column_lns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails if a repair frees two flows only."""
    exact = column_lns.choose

    def timeless(*arguments: Any) -> Any:
        """A repair takes as long on any machine."""
        picked, _, done = exact(*arguments)
        return picked, 0.01, done

    monkeypatch.setattr(column_lns, "choose", timeless)
    start = run(NamedRules(), stops=0).best  # XY
    at_most(float(np.mean([run(ColumnLns(), seed=s, start=start, stops=15).value for s in (1, 2, 3)])), 64)


def test_flow_lp() -> None:
    """Fails if all links get the same length, which bounds the mean load."""
    at_least(run(FlowLp()).bound(), 49)


def test_price_bound() -> None:
    """Fails if the lengths of links are not tuned."""
    at_least(run(PriceBound(), stops=500).bound(), 46)
