"""What the allocation knows of a problem: its kind, and a few numbers."""

from __future__ import annotations

import numpy as np

from nmsolve.hw.cost import uses_links, uses_nets
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray

#: Kinds of problems that have engines of their own; runs of other kinds say nothing about a problem.
KINDS = ("pairs", "cut", "nets", "links", "reward")
#: Names of the features, in order.
FEATURES = ("kind", "alone", "log2 n", "log2 degree", "skew", "log2 cores", "fill", "chips")


def kind_of(problem: MappingProblem) -> str:
    """Return which of :data:`KINDS` a problem is."""
    if problem.objective == "reward":
        return "reward"
    if uses_links(problem):
        return "links"
    if uses_nets(problem):
        return "nets"
    return "cut" if problem.aim.distance == "apart" else "pairs"


def features_of(problem: MappingProblem) -> FloatArray:
    """Return the features (8,) of a problem whose graph is in memory.

    ``kind`` is a number in :data:`KINDS`; ``alone`` is 1 where every node has a core of its own; ``degree`` counts messages
    per node; ``skew`` is the coefficient of variation of traffic per node; ``fill`` is nodes per place.
    """
    graph, machine = problem.graph, problem.machine
    load = np.bincount(graph.edge_source, graph.weights, problem.n) + np.bincount(
        graph.targets, graph.weights, problem.n
    )
    mean = float(load.mean())
    usable = max(1, int(machine.usable.sum()))
    room = 1 if problem.one_per_core else problem.node_limit or -(-problem.n // usable)
    return np.array([
        KINDS.index(kind_of(problem)),
        float(problem.one_per_core),
        np.log2(problem.n),
        np.log2(max(1.0, graph.m / problem.n)),
        float(load.std()) / mean if mean > 0 else 0.0,
        np.log2(usable),
        problem.n / (room * usable),
        float(machine.chips[0] * machine.chips[1]),
    ])  # fmt: skip
