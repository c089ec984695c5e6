"""Mappings on groups of groups of cores, level by level: nodes are divided among the top groups first, then among their parts.

Between groups of one level all distances are the same, so that what crosses there is a cut of its own (hierarchical multisection:
Schulz and Woydt 2025). The top ones cost most, and are searched before anything below them is fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from nmsolve.heuristics.mapping.multilevel.cycle import Cycle
from nmsolve.heuristics.mapping.multilevel.graph import Board, Graph, board_of
from nmsolve.heuristics.mapping.multilevel.levels import Region
from nmsolve.heuristics.mapping.multilevel.pool import STYLES, Pool
from nmsolve.heuristics.mapping.multilevel.threads import ALONE, Threads
from nmsolve.heuristics.mapping.multilevel.tree import Tree, grown
from nmsolve.model import clock
from nmsolve.model.compiled import kernel
from nmsolve.model.types import Int32Array, IntArray

#: Part of its time that a level takes for mappings from scratch.
STARTS = 0.4
#: Part of the room to spare that is used on a level above others.
SPARE = 0.8
#: Time of the last level, for that of each level above.
LAST = 1 / 3


class Sections:
    """The nodes of a graph on a board of cores, divided among the parts of ``top`` and so on.

    Parameters
    ----------
    stop : asked before every step
    """

    def __init__(self, graph: Graph, board: Board, top: Region, stop: Callable[[], bool]) -> None:
        self._graph, self._board, self._top, self._stop = graph, board, top, stop

    def mapping(self, seed: int, seconds: float, threads: Threads) -> Int32Array | None:
        """Return the core of every node (n,), or None if there was no time; it may be too much for a core.

        With no ``seconds`` each region is divided once, and the mapping is the same for a seed on any number of threads.
        """
        n = len(self._graph.volume)
        pos, names = np.zeros(n, np.int32), np.full(n, -1, np.int32)
        regions = [(self._top, np.arange(n, dtype=np.int32))]
        levels, end = _levels(self._top), clock.now() + seconds
        for level in range(levels):
            spread, tasks = len(regions) >= threads.count, []
            own = max(0.0, end - clock.now()) * (threads.count if spread else 1)
            if level < levels - 1:
                own /= levels - 1 - level + LAST
            nodes = max(1, sum(len(inner) for _, inner in regions))
            for region, inner in regions:
                g = self._graph if len(inner) == n else subgraph(self._graph, inner, names)
                seed, time = seed + 1, own * len(inner) / nodes
                tasks.append(partial(self._divided, g, region, seed, time, ALONE if spread else threads))
            parts = threads.each(tasks) if spread else [task() for task in tasks]
            finer = []
            for (region, inner), part in zip(regions, parts, strict=True):
                if part is None:
                    return None
                for number, one in enumerate(region.parts):
                    if one.parts:
                        finer.append((one, inner[part == number]))
                    else:
                        pos[inner[part == number]] = one.cores[0]
            regions = finer
        return pos

    def _divided(
        self, g: Graph, region: Region, seed: int, seconds: float, threads: Threads
    ) -> Int32Array | None:
        """Return the part of a region (n,) for every node of a graph, or None if there was no time."""
        tree = self._tree(region, g.sizes.sum(axis=0))
        cycle, end = Cycle(g, tree, self._stop, flow=True), clock.now() + seconds
        pool = Pool(cycle, seed)
        pool.keep(cycle.from_scratch(STYLES[0], pool.seed(), threads), "")
        if pool.kept:
            pool.keep(cycle.within(pool.kept[0].pos, None, pool.seed(), threads), "")
        while clock.now() < end - (1 - STARTS) * seconds and not self._stop():
            pool.start(threads)
        while pool.kept and clock.now() < end and not self._stop():
            pool.combine(threads)
        if self._stop() or not pool.kept:
            return None
        part: Int32Array = tree.cores[pool.kept[0].pos].astype(np.int32)
        return part

    def _tree(self, region: Region, needed: IntArray) -> Tree:
        """Return the tree of the parts of a region; ``needed`` (R,) is what the nodes take that go there."""
        board, cores = self._board, [part.cores for part in region.parts]
        k = len(cores)
        room = np.array([board.room[own].sum(axis=0) for own in cores])
        share = np.array([board.share[own].sum() for own in cores])
        allowed = np.stack([board.allowed[:, own].any(axis=1) for own in cores], axis=1)
        if any(part.parts for part in region.parts):
            even = room / np.maximum(1, room.sum(axis=0)) * needed
            room = np.minimum(room, np.ceil(even + SPARE * np.maximum(0, room - even)).astype(np.int64))
        tree = grown(
            np.arange(k, dtype=np.int64), board_of(region.distance * (1.0 - np.eye(k)), room, share, allowed)
        )
        return replace(tree, divisions=(np.zeros(k, np.int32),))


def _levels(region: Region) -> int:
    """Return how many levels a region has; 0 for a core."""
    return 1 + max(_levels(part) for part in region.parts) if region.parts else 0


@kernel
def subgraph(g: Graph, nodes: Int32Array, names: Int32Array) -> Graph:
    """Return the graph of some nodes, called 0, 1, ..., and what joins them.

    ``names`` : (n,) -1 everywhere, before and after
    """
    k = len(nodes)
    for i in range(k):
        names[nodes[i]] = i
    ptr = np.zeros(k + 1, np.int64)
    for i in range(k):
        v, count = nodes[i], 0
        for e in range(g.ptr[v], g.ptr[v + 1]):
            if names[g.neighbour[e]] >= 0:
                count += 1
        ptr[i + 1] = ptr[i] + count
    neighbour, weight = np.empty(ptr[k], np.int32), np.empty(ptr[k], np.float32)
    at = 0
    for i in range(k):
        v = nodes[i]
        for e in range(g.ptr[v], g.ptr[v + 1]):
            j = names[g.neighbour[e]]
            if j >= 0:
                neighbour[at], weight[at] = j, g.weight[e]
                at += 1
    for i in range(k):
        names[nodes[i]] = -1
    none, kind = np.zeros(0, np.int32), g.kind[nodes] if len(g.kind) else g.kind
    sizes, volume, domain = g.sizes[nodes], g.volume[nodes], g.domain[nodes]
    return Graph(ptr, neighbour, weight, sizes, volume, domain, np.zeros(k + 1, np.int64), none, kind)
