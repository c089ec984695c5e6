"""Branch and bound as an engine of the search."""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd
from typing import Any, NamedTuple

import numpy as np

from nmsolve.hw.scores import objective_value
from nmsolve.model import clock
from nmsolve.model.bound import Bound
from nmsolve.model.engine import Context, Subtasks
from nmsolve.model.features import at_most
from nmsolve.model.mapping.features import takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.branch_bound.best_first import BestFirstSearch
from nmsolve.solvers.mapping.branch_bound.checkpoint import Checkpoint
from nmsolve.solvers.mapping.branch_bound.few_moves import COST, SEEN, move_from, new_moves, too_many_moves
from nmsolve.solvers.mapping.branch_bound.packing_state import Packing, new_packing
from nmsolve.solvers.mapping.branch_bound.packings import pack
from nmsolve.solvers.mapping.branch_bound.relaxation import is_metric
from nmsolve.solvers.mapping.branch_bound.remote import BranchBoundWorker, RemoteSubproblems
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

#: Largest problems that are taken: nodes that may be on several cores, such nodes where cores hold several, all nodes, cores.
MAX_NODES, MAX_SEVERAL, MAX_ALL, MAX_CORES = 32, 24, 128, 64
#: Elementary steps of one slice of the depth-first search, about a tenth of a second.
_SLICE = 10_000_000
#: Partial mappings it may expand before the best-first search takes over: with up to EASY nodes it is the faster one.
EASY, ALONE, ALONE_EASY = 16, 60_000, 3_000_000
#: Seconds between two bounds.
PAUSE = 0.1


_LIMITS = (
    at_most(MAX_SEVERAL, lambda p: 0 if p.one_per_core else p.free_nodes, "nodes with several per core"),
    at_most(MAX_NODES, lambda p: p.free_nodes, "nodes that are not pinned"),
    at_most(MAX_ALL, lambda p: p.n, "nodes"),
    at_most(MAX_CORES, lambda p: p.cores, "cores"),
)


def _too_large(problem: MappingProblem) -> str | None:
    """Say why a problem without a migration budget is too large; None if it is not."""
    return next((reason for limit in _LIMITS if (reason := limit(problem)) is not None), None)


