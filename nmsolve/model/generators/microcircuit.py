"""The cortical microcircuit of Potjans and Diesmann (Cerebral Cortex 24:785-806, 2014).

Populations, connection probabilities and mean rates as in NEST's ``Potjans_2014/network_params.py``.
"""

from __future__ import annotations

import numpy as np

from nmsolve.model.graph import LogicGraph
from nmsolve.model.types import FloatArray, Int32Array, IntArray

POPULATIONS = ("L23E", "L23I", "L4E", "L4I", "L5E", "L5I", "L6E", "L6I")
NEURONS = (20683, 5834, 21915, 5479, 4850, 1065, 14395, 2948)
#: Mean firing rate of each population in spikes per second.
RATES = (0.971, 2.868, 4.746, 5.396, 8.142, 9.078, 0.991, 7.523)
#: Probability that a pair is connected at all; row = target population, column = source population.
PROBABILITIES = (
    (0.1009, 0.1689, 0.0437, 0.0818, 0.0323, 0.0, 0.0076, 0.0),
    (0.1346, 0.1371, 0.0316, 0.0515, 0.0755, 0.0, 0.0042, 0.0),
    (0.0077, 0.0059, 0.0497, 0.1350, 0.0067, 0.0003, 0.0453, 0.0),
    (0.0691, 0.0029, 0.0794, 0.1597, 0.0033, 0.0, 0.1057, 0.0),
    (0.1004, 0.0622, 0.0505, 0.0057, 0.0831, 0.3726, 0.0204, 0.0),
    (0.0548, 0.0269, 0.0257, 0.0022, 0.0600, 0.3158, 0.0086, 0.0),
    (0.0156, 0.0066, 0.0211, 0.0166, 0.0572, 0.0197, 0.0396, 0.2252),
    (0.0364, 0.0010, 0.0034, 0.0005, 0.0277, 0.0080, 0.0658, 0.1443),
)


def synapse_counts(neurons: IntArray) -> IntArray:
    """(8, 8) synapses drawn from each source (column) to each target population (row).

    ``K = ln(1 - p) / ln(1 - 1 / (N_source N_target))``: so many draws with replacement connect a given pair with
    probability ``p``. At full size the 64 numbers add up to 298,880,970 after rounding.
    """
    pairs = neurons[:, None].astype(np.float64) * neurons[None, :]
    draws = np.log1p(-np.array(PROBABILITIES)) / np.log1p(-1.0 / np.maximum(pairs, 2.0))
    out: IntArray = np.rint(draws).astype(np.int64)
    return out


def microcircuit(scale: float = 0.05, seed: int = 1) -> LogicGraph:
    """The microcircuit with ``scale`` times its neurons and unchanged connection probabilities.

    Directed; every neuron is a multicast node whose rate is its population's mean rate (Hz), which is also the
    weight of each of its edges. Several synapses between the same two neurons are one edge; all of them count in
    the target's ``synapses``. Synapses of a neuron onto itself count there too, but are no traffic. Node ids are
    ``L4E/17`` and the like.

    Parameters
    ----------
    scale : fraction of the neurons of every population, at least one each
    seed : seed of the random numbers
    """
    rng = np.random.default_rng(seed)
    neurons = np.maximum(1, np.rint(np.array(NEURONS) * scale)).astype(np.int64)
    first = np.concatenate([[0], np.cumsum(neurons)])
    n = int(first[-1])
    counts = synapse_counts(neurons)
    synapses = np.zeros(n, np.int64)
    degree: list[IntArray] = []
    targets: list[Int32Array] = []
    weights: list[FloatArray] = []
    for source in range(len(POPULATIONS)):
        key = _draw(rng, source, neurons, first, counts, synapses)
        degree.append(np.bincount(key // n, minlength=neurons[source]))
        targets.append((key % n).astype(np.int32))
        weights.append(np.full(len(key), RATES[source]))
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(np.concatenate(degree), out=indptr[1:])
    return LogicGraph(
        n=n,
        indptr=indptr,
        targets=np.concatenate(targets),
        weights=np.concatenate(weights),
        source=np.arange(n, dtype=np.int32),
        multicast=np.ones(n, bool),
        rate=np.repeat(np.array(RATES), neurons),
        resources=("neurons", "synapses"),
        sizes=np.stack([np.ones(n, np.int64), synapses], axis=1),
        ids=tuple(f"{name}/{i}" for name, k in zip(POPULATIONS, neurons, strict=True) for i in range(k)),
        name=f"microcircuit-{scale:g}-s{seed}",
    )


def _draw(
    rng: np.random.Generator,
    source: int,
    neurons: IntArray,
    first: IntArray,
    counts: IntArray,
    synapses: IntArray,
) -> IntArray:
    """Synapses of one source population as sorted, distinct ``neuron * n + target``; adds to ``synapses``."""
    n = int(first[-1])
    parts = []
    for target, k in enumerate(counts[:, source].tolist()):
        sender = rng.integers(0, neurons[source], k)
        receiver = rng.integers(first[target], first[target + 1], k)
        synapses += np.bincount(receiver, minlength=n)
        parts.append(sender * n + receiver)
    key = np.concatenate(parts)
    key.sort()
    distinct = np.ones(len(key), bool)
    distinct[1:] = key[1:] != key[:-1]
    sender, receiver = np.divmod(key, n)
    out: IntArray = key[distinct & (sender + first[source] != receiver)]
    return out
