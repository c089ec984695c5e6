"""Floors of placement and routes in turns. Every test names the mutation that it must fail under;
``python tests/strength/mutants.py`` tries all of them.

The clock goes by when it is looked at, and routes of the first placement are the best rule's: both would else depend on the
time that a run in this process has.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from counted import Counted
from strength_cases import at_least, at_most, board, dense, near, placement

from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.stage import RoutingStage
from nmsolve.solvers.routed import alternate as turns
from nmsolve.solvers.routing.checker import RoutingChecker
from nmsolve.solvers.routing.named import NamedRules

#: Seconds that go by with a look at the clock, seconds in all (a hundredth for a round), tries in a kernel call.
TICK, SECONDS, TRIES = 2.0**-5, 100.0, 500
PROBLEM = MappingProblem(near(60, 4), board(4, 4), "max-link", (), 5)


class AskedBudget:
    """The budget of a run of this many rounds: a second goes by when it is asked for the time after one."""

    interrupted = False

    def __init__(self, rounds: int) -> None:
        self.started, self._step, self._asked = 0.0, SECONDS / rounds, 0
        self.deadline = SECONDS - turns.ROUTES.of(SECONDS)

    def __enter__(self) -> AskedBudget:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def elapsed(self) -> float:
        self._asked += 1
        return self._asked * self._step / 2  # asked before a round and after it


def best_rule(asked: RoutingProblem, **options: Any) -> Any:
    """In place of a run: routes by the best rule."""
    stage = RoutingStage(asked, "max-link")
    counted = Counted(RoutingChecker(stage).score)
    NamedRules().run(stage, counted)
    assert counted.best is not None
    routes, numbering = stage.unpack(counted.best)
    return SimpleNamespace(solution=SimpleNamespace(routes=routes, numbering=numbering))


@pytest.fixture(autouse=True)
def counted_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps in place of seconds."""
    looks = iter(range(10**9))
    monkeypatch.setattr(turns, "clock", SimpleNamespace(now=lambda: TICK * next(looks)))
    monkeypatch.setattr(turns, "FIRST", TRIES)
    monkeypatch.setattr(turns, "route", best_rule)


def test_alternate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails if there are no rounds, nodes stay, or it never cools."""
    found = []
    monkeypatch.setattr(turns._Run, "full_bound", lambda self: None)
    monkeypatch.setattr(turns._Run, "finish", lambda self, first, bound: found.append(self.best))
    for seed in range(1, 9):
        core = np.random.default_rng(seed).permutation(PROBLEM.n) % PROBLEM.cores
        monkeypatch.setattr(turns, "Stop", lambda limit, started, reserve: AskedBudget(12))
        monkeypatch.setattr(
            turns,
            "solve",
            lambda problem, core=core, **options: SimpleNamespace(core=core, stop_reason="time"),
        )
        turns.alternate(PROBLEM, time_limit=SECONDS, seed=seed)
    at_most(float(np.mean(found)), 22.0)


class InterruptedBudget:
    """A budget that is interrupted when it has been asked so often whether it is."""

    def __init__(self, asks: int) -> None:
        self._asks = asks

    @property
    def interrupted(self) -> bool:
        self._asks -= 1
        return self._asks < 0


def test_alternate_bound() -> None:
    """Fails if only the first bound is asked for, which counts."""
    problem = placement(dense(25), board(5, 5), "max-link")
    run = turns._Run(problem, InterruptedBudget(150), 1e9, 1, 1, None, lambda step: None, None)
    at_least(run.full_bound().value, 22)
