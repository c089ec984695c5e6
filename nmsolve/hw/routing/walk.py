"""Routes that follow from source and target alone: row first, column first, and the trees of machines with dead links."""

from __future__ import annotations

import numpy as np

from nmsolve.hw.links import Links, link_before, links_of
from nmsolve.model.basic_kernels import copy_to
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.errors import InputError
from nmsolve.model.machine import Machine
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.routes import Routes
from nmsolve.model.types import Int32Array, IntArray, read_only


def walked_routes(machine: Machine, flows: Flows, column_first: bool = False) -> Routes:
    """Every flow along the row, then along the column, or the other way round; multicast by the union, which is a tree.

    On a torus the shorter way round in link weights, a tie towards growing numbers. With dead links the machine's own route
    trees (:mod:`nmsolve.hw.detours`), whatever ``column_first`` says. One channel per link.

    Raises
    ------
    InputError : dead links leave no route between two cores
    """
    links = links_of(machine)
    if machine.faulty_links:
        before = links.before
        source = np.repeat(flows.source, np.diff(flows.indptr))
        cut = np.flatnonzero(before[source, flows.targets] == flows.targets)
        if len(cut):
            p, q = int(source[cut[0]]), int(flows.targets[cut[0]])
            raise InputError(
                f"faulty links leave no route from core {p} to core {q}", machine.name, "a route"
            )
    indptr, channel, parent = _trees(
        read_only(flows.source), read_only(flows.indptr), read_only(flows.targets), column_first, links
    )
    return Routes(1, indptr, channel, parent)


@plain
def walk_back(p: int, q: int, column_first: bool, links: Links, way: IntArray) -> int:
    """Write the links of the route from ``p`` to ``q`` to ``way``, the last one first; returns how many."""
    v, hops = np.int64(q), 0
    while v != p:
        v, way[hops] = link_before(links, p, q, v, column_first)
        hops += 1
    return hops


@kernel
def _trees(
    source: Int32Array, indptr: IntArray, targets: Int32Array, column_first: bool, links: Links
) -> tuple[IntArray, IntArray, IntArray]:
    """Union of the routes of every flow: (F + 1,) offsets, links, parents."""
    ends, distance = links.ends, links.distance
    n, flows = distance.rows * distance.cols, source.shape[0]
    out, link, parent = np.zeros(flows + 1, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    way, entry = (
        np.empty(n, np.int64),
        np.full(n, -1, np.int64),
    )  # by core: the entry of this flow that leads there
    k = 0
    for f in range(flows):
        if k + n > link.shape[0]:
            link, parent = _longer(link, n), _longer(parent, n)
        for j in range(indptr[f], indptr[f + 1]):
            hops = walk_back(source[f], targets[j], column_first, links, way)
            for h in range(hops - 1, -1, -1):
                end = ends[way[h]]
                if entry[end] < 0:
                    link[k], parent[k], entry[end] = way[h], entry[way[h] // 4], k
                    k += 1
        out[f + 1] = k
        for i in range(out[f], k):
            entry[ends[link[i]]] = -1
    return out, link[:k].copy(), parent[:k].copy()


@kernel
def _longer(array: IntArray, room: int) -> IntArray:
    """A copy of twice the length and ``room`` more."""
    out = np.empty(2 * array.shape[0] + room, np.int64)
    copy_to(out, array)
    return out
