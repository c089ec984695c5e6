"""Community detection by modularity (Louvain, "fast unfolding", Blondel et al. 2008), as M1.3 asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.published.m2.topology import Piece, Topology
from nmsolve.model.compiled import kernel
from nmsolve.model.types import FloatArray, Int32Array, IntArray

#: A level ends when a pass over all vertices improves modularity by less than this.
LEAST_GAIN = 1e-6
#: Connections looked at in one kernel call; keeps a call well under 0.2 s.
SLICE = 2_000_000


class Communities(NamedTuple):
    """``label`` (n,) the community of every vertex; strength and sizes of every community: ``volume``, ``load`` (n, R)."""

    label: Int32Array
    volume: FloatArray
    load: IntArray


class Rules(NamedTuple):
    """``sizes`` (n, R) of the vertices, ``most`` (R,) of a community; ``strength`` (n,) of the vertices, and their sum."""

    sizes: IntArray
    most: IntArray
    strength: FloatArray
    double: float


def louvain(
    top: Topology, most: IntArray, rng: np.random.Generator, poll: Callable[[], None]
) -> tuple[Int32Array, int]:
    """M1.3: communities of high modularity by local moving and contraction, until neither helps.

    Parameters
    ----------
    most : (R,) int64; no community grows beyond this size (what the largest chip has free)

    Returns
    -------
    (n,) int32 community of every vertex, and their number.
    """
    group = np.arange(top.n, dtype=np.int32)
    inner = np.zeros(top.n)  # weight inside a contracted vertex, from both ends
    level = top
    while True:
        strength = inner + _strength(level)
        label = np.arange(level.n, dtype=np.int32)
        moved = _local_moving(level, strength, most, label, rng, poll)
        used, number = np.unique(label, return_inverse=True)
        label = number.astype(np.int32)
        if not moved or len(used) == level.n:
            return group, level.n
        before = np.bincount(label, weights=strength, minlength=len(used))
        group = label[group]
        level = level.contracted(label, len(used))
        inner = before - _strength(level)


def _strength(top: Topology) -> FloatArray:
    """(n,) float64: total weight of every vertex's connections."""
    total = np.concatenate([[0.0], np.cumsum(top.weights)])
    return np.asarray(total[top.indptr[1:]] - total[top.indptr[:-1]])


def _local_moving(
    top: Topology,
    strength: FloatArray,
    most: IntArray,
    label: Int32Array,
    rng: np.random.Generator,
    poll: Callable[[], None],
) -> bool:
    """Move vertices to the neighbouring community of largest modularity gain until a pass gains little."""
    double = float(strength.sum())
    if double <= 0.0:
        return False
    s, rules = Communities(label, strength.copy(), top.sizes.copy()), Rules(top.sizes, most, strength, double)
    some = False
    while True:
        order = rng.permutation(top.n)
        gain, at = 0.0, 0
        while at < top.n:
            more, at = _pass(top.piece, rules, s, order, at, SLICE)
            gain += more
            poll()
        some = some or gain > 0.0
        if gain < LEAST_GAIN:
            return some


@kernel
def _pass(
    edges: Piece, rules: Rules, s: Communities, order: IntArray, at: int, budget: int
) -> tuple[float, int]:
    """Visit ``order[at:]`` until ``budget`` is used up; the modularity gained and where to continue."""
    _, indptr, indices, weights = edges
    sizes, most, strength, double = rules
    label, volume, load = s
    pull = np.zeros(len(label))
    touched = np.empty(len(label), np.int64)
    gain = 0.0
    while at < len(order) and budget > 0:
        u = order[at]
        at += 1
        budget -= indptr[u + 1] - indptr[u] + 1
        own = label[u]
        used = 0
        for e in range(indptr[u], indptr[u + 1]):
            k = label[indices[e]]
            if pull[k] == 0.0 and weights[e] > 0.0:
                touched[used] = k
                used += 1
            pull[k] += weights[e]
        stay = pull[own] - strength[u] * (volume[own] - strength[u]) / double
        best, value = own, stay
        for i in range(used):
            k = touched[i]
            worth = pull[k] - strength[u] * volume[k] / double
            if k == own or worth <= value + 1e-12 * double:
                continue
            fits = True
            for r in range(len(most)):
                fits = fits and load[k, r] + sizes[u, r] <= most[r]
            if fits:
                best, value = k, worth
        for i in range(used):
            pull[touched[i]] = 0.0
        if best != own:
            gain += 2.0 * (value - stay) / double
            volume[own] -= strength[u]
            volume[best] += strength[u]
            for r in range(len(most)):
                load[own, r] -= sizes[u, r]
                load[best, r] += sizes[u, r]
            label[u] = best
    return gain, at
