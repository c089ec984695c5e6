"""A dense network by a sample of its connections: searched in a fraction of the time; a descent on the whole has to follow.

Where a node has hundreds of neighbours, a sample of them pulls it the same way. A connection of weight w is kept with the
probability min(1, w / T), and then weighs max(w, T): every mapping has the same expected cost as on the whole network, and the
variances of the weights add up to the least for that expected number of them (threshold sampling: Duffield, Lund and Thorup, IEEE
Trans. Inf. Theory 51(5), 2005).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nmsolve.heuristics.mapping.multilevel.levels import Net
from nmsolve.heuristics.rng import next_bits
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.splitmix import mix
from nmsolve.model.types import AnyArray, FloatArray, Int32Array, IntArray

#: The mean number of neighbours in a sample. Networks with fewer than twice as many stay whole.
NEIGHBOURS = 64
#: The threshold is found on this many connections.
LOOKED_AT = 100_000


def is_dense(net: Net) -> bool:
    """Return whether the network is searched by samples."""
    return len(net.indices) >= 2 * NEIGHBOURS * len(net.volume)


def thinned(net: Net, rng: AnyArray) -> Net:
    """The network with about :data:`NEIGHBOURS` neighbours per node, or ``net`` itself if it has few enough."""
    if not is_dense(net):
        return net
    most = NEIGHBOURS * len(net.volume)
    some = net.weights[:: max(1, len(net.indices) // LOOKED_AT)].astype(np.float64)
    least = threshold(some, most / len(net.indices))
    ptr, idx, weights = _sample(net.indptr, net.indices, net.weights, least, rng)
    return net._replace(indptr=ptr, indices=idx, weights=weights)


def threshold(weights: FloatArray, share: float) -> float:
    """The T for which min(1, w / T) has the mean ``share`` (0 to 1) over ``weights`` (k,), which are not negative."""
    rising = np.sort(weights[weights > 0])
    sums, left = np.cumsum(rising), np.arange(len(rising) - 1, -1, -1)
    kept = share * len(weights)
    # those up to T: with T = rising[i] this sum is kept
    k = int(np.count_nonzero(sums / rising + left >= kept))
    return float(sums[k - 1] / (kept - (len(rising) - k))) if k else 0.0


@kernel
def _sample(
    indptr: IntArray, indices: Int32Array, weights: AnyArray, least: float, rng: AnyArray
) -> tuple[IntArray, Int32Array, AnyArray]:
    """CSR of the connections that are kept; both directions draw the same number."""
    n, key = len(indptr) - 1, next_bits(rng)
    ptr = np.zeros(n + 1, np.int64)
    for u in range(n):
        count = 0
        for e in range(indptr[u], indptr[u + 1]):
            if _kept(u, indices[e], weights[e], least, key):
                count += 1
        ptr[u + 1] = ptr[u] + count
    idx, w = np.empty(ptr[n], np.int32), np.empty(ptr[n], np.float32)
    end = 0
    for u in range(n):
        for e in range(indptr[u], indptr[u + 1]):
            if _kept(u, indices[e], weights[e], least, key):
                idx[end] = indices[e]
                w[end] = max(weights[e], np.float32(least))
                end += 1
    return ptr, idx, w


@plain
def _kept(u: int, v: int, weight: float, least: float, key: Any) -> bool:
    """Whether the connection between two nodes is in the sample of this key."""
    if weight >= least:
        return True
    pair = (np.uint64(min(u, v)) << np.uint64(32)) | np.uint64(max(u, v))
    return float(mix(key ^ mix(pair)) >> np.uint64(11)) * (least / 9007199254740992.0) < weight
