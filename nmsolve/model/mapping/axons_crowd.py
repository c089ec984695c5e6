"""Incoming axon tables that are too small for a crowd: many nodes that many messages reach, counted in pairs.

Of ``P (s - 1) + 1`` nodes some core of ``P`` holds at least ``s``, wherever they are mapped. With d_i messages that reach node i
and c_ij that reach both i and j, nodes S are reached by at least ``sum_i d_i - sum_{i<j} c_ij`` distinct messages (Bonferroni
1936), so by at least the sum of ``d_i - 1/2 sum_{j in S} c_ij`` over S. No node's term is below ``g_i``, for which its s - 1
largest c_ij are taken, and no s terms are below the s smallest g_i.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nmsolve.model.graph import READERS
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray

#: Most nodes that are compared in pairs.
MOST = 2_000


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
    hope, best = 0.0, 0
    for s in range(2, (min(MOST, len(order)) - 1) // max(cores, 1) + 2):
        chosen = order[: cores * (s - 1) + 1]
        degrees = received[chosen]
        if int(degrees[-s:].sum()) <= limit:
            continue
        last, hope = hope, s * (degrees.mean() - (s - 1) / 2 * _mean_shared(problem, chosen))
        least = _least_messages(degrees, _shared(problem, chosen), s) if hope > limit else 0
        if least > limit:
            return len(chosen), s, least
        if least < best or hope < last:
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
    """Yield ``(rows, row, place in chosen)`` of every block: the distinct pairs of a message and a chosen group it reaches."""
    place = np.full(len(problem.group_of), -1, np.int64)
    place[chosen] = np.arange(len(chosen))
    for rows in problem.graph.blocks(READERS):
        at = place[problem.group_of[rows.targets]]
        row = np.repeat(np.arange(len(rows.source)), np.diff(rows.indptr))[at >= 0]
        at = at[at >= 0]
        if problem.group_of[-1] != problem.n - 1:  # targets of a row are distinct, their groups need not be
            row, at = np.divmod(np.unique(row * len(chosen) + at), len(chosen))
        yield len(rows.source), row, at


def _mean_shared(problem: MappingProblem, chosen: IntArray) -> float:
    """Return the mean c_ij over the pairs of chosen groups."""
    total = 0
    for count, row, _ in _reached(problem, chosen):
        reached = np.bincount(row, minlength=count)
        total += int((reached * (reached - 1)).sum())
    return total / (len(chosen) * (len(chosen) - 1))


def _shared(problem: MappingProblem, chosen: IntArray) -> IntArray:
    """Return (k, k) int64 numbers of messages that reach both of two chosen groups."""
    import scipy.sparse as sp

    out = np.zeros((len(chosen), len(chosen)), np.int64)
    for count, row, at in _reached(problem, chosen):
        ones = sp.csr_array((np.ones(len(row), np.int32), (row, at)), shape=(count, len(chosen)))
        out += (ones.T @ ones).toarray()
    return out
