"""Sparse networks to map: some fall into halves with few edges between them, some do not."""

from __future__ import annotations

import numpy as np
from scipy.spatial import Delaunay, cKDTree

from nmsolve.model.graph import LogicGraph


def _graph(n: int, pairs: np.ndarray) -> LogicGraph:
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    return LogicGraph.from_edges(n, pairs[:, 0], pairs[:, 1], directed=False)


def delaunay(n: int, seed: int = 1) -> LogicGraph:
    """Random points of the unit square, joined by Delaunay."""
    corners = Delaunay(np.random.default_rng(seed).random((n, 2))).simplices
    return _graph(n, np.concatenate([corners[:, :2], corners[:, 1:], corners[:, ::2]]))


def geometric(n: int, seed: int = 1) -> LogicGraph:
    """The same points, with edges up to 0.55 sqrt(log n / n), as in the 10th DIMACS challenge."""
    points = np.random.default_rng(seed).random((n, 2))
    return _graph(n, cKDTree(points).query_pairs(0.55 * np.sqrt(np.log(n) / n), output_type="ndarray"))


def box(side: int) -> LogicGraph:
    """A grid in three dimensions, its nodes numbered at random."""
    at = np.random.default_rng(side).permutation(side**3).reshape(side, side, side)
    ends = [
        np.stack([np.moveaxis(at, k, 0)[:-1].ravel(), np.moveaxis(at, k, 0)[1:].ravel()], axis=1)
        for k in range(3)
    ]
    return _graph(side**3, np.concatenate(ends))


def windows(layers: int, side: int) -> LogicGraph:
    """Layers of side by side nodes; each talks to three by three of the next layer."""
    at = np.arange(layers * side * side).reshape(layers, side, side)
    pairs = []
    for down in (-1, 0, 1):
        for right in (-1, 0, 1):
            rows, cols = (
                slice(max(0, -down), side - max(0, down)),
                slice(max(0, -right), side - max(0, right)),
            )
            to = at[1:, max(0, down) : side + min(0, down), max(0, right) : side + min(0, right)]
            pairs.append(np.stack([at[:-1, rows, cols].ravel(), to.ravel()], axis=1))
    return _graph(layers * side * side, np.concatenate(pairs))


def small_world(n: int, near: int) -> LogicGraph:
    """A ring in which a tenth of the edges lead anywhere."""
    rng = np.random.default_rng(n)
    a = np.repeat(np.arange(n), near)
    b = (a + np.tile(np.arange(1, near + 1), n)) % n
    b = np.where(rng.random(len(b)) < 0.1, rng.integers(0, n, len(b)), b)
    return _graph(n, np.stack([a, b], axis=1))


def random_graph(n: int, degree: int) -> LogicGraph:
    """Edges between any two."""
    return _graph(n, np.random.default_rng(n).integers(0, n, (n * degree // 2, 2)))
