"""Numbers of clusters."""

from __future__ import annotations

import numpy as np

from nmsolve.model.compiled import kernel
from nmsolve.model.types import Int32Array


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
