"""Capacity check of incoming axon tables for many nodes with shared sources, counted in pairs.

Of ``P (s - 1) + 1`` nodes some core of ``P`` holds at least ``s``, wherever they are mapped. With d_i messages that reach node i
and c_ij that reach both i and j, nodes S are reached by at least ``sum_i d_i - sum_{i<j} c_ij`` distinct messages (Bonferroni
1936), so by at least the sum of ``d_i - 1/2 sum_{j in S} c_ij`` over S. No node's term is below ``g_i``, for which its s - 1
largest c_ij are taken, and no s terms are below the s smallest g_i.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nmsolve.model.graph import pieces
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray

#: Most nodes that are compared in pairs, and the largest ``s``.
MOST, LARGEST = 2_000, 100


def crowd(problem: MappingProblem, received: IntArray, limit: int) -> tuple[int, int, int] | None:
    """Return ``(nodes, s, messages)``: s of these nodes share a core in any mapping, and more than ``limit`` messages reach them.

    Parameters
    ----------
    received : (groups,) distinct messages that reach every group of :attr:`MappingProblem.group_of`; the busiest are looked at
    limit : entries for incoming messages that a core has

    Notes
    -----
    None proves nothing. Crowds of growing ``s`` are tried until the count falls. The s smallest g_i add up to no more than s
    times the mean g_i, which is largest if all c_ij are alike: where even that is too little, no pair is looked at.
    """
    cores = int(problem.machine.usable.sum())
    order = np.argsort(-received, kind="stable")
    sizes = np.arange(2, min(LARGEST, (min(MOST, len(order)) - 1) // max(cores, 1) + 1) + 1)
    counts = cores * (sizes - 1) + 1
    if all(received[order[k - s : k]].sum() <= limit for s, k in zip(sizes, counts, strict=True)):
        return None
    mean, best = _mean_shared(problem, order, counts), 0
    for s, k, shared in zip(sizes.tolist(), counts.tolist(), mean.tolist(), strict=True):
        degrees = received[order[:k]]
        if min(s * (degrees.mean() - (s - 1) / 2 * shared), degrees[-s:].sum()) <= limit:
            continue
        least = _least_messages(degrees, _shared(problem, order[:k]), s)
        if least > limit:
            return k, s, least
        if least < best:
            return None
        best = least
    return None


def _least_messages(degrees: IntArray, shared: IntArray, s: int) -> int:
    """Return a number of distinct messages that reach any ``s`` of the nodes, at least; ``shared[i,j]`` reach both i and j."""
    np.fill_diagonal(shared, 0)
    most = np.partition(shared, len(degrees) - (s - 1), axis=1)[:, len(degrees) - (s - 1) :].sum(axis=1)
    twice = 2 * degrees - most
    return -(-int(np.sort(twice)[:s].sum()) // 2)


def _reached(problem: MappingProblem, chosen: IntArray) -> Iterator[tuple[int, IntArray, IntArray]]:
    """Yield ``(rows, row, place in chosen)`` piece by piece: the distinct pairs of a message and a chosen group it reaches."""
    place = np.full(len(problem.group_of), -1, np.int64)
    place[chosen] = np.arange(len(chosen))
    for rows, row in pieces(problem.graph):
        at = place[problem.group_of[rows.targets]]
        row, at = row[at >= 0], at[at >= 0]
        if problem.group_of[-1] != problem.n - 1:  # targets of a row are distinct, their groups need not be
            row, at = np.divmod(np.unique(row * len(chosen) + at), len(chosen))
        yield len(rows.source), row, at


def _mean_shared(problem: MappingProblem, order: IntArray, counts: IntArray) -> FloatArray:
    """Return the mean c_ij over the pairs of the first ``counts[k]`` groups of ``order``, for every k; counts rise."""
    pairs = np.zeros(len(counts))
    first = np.searchsorted(counts, np.arange(counts[-1]), side="right")  # of the counts that hold a place
    for rows, row, at in _reached(problem, order[: counts[-1]]):
        new = np.bincount(row * len(counts) + first[at], minlength=rows * len(counts))
        reached = new.reshape(rows, len(counts)).cumsum(axis=1).astype(float)
        pairs += (reached * (reached - 1)).sum(axis=0)
    return pairs / (counts * (counts - 1))


def _shared(problem: MappingProblem, chosen: IntArray) -> IntArray:
    """Return (k, k) int64 numbers of messages that reach both of two chosen groups."""
    import scipy.sparse as sp

    messages, places, begin = [], [], 0
    for rows, row, at in _reached(problem, chosen):
        messages.append(begin + row)
        places.append(at)
        begin += rows
    row, at = np.concatenate(messages), np.concatenate(places)
    ones = sp.csr_array((np.ones(len(row), np.int64), (row, at)), shape=(begin, len(chosen)))
    out: IntArray = (ones.T @ ones).toarray()
    return out
