"""The graph of clusters: connections inside vanish, parallel ones add up."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.common.labels import members
from nmsolve.heuristics.mapping.common.nodes import merged_nodes
from nmsolve.heuristics.mapping.external.levels import Level, Resident, Source
from nmsolve.heuristics.mapping.external.sweep import Crew, Stopped
from nmsolve.model.compiled import plain
from nmsolve.model.types import AnyArray, Int32Array, IntArray, starts

#: Connections of one piece of a contraction: what one thread does at a time.
PIECE = 1 << 21


@plain
def _merge(
    indptr: IntArray, neighbour: Int32Array, weight: AnyArray, label: Int32Array, start: IntArray, member: Int32Array,
    first: int, last: int, seen: IntArray, to: Int32Array, add: AnyArray, degree: IntArray,
) -> int:  # fmt: skip
    """Rows of the clusters ``first`` to ``last`` into ``to`` and ``add``; ``seen`` (k,) is all -1 before and after."""
    end = 0
    for c in range(first, last):
        begin = end
        for i in range(start[c], start[c + 1]):
            for e in range(indptr[member[i]], indptr[member[i] + 1]):
                d = label[neighbour[e]]
                if d == c:
                    continue
                if seen[d] < 0:
                    seen[d] = end
                    to[end] = d
                    add[end] = 0.0
                    end += 1
                add[seen[d]] += weight[e]
        for e in range(begin, end):
            seen[to[e]] = -1
        degree[c] = end - begin
    return end


def contract_source(fine: Resident, label: Int32Array, k: int, crew: Crew) -> Resident:
    """Connections of the clusters, merged piece by piece in parallel; rows unsorted.

    The result is written into reserved but untouched memory, of which only what is used is ever real.
    """
    start, member = members(label, k)
    degree_of = np.diff(fine.indptr)
    volume = np.concatenate([[0], np.cumsum(degree_of[member])])[start]
    goal = np.arange(1, max(1, round(fine.arcs / PIECE))) * PIECE
    cuts = np.unique(np.concatenate([[0], np.searchsorted(volume, goal), [k]]))
    degree = np.zeros(k, np.int64)
    neighbour, weight = np.empty(fine.arcs, np.int32), np.empty(fine.arcs, np.float32)

    def piece(b: int) -> tuple[Int32Array, AnyArray]:
        first, last = int(cuts[b]), int(cuts[b + 1])
        most = int(volume[last] - volume[first])
        to, add = np.empty(most, np.int32), np.empty(most, np.float32)
        seen = np.full(k, -1, np.int64)
        used = _merge(
            fine.indptr, fine.neighbour, fine.weight, label, start, member, first, last, seen, to, add, degree
        )  # fmt: skip
        return to[:used], add[:used]

    end = 0
    for begin in range(0, len(cuts) - 1, crew.workers):
        if crew.should_stop():
            raise Stopped
        numbers = range(begin, min(begin + crew.workers, len(cuts) - 1))
        for to, add in map(piece, numbers) if crew.pool is None else crew.pool.map(piece, numbers):
            neighbour[end : end + len(to)] = to
            weight[end : end + len(to)] = add
            end += len(to)
    neighbour.resize(end, refcheck=False)
    weight.resize(end, refcheck=False)
    indptr = starts(degree)
    return Resident.of(indptr, neighbour, weight)


def contract(fine: Level, label: Int32Array, k: int, source: Source) -> Level:
    """The level of ``k`` clusters with the connections ``source``; ``label`` is what :func:`.clustering.cluster` returned."""
    nodes = fine.sizes, fine.volume, fine.domain, fine.apart_ptr, fine.apart
    return Level(source, *merged_nodes(nodes, label, k))
