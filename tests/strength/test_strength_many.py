"""Floors of the engines that put many nodes on a core. Every test names the mutation that it must fail under;
``python tests/strength/mutants.py`` tries all of them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from counted import Counted
from strength_cases import at_most, board, casts, found, grid, mapped, near, run

from nmsolve.heuristics.mapping.external.engine import LEAST, NODE_BYTES, External
from nmsolve.heuristics.mapping.first_fit import FirstFit
from nmsolve.heuristics.mapping.multilevel.combining import Combining
from nmsolve.heuristics.mapping.multilevel.graph import finest_graph
from nmsolve.heuristics.mapping.multilevel.levels import groups_of
from nmsolve.heuristics.mapping.multilevel.mapper import Annealing
from nmsolve.heuristics.mapping.multilevel.sections import Sections
from nmsolve.heuristics.mapping.multilevel.threads import ALONE
from nmsolve.heuristics.mapping.multilevel.tree import tree_of
from nmsolve.heuristics.mapping.published.communities import Communities
from nmsolve.heuristics.mapping.published.m2 import M2
from nmsolve.hw.machines import load_machine
from nmsolve.model.engine import ScratchPlace
from nmsolve.model.formats.nmz import save
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.store import open_graph

GRID = MappingProblem(grid(32, 32), board(4, 4), "hops", (), 66)
POINTS = MappingProblem(near(600, 6), board(4, 4), "hops", (), 40)
DEEP = MappingProblem(near(1200, 6), board(2, 2), "hops", (), 320)
CASTS = MappingProblem(casts(400, 5), board(3, 3), "multicast-hops", (), 48)
WIDE = MappingProblem(grid(96, 96), board(4, 4), "hops", (), 590)
REACH = MappingProblem(casts(1500, 6), board(4, 4), "connectivity", (), 100)


def test_first_fit() -> None:
    """Fails if nodes are taken by number and not along edges."""
    at_most(run(FirstFit(), POINTS).value, 10879)


def test_multilevel() -> None:
    """Fails without annealing."""
    at_most(found(Annealing(), GRID, 3, seconds=0.05), 192)


def test_multilevel_bisection() -> None:
    """Fails if nothing is bisected."""
    problem = MappingProblem(grid(96, 96), board(4, 4), "hops", (), 590)
    at_most(found(Annealing(), problem, 2, seconds=0.1, stops=60), 1200)


def test_multilevel_cycles() -> None:
    """Fails if no V-cycle follows the starts."""
    at_most(found(Annealing(), POINTS, 3, seconds=0.1), 960)


def test_multilevel_descent() -> None:
    """Fails without the descent after the annealing of a level."""
    problem = MappingProblem(near(1200, 6), board(6, 6), "hops", (), 36)
    at_most(found(Annealing(), problem, 3, seconds=0.1, stops=300), 2900)


def test_multilevel_dense() -> None:
    """Fails if a descent on the whole of a dense network does not follow what a sample gave, or exchanges no nodes."""
    problem = MappingProblem(near(1500, 250), board(4, 4), "hops", (), 94)
    at_most(found(Annealing(), problem, 3, seconds=0.05, stops=60), 785_000)


def test_multilevel_halves() -> None:
    """Fails if regions are halved on one level only, or halves do not see those of their neighbours."""
    problem = MappingProblem(near(1200, 6), board(6, 6), "hops", (), 36)
    at_most(found(Annealing(), problem, 3, seconds=0.01, stops=60), 3150)


def test_multilevel_full_cores() -> None:
    """Fails if nodes of overfull cores go straight to the nearest room."""
    problem = MappingProblem(near(4096, 6), board(4, 4), "hops", (), 256)
    at_most(found(Annealing(), problem, 3, seconds=0.01, stops=60), 2500)


def test_deep() -> None:
    """Fails without two-phase moves, without FM, or if halves do not see those of their neighbours."""
    at_most(found(Combining(), WIDE, 4, stops=1000), 672)


def test_deep_goes_on() -> None:
    """Fails if nothing follows the mappings from scratch."""
    at_most(found(Combining(), WIDE, 4, seconds=10, tick=0.5, stops=2500), 620)


def test_deep_on_its_tree() -> None:
    """Fails if all regions are halved on the coarsest level, or heavy edges are not the first to be matched."""
    at_most(found(Combining(), MappingProblem(near(3000, 6), board(6, 6), "hops", (), 88), 4, stops=40), 4800)


def test_by_level() -> None:
    """Fails if borders of groups are not refined by minimum cuts, or divisions stay as they were made; the mean of four seeds."""
    problem = MappingProblem(near(3000, 6, 2), load_machine("tree:4:4:2,1:10:100"), "hops", (), 99)
    graph, tree = finest_graph(problem), tree_of(problem)
    board = tree.boards[-1]
    top = groups_of(board.distance)
    assert top is not None
    search, value = Sections(graph, board, top, lambda: False), mapped(problem)
    found = [search.mapping(seed, 0.0, ALONE) for seed in range(4)]
    at_most(sum(value(tree.cores[pos]) for pos in found if pos is not None) / len(found), 29_900)


def test_external() -> None:
    """Fails if levels finer than the coarsest are not refined."""
    at_most(found(External(), DEEP, 3, seconds=0.05), 510)


def test_external_again() -> None:
    """Fails if the best of several starts is not annealed again."""
    at_most(found(External(), GRID, 3, seconds=0.1), 360)


def test_external_messages_start() -> None:
    """Fails without a start from pairs of nodes."""
    at_most(found(External(), CASTS, 3, seconds=0.1), 600)
    at_most(found(External(), REACH, 3, seconds=0.02), 2850)


def test_external_messages_levels() -> None:
    """Fails if messages are not coarsened where there is time for a few sweeps only."""
    start = np.random.default_rng(1).permutation(1500) % 16
    at_most(found(External(), REACH, 3, seconds=0.05, start=start), 2600)
    at_most(found(External(), REACH, 3, seconds=0.005, start=start), 5000)


def test_external_messages_heat() -> None:
    """Fails if levels are cold from the start."""
    start = np.random.default_rng(1).permutation(1500) % 16
    at_most(found(External(), REACH, 2, seconds=0.2, start=start), 1700)


def test_external_on_messages() -> None:
    """Fails if levels of messages are not annealed."""
    at_most(found(External(), CASTS, 3, seconds=0.02), 770)


def test_m2() -> None:
    """Fails without the forces that move parts."""
    at_most(run(M2(), POINTS).value, 1780)


def test_communities() -> None:
    """Fails if every node stays a community of its own."""
    chips = MappingProblem(
        near(600, 6), Machine("chips", (2, 2), (2, 2), crossing_weight=10.0), "hops", (), 40
    )
    at_most(run(Communities(), chips).value, 7700)


def test_external_on_disk(tmp_path: Path) -> None:
    """Fails if a graph on disk is not coarsened, or its finest level not annealed."""
    save(DEEP.graph, tmp_path / "deep.nmz")
    stored = replace(DEEP, graph=open_graph(tmp_path / "deep.nmz"))
    little = LEAST + NODE_BYTES * DEEP.n + 4 * DEEP.graph.m  # half a connection's bytes each
    values = []
    for seed in (1, 2, 3):
        counted = Counted(
            mapped(stored), seconds=0.1, seed=seed, memory=little, scratch=ScratchPlace(tmp_path)
        )
        External().run(stored, counted)
        values.append(counted.value)
    at_most(float(np.mean(values)), 362)
