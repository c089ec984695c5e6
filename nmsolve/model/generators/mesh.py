"""One-node-per-core instances on a square mesh, the ones that the benchmark table is about.

The order of the random draws decides the instances (``geo-1000-s1`` and so on): do not change it.
"""

from __future__ import annotations

import math

import numpy as np

from nmsolve.model.graph import LogicGraph
from nmsolve.model.types import IntArray

#: A node and its nearest targets are at most this many: Poisson(8) is above 49 less than once in 10^22 draws.
MOST_NEAR = 50
Edges = dict[tuple[int, int], float]


def geometric(nodes: int = 1000, side: int = 0, seed: int = 1) -> LogicGraph:
    """Uniform points in the unit square; each sends to a Poisson(8) number of nearest points and one any place.

    Weights are log-normal, rounded to 6 digits; the ids are shuffled.
    """
    from scipy.spatial import cKDTree

    rng = np.random.default_rng(seed)
    point = rng.random((nodes, 2))
    edges: Edges = {}
    nearest = cKDTree(point).query(point, min(nodes, MOST_NEAR))[1].reshape(nodes, -1)
    for i in range(nodes):
        near = nearest[i, 1 : 1 + max(1, int(rng.poisson(8)))].tolist()
        far = int(rng.integers(0, nodes, 1)[0])
        _add(edges, rng, i, [j for j in [*near, far] if j != i])
    return _graph("geo", nodes, side, seed, edges, rng.permutation(nodes))


def feed_forward(nodes: int = 1000, side: int = 0, seed: int = 1) -> LogicGraph:
    """Ten layers in rings; each node sends to eight draws around its own position in the next layer.

    Weights are log-normal, rounded to 6 digits; the ids are shuffled. Fewer than ten nodes have no edges.
    """
    rng = np.random.default_rng(seed)
    layers = 10
    width = nodes // layers
    edges: Edges = {}
    for layer in range(layers - 1):
        for i in range(width):
            to = (layer + 1) * width + (i + rng.integers(-6, 7, 8)) % width
            _add(edges, rng, layer * width + i, to.tolist())
    return _graph("layered", nodes, side, seed, edges, rng.permutation(nodes))


def random_targets(nodes: int = 1000, side: int = 0, seed: int = 1) -> LogicGraph:
    """Each node sends to eight uniform draws; log-normal weights, rounded to 6 digits."""
    rng = np.random.default_rng(seed)
    edges: Edges = {}
    for i in range(nodes):
        _add(edges, rng, i, [j for j in rng.integers(0, nodes, 8).tolist() if j != i])
    return _graph("rnd", nodes, side, seed, edges, np.arange(nodes))


def communities(nodes: int = 256, side: int = 0, seed: int = 1) -> LogicGraph:
    """Return communities of eight, densely joined inside, with links to the next community and few skips.

    Weights are whole numbers; ids are shuffled; every edge leads from the lower to the higher id.
    """
    rng = np.random.default_rng(seed)
    count = max(1, nodes // 8)
    label = np.minimum(np.arange(nodes) * count // nodes, count - 1).tolist()
    pairs: list[tuple[int, int, int]] = []
    for u in range(nodes):
        for v in range(u + 1, nodes):
            low, high, chance = 1, 6, 0.5 / nodes
            if label[u] == label[v]:
                low, high, chance = 5, 21, 0.6
            elif label[v] == label[u] + 1:
                low, high, chance = 1, 11, 1.5 / 8
            if rng.random() < chance:
                pairs.append((u, v, int(rng.integers(low, high))))
    order = rng.permutation(nodes)
    new = np.empty(nodes, np.int64)
    new[order] = np.arange(nodes)
    edges: Edges = {}
    for u, v, w in pairs:
        a, b = int(new[u]), int(new[v])
        edges[min(a, b), max(a, b)] = float(w)
    return _graph("comm", nodes, side, seed, edges, np.arange(nodes))


def _add(edges: Edges, rng: np.random.Generator, source: int, targets: list[int]) -> None:
    """Give every edge a log-normal weight; an edge that is drawn again gets a new weight."""
    for target, weight in zip(targets, rng.lognormal(0, 1, len(targets)).tolist(), strict=True):
        edges[source, target] = round(weight, 6)


def _graph(kind: str, nodes: int, side: int, seed: int, edges: Edges, new: IntArray) -> LogicGraph:
    """Return the graph with node ``i`` renamed ``new[i]``, and the mesh it is meant for."""
    side = side or math.isqrt(nodes - 1) + 1
    ends = np.array(list(edges), np.int64).reshape(-1, 2)
    return LogicGraph.from_edges(
        nodes,
        new[ends[:, 0]],
        new[ends[:, 1]],
        np.array(list(edges.values()), np.float64),
        name=f"{kind}-{nodes}-s{seed}",
        meta={"mesh": [side, side]},
    )
