"""Floors of local search on objectives as they are stated. Every test names the mutation that it must fail under;
``python tests/strength/mutants.py`` tries all of them.

The clock of these runs counts looks at it, so a cooling schedule has the same slices, with the same tries, on any machine.
"""

from __future__ import annotations

import numpy as np
import pytest
from hw_reference import times
from strength_cases import at_most, board, casts, found, near, placement, run

from nmsolve.heuristics.mapping.links import Links
from nmsolve.heuristics.mapping.nets import Nets
from nmsolve.heuristics.mapping.remap import Remap
from nmsolve.heuristics.mapping.reward import Reward
from nmsolve.heuristics.mapping.steps import Steps
from nmsolve.model.generators import generate
from nmsolve.model.mapping.migration import Migration
from nmsolve.model.mapping.problem import MappingProblem

CASTS = MappingProblem(casts(120, 4), board(3, 3), "multicast-hops", (), 16)
SMALL = np.random.default_rng(2).permutation(36)
FREE = np.random.default_rng(2).permutation(64)


def test_nets() -> None:
    """Fails without descent: if every move is taken, whatever it costs."""
    at_most(found(Nets(), CASTS, 3, seconds=0.1), 275)


def test_nets_full() -> None:
    """Fails if nodes do not change places: no core has room for a move."""
    at_most(
        found(Nets(), MappingProblem(casts(117, 4), board(3, 3), "multicast-hops", (), 13), 3, seconds=0.1),
        330,
    )


@pytest.mark.parametrize(("objective", "floor"), [("connectivity", 10_230), ("multicast-hops", 14_550)])
def test_nets_on_layers(objective: str, floor: float) -> None:
    """Fails without annealing, or if prices of cores are not kept up to date."""
    graph = generate("snn", nodes=800, synapses=12_000, layers=4, directed=1)
    problem = MappingProblem(graph, board(4, 4), objective, (), 55)
    at_most(found(Nets(), problem, 3, seconds=0.3), floor)


def test_links() -> None:
    """Fails without descent: if every move is taken, whatever it costs."""
    problem = placement(near(36, 4), board(6, 6), "max-link")
    at_most(found(Links(), problem, 3, seconds=4.0, tick=0.05, slow_start=6, start=SMALL), 21.5)


def test_links_heat() -> None:
    """Fails if it only descends, sees sharp from the start, only moves nodes, or only exchanges them."""
    problem, start = placement(near(50, 5, 1), board(8, 8), "max-link"), FREE[:50]
    at_most(found(Links(), problem, 4, seconds=4.0, tick=0.05, slow_start=12, start=start), 21)


def test_links_end() -> None:
    """Fails if the end of the schedule takes more than improvements: short runs are then 3 % worse."""
    problems = [
        placement(near(36, 4), board(6, 6), "max-link"),
        MappingProblem(near(90, 4, 4), board(3, 3), "max-link", (), 11),
        MappingProblem(near(160, 5, 3), board(4, 4), "max-link", (), 11),
    ]
    short, total = {"seconds": 4.0, "tick": 0.05, "slow_start": 9}, 0.0
    for problem in problems:
        for seed in range(1, 7):
            start = np.random.default_rng(seed).permutation(problem.n) % problem.cores
            total += run(Links(), problem, seed=seed, start=start, **short).value / 6
    at_most(total, 87.7)


def test_steps() -> None:
    """Fails if times count by one norm, wide or sharp, if it begins hot, only exchanges nodes, or takes every change."""
    problem = MappingProblem(casts(120, 4), board(3, 3, figures=times(True)), "step-time")
    at_most(found(Steps(), problem, 4, seconds=8.0, tick=0.05, slow_start=9), 690)


def test_reward() -> None:
    """Fails without descent: if every move is taken, whatever it costs."""
    problem = placement(casts(36, 3), board(6, 6), "reward")
    at_most(found(Reward(), problem, 3, seconds=4.0, tick=0.05, slow_start=6, start=SMALL), 2700)


def test_reward_heat() -> None:
    """Fails if it only descends, only moves nodes, or only exchanges them."""
    problem, start = placement(near(28, 4), board(6, 6), "reward"), SMALL[:28]
    at_most(found(Reward(), problem, 3, seconds=4.0, tick=0.05, slow_start=12, start=start), 930)


def test_remap_heat() -> None:
    """Fails if it only descends."""
    old = np.random.default_rng(3).permutation(200) % 16
    problem = MappingProblem(near(200, 4), board(4, 4), "hops", (), 15, Migration(old, 80, np.arange(200)))
    at_most(found(Remap(), problem, 3, seconds=0.2, start=old), 2200)


def test_remap() -> None:
    """Fails if only the first cooling of the plan runs."""
    old = np.random.default_rng(3).permutation(100)
    problem = MappingProblem(near(100, 4), board(10, 10), "hops", (), 1, Migration(old, 40, np.arange(100)))
    at_most(found(Remap(), problem, 3, seconds=0.05, start=old), 4080)
