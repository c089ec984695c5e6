"""What another machine does for a search: it holds connections of some of the nodes, and says where these nodes want to go.

One :class:`Holder` per machine has its part of every block in memory, and a copy of where all nodes are. The copy stays equal to
the run's, as the run sends every move with its next question: a holder answers what a thread of the run would.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from nmsolve.heuristics.mapping.external.accept import Placement
from nmsolve.heuristics.mapping.external.arcs import RUN, Arcs
from nmsolve.heuristics.mapping.external.clustering import Clusters, move_to, propose_clusters
from nmsolve.heuristics.mapping.external.propose import Cores, Drawing, propose_cut, propose_lines
from nmsolve.heuristics.mapping.external.sweep import Crew, parts
from nmsolve.model.compiled import kernel
from nmsolve.model.types import AnyArray, Int32Array, IntArray

#: Nodes that want to move, and where to.
Wishes = tuple[IntArray, Int32Array]


class Holder:
    """Connections of a part of every block of a level. Arrays that come are copied: what another process sent is read-only, and
    lies in memory that is needed for other messages.

    Parameters
    ----------
    threads : that work here at the same time
    """

    def __init__(self, threads: int) -> None:
        pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self._crew = Crew(threads, pool, lambda: False)
        self._arcs: dict[int, Arcs] = {}

    def know(self, cores: Cores, volume: AnyArray, domain: Int32Array, apart_ptr: IntArray) -> None:
        """Learn what never changes: the board, and volume, domain and ``apart_ptr`` of all nodes (see ``Level``)."""
        c = cores
        self._cores = Cores(
            np.array(c.col), np.array(c.row), np.array(c.lines_x), np.array(c.lines_y), c.step, np.array(c.capacity),
            np.array(c.allowed),
        )  # fmt: skip
        self._volume, self._domain, self._apart_ptr = np.array(volume), np.array(domain), np.array(apart_ptr)

    def take(self, block: int, first: int, indptr: IntArray, neighbour: Int32Array, weight: AnyArray) -> None:
        """Hold the part of a block that begins with node ``first``: ``indptr`` (k + 1,) from 0."""
        self._arcs[block] = Arcs(first, np.array(indptr), np.array(neighbour), np.array(weight))

    def begin_sweep(self, pos: AnyArray, price: AnyArray, temperature: float, key: int, stride: int) -> None:
        """Learn on which cores all nodes are and what decides their draws in a sweep; see ``Drawing``."""
        none, zeros = np.zeros((1, 1), np.int64), np.zeros(1)
        s = Placement(np.array(pos), none, none, none, np.array(price), zeros, zeros)
        self._draw = Drawing(s, self._cores, self._volume, self._domain, temperature, key, stride)

    def draw(
        self, cut: bool, block: int, offset: int, nodes: IntArray, cores: Int32Array
    ) -> tuple[Wishes, float, float]:
        """Book that ``nodes`` are on ``cores`` now; return where this part's nodes of a batch want to go, what all of them
        pay, and what they would pay more.
        """
        draw, arcs = self._draw, self._arcs[block]
        draw.s.pos[nodes] = cores
        to, propose = np.empty(arcs.nodes, np.int32), propose_cut if cut else propose_lines
        sums = parts(self._crew, arcs.nodes, offset, draw.stride, lambda a, b: propose(arcs, a, b, draw, to))
        wishes = _wishes(arcs.first, offset, arcs.nodes, draw.stride, to, draw.s.pos)
        return wishes, float(sum(paid for paid, _ in sums)), float(sum(more for _, more in sums))

    def begin_round(
        self, label: Int32Array, filled: AnyArray, pos: Int32Array, limit: float, stride: int, key: int
    ) -> None:
        """Learn in which cluster all nodes are, and how full these are, before a round of clustering; see ``Clusters``."""
        self._clusters = Clusters(
            np.array(label),
            np.array(filled),
            self._volume,
            self._domain,
            self._apart_ptr,
            np.array(pos),
            limit,
        )
        self._stride, self._key = stride, key

    def propose(
        self, block: int, offset: int, nodes: IntArray, labels: Int32Array
    ) -> tuple[Wishes, float, float]:
        """Book that ``nodes`` have moved to clusters ``labels``, in this order; return where this part's nodes of a batch want
        to go, and two zeros.
        """
        s, arcs, stride, key = self._clusters, self._arcs[block], self._stride, self._key
        move_to(s, nodes, labels)
        to = np.empty(arcs.nodes, np.int32)
        parts(
            self._crew, arcs.nodes, offset, stride,
            lambda a, b: propose_clusters(arcs, a, b, stride, s, key, to),
        )  # fmt: skip
        return _wishes(arcs.first, offset, arcs.nodes, stride, to, s.label), 0.0, 0.0


@kernel
def _wishes(first: int, begin: int, end: int, stride: int, to: Int32Array, now: AnyArray) -> Wishes:
    """Return the nodes of the runs at ``first + begin, first + begin + stride, ...`` that want to leave, and where to."""
    most = RUN * ((max(0, end - begin) + stride - 1) // stride)
    nodes, there = np.empty(most, np.int64), np.empty(most, np.int32)
    k = 0
    for group in range(begin, end, stride):
        for i in range(group, min(end, group + RUN)):
            if to[i] != now[first + i]:
                nodes[k], there[k] = first + i, to[i]
                k += 1
    return nodes[:k], there[:k]