class BranchBound:
    """Exact mapping of few nodes by branch and bound.

    *One node per core*: depth first on Gilmore-Lawler bounds for a while, which ends small problems; then best first on split
    bounds (:mod:`best_first`) where distances are symmetric and a mapping is known. A best-first search that is stopped has its
    open subproblems in its last claim, from which :meth:`resume` continues; a killed one has them in its scratch folder. On a
    cluster other machines take subproblems.

    *Several nodes per core*: depth first within capacities (:mod:`packings`), with one thread. A stopped search begins anew.

    *A migration budget* within which there are few mappings: all of them (:mod:`few_moves`), of any number of nodes.

    Honours pins, regions, forbidden cores, faults and any distances; uses the symmetries of the board. An impossible problem is
    reported as a bound of ``inf`` with certificate status ``infeasible``.
    """

    name = "branch-bound"
    finds = "both"
    refuses = takes("pairs budget", lambda p: too_many_moves(p) if p.limits_moves else _too_large(p))

    def __init__(self) -> None:
        self._claimed: Bound | None = None
        #: Partial mappings that runs before this one bounded.
        self._earlier = 0

    def resume(self, claim: Bound) -> None:
        """Continue from the open subproblems in the ``claim`` of a stopped run, if its limit was not lower than the next."""
        self._claimed = claim

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Search in slices; offer each better mapping, raise the bound after every slice and at the end.

        Raises
        ------
        InputError : the scratch folder cannot be written
        """
        if problem.limits_moves:
            self._run_moves(problem, context)
            return
        if not problem.one_per_core:
            self._run_packed(problem, context)
            return
        with Checkpoint(problem.hash, context.scratch) as checkpoint:
            self._run(problem, context, checkpoint)

    def _run(self, problem: MappingProblem, context: Context, checkpoint: Checkpoint) -> None:
        data = exact_data(problem)
        claim = None if self._claimed is None else self._claimed.certificate
        if claim is None and (found := checkpoint.load()) is not None:
            claim = found[1]
            context.offer(found[0], "kept")
        start, _ = context.incumbent()
        tree = _tree(data, OBJECTIVE_LIMIT if start is None else data.value(start))
        first = tree.domain[0].copy()
        before = None if claim is None else open_subproblems(claim, tree)
        places, symmetric = np.flatnonzero(first.any(axis=0)), bool((data.dense == data.dense.T).all())
        subtasks = context.subtasks(BranchBoundWorker(tree, places)) if symmetric else None
        alone = ALONE_EASY if problem.free_nodes <= EASY and subtasks is None else ALONE
        done = before is None and self._depth_first(
            data, tree, context, alone if symmetric else 0, start is not None
        )
        nodes, limit = int(tree.state[NODES]), int(tree.state[LIMIT])
        best = _mapping(data, tree.best) if tree.state[FOUND] else start
        if not done:
            if context.should_stop():
                return
            begin(tree, np.full(data.n, -1, np.int64), first)
            self._earlier = 0 if before is None else before.nodes
            best_first = BestFirstSearch(tree, places, 1 if subtasks else max(1, context.workers))
            best_first.begin(None if before is None else (before.low, before.core))
            if not self._best_first(data, best_first, context, subtasks, checkpoint):
                return
            nodes, limit = best_first.nodes, best_first.limit
            best = _mapping(data, best_first.best) if best_first.found else best
        self._proved(data, context, best, limit, nodes)

    def _run_packed(self, problem: MappingProblem, context: Context) -> None:
        """Search within the capacities of cores that hold several nodes."""
        self._earlier = 0
        data = exact_data(problem)
        start, _ = context.incumbent()
        packing = _packing(data, OBJECTIVE_LIMIT if start is None else data.value(start))
        if self._depth_first(data, packing, context, 0, start is not None):
            best = packing.best.copy() if packing.state[FOUND] else start
            self._proved(data, context, best, int(packing.state[LIMIT]), int(packing.state[NODES]))

    def _run_moves(self, problem: MappingProblem, context: Context) -> None:
        """Look at all mappings within the migration budget, by the first node that moves."""
        data = exact_data(problem)
        start, _ = context.incumbent()
        limit = OBJECTIVE_LIMIT if start is None else data.value(start)
        moves, known = new_moves(data, limit), limit
        for first in range(data.n if problem.migration and problem.migration.budget else 0):
            if context.should_stop():
                return
            move_from(moves, first)
            if moves.state[COST] < known:
                known = int(moves.state[COST])
                context.offer(moves.best.copy(), "search")
        best = moves.best.copy() if moves.state[COST] < limit else start
        self._proved(data, context, best, 2 * int(moves.state[COST]), int(moves.state[SEEN]))

    def _proved(
        self, data: ExactData, context: Context, best: IntArray | None, limit: int, nodes: int
    ) -> None:
        """Claim what a search that is through proves: ``best`` is optimal, at doubled cost ``limit``; None: no mapping."""
        value, status = np.inf, "infeasible"
        if best is not None:
            status = "optimal"
            value = data.claim.bound(limit // 2)
            if data.exact:
                value = min(objective_value(data.problem, best), context.incumbent()[1])
        self._claim(context, value, nodes, status)

    def _depth_first(
        self, data: ExactData, tree: Tree | Packing, context: Context, alone: int, known: bool
    ) -> bool:
        """Search by Gilmore-Lawler bounds alone, or within capacities.

        Return True if nothing below the limit is left, False at the end of its time or where the best-first search is to go on:
        after ``alone`` partial mappings, if not 0.
        """
        budget = max(1, _SLICE // (data.n**2 * data.cores))
        found, reported = 0, 0.0
        while not context.should_stop():
            if alone and tree.state[NODES] >= alone and (known or found > 0):
                return False
            done = bool(pack(tree, budget) if isinstance(tree, Packing) else search(tree, budget))
            if tree.state[FOUND] > found:
                found = int(tree.state[FOUND])
                context.offer(_mapping(data, tree.best), "search")
            if done:
                return True
            if clock.now() - reported >= PAUSE:
                reported = clock.now()
                self._say(data, context, open_bound(tree), int(tree.state[NODES]))
        return False

    def _best_first(
        self,
        data: ExactData,
        best_first: BestFirstSearch,
        context: Context,
        subtasks: Subtasks | None,
        checkpoint: Checkpoint,
    ) -> bool:
        """Search with all threads, or those of other machines. Return True if no mapping below the limit is left; else the last
        claim has the open subproblems."""
        remote = None if subtasks is None else RemoteSubproblems(best_first, subtasks)
        advance = best_first.advance if remote is None else remote.advance
        found, reported = 0, 0.0
        with best_first.with_threads() as look:
            while not context.should_stop():
                done = advance()
                if best_first.found > found:
                    found = best_first.found
                    context.offer(_mapping(data, best_first.best), "search")
                if done:
                    break
                if clock.now() - reported >= PAUSE:
                    reported = clock.now()
                    known = context.incumbent()[0]
                    if known is not None:
                        best_first.lower(2 * data.value(known))
                        checkpoint.save(best_first, known, self._earlier)
                    self._say(data, context, -(-best_first.low() // 2), best_first.nodes)
                    look()
        if remote is not None:
            remote.finish()
            context.note(
                f"{remote.returned} parts of the search came back from other machines, {remote.lost} were lost and redone"
            )
        if best_first.found > found:
            context.offer(_mapping(data, best_first.best), "search")
        low, core = best_first.open_subproblems()
        if len(low) == 0:
            return True
        left = {"limit": best_first.limit, "open": core, "open_bounds": low}
        self._say(data, context, -(-best_first.low() // 2), best_first.nodes, **left)
        return False

    def _say(self, data: ExactData, context: Context, low: int, nodes: int, **left: Any) -> None:
        """Raise the bound of a search that goes on: every mapping costs ``low`` in the model, or as much as the best."""
        self._claim(context, max(0.0, data.claim.bound(low)), nodes, "running", **left)

    def _claim(self, context: Context, value: float, nodes: int, status: str, **left: Any) -> None:
        certificate = {"status": status, "nodes": self._earlier + nodes, **left}
        if self._earlier:  # the claim then also rests on that run
            certificate["resumed_after"] = self._earlier
        context.raise_bound(Bound(value, self.name, certificate=certificate))


class OpenSubproblems(NamedTuple):
    """Open subproblems of a stopped search: doubled bounds (m,), cores of nodes (m, n), and the number of bounded nodes."""

    low: IntArray
    core: IntArray
    nodes: int


def open_subproblems(certificate: Mapping[str, Any], tree: Tree) -> OpenSubproblems | None:
    """Return the open subproblems in the certificate of a claim; None without any, or if they do not hold for ``tree``.

    They hold if they cover all mappings below the limit of ``tree``. That no other subproblem is open is not verified here.
    """
    try:
        core = np.asarray(certificate["open"], np.float64)
        low = np.asarray(certificate["open_bounds"], np.float64)
        numbers = np.array([certificate["limit"], certificate["nodes"]], np.float64)
    except (KeyError, OverflowError, TypeError, ValueError):
        return None
    n, cores = tree.domain.shape[1:]
    shapes = core.shape[1:] == (n,) and low.shape == core.shape[:1] and numbers.shape == (2,)
    if not shapes or len(core) == 0:
        return None
    whole = all(bool((a == np.rint(a)).all() and (abs(a) < 2**52).all()) for a in (core, low, numbers))
    if not whole or core.min() < -1 or core.max() >= cores or numbers.min() < 0:
        return None
    at, limit, nodes = core.astype(np.int64), int(numbers[0]), int(numbers[1])
    taken = np.sort(at, axis=1)
    twice = ((taken[:, 1:] == taken[:, :-1]) & (taken[:, 1:] >= 0)).any()
    allowed = tree.domain[0][np.arange(n), np.maximum(at, 0)] | (at < 0)
    if twice or not allowed.all() or int(tree.state[LIMIT]) > limit or (at >= 0).all(axis=1).any():
        return None
    return OpenSubproblems(low.astype(np.int64), at, nodes)


def _tree(data: ExactData, limit: int) -> Tree:
    """Return the search tree of ``data`` with the symmetries of its board."""
    traffic, dense, allowed = _traffic(data), np.ascontiguousarray(data.dense), data.allowed
    maps = np.arange(data.cores)[None, :]
    if _turned(data):
        traffic, dense, allowed = np.triu(dense), traffic + traffic.T, allowed.T
    else:
        maps = _symmetries(data)
    return new_tree(traffic, dense, allowed, np.ascontiguousarray(maps), limit, _grain(data))


def _packing(data: ExactData, limit: int) -> Packing:
    """Return the search of ``data`` where cores hold several nodes."""
    room, dense = data.problem.capacity, np.ascontiguousarray(data.dense)
    maps = np.ascontiguousarray(_symmetries(data))
    size, apart = data.problem.sizes, data.apart
    return new_packing(_traffic(data), dense, data.allowed, size, room, apart, maps, limit, _grain(data))


def _traffic(data: ExactData) -> IntArray:
    """(n, n) traffic between nodes, each pair once where distances are symmetric."""
    traffic = np.zeros((data.n, data.n), np.int64)
    traffic[data.tail, data.head] = data.weight
    return traffic


def _grain(data: ExactData) -> int:
    """What all model objectives are multiples of."""
    return max(
        1, gcd(*(int(w) for w in np.unique(data.weight))) * gcd(*(int(d) for d in np.unique(data.dense)))
    )


def _symmetries(data: ExactData) -> IntArray:
    """(G, P) symmetries of the board, the identity among them."""
    symmetry = board_symmetry(data)
    return np.arange(data.cores)[None, :] if symmetry is None else symmetry.maps


def _turned(data: ExactData) -> bool:
    """True if cores are mapped to nodes instead: where traffic is a metric and distances are none, its triangles hold rows.

    With as many nodes as cores the two problems are one; files of quadratic assignment problems come either way round.
    """
    d = data.dense
    if (
        not data.problem.one_per_core
        or data.n != data.cores
        or (d != d.T).any()
        or np.diag(d).any()
        or is_metric(d)
    ):
        return False
    traffic = _traffic(data)
    return is_metric(traffic + traffic.T)


def _mapping(data: ExactData, best: IntArray) -> IntArray:
    """Return the best mapping that a search found, as (n,) cores of nodes."""
    out: IntArray = np.argsort(best) if _turned(data) else best.copy()
    return out
