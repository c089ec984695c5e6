"""Floors of the tuned searches for schedules. Every test names the mutation that it must fail under;
``python tests/strength/mutants.py`` tries all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from counted import Counted
from strength_cases import at_most

from nmsolve.heuristics.schedule.genetic import ActivityLists
from nmsolve.heuristics.schedule.tabu import TabuBlocks
from nmsolve.model.schedule.build import bare_edges, no_items, plain_units, unit_sets
from nmsolve.model.schedule.problem import NEVER, Modes, Network, ScheduleProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.schedule.api import ScheduleChecker


def run(engine: Any, problem: ScheduleProblem, **context: Any) -> Counted:
    """The context after a run of an engine that takes the problem."""
    checker = ScheduleChecker(problem)

    def value(packed: IntArray) -> float:
        return np.inf if checker.complaint(packed) is not None else checker.score(packed)

    assert engine.refuses(problem) is None, engine.refuses(problem)
    counted = Counted(value, **context)
    engine.run(problem, counted)
    return counted


def stated(
    modes: Modes, units: int, capacity: list[int], source: list[int], target: list[int]
) -> ScheduleProblem:
    """Processes in these modes."""
    count = len(modes.first) - 1
    zeros, made = np.zeros(count, np.int64), plain_units([f"u{u}" for u in range(units)])
    return ScheduleProblem(
        "floor", tuple(f"p{p}" for p in range(count)), ("a",), zeros, zeros - 1, made,
        unit_sets([[u] for u in range(units)], made.hops, "floor"), modes, no_items(), bare_edges(source, target), Network(),
        tuple(f"r{r}" for r in range(len(capacity))), np.array(capacity, np.int64), zeros, zeros + NEVER, zeros + NEVER, zeros,
    )  # fmt: skip


def project(seed: int, count: int) -> ScheduleProblem:
    """Processes that need one to three of two resources; each awaits one or two of the ten before it."""
    rng = np.random.default_rng(seed)
    pairs = sorted({(int(rng.integers(max(0, q - 10), q)), q) for q in range(1, count) for _ in range(2)})
    none = np.zeros(count, np.int64)
    modes = Modes(
        np.arange(count + 1),
        rng.integers(1, 11, count),
        none - 1,
        rng.integers(1, 4, (count, 2)),
        none,
        none - 1,
        none,
    )
    return stated(modes, 0, [6, 6], *(list(ends) for ends in zip(*pairs, strict=True)))


def shop(seed: int, jobs: int, steps: int, units: int, ways: int) -> ScheduleProblem:
    """Jobs of some steps one after the other, each on some of the units, with spans of 10 to 40 ticks."""
    rng, count = np.random.default_rng(seed), jobs * steps
    unit = np.concatenate([rng.choice(units, ways, replace=False) for _ in range(count)]).astype(np.int64)
    none = np.zeros(count * ways, np.int64)
    modes = Modes(
        np.arange(count + 1) * ways, rng.integers(10, 41, count * ways), unit, np.zeros((count * ways, 0), np.int64), none,
        none - 1, none,
    )  # fmt: skip
    source = [p for p in range(count) if (p + 1) % steps]
    return stated(modes, units, [], source, [p + 1 for p in source])


def test_activity_lists() -> None:
    """Fails if nothing is bred."""
    at_most(run(ActivityLists(), project(1, 60), stops=310).value, 146)


def test_activity_lists_justified() -> None:
    """Fails if schedules are not justified."""
    at_most(run(ActivityLists(), project(2, 120), stops=20).value, 264)


def test_tabu_blocks() -> None:
    """Fails if no move is made, and if moves may be undone at once."""
    at_most(run(TabuBlocks(), shop(1, 12, 8, 6, 2), stops=20).value, 338)


def test_tabu_blocks_even_loads() -> None:
    """Fails if all searches start from earliest ends."""
    at_most(run(TabuBlocks(), shop(2, 20, 4, 4, 4), stops=6).value, 332)
