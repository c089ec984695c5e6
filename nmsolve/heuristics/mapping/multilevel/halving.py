"""Multilevel bisection of one region of nodes: clustered down to a few dozen, grown into two halves, refined on the way back.

A half that is grown among thousands of nodes has a long border, and FM passes only smooth it; among a few dozen clusters
the short borders are found (Hendrickson and Leland 1995; Karypis and Kumar 1998).
"""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.multilevel.coarsen import cluster, contract
from nmsolve.heuristics.mapping.multilevel.fm import bisect
from nmsolve.heuristics.mapping.multilevel.levels import Net
from nmsolve.model.compiled import kernel
from nmsolve.model.types import AnyArray, FloatArray, Int32Array, IntArray

#: Regions of fewer nodes are halved as they are; clustering stops at this many.
LEAST, FEW = 50, 30
#: Clusters take at most this many times the mean volume below, and this share of the region.
GROWTH, LARGEST = 5.0, 0.05
#: Tries on the coarsest level, and on all others: on grids growing at the finest level finds straighter borders.
TRIES, TRIES_FINE = 12, 4


def halves(
    net: Net, nodes: Int32Array, local: Int32Array, pull: FloatArray, across: float, room: IntArray, goal: float,
    fixed: AnyArray, rng: AnyArray,
) -> AnyArray:  # fmt: skip
    """Side (k,) int8 of each of ``nodes``; parameters as of :func:`~nmsolve.heuristics.mapping.multilevel.fm.bisect`."""
    anew = np.zeros(0, np.int8)
    if len(nodes) < LEAST:
        side: AnyArray = bisect(net, nodes, local, pull, across, room, goal, fixed, anew, TRIES_FINE, rng)
        return side
    levels: list[tuple[Net, FloatArray, AnyArray]] = [(_region(net, nodes, local), pull, fixed)]
    labels: list[Int32Array] = []
    while len(levels[-1][1]) > FEW:
        fine, pulls, held = levels[-1]
        limit = min(GROWTH * float(fine.volume.mean()), LARGEST * float(fine.volume.sum()))
        label = cluster(fine, limit, rng)
        k = int(label.max()) + 1
        if k > 0.9 * len(label):
            break
        coarse = np.zeros(k, np.int8)
        coarse[label] = held  # clusters never mix domains
        levels.append((contract(fine, label), np.bincount(label, pulls, k).astype(np.float64), coarse))
        labels.append(label)
    for number in range(len(levels) - 1, -1, -1):
        here, pulls, held = levels[number]
        everyone = np.arange(len(pulls), dtype=np.int32)
        start, tries = (anew, TRIES) if number == len(labels) else (side[labels[number]], TRIES_FINE)
        side = bisect(here, everyone, everyone, pulls, across, room, goal, held, start, tries, rng)
    return side


def _region(net: Net, nodes: Int32Array, local: Int32Array) -> Net:
    """Return the graph of the region alone. Its nodes may share a core as far as a bisection is concerned."""
    ptr, idx, weights = _inside(net, nodes, local)
    apart_ptr, apart = np.zeros(len(nodes) + 1, np.int64), np.zeros(0, np.int32)
    kind = net.kind[nodes] if len(net.kind) else net.kind
    return Net(
        ptr, idx, weights, net.sizes[nodes], net.volume[nodes], net.domain[nodes], apart_ptr, apart, kind
    )


@kernel
def _inside(net: Net, nodes: Int32Array, local: Int32Array) -> tuple[IntArray, Int32Array, AnyArray]:
    """Return the CSR among ``nodes``; rows keep their order."""
    ptr = np.zeros(len(nodes) + 1, np.int64)
    for i in range(len(nodes)):
        count = 0
        for e in range(net.indptr[nodes[i]], net.indptr[nodes[i] + 1]):
            if local[net.indices[e]] >= 0:
                count += 1
        ptr[i + 1] = ptr[i] + count
    idx, w = np.empty(ptr[-1], np.int32), np.empty(ptr[-1], np.float32)
    end = 0
    for i in range(len(nodes)):
        for e in range(net.indptr[nodes[i]], net.indptr[nodes[i] + 1]):
            j = local[net.indices[e]]
            if j >= 0:
                idx[end] = j
                w[end] = net.weights[e]
                end += 1
    return ptr, idx, w
