"""A graph as retrieval sees it: who sends how much to whom, and what the nodes are called."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nmsolve.model.graph import LogicGraph
from nmsolve.model.types import AnyArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Arcs:
    """Connections between nodes, parallel ones added up.

    Attributes
    ----------
    n : number of nodes
    source, target : (m,) int64, sorted by source, then target; no node is its own target
    weight : (m,) float64 > 0
    ids : names of the nodes, or None for 0..n-1
    """

    n: int
    source: IntArray
    target: IntArray
    weight: FloatArray
    ids: tuple[str | int, ...] | None = None

    @classmethod
    def of(cls, graph: LogicGraph) -> Arcs:
        """Return the connections of a graph in memory; a net counts once for every target."""
        source, target = graph.edge_source.astype(np.int64), graph.targets.astype(np.int64)
        kept = (graph.weights > 0) & (source != target)
        key, which = np.unique(source[kept] * graph.n + target[kept], return_inverse=True)
        weight = np.bincount(which, graph.weights[kept], minlength=len(key)).astype(np.float64)
        return cls(graph.n, key // graph.n, key % graph.n, weight, graph.ids)

    @cached_property
    def key(self) -> IntArray:
        """(m,) int64 ``source * n + target``, rising."""
        return np.asarray(self.source * self.n + self.target)

    @cached_property
    def adjacency(self) -> Any:
        """The pattern of connections, (n, n) sparse, 1 from a sender to its target."""
        from scipy.sparse import csr_array

        return csr_array((np.ones(len(self.source)), (self.source, self.target)), shape=(self.n, self.n))

    @cached_property
    def traffic(self) -> Any:
        """Traffic of every pair in both directions together, (n, n) sparse, symmetric."""
        from scipy.sparse import csr_array

        one_way = csr_array((self.weight, (self.source, self.target)), shape=(self.n, self.n))
        return csr_array(one_way + one_way.T)


def overlap(old: Arcs, new: Arcs, match: IntArray) -> float:
    """Return which part of the connections (of the graph with more of them) ``match`` maps onto each other.

    Parameters
    ----------
    match : (new.n,) the counterpart in ``old`` of every node, or -1
    """
    if not len(new.source) or not len(old.source):
        return 1.0 if len(new.source) == len(old.source) else 0.0
    return float(kept_arcs(old, new, match).sum()) / max(len(new.source), len(old.source))


def kept_arcs(old: Arcs, new: Arcs, match: IntArray) -> AnyArray:
    """Return (m of new,) bool: the connections whose counterpart exists."""
    s, t = match[new.source], match[new.target]
    key = s * old.n + t
    at = np.minimum(np.searchsorted(old.key, key), max(0, len(old.key) - 1))
    return np.asarray((s >= 0) & (t >= 0) & (old.key[at] == key))
