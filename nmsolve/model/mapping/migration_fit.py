"""The least number of nodes that must leave their old core, counted before any search."""

from __future__ import annotations

import numpy as np

from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.reduce import merge_together
from nmsolve.model.types import IntArray


def migration_misfit(problem: MappingProblem) -> list[str]:
    """Return one line if more nodes must move than the migration budget allows; empty if none was shown."""
    if problem.migration is None:
        return []
    least = least_moves(problem)
    if least <= problem.migration.budget:
        return []
    return [
        f"at least {least} nodes must leave their old core, the migration budget is {problem.migration.budget}"
    ]


def least_moves(problem: MappingProblem) -> int:
    """Return a lower bound on the number of nodes that are on another core than in the reference.

    A node's *home* is the one allowed core that held most of its (merged) members. A node moves at least the members that
    are not of its home. Nodes that overflow their common home: as many as it takes, the largest first, must go elsewhere
    and move at least one member more each; so must all but one of an ``apart`` group. A core's share is the largest of these
    numbers, and the shares of all cores add up, because no node has two homes.
    """
    reduced = merge_together(problem).reduced
    home, stay = homes_of(reduced)
    assert reduced.migration is not None
    extra = np.maximum(_evicted(reduced, home), _parted(reduced, home))
    return int(reduced.migration.weight.sum() - stay.sum() + extra.sum())


def homes_of(problem: MappingProblem) -> tuple[IntArray, IntArray]:
    """Return ``(home, stay)``, both (n,) int64: the allowed core that held most members of a node, and how many.

    Where two cores held most, or none may hold the node, its home is -1 (``stay`` is then the most on one core, or 0).
    """
    assert problem.migration is not None
    indptr, core, count = problem.migration.homes
    node = np.repeat(np.arange(problem.n), np.diff(indptr))
    allowed = problem.domains[problem.domain_of[node], core]
    allowed &= (problem.sizes[node] <= problem.capacity[core]).all(axis=1)
    count = np.where(allowed, count, 0)
    stay = np.zeros(problem.n, np.int64)
    np.maximum.at(stay, node, count)
    most = np.flatnonzero((count == stay[node]) & (count > 0))
    home = np.full(problem.n, -1, np.int64)
    home[node[most]] = core[most]
    home[np.bincount(node[most], minlength=problem.n) > 1] = -1
    return home, stay


def _evicted(problem: MappingProblem, home: IntArray) -> IntArray:
    """Return (cores,) how many nodes must leave their home because it cannot hold them all."""
    out = np.zeros(problem.cores, np.int64)
    for r in range(problem.sizes.shape[1]):
        size = problem.sizes[:, r]
        order = np.lexsort((-size, home))
        begin = np.searchsorted(home[order], np.arange(problem.cores + 1))
        used = np.concatenate([[0], np.cumsum(size[order])])
        held = used[begin[1:]] - used[begin[:-1]]
        for p in np.flatnonzero(held > problem.capacity[:, r]).tolist():
            left = held[p] - np.cumsum(size[order[begin[p] : begin[p + 1]]])
            out[p] = max(out[p], 1 + int(np.count_nonzero(left > problem.capacity[p, r])))
    return out


def _parted(problem: MappingProblem, home: IntArray) -> IntArray:
    """Return (cores,) how many nodes must leave their home because an ``apart`` group has several there."""
    out = np.zeros(problem.cores, np.int64)
    for c in problem.constraints:
        if c.kind == "apart":
            here = home[np.unique(c.nodes)]
            count = np.bincount(here[here >= 0], minlength=problem.cores)
            out = np.maximum(out, count - 1)
    return out
