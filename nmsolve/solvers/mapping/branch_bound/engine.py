"""Branch and bound as an engine of the search."""

from __future__ import annotations

from math import gcd

import numpy as np

from nmsolve.hw.scores import objective_value
from nmsolve.model import clock
from nmsolve.model.bound import Bound
from nmsolve.model.engine import Context
from nmsolve.model.features import at_most
from nmsolve.model.mapping.features import takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray, IntArray
from nmsolve.solvers.mapping.branch_bound.frontier import Frontier
from nmsolve.solvers.mapping.branch_bound.relaxation import is_metric, new_relaxation
from nmsolve.solvers.mapping.branch_bound.search import (
    FOUND,
    LIMIT,
    NODES,
    Tree,
    begin,
    new_tree,
    open_bound,
    search,
)
from nmsolve.solvers.mapping.exact.data import ExactData, exact_data
from nmsolve.solvers.mapping.exact.symmetry import board_symmetry
from nmsolve.solvers.search.scaling import OBJECTIVE_LIMIT

#: Largest problem this search is let loose on.
MAX_NODES, MAX_CORES = 32, 64
#: Elementary steps of one slice of the depth-first search, about a tenth of a second.
_SLICE = 10_000_000
#: Partial mappings it may expand before the best-first search takes over: with up to EASY nodes it is the faster one.
EASY, ALONE, ALONE_EASY = 16, 60_000, 3_000_000
#: Seconds between two bounds.
PAUSE = 0.1


class BranchBound:
    """Exact mapping of few nodes, one per core, by branch and bound on Gilmore-Lawler and split bounds.

    Depth first on Gilmore-Lawler bounds for a while, which ends small problems; then best first on split bounds
    (:mod:`frontier`) where distances are symmetric and a mapping is known. Honours pins, regions, forbidden cores, faults and any
    distances; uses the symmetries of the board. An impossible problem is reported as a bound of ``inf`` with
    certificate status ``infeasible``.
    """

    name = "branch-bound"
    finds = "both"
    refuses = takes(
        "pairs -several",
        at_most(MAX_NODES, lambda p: p.n, "nodes"),
        at_most(MAX_CORES, lambda p: p.cores, "cores"),
    )

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Search in slices; offer each better mapping, raise the bound after every slice and at the end."""
        data = exact_data(problem)
        start, _ = context.incumbent()
        limit = OBJECTIVE_LIMIT if start is None else data.value(start)
        tree = _tree(data, limit)
        if not self._search(data, tree, context, start is not None):
            return
        found = int(tree.state[FOUND])
        best = _mapping(data, tree) if found else start
        value, status = np.inf, "infeasible"
        if best is not None:
            status = "optimal"
            value = data.claim.bound(int(tree.state[LIMIT]) // 2)
            if data.exact:
                value = min(objective_value(problem, best), context.incumbent()[1])
        context.raise_bound(Bound(value, self.name, certificate=self._certificate(tree, status)))

    def _search(self, data: ExactData, tree: Tree, context: Context, known: bool) -> bool:
        """Both searches, one after the other; True if nothing below the limit is left."""
        budget = max(1, _SLICE // (data.n**2 * data.cores))
        symmetric = bool((data.dense == data.dense.T).all())
        alone = ALONE_EASY if data.n <= EASY else ALONE
        found, frontier, first, said = 0, None, tree.domain[0].copy(), 0.0
        while not context.should_stop():
            if frontier is not None:
                done = frontier.advance()
            elif symmetric and tree.state[NODES] >= alone and (known or found > 0):
                places = np.flatnonzero(first.any(axis=0))
                frontier = Frontier(_restarted(tree, first), new_relaxation(tree.weight, tree.dense, places))
                done = False
            else:
                done = bool(search(tree, budget))
            if tree.state[FOUND] > found:
                found = int(tree.state[FOUND])
                context.offer(_mapping(data, tree), "search")
            if done:
                return True
            if clock.now() - said >= PAUSE:
                said = clock.now()
                low = open_bound(tree) if frontier is None else -(-frontier.low() // 2)
                value = max(0.0, data.claim.bound(low))
                context.raise_bound(Bound(value, self.name, certificate=self._certificate(tree, "running")))
        return False

    def _certificate(self, tree: Tree, status: str) -> dict[str, object]:
        return {"status": status, "nodes": int(tree.state[NODES])}


def _restarted(tree: Tree, domain: BoolArray) -> Tree:
    """Return the tree at its first partial mapping again; what was found counts on."""
    begin(tree, np.full(len(tree.core), -1, np.int64), domain)
    return tree


def _tree(data: ExactData, limit: int) -> Tree:
    """Return the search tree of ``data`` with the symmetries of its board."""
    traffic = np.zeros((data.n, data.n), np.int64)
    traffic[data.tail, data.head] = data.weight
    grain = gcd(*(int(w) for w in np.unique(data.weight))) * gcd(*(int(d) for d in np.unique(data.dense)))
    dense, allowed = np.ascontiguousarray(data.dense), data.allowed
    maps = np.arange(data.cores)[None, :]
    if _turned(data):
        traffic, dense, allowed = np.triu(dense), traffic + traffic.T, allowed.T
    else:
        symmetry = board_symmetry(data)
        maps = maps if symmetry is None else symmetry.maps
    return new_tree(traffic, dense, allowed, np.ascontiguousarray(maps), limit, max(1, grain))


def _turned(data: ExactData) -> bool:
    """True if cores are mapped to nodes instead: where traffic is a metric and distances are none, its triangles hold rows.

    With as many nodes as cores the two problems are one; files of quadratic assignment problems come either way round.
    """
    d = data.dense
    if data.n != data.cores or (d != d.T).any() or np.diag(d).any() or is_metric(d):
        return False
    traffic = np.zeros((data.n, data.n), np.int64)
    traffic[data.tail, data.head] = data.weight
    return is_metric(traffic + traffic.T)


def _mapping(data: ExactData, tree: Tree) -> IntArray:
    """Return the best mapping found, as (n,) cores of nodes."""
    out: IntArray = np.argsort(tree.best) if _turned(data) else tree.best.copy()
    return out
