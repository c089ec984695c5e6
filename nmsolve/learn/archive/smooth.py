"""Counterparts by smooth coordinates: eigenvectors of both graphs, turned onto each other by the few pairs that are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from nmsolve.learn.archive.arcs import Arcs
from nmsolve.model.types import FloatArray, IntArray

#: Eigenvectors of either graph, and their accuracy.
AXES, TOLERANCE = 8, 1e-3
#: Candidates of every node.
NEAR = 5
#: Rounds of dropping the pairs that fit worst.
ROUNDS = 3


def coordinates(graph: Arcs, axes: int = AXES) -> FloatArray | None:
    """Return (n, axes) float64, the smoothest non-constant eigenvectors, or None if they are not found."""
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import ArpackError, eigsh

    if graph.n < 4 * axes:
        return None
    load = np.asarray(graph.traffic.sum(axis=1)).ravel()
    scale = diags_array(1 / np.sqrt(np.maximum(load, 1e-12 * load.sum() + 1e-300)))
    begin = np.random.default_rng(0).random(graph.n) + 0.5
    try:
        values, vectors = eigsh(
            scale @ graph.traffic @ scale, k=axes + 1, which="LA", v0=begin, tol=TOLERANCE
        )
    except ArpackError:
        return None
    smooth = vectors[:, np.argsort(-values)[1:]]
    out: FloatArray = smooth / np.maximum(np.abs(smooth).std(axis=0), 1e-12)
    return out


def turned(old: FloatArray, new: FloatArray, match: IntArray) -> FloatArray:
    """Return the coordinates ``old`` turned so that known counterparts come to lie on each other (Procrustes, trimmed)."""
    j = np.flatnonzero(match >= 0)
    turn = np.eye(old.shape[1])
    for _ in range(ROUNDS):
        if len(j) < 2 * old.shape[1]:
            break
        u, _, v = np.linalg.svd(old[match[j]].T @ new[j])
        turn = u @ v
        off = np.abs(old[match[j]] @ turn - new[j]).sum(axis=1)
        j = j[off <= np.quantile(off, 0.75)]
    return np.asarray(old @ turn)


def near_pairs(old: FloatArray, new: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Return pairs (node of new, node of old) that are near each other, and minus their distance."""
    from scipy.spatial import KDTree

    k = min(NEAR, len(old))
    far: Any
    far, which = KDTree(old).query(new, k=k)
    row = np.repeat(np.arange(len(new)), k)
    return row, np.asarray(which).reshape(-1).astype(np.int64), -np.asarray(far).reshape(-1)
