"""Checking a mapping against its problem, from problem and mapping alone."""

from __future__ import annotations

import numpy as np

from nmsolve.model.mapping.broken import Violation as Violation
from nmsolve.model.mapping.limits import LIMITS
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray


def check_mapping(problem: MappingProblem, core: IntArray) -> list[Violation]:
    """List every limit that the mapping ``core`` breaks; an empty list means feasible.

    Parameters
    ----------
    core : (n,) int, core number of every node
    """
    graph, machine = problem.graph, problem.machine
    core = np.asarray(core)
    if core.shape != (problem.n,):
        return [Violation("shape", f"the mapping has shape {core.shape}, the graph {problem.n} nodes")]
    outside = np.flatnonzero((core < 0) | (core >= machine.size))
    if len(outside):
        u = int(outside[0])
        text = f"node {graph.node_id(u)!r} is on core {core[u]}, the machine has {machine.size}"
        return [Violation("core", text)]
    return [v for kind in LIMITS for v in kind.broken(problem, core)]
