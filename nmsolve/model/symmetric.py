"""The symmetric form of an ordinary graph: what two nodes send each other, in the rows of both."""

from __future__ import annotations

import numpy as np

from nmsolve.model.compiled import kernel
from nmsolve.model.types import FloatArray, Int32Array, IntArray


def symmetric_rows(
    indptr: IntArray, targets: Int32Array, weights: FloatArray
) -> tuple[IntArray, Int32Array, FloatArray] | None:
    """Return ``w_uv + w_vu`` as CSR with sorted rows, every pair in two of them; None if the rows given are not sorted.

    Besides the result it holds a number per node. SciPy's sum of a matrix and its transpose holds the transpose as well.

    Parameters
    ----------
    indptr, targets, weights : (n + 1,), (m,), (m,), a row per sending node

    Returns
    -------
    tuple
        (n + 1,), (k,), (k,) with k <= 2 m: two nodes that send to each other have one entry in each other's row
    """
    found: Int32Array = np.empty(2 * len(targets), np.int32)
    sums: FloatArray = np.empty(2 * len(targets))
    ptr = _merged(indptr, targets, weights, found, sums)
    if len(ptr) == 0:
        return None
    for array in (found, sums):
        array.resize(int(ptr[-1]), refcheck=False)  # in place: the rest is given back
    return ptr, found, sums


@kernel
def _merged(
    indptr: IntArray, targets: Int32Array, weights: FloatArray, found: Int32Array, sums: FloatArray
) -> IntArray:
    """Write the rows to ``found`` and ``sums`` (2 m,) and return their bounds, none if the rows given are not sorted."""
    n = len(indptr) - 1
    ptr = np.zeros(n + 1, np.int64)
    for u in range(n):
        ptr[u + 1] += indptr[u + 1] - indptr[u]
        for k in range(indptr[u], indptr[u + 1]):
            if k > indptr[u] and targets[k] <= targets[k - 1]:
                return np.zeros(0, np.int64)
            ptr[targets[k] + 1] += 1
    for u in range(n):
        ptr[u + 1] += ptr[u]
    end = ptr[:-1].copy()
    for u in range(n):  # what a node receives comes first; senders are met in rising order
        for k in range(indptr[u], indptr[u + 1]):
            v = targets[k]
            found[end[v]], sums[end[v]] = u, weights[k]
            end[v] += 1
    total = 0
    for u in range(n):
        i, j, to = end[u] - 1, indptr[u + 1] - 1, ptr[u + 1] - 1
        while j >= indptr[u]:  # from the end, where there is room
            if i >= ptr[u] and found[i] > targets[j]:
                found[to], sums[to] = found[i], sums[i]
                i -= 1
            elif i >= ptr[u] and found[i] == targets[j]:
                found[to], sums[to] = found[i], sums[i] + weights[j]
                i -= 1
                j -= 1
            else:
                found[to], sums[to] = targets[j], weights[j]
                j -= 1
            to -= 1
        begin = total
        for k in range(ptr[u], i + 1):  # what was not moved
            found[total], sums[total] = found[k], sums[k]
            total += 1
        for k in range(to + 1, ptr[u + 1]):
            found[total], sums[total] = found[k], sums[k]
            total += 1
        ptr[u] = begin
    ptr[n] = total
    return ptr
