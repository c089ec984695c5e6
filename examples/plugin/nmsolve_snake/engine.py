"""The engine ``snake``: nodes in an order of small bandwidth (Cuthill and McKee 1969), laid along a snake through the cores."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from nmsolve.heuristics.mapping.common.repair import repair
from nmsolve.model.engine import Context
from nmsolve.model.mapping.features import ANY, takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray


class Snake:
    """One mapping: rows of cores from left to right and back, as many nodes to every core as all have on average."""

    name = "snake"
    finds = "mappings"
    refuses = takes(f"{ANY} -matrix")

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Offer the mapping, after nodes that break a rule have moved. An offer that still breaks one would be refused."""
        order = banded_order(problem)
        path = snake(problem)
        core = np.empty(problem.n, np.int64)
        core[order] = path[np.arange(problem.n) * len(path) // problem.n]
        legal = repair(problem, core)
        if legal is not None:
            context.offer(legal, "snake")


def banded_order(problem: MappingProblem) -> IntArray:
    """Return the nodes (n,) in an order that keeps neighbours together."""
    indptr, indices, weights = problem.graph.traffic
    traffic = csr_array((weights, indices, indptr), shape=(problem.n, problem.n))
    return np.asarray(reverse_cuthill_mckee(traffic, symmetric_mode=True), np.int64)


def snake(problem: MappingProblem) -> IntArray:
    """Return the usable cores, every one next to the one before where none is dead."""
    machine = problem.machine
    row, col = np.divmod(np.arange(machine.size), machine.cols)
    line = np.lexsort((np.where(row % 2, -col, col), row))
    return line[machine.usable[line]]
