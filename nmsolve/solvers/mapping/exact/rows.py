"""Valid inequalities every exact model takes: star rows (Gilmore-Lawler on a node and its edges), least distances, triangles.

Without them the linear relaxation of a mapping model is about zero: half a node on every core makes all
distances 0. Gilmore 1962 and Lawler 1963 give the weighted star; the plain star counts distances alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.exact.data import ExactData

#: More triangles than this are not written down (dense graphs of more than about 25 nodes).
MAX_TRIANGLES = 2500


@dataclass(frozen=True)
class Star:
    """``sum_k weight[k] * d[pair[k]] >= sum_p least[p] * x[node, p]``."""

    node: int
    pairs: IntArray
    weight: IntArray
    least: IntArray


def slots_at(data: ExactData, node: int, neighbours: IntArray) -> tuple[int, int]:
    """Return the most ``neighbours`` (k,) that fit beside ``node`` on its core, and most nodes on any other core.

    Counts the smallest sizes, resource by resource, so that it never counts too few; neighbours that must
    stay apart from ``node`` cannot sit beside it.
    """
    if data.problem.one_per_core:
        return 0, 1
    sizes, cap = data.problem.sizes, data.problem.capacity.max(axis=0)
    beside, elsewhere = len(neighbours), data.n
    friends = neighbours[~data.apart[node, neighbours]]
    beside = min(beside, len(friends))
    for r in range(sizes.shape[1]):
        left = cap[r] - sizes[node, r]
        beside = min(beside, int((np.cumsum(np.sort(sizes[friends, r])) <= left).sum()))
        elsewhere = min(elsewhere, int((np.cumsum(np.sort(sizes[:, r])) <= cap[r]).sum()))
    return beside, max(1, elsewhere)


def stars(data: ExactData) -> list[Star]:
    """Return the weighted and the plain star of every node with neighbours.

    With ``u`` on core ``p``, its neighbours take the nearest free slots at best: the heaviest pair the
    nearest slot (least scalar product). Pairs in both directions (asymmetric distances) count with the
    cheaper direction.
    """
    cheap = np.minimum(data.dense, data.dense.T)
    usable = np.flatnonzero(data.problem.machine.usable)
    out: list[Star] = []
    for u in range(data.n):
        pairs = np.flatnonzero((data.tail == u) | (data.head == u))
        if len(pairs) == 0:
            continue
        other = np.where(data.tail[pairs] == u, data.head[pairs], data.tail[pairs])
        names, group = np.unique(other, return_inverse=True)
        beside, elsewhere = slots_at(data, u, names)
        near = _nearest(cheap, usable, len(names), beside, elsewhere)
        for weight in (data.weight[pairs], np.ones(len(pairs), np.int64)):
            total = np.sort(np.bincount(group, weight, len(names)).astype(np.int64))[::-1]
            out.append(Star(u, pairs, weight, near @ total))
    return out


def _nearest(cheap: IntArray, usable: IntArray, degree: int, beside: int, elsewhere: int) -> IntArray:
    """Return (P, degree) int64: distances of the ``degree`` nearest slots of every core, ascending."""
    cores = len(cheap)
    out = np.zeros((cores, degree), np.int64)
    for p in range(cores):
        others = np.sort(np.repeat(cheap[p, usable[usable != p]], elsewhere))
        row = np.sort(np.concatenate([np.full(beside, cheap[p, p]), others]))[:degree]
        out[p, : len(row)] = row
        out[p, len(row) :] = row[-1] if len(row) else 0  # more neighbours than slots: no mapping exists
    return out


def least_distance(data: ExactData) -> int:
    """Return the least distance of two different usable cores; 0 if there are not two."""
    usable = np.flatnonzero(data.problem.machine.usable)
    if len(usable) < 2:
        return 0
    d = data.dense[np.ix_(usable, usable)]
    return int(d[~np.eye(len(usable), dtype=bool)].min())


def triangles(data: ExactData) -> tuple[IntArray, int]:
    """Return pairs that form triangles of mutually apart nodes, and the least perimeter of three different cores.

    Returns (T, 3) pair numbers, empty where the perimeter says no more than three least distances (on a mesh
    of unit links it does: 4 instead of 3, as the mesh is bipartite), and the perimeter.
    """
    none = np.zeros((0, 3), np.int64)
    usable = np.flatnonzero(data.problem.machine.usable)
    if len(usable) < 3 or len(usable) > 150 or data.edges < 3:
        return none, 0
    d = np.minimum(data.dense, data.dense.T)[np.ix_(usable, usable)].astype(np.float64)
    np.fill_diagonal(d, np.inf)
    least = min(float((d[i][:, None] + d[i][None, :] + d).min()) for i in range(len(d)))
    if least <= 3 * least_distance(data):
        return none, int(least)
    number = np.full((data.n, data.n), -1)
    number[data.tail, data.head] = np.arange(data.edges)
    known = (number >= 0) & data.apart
    known |= known.T
    out: list[tuple[int, int, int]] = []
    pair = np.maximum(number, number.T)
    for a in range(data.n):
        later = np.flatnonzero(known[a, a + 1 :]) + a + 1
        for b in later.tolist():
            for c in later[(later > b) & known[b, later]].tolist():
                out.append((int(pair[a, b]), int(pair[a, c]), int(pair[b, c])))
                if len(out) == MAX_TRIANGLES:
                    return np.asarray(out, np.int64), int(least)
    return np.asarray(out, np.int64).reshape(-1, 3), int(least)


def wants_links(data: ExactData) -> bool:
    """Return True if pairs need a variable "on different cores": some pair may share a core and distances matter."""
    return data.edges > 0 and not bool(data.apart[data.tail, data.head].all())
