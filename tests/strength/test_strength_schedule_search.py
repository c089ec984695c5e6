"""Floors of the engines for schedules. Every test names the mutation that it must fail under;
``python tests/strength/mutants.py`` tries all of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from counted import Counted
from strength_cases import at_least, at_most

from nmsolve.heuristics.schedule import search as module
from nmsolve.heuristics.schedule.rules import Heft, Peft, PublishedRule
from nmsolve.heuristics.schedule.search import ScheduleSearch
from nmsolve.model.schedule.generate import generate_problem
from nmsolve.model.schedule.problem import ScheduleProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.schedule.api import ScheduleChecker
from nmsolve.solvers.schedule.bounds import ScheduleCounting


def run(engine: Any, problem: ScheduleProblem, **context: Any) -> Counted:
    """The context after a run of an engine that takes the problem."""
    checker = ScheduleChecker(problem)

    def value(packed: IntArray) -> float:
        return np.inf if checker.complaint(packed) is not None else checker.score(packed)

    assert engine.refuses(problem) is None, engine.refuses(problem)
    counted = Counted(value, **context)
    engine.run(problem, counted)
    return counted


NETWORKS = generate_problem(5, 12, 16, seed=3).problem
ENERGY = replace(NETWORKS, objective="energy")


def test_published() -> None:
    """Fails if units are taken without looking at any criterion."""
    at_most(run(PublishedRule(), ENERGY).value, 772661)


def test_heft() -> None:
    """Fails if processes are taken by number."""
    at_most(run(Heft(), NETWORKS).value, 304)


def test_peft() -> None:
    """Fails if processes are taken by number."""
    at_most(run(Peft(), NETWORKS).value, 285)


def test_counting() -> None:
    """Fails if paths are left out."""
    at_least(run(ScheduleCounting(), NETWORKS).bound(), 180)


def test_search() -> None:
    """Fails if only the first schedules are looked at."""
    at_most(run(ScheduleSearch(), NETWORKS, stops=24).value, 235)


def test_search_energy() -> None:
    """Fails if only the first schedules are looked at."""
    at_most(run(ScheduleSearch(), ENERGY, stops=24).value, 659450)


def test_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails if no window is accepted."""
    monkeypatch.setattr(module, "MANY", 1)
    monkeypatch.setattr(module, "WINDOW", 20)
    at_most(run(ScheduleSearch(), NETWORKS, stops=60).value, 259)
