"""The reward of method M1 in training: the objective ``reward`` (:mod:`nmsolve.hw.reward`), negated, of many placements at once,
for one node per core of a mesh.
"""

from __future__ import annotations

import numpy as np

from nmsolve.hw.reward import MOST_RATIO, own_prices, prohibited_directions
from nmsolve.model.compiled import kernel
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.reward_terms import RewardTerms
from nmsolve.model.types import BoolArray, FloatArray, IntArray

#: What a node pays for, as :func:`measure` counts it.
HORIZONTAL, VERTICAL, HOPS, FRAGILE, OWN = range(5)


class Rewards:
    """The reward of placements of one graph on one mesh.

    Parameters
    ----------
    graph, machine : one node per core; a mesh without wrap-around links or faults
    terms : weights, and terms of one's own
    """

    def __init__(self, graph: LogicGraph, machine: Machine, terms: RewardTerms) -> None:
        self.terms, self.turns, self._own = terms, prohibited_directions(machine), own_prices(machine, terms)
        self._messages = (
            graph.indptr, graph.source.astype(np.int64), graph.targets.astype(np.int64), graph.weights, graph.multicast,
        )  # fmt: skip
        self._shape = machine.rows, machine.cols

    def __call__(self, core: IntArray) -> FloatArray:
        """Return (B,) rewards of placements (B, n)."""
        return np.asarray(-self.by_node(core).sum(axis=1))

    def by_node(self, core: IntArray) -> FloatArray:
        """Return (B, n) what every node pays; each of two nodes pays half of what a pair does."""
        nodes, channels = measure(np.ascontiguousarray(core), *self._messages, *self._shape, self._own)
        terms = self.terms
        ratio = np.where(channels > 0, terms.deadlock * self.turns / np.maximum(channels, 1.0), 0.0)
        loss = terms.horizontal * nodes[..., HORIZONTAL] + terms.vertical * nodes[..., VERTICAL]
        loss = loss * np.exp(np.minimum(MOST_RATIO, ratio))[:, None]
        return np.asarray(
            loss + terms.hops * nodes[..., HOPS] + terms.faults * nodes[..., FRAGILE] + nodes[..., OWN]
        )


def measure_once() -> None:
    """Compile what training needs, on two nodes."""
    graph = LogicGraph.from_edges(2, [0], [1])
    Rewards(graph, Machine("two", (1, 1), (1, 2)), RewardTerms())(np.array([[0, 1]]))


@kernel
def measure(
    core: IntArray, indptr: IntArray, source: IntArray, targets: IntArray, weights: FloatArray, multicast: BoolArray,
    rows: int, cols: int, own: FloatArray,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Return (B, n, 5) what every node pays, and (B,) channels of multicast trees.

    A node pays for what it exchanges along its row and along its column, each the larger side, and half of its hops, of its
    fragile traffic and of what the user's own terms charge. Trees go along the row of their source first, as XY routes do.
    Messages of one node to the same nodes are taken for several.
    """
    out, channels = np.zeros((*core.shape, 5)), np.zeros(len(core))
    for b in range(len(core)):
        side = np.zeros((core.shape[1], 4))
        low, high = np.empty(cols, np.int64), np.empty(cols, np.int64)
        for i in range(len(source)):
            u = source[i]
            p = core[b, u]
            r, c = p // cols, p % cols
            low[:], high[:] = r, r
            left, right, remote = c, c, 0
            for k in range(indptr[i], indptr[i + 1]):
                v, w = targets[k], weights[k]
                q = core[b, v]
                s, d = q // cols, q % cols
                if w <= 0.0 or q == p:
                    continue
                remote += 1
                low[d], high[d] = min(low[d], s), max(high[d], s)
                left, right = min(left, d), max(right, d)
                side[u, 0 if d > c else 1] += w * abs(d - c)
                side[v, 1 if d > c else 0] += w * abs(d - c)
                side[u, 2 if s > r else 3] += w * abs(s - r)
                side[v, 3 if s > r else 2] += w * abs(s - r)
                for node in (u, v):
                    out[b, node, 2] += w * (abs(d - c) + abs(s - r)) / 2
                    if d == c or s == r:
                        out[b, node, 3] += w / 2
                    if own.size > 0:
                        out[b, node, 4] += w * own[p, q] / 2
            if multicast[i] and remote > 1:
                channels[b] += right - left
                for d in range(cols):
                    channels[b] += high[d] - low[d]
        for u in range(len(side)):
            out[b, u, 0] = max(side[u, 0], side[u, 1])
            out[b, u, 1] = max(side[u, 2], side[u, 3])
    return out, channels
