"""Messages between the same two cores added up: with many messages, most scores need only these sums."""

from __future__ import annotations

import numpy as np

from nmsolve.hw.kernels import add_traffic
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.graph import Rows
from nmsolve.model.types import AnyArray, FloatArray, IntArray


def summed(rows: Rows, core: IntArray, cores: int) -> Rows | None:
    """What cores send each other in all: row ``p`` of core ``p``, whose "nodes" are cores; connections without traffic are
    left out. None where that is not less than the messages themselves, or where one is multicast.

    Parameters
    ----------
    core : (n,) core of every node
    cores : number of cores
    """
    if len(rows.targets) <= cores**2 or rows.multicast.any():
        return None
    total = np.zeros((cores, cores))
    add_traffic(rows.fixed, core, total)
    start, end = np.nonzero(total)
    indptr = np.searchsorted(start, np.arange(cores + 1)).astype(np.int64)
    source, none = np.arange(cores, dtype=np.int32), np.zeros(cores, bool)
    return Rows(0, indptr, source, end.astype(np.int32), total[start, end], none, np.zeros(cores))


@plain
def add_crossings(rows: Rows, core: IntArray, crosses: AnyArray, share: FloatArray) -> None:
    """Add the traffic of every message to ``share[row, k]`` for each link ``k`` whose bit is set in ``crosses[p, q]``."""
    indptr, source, targets, weights = rows.indptr, rows.source, rows.targets, rows.weights
    for i in range(source.shape[0]):
        p = core[source[i]]
        for e in range(indptr[i], indptr[i + 1]):
            links = crosses[p, core[targets[e]]]
            k = 0
            while links != 0:
                if links & 1:
                    share[i, k] += weights[e]
                links >>= 1
                k += 1


@kernel
def add_reach(rows: Rows, core: IntArray, axons: IntArray) -> float:
    """Count every message once at each distinct core with targets of it (``axons[0]``) and as often at its sender's core
    (``axons[1]``). Returns the sum of rate times cores other than the sender's: the connectivity.
    """
    indptr, source, targets, rate = rows.indptr, rows.source, rows.targets, rows.rate
    met, total = np.full(axons.shape[1], -1, np.int64), 0.0
    for i in range(source.shape[0]):
        p, remote = core[source[i]], 0
        for e in range(indptr[i], indptr[i + 1]):
            q = core[targets[e]]
            if met[q] != i:
                met[q] = i
                axons[0, q] += 1
                axons[1, p] += 1
                remote += q != p
        total += rate[i] * remote
    return total
