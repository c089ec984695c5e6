"""A level with fewer connections: enough of every node's to see where it belongs, for coarsening in little time."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.external.levels import Resident
from nmsolve.heuristics.mapping.external.propose import hashed
from nmsolve.model.compiled import plain
from nmsolve.model.types import AnyArray, Int32Array, IntArray


@plain
def _ends(indptr: IntArray, most: int, key: int, out: IntArray) -> None:
    """Where each thinned row ends, into ``out`` (n + 1,)."""
    for u in range(len(indptr) - 1):
        degree = indptr[u + 1] - indptr[u]
        step = max(1, (degree + most - 1) // most)
        begin = np.int64(hashed(key, u) % np.uint64(step))
        out[u + 1] = out[u] + (degree - begin + step - 1) // step


@plain
def _fill(
    indptr: IntArray, neighbour: Int32Array, weight: AnyArray, most: int, key: int, ptr: IntArray, to: Int32Array,
    share: AnyArray,
) -> None:  # fmt: skip
    """Every ``step``-th connection of a row, from a random one of the first ``step`` on, and ``step`` times as heavy."""
    for u in range(len(indptr) - 1):
        degree = indptr[u + 1] - indptr[u]
        step = max(1, (degree + most - 1) // most)
        e = indptr[u] + np.int64(hashed(key, u) % np.uint64(step))
        for k in range(ptr[u], ptr[u + 1]):
            to[k], share[k] = neighbour[e], weight[e] * step
            e += step


def thinned(source: Resident, most: int, key: int) -> Resident:
    """At most ``most`` (> 0) connections of every node, evenly from its row; expected weights are those of all.

    A connection may be left at one of its ends only. ``key`` decides the random numbers.
    """
    ptr = np.zeros_like(source.indptr)
    _ends(source.indptr, most, key, ptr)
    to, share = np.empty(ptr[-1], np.int32), np.empty(ptr[-1], np.float32)
    _fill(source.indptr, source.neighbour, source.weight, most, key, ptr, to, share)
    return Resident.of(ptr, to, share)
