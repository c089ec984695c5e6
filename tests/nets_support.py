"""Small problems, levels and contexts for the tests of net objectives at scale."""

from __future__ import annotations

import numpy as np
from search_fakes import QuietContext

from nmsolve.heuristics.mapping.nets.levels import Messages, Plan, _vertices, level_of
from nmsolve.heuristics.mapping.nets.state import empty_tables
from nmsolve.heuristics.mapping.nets.sweep import Sweeper
from nmsolve.hw.scores import objective_value
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Figure, Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping

OBJECTIVES = ("multicast-hops", "connectivity", "energy")
ENERGY = {
    "message": Figure(7.0), "router": Figure(2.0), "link_x": Figure(3.0), "link_y": Figure(4.0), "crossing": Figure(11.0),
}  # fmt: skip
PLAN = Plan(5, 2, None, None, lambda: False)


def some_problem(
    seed, objective="multicast-hops", capacity=8, constraints=(), n=24, rows=4, cols=5, chips=(1, 1)
):
    """A random hypergraph or directed multicast graph on a mesh; some messages cost nothing."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 3, (n, 1))
    if seed % 2:
        m = 90
        graph = LogicGraph.from_edges(
            n, rng.integers(0, n, m), rng.integers(0, n, m),
            multicast=np.ones(n, bool), rate=rng.integers(0, 6, n).astype(float), sizes=sizes,
        )  # fmt: skip
    else:
        length = rng.integers(2, 9, 18)
        ptr = np.concatenate([[0], np.cumsum(length)])
        pins = np.concatenate([rng.permutation(n)[:k] for k in length])
        graph = LogicGraph.from_nets(n, ptr, pins, rng.integers(0, 6, 18).astype(float), sizes=sizes)
    machine = Machine(
        "m", chips, (rows, cols), capacity={"neurons": capacity}, crossing_weight=5.0, energy=ENERGY
    )
    return MappingProblem(graph, machine, objective, constraints)


def level_with(problem, label, count, **options):
    """The level with ``label`` (nodes,)."""
    vertices = _vertices(problem, np.asarray(label, np.int32), count)
    plan = Plan(5, options.get("workers", 1), options.get("memory"), options.get("scratch"), lambda: False)
    return level_of(problem, Messages.of(problem), vertices, plan, [])


def sweeper_of(problem, level, core, workers=1, seed=0):
    """The level's tables at ``core``."""
    sweeper = Sweeper(
        empty_tables(
            problem, level.vertices, level.source, Messages.of(problem).rate, level.inner, level.pairs
        ),
        level.lists,
        level.source,
        seed,
        workers,
    )
    assert sweeper.put(core)
    return sweeper


def spread(problem, seed, coarse=False):
    """A level of the nodes, or of 9 clusters of them, anywhere on the board: vertex of every node, level, tables."""
    rng = np.random.default_rng(seed)
    count = 9 if coarse else problem.n
    label = rng.integers(0, count, problem.n) if coarse else rng.permutation(problem.n)
    level = level_with(problem, label, count)
    return label, level, sweeper_of(problem, level, rng.integers(0, problem.cores, count))


class Clock(QuietContext):
    """A context whose time runs with its polls; every offer must be legal. ``values``: the objective of each."""

    def __init__(self, problem, polls, memory=None, seconds=1.0):
        super().__init__()
        self.seconds = seconds
        self.problem, self.polls, self.total, self.memory, self.values = problem, polls, polls, memory, []

    def incumbent(self):
        return None, float("inf")

    def time_left(self):
        return self.seconds * max(0, self.polls) / max(1, self.total)

    def should_stop(self):
        self.polls -= 1
        return self.polls < 0

    def offer(self, core, move=""):
        assert not check_mapping(self.problem, core)
        self.values.append(objective_value(self.problem, core))
        self.best = core
        return True


def no_pairs(problem, context):
    """A pairwise search that finds nothing."""
