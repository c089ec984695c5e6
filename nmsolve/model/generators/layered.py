"""Layered networks of 2^k clusters, in the spirit of the synthetic family of Jin et al. (ASPLOS 2023).

That paper gives cluster counts (2^4 to 2^20 cores of 4096 neurons), not its layer sizes; these networks share
sizes with it, not edges.
"""

from __future__ import annotations

import numpy as np

from nmsolve.model.graph import LogicGraph


def layered(
    exponent: int = 12,
    layers: int = 8,
    fan: int = 16,
    neurons: int = 4096,
    synapses: int = 256,
    seed: int = 1,
) -> LogicGraph:
    """``2**exponent`` clusters in ``layers`` layers of nearly equal width; each feeds a band of the next layer.

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
    senders = np.flatnonzero(layer < layers - 1)
    wide = width[layer[senders] + 1]
    degree = np.minimum(fan, wide)
    centre = (senders - cut[layer[senders]] + 0.5) * wide / width[layer[senders]]
    low = np.clip(np.floor(centre - degree / 2 + 0.5).astype(np.int64), 0, wide - degree)
    source = np.repeat(senders, degree)
    step = np.arange(len(source)) - np.repeat(np.cumsum(degree) - degree, degree)
    target = np.repeat(cut[layer[senders] + 1] + low, degree) + step
    sizes = np.full((n, 2), neurons, np.int64)
    sizes[:, 1] = np.where(layer > 0, neurons * synapses, 0)
    return LogicGraph.from_edges(
        n,
        source,
        target,
        rate[source],
        multicast=np.ones(n, bool),
        rate=rate,
        resources=("neurons", "synapses"),
        sizes=sizes,
        name=f"layered-2^{exponent}-s{seed}",
    )
