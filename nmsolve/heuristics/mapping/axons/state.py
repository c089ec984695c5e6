"""The counts behind axon tables: which message reaches which core, and how many entries that takes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.common.counts import add_pin, table_sizes
from nmsolve.model.compiled import kernel
from nmsolve.model.mapping.axons import Axons
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import Int32Array, IntArray, starts


class AxonState(NamedTuple):
    """Axon entries of one mapping; a tuple of flat arrays, changed in place.

    Fixed: ``on``, whether any limit could bind (otherwise everything else is empty); ``most`` (2,), the entries a core has
    for incoming and for outgoing messages; ``source`` (rows,); the messages that reach every node, ``in_ptr``/``in_row``
    (a message that reaches a node merged with its source reaches its source).

    Changing: ``core`` (n,), shared with whoever moves the nodes; nodes reached per message and core in ``base``, ``keys``,
    ``hits`` (:mod:`nmsolve.heuristics.mapping.common.counts`); ``sent`` (n,), cores reached by the messages of every node,
    summed; ``used`` (2, P), incoming and outgoing entries of every core; ``excess`` (2,), how many of both are too
    many, and how many incoming ones (as many as outgoing) there are.
    """

    on: bool
    most: IntArray
    source: Int32Array
    in_ptr: IntArray
    in_row: Int32Array
    core: IntArray
    base: IntArray
    keys: Int32Array
    hits: Int32Array
    sent: IntArray
    used: IntArray
    excess: IntArray


def build_axons(problem: MappingProblem, core: IntArray) -> AxonState:
    """The counts of mapping ``core`` (n,) int64, which is kept (not copied) as the state's own."""
    limits, none = problem.axons, np.zeros(0, np.int32)
    if limits is None:
        no = np.zeros(0, np.int64)
        return AxonState(False, no, none, no, none, core, no, none, none, no, np.zeros((2, 0), np.int64), no)
    graph = problem.graph
    row = np.repeat(np.arange(graph.rows, dtype=np.int32), np.diff(graph.indptr))
    own = np.flatnonzero(limits.inner).astype(np.int32)
    node, row = np.concatenate([graph.targets, graph.source[own]]), np.concatenate([row, own])
    in_ptr = starts(np.bincount(node, minlength=problem.n))
    base = starts(_sizes(problem, limits))
    state = AxonState(
        on=True,
        most=np.array([limits.most_in, limits.most_out], np.int64),
        source=np.array(graph.source),
        in_ptr=in_ptr,
        in_row=row[np.argsort(node, kind="stable")],
        core=core,
        base=base,
        keys=np.zeros(int(base[-1]), np.int32),
        hits=np.zeros(int(base[-1]), np.int32),
        sent=np.zeros(problem.n, np.int64),
        used=np.zeros((2, problem.cores), np.int64),
        excess=np.zeros(2, np.int64),
    )
    recount(state)
    return state


def axon_bytes(problem: MappingProblem) -> int:
    """Memory of :func:`build_axons`, in bytes."""
    limits = problem.axons
    return 0 if limits is None else 8 * int(_sizes(problem, limits).sum()) + 16 * problem.graph.m


def _sizes(problem: MappingProblem, limits: Axons) -> IntArray:
    return table_sizes(np.diff(problem.graph.indptr) + limits.inner, problem.cores)


def recount(a: AxonState) -> None:
    """Put the counts at the mapping ``a.core``."""
    if a.on:
        a.keys[:] = -1
        for zero in (a.hits, a.sent, a.used, a.excess):
            zero[...] = 0
        _fill(a)


@kernel
def _fill(a: AxonState) -> None:
    cores = a.used.shape[1]
    for u in range(len(a.core)):
        for i in range(a.in_ptr[u], a.in_ptr[u + 1]):
            e = a.in_row[i]
            if add_pin(a.keys, a.base, a.hits, e, a.core[u], cores):
                a.used[0, a.core[u]] += 1
                a.used[1, a.core[a.source[e]]] += 1
                a.sent[a.source[e]] += 1
    a.excess[1] = a.used[0].sum()
    for side in range(2):
        for p in range(cores):
            a.excess[0] += max(0, a.used[side, p] - a.most[side])
