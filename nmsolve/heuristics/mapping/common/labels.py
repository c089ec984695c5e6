"""Numbers of clusters, and who is in them."""

from __future__ import annotations

import numpy as np

from nmsolve.model.compiled import kernel
from nmsolve.model.types import Int32Array, IntArray


@kernel
def number_labels(label: Int32Array) -> int:
    """Rename labels (n,), each in 0..n-1, to 0..k-1 in order of first use, in place. Returns k."""
    name = np.full(len(label), -1, np.int32)
    k = 0
    for u in range(len(label)):
        if name[label[u]] < 0:
            name[label[u]] = k
            k += 1
        label[u] = name[label[u]]
    return k


@kernel
def members(label: Int32Array, k: int) -> tuple[IntArray, Int32Array]:
    """Nodes of every cluster: ``member[start[c]:start[c + 1]]``, in order."""
    start = np.zeros(k + 1, np.int64)
    for c in label:
        start[c + 1] += 1
    for c in range(k):
        start[c + 1] += start[c]
    member, end = np.empty(len(label), np.int32), start[:-1].copy()
    for u in range(len(label)):
        member[end[label[u]]] = u
        end[label[u]] += 1
    return start, member
