"""Layered networks of 2^k clusters, in the spirit of the synthetic family of Jin et al. (ASPLOS 2023).

That paper gives cluster counts (2^4 to 2^20 cores of 4096 neurons), not its layer sizes; these networks share
sizes with it, not edges.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nmsolve.model.generators.draws import row_blocks
from nmsolve.model.network import Connections, Network


def layered(
    exponent: int = 12,
    layers: int = 8,
    fan: int = 16,
    neurons: int = 4096,
    synapses: int = 256,
    seed: int = 1,
) -> Network:
    """Return ``2**exponent`` clusters in ``layers`` layers of nearly equal width; each feeds a band of the next layer.

    A cluster at relative position x of its layer sends to the ``fan`` clusters around position x of the next layer
    (to all, if the layer is no wider). Directed, multicast; a cluster's rate is ``neurons`` times a log-normal
    firing probability (median 0.05 per step), rounded up; it is also the weight of its edges.

    Parameters
    ----------
    exponent, layers, fan : see above
    neurons : size of every cluster; its ``synapses`` are ``neurons * synapses``, none in the first layer
    seed : seed of the rates
    """
    rng = np.random.default_rng(seed)
    n = 2**exponent
    layers = min(layers, n)
    cut = np.arange(layers + 1) * n // layers
    width = np.diff(cut)
    layer = np.repeat(np.arange(layers), width)
    rate = np.ceil(neurons * np.minimum(1.0, rng.lognormal(np.log(0.05), 0.5, n)))
    wide = np.append(width[1:], 0)[layer]  # of the layer that a cluster sends to
    degree = np.minimum(fan, wide)
    position = (np.arange(n) - cut[layer] + 0.5) * wide / width[layer]
    low = np.clip(np.floor(position - degree / 2 + 0.5).astype(np.int64), 0, wide - degree)
    low += cut[layer + 1]

    def blocks() -> Iterator[Connections]:
        for a, b in row_blocks(degree):
            indptr = np.concatenate([[0], np.cumsum(degree[a:b])])
            step = np.arange(indptr[-1]) - np.repeat(indptr[:-1], degree[a:b])
            target = (np.repeat(low[a:b], degree[a:b]) + step).astype(np.int32)
            yield Connections(indptr, target, np.repeat(rate[a:b], degree[a:b]))

    sizes = np.full((n, 2), neurons, np.int64)
    sizes[:, 1] = np.where(layer > 0, neurons * synapses, 0)
    return Network(
        n=n,
        name=f"layered-2^{exponent}-s{seed}",
        blocks=blocks(),
        rate=rate,
        resources=("neurons", "synapses"),
        sizes=sizes,
        unit=1.0,
    )
