"""A graph in layers along its data: the layer of every node, and its place within it, near those that it is joined with."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

import numpy as np

from nmsolve.model.types import FloatArray, IntArray

#: Sweeps that order the nodes of layers; fewer of a graph with more nodes.
SWEEPS, LARGE = 8, 4000

Ends = Sequence[tuple[int, int]]


def data_order(count: int, ends: Ends) -> IntArray:
    """Return (N,) the rank of every node in an order along the ``ends`` (from, to), the least number first.

    Where a circle keeps all that is left waiting, the least of them goes first.
    """
    after: list[list[int]] = [[] for _ in range(count)]
    waits = [0] * count
    for a, b in ends:
        after[a].append(b)
        waits[b] += 1
    rank = np.full(count, -1, np.int64)
    ready, least = [a for a in range(count) if not waits[a]], 0
    heapify(ready)
    for place in range(count):
        while least < count and rank[least] >= 0:
            least += 1
        a = heappop(ready) if ready else least
        rank[a] = place
        for b in after[a]:
            waits[b] -= 1
            if not waits[b] and rank[b] < 0:
                heappush(ready, b)
    return rank


def layers_of_nodes(count: int, forward: Ends, first: IntArray) -> IntArray:
    """Return (N,) the layer of every node: as early as what it needs allows, then as late as its users allow.

    Parameters
    ----------
    forward : (from, to) of all that goes forward in the order of ``first`` (N,)
    """
    layer = np.zeros(count, np.int64)
    after: list[list[int]] = [[] for _ in range(count)]
    for a, b in forward:
        after[a].append(b)
    order = np.argsort(first, kind="stable").tolist()
    for a in order:
        for b in after[a]:
            layer[b] = max(layer[b], layer[a] + 1)
    for a in reversed(order):
        if after[a]:
            layer[a] = min(int(layer[b]) for b in after[a]) - 1
    return layer


def places_in_layers(count: int, forward: Ends, layer: IntArray) -> FloatArray:
    """Return (N,) the place of every node within its layer, around 0 and one apart (sweeps of barycentres)."""
    joined: list[list[int]] = [[] for _ in range(count)]
    for a, b in forward:
        joined[a].append(b)
        joined[b].append(a)
    order = np.argsort(layer, kind="stable")
    ends = np.searchsorted(layer[order], np.arange(1, int(layer.max(initial=0)) + 1))
    levels = [own.tolist() for own in np.split(order, ends)]
    height = [0.0] * count
    for own in levels:
        for place, a in enumerate(own):
            height[a] = place - (len(own) - 1) / 2
    for sweep in range(SWEEPS if count <= LARGE else 2):
        for own in levels if sweep % 2 == 0 else levels[::-1]:
            wish = {
                a: sum(height[b] for b in joined[a]) / len(joined[a]) if joined[a] else height[a] for a in own
            }
            for place, a in enumerate(sorted(own, key=lambda a: (wish[a], a))):
                height[a] = place - (len(own) - 1) / 2
    return np.array(height)
