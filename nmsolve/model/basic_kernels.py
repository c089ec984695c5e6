"""What kernels do with arrays all the time, compiled once for all of them.

Numba has each of this too, but compiles its own version anew in every process: four CPU seconds for the first ``a[:] = b`` (it
includes the text of an error), two for the first ``np.argsort``. These lie in the cache.
"""

from __future__ import annotations

import numpy as np

from nmsolve.model.compiled import embedded, kernel
from nmsolve.model.types import AnyArray, IntArray

#: Up to this length a run is sorted by insertion.
RUN = 12


@embedded
def copy_to(to: AnyArray, values: AnyArray) -> None:
    """Write ``values`` (n,) to the first n elements of ``to``; the two do not overlap."""
    for i in range(values.shape[0]):
        to[i] = values[i]


@kernel
def stable_order(key: AnyArray) -> IntArray:
    """(n,) places of ``key`` (n,) in rising order, equal ones as they come; there is no NaN."""
    n = key.shape[0]
    order, other = np.empty(n, np.int64), np.empty(n, np.int64)
    for start in range(0, n, RUN):
        for i in range(start, min(start + RUN, n)):
            j = i
            while j > start and key[order[j - 1]] > key[i]:
                order[j] = order[j - 1]
                j -= 1
            order[j] = i
    width = RUN
    while width < n:
        for start in range(0, n, 2 * width):
            middle, end = min(start + width, n), min(start + 2 * width, n)
            i, j = start, middle
            for k in range(start, end):
                if j == end or (i < middle and key[order[i]] <= key[order[j]]):
                    other[k] = order[i]
                    i += 1
                else:
                    other[k] = order[j]
                    j += 1
        order, other = other, order
        width *= 2
    return order
