"""The finest level in memory, made straight from a graph's messages: 8 bytes per arc and no detour."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from nmsolve.heuristics.mapping.common.nodes import nodes_of
from nmsolve.heuristics.mapping.external.levels import Level, Resident, Source
from nmsolve.heuristics.mapping.external.sweep import Crew, Stopped
from nmsolve.model.compiled import plain
from nmsolve.model.graph import LogicGraph, Rows
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import AnyArray, FloatArray, Int32Array, IntArray

#: Connections between two looks at the clock.
PIECE = 1 << 22


@plain
def _count(indptr: IntArray, source: Int32Array, targets: Int32Array, degree: IntArray) -> None:
    """Add every connection to the degree of both ends; ``degree`` (n + 1,) is shifted by one."""
    for i in range(len(indptr) - 1):
        for e in range(indptr[i], indptr[i + 1]):
            if targets[e] != source[i]:
                degree[source[i] + 1] += 1
                degree[targets[e] + 1] += 1


@plain
def _fill(
    indptr: IntArray, source: Int32Array, targets: Int32Array, weights: FloatArray, end: IntArray,
    neighbour: Int32Array, weight: AnyArray,
) -> None:  # fmt: skip
    """Append every connection to the row of both ends; ``end`` (n,) is where each row ends so far."""
    for i in range(len(indptr) - 1):
        u = source[i]
        own = end[u]
        for e in range(indptr[i], indptr[i + 1]):
            v = targets[e]
            if v == u:
                continue
            w = np.float32(weights[e])
            neighbour[own] = v
            weight[own] = w
            own += 1
            neighbour[end[v]] = u
            weight[end[v]] = w
            end[v] += 1
        end[u] = own


def symmetric(graph: LogicGraph, crew: Crew) -> Resident:
    """The traffic of ``graph`` with every connection at both ends: ``w_uv`` and ``w_vu`` as separate entries.

    Two passes over the messages; peak memory is the result and 16 bytes per node.

    Raises
    ------
    Stopped : the run was told to stop
    """
    indptr = np.zeros(graph.n + 1, np.int64)
    for rows in _pieces(graph, crew):
        _count(rows.indptr, rows.source, rows.targets, indptr)
    np.cumsum(indptr, out=indptr)
    neighbour, weight = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
    end = indptr[:-1].copy()
    for rows in _pieces(graph, crew):
        _fill(rows.indptr, rows.source, rows.targets, rows.weights, end, neighbour, weight)
    return Resident.of(indptr, neighbour, weight)


def _pieces(graph: LogicGraph, crew: Crew) -> Iterator[Rows]:
    """The messages in pieces of at most about :data:`PIECE` connections, until the run is told to stop."""
    for rows in graph.blocks(crew.workers):
        goal = np.arange(rows.indptr[0] + PIECE, rows.indptr[-1], PIECE)
        cuts = np.unique(np.concatenate([[0], np.searchsorted(rows.indptr, goal), [len(rows.source)]]))
        for a, b in pairwise(cuts.tolist()):
            if crew.should_stop():
                raise Stopped
            yield rows._replace(indptr=rows.indptr[a : b + 1], source=rows.source[a:b])


def finest(problem: MappingProblem, source: Source) -> Level:
    """Level 0: the problem's nodes with the connections of ``source``."""
    return Level(source, *nodes_of(problem))
