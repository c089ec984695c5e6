"""Nodes that no limit distinguishes, as counts: this keeps a feasibility model of many nodes small."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray

#: Most variables "nodes of this class on this core". Beyond it classes forget sizes, then nothing is modelled.
MOST_PLACES = 200_000


@dataclass(frozen=True, eq=False)
class Classes:
    """A partition of the nodes.

    Attributes
    ----------
    of : (n,) int64 class of every node
    count : (k,) int64 nodes in each class
    first : (k,) int64 a node of each class
    least, most, total : (k, R) int64 smallest and largest size in the class, and the sum, per resource
    """

    of: IntArray
    count: IntArray
    first: IntArray
    least: IntArray
    most: IntArray
    total: IntArray

    @property
    def alike(self) -> bool:
        """True if the nodes of every class have the same sizes: a model of counts then says everything."""
        return bool((self.least == self.most).all())

    def expand(self, placed: IntArray) -> IntArray:
        """Return (n,) core of every node, from the number of nodes (k, P) of every class on every core."""
        core = np.empty(len(self.of), np.int64)
        by_class = np.argsort(self.of, kind="stable")
        k, p = np.nonzero(placed)
        core[by_class] = np.repeat(p, placed[k, p])
        return core


def classes_of(problem: MappingProblem, sizes: IntArray, tag: IntArray | None = None) -> Classes | None:
    """Return the classes of a problem, or None if there are too many for a model.

    Parameters
    ----------
    sizes : (n, R) what nodes take of the resources that matter
    tag : (n,) whole numbers; nodes with different ones are never of one class
    """
    mark = np.zeros(problem.n, np.int64) if tag is None else np.unique(tag, return_inverse=True)[1]
    for c in problem.constraints:
        nodes = np.unique(np.asarray(c.nodes, np.int64))
        if len(nodes):
            mark[nodes] = mark.max() + 1 + np.unique(mark[nodes], return_inverse=True)[1]
    for key in (np.column_stack([mark, sizes]), mark[:, None]):
        of = np.unique(key, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
        k = int(of.max()) + 1
        if k * problem.cores <= MOST_PLACES:
            return _summed(of, k, sizes)
    return None


def _summed(of: IntArray, k: int, sizes: IntArray) -> Classes:
    least = np.full((k, sizes.shape[1]), np.iinfo(np.int64).max)
    most, total = np.zeros((k, sizes.shape[1]), np.int64), np.zeros((k, sizes.shape[1]), np.int64)
    np.minimum.at(least, of, sizes)
    np.maximum.at(most, of, sizes)
    np.add.at(total, of, sizes)
    first = np.unique(of, return_index=True)[1].astype(np.int64)
    return Classes(of, np.bincount(of, minlength=k), first, least, most, total)
