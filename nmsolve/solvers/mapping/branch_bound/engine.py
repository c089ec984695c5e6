"""Branch and bound as an engine of the search."""

from __future__ import annotations

from math import gcd

import numpy as np

from nmsolve.hw.cost import uses_links, uses_nets
from nmsolve.hw.scores import objective_value
from nmsolve.model.bound import Bound
from nmsolve.model.engine import Context
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.branch_bound.search import (
    FOUND,
    LIMIT,
    NODES,
    Tree,
    new_tree,
    open_bound,
    search,
)
from nmsolve.solvers.mapping.exact.data import ExactData, exact_data
from nmsolve.solvers.mapping.exact.scaling import OBJECTIVE_LIMIT
from nmsolve.solvers.mapping.exact.symmetry import board_symmetry

#: Largest problem this search is let loose on.
MAX_NODES, MAX_CORES = 32, 64
#: Elementary steps of one slice of the search, about a tenth of a second.
_SLICE = 10_000_000


class BranchBound:
    """Exact mapping of few nodes, one per core, by depth-first branch and bound on Gilmore-Lawler bounds.

    Honours pins, regions, forbidden cores, faults and any distances; the heaviest node is kept in one part of a
    symmetric board. An impossible problem is reported as a bound of ``inf`` with certificate status ``infeasible``.
    """

    name = "branch-bound"
    finds = "both"

    def refuses(self, problem: MappingProblem) -> str | None:
        """More than 32 nodes or 64 cores, several nodes per core, or messages charged by their route tree."""
        if problem.n > MAX_NODES or problem.cores > MAX_CORES:
            return f"{problem.n} nodes on {problem.cores} cores, the limit is {MAX_NODES} on {MAX_CORES}"
        if not problem.one_per_core and problem.n > 1:
            return "a core can hold several nodes"
        if uses_nets(problem):
            return "messages are charged by their route tree"
        if uses_links(problem):
            return "the load of a link is no sum over pairs"
        return None

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Search in slices; offer each better mapping, raise the bound after every slice and at the end."""
        data = exact_data(problem)
        start, _ = context.incumbent()
        limit = OBJECTIVE_LIMIT if start is None else data.value(start)
        tree = _tree(data, limit)
        slice_nodes = max(1, _SLICE // (problem.n**2 * problem.cores))
        found, done = 0, False
        while not done and not context.should_stop():
            done = bool(search(tree, slice_nodes))
            if tree.state[FOUND] > found:
                found = int(tree.state[FOUND])
                context.offer(tree.best.copy(), "search")
            if not done:
                low = max(0.0, data.bound(open_bound(tree)))
                context.raise_bound(Bound(low, self.name, certificate=self._certificate(tree, "running")))
        if not done:
            return
        best = tree.best if found else start
        value, status = np.inf, "infeasible"
        if best is not None:
            status = "optimal"
            value = data.bound(int(tree.state[LIMIT]) // 2)
            if data.exact:
                value = min(objective_value(problem, best), context.incumbent()[1])
        context.raise_bound(Bound(value, self.name, certificate=self._certificate(tree, status)))

    def _certificate(self, tree: Tree, status: str) -> dict[str, object]:
        return {"status": status, "nodes": int(tree.state[NODES])}


def _tree(data: ExactData, limit: int) -> Tree:
    """The search tree of ``data``, the heaviest node kept to one core of every orbit."""
    traffic = np.zeros((data.n, data.n), np.int64)
    traffic[data.tail, data.head] = data.weight
    allowed = data.allowed.copy()
    symmetry = board_symmetry(data)
    if symmetry is not None:
        others = np.ones(data.cores, bool)
        others[list(symmetry.cores)] = False
        allowed[symmetry.node, others] = False
    grain = gcd(*(int(w) for w in np.unique(data.weight))) * gcd(*(int(d) for d in np.unique(data.dense)))
    return new_tree(traffic, np.ascontiguousarray(data.dense), allowed, limit, max(1, grain))
