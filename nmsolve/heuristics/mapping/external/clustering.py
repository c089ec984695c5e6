"""Size-constrained label propagation, batch by batch: proposals from frozen labels, accepted in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.common.labels import number_labels
from nmsolve.heuristics.mapping.external.arcs import RUN, Arcs, Batch
from nmsolve.heuristics.mapping.external.levels import Level
from nmsolve.heuristics.mapping.external.propose import hashed
from nmsolve.heuristics.mapping.external.sweep import Crew, parts
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import AnyArray, Int32Array, IntArray

#: Every n-th run of nodes of a block decides at the same time. More than in refinement: all clusters start as single nodes.
STRIDE = 16


class Clusters(NamedTuple):
    """``label`` (n,) the cluster of every node, called by one of its nodes, and what may be together.

    ``filled`` (n,) volume of every cluster, at most ``limit``; ``volume``, ``domain``, ``apart_ptr`` of the nodes as in
    ``Level``; ``pos``: cores that clusters must not span, or empty.
    """

    label: Int32Array
    filled: AnyArray
    volume: AnyArray
    domain: Int32Array
    apart_ptr: IntArray
    pos: Int32Array
    limit: float


@kernel
def propose_clusters(
    arcs: Arcs, begin: int, end: int, stride: int, s: Clusters, key: int, to: Int32Array
) -> None:
    """The cluster with room that each node of a batch talks to most; its own if there is none, ties by chance."""
    first, indptr, neighbour = arcs.first, arcs.indptr, arcs.neighbour
    weight, label, filled = arcs.weight, s.label, s.filled
    volume, domain, apart_ptr = s.volume, s.domain, s.apart_ptr
    pos, limit = s.pos, s.limit
    most = 1
    for i in range(begin, end):
        most = max(most, indptr[i + 1] - indptr[i])
    slots = 4
    while slots < 2 * most:
        slots *= 2
    name, heard = np.full(slots, -1, np.int32), np.zeros(slots, np.float32)
    used, theirs = np.empty(most, np.int32), np.empty(most, np.int32)
    for group in range(begin, end, stride):
        for i in range(group, min(end, group + RUN)):
            u = first + i
            own = label[u]
            to[i] = own
            if apart_ptr[u + 1] > apart_ptr[u]:
                continue
            mask = 3
            while mask + 1 < 2 * (indptr[i + 1] - indptr[i]):
                mask = 2 * mask + 1
            k = 0
            degree = indptr[i + 1] - indptr[i]
            for t in range(
                degree
            ):  # apart from what follows, so that several can be on their way from memory
                theirs[t] = label[neighbour[indptr[i] + t]]
            for t in range(degree):
                c = theirs[t]
                j = (c * np.uint32(2654435769) >> np.uint32(7)) & mask
                while name[j] != c and name[j] >= 0:
                    j = (j + 1) & mask
                if name[j] < 0:
                    name[j] = c
                    used[k] = j
                    k += 1
                heard[j] += weight[indptr[i] + t]
            best, loudest, luck = own, np.float32(0.0), hashed(key, u)
            for t in range(k):
                c, f = name[used[t]], heard[used[t]]
                name[used[t]] = -1
                heard[used[t]] = 0.0
                if f < loudest:
                    continue
                if c != own:
                    if (
                        filled[c] + volume[u] > limit
                        or domain[c] != domain[u]
                        or apart_ptr[c + 1] > apart_ptr[c]
                    ):
                        continue
                    if len(pos) > 0 and pos[c] != pos[u]:
                        continue
                if f > loudest or (hashed(luck, c) & np.uint64(1)) == np.uint64(1):
                    best, loudest = c, f
            to[i] = best


@plain
def _accept(first: int, begin: int, end: int, stride: int, s: Clusters, to: Int32Array) -> int:
    """Move nodes to the clusters ``to`` that still have room. Returns the moves."""
    label, filled, volume = s.label, s.filled, s.volume
    limit = s.limit
    moves = 0
    for group in range(begin, end, stride):
        for i in range(group, min(end, group + RUN)):
            u = first + i
            if to[i] != label[u] and filled[to[i]] + volume[u] <= limit:
                filled[label[u]] -= volume[u]
                filled[to[i]] += volume[u]
                label[u] = to[i]
                moves += 1
    return moves


@plain
def move_to(s: Clusters, nodes: IntArray, labels: Int32Array) -> None:
    """Move ``nodes`` to the clusters ``labels``, one after the other, as :func:`cluster` did elsewhere."""
    for k in range(len(nodes)):
        u = nodes[k]
        s.filled[s.label[u]] -= s.volume[u]
        s.filled[labels[k]] += s.volume[u]
        s.label[u] = labels[k]


def cluster(
    level: Level, limit: float, key: int, crew: Crew, pos: Int32Array | None = None, rounds: int = 3
) -> tuple[Int32Array, int]:
    """Cluster (n,) int32 of every node, numbered from 0, and how many there are.

    Parameters
    ----------
    limit : the most volume (share of a core) that a cluster may have
    key : decides the random numbers
    pos : (n,) cores; clusters then never span cores
    """
    label = np.arange(level.n, dtype=np.int32)
    where = np.zeros(0, np.int32) if pos is None else pos
    s = Clusters(label, level.volume.copy(), level.volume, level.domain, level.apart_ptr, where, float(limit))
    stride = STRIDE * RUN
    for turn in range(rounds):
        moves, luck = 0, key + turn
        away = level.away if level.machines else None
        for batch in (
            _proposals(level, s, luck, crew)
            if away is None
            else away.proposals(label, s.filled, where, s.limit, stride, luck)
        ):
            if crew.should_stop():
                return label, number_labels(label)
            moves += _accept(batch.first, batch.offset, batch.nodes, stride, s, batch.to)
        if moves < level.n // 50:
            break
    return label, number_labels(label)


def _proposals(level: Level, s: Clusters, key: int, crew: Crew) -> Iterator[Batch]:
    """Yield one batch of nodes after the other, as they would cluster when it is made."""
    stride, to = STRIDE * RUN, np.empty(0, np.int32)

    def propose(arcs: Arcs, to: Int32Array) -> Callable[[int, int], None]:
        return lambda begin, end: propose_clusters(arcs, begin, end, stride, s, key, to)

    for arcs in level.source.blocks():
        to = to if len(to) >= arcs.nodes else np.empty(arcs.nodes, np.int32)
        for offset in range(0, min(stride, arcs.nodes), RUN):
            parts(crew, arcs.nodes, offset, stride, propose(arcs, to))
            yield Batch(arcs.first, arcs.nodes, offset, to)
