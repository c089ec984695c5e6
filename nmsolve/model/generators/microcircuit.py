"""The cortical microcircuit of Potjans and Diesmann (Cerebral Cortex 24:785-806, 2014).

Populations, connection probabilities and mean rates as in NEST's ``Potjans_2014/network_params.py``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nmsolve.model.generators.draws import mark, pieces, row_blocks
from nmsolve.model.generators.steps import SECOND, step_name
from nmsolve.model.graph import NodeKinds
from nmsolve.model.network import Connections, Network
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
    """Return (8, 8) synapses drawn from each source (column) to each target population (row).

    ``K = ln(1 - p) / ln(1 - 1 / (N_source N_target))``: this many draws with replacement connect a given pair with
    probability ``p``. At full size the 64 numbers add up to 298,880,970 after rounding.
    """
    pairs = neurons[:, None].astype(np.float64) * neurons[None, :]
    draws = np.log1p(-np.array(PROBABILITIES)) / np.log1p(-1.0 / np.maximum(pairs, 2.0))
    out: IntArray = np.rint(draws).astype(np.int64)
    return out


def microcircuit(scale: float = 0.05, seed: int = 1, kinds: int = 0, step: float = SECOND) -> Network:
    """Return the microcircuit with ``scale`` times its neurons and unchanged connection probabilities.

    Directed; every neuron is a multicast node whose rate is its population's mean rate (spikes per step), which is also the
    weight of each of its edges. Several synapses between the same two neurons are one edge; all of them count in
    the target's ``synapses``. Synapses of a neuron onto itself count there too, but are not traffic. Node ids are
    ``L4E/17`` and the like.

    Parameters
    ----------
    scale : fraction of the neurons of every population, at least one each
    seed : seed of the random numbers
    kinds : 1: every population is a kind of nodes. All neurons are alike, but populations differ in their background input, and
        SpiNNaker's tools put neurons of one population only on a processor
    step : milliseconds of a step
    """
    neurons = np.maximum(1, np.rint(np.array(NEURONS) * scale)).astype(np.int64)
    sizes = np.zeros((int(neurons.sum()), 2), np.int64)
    sizes[:, 0] = 1
    rate = np.repeat(np.array(RATES), neurons) * (step / SECOND)
    return Network(
        n=len(sizes),
        name=f"microcircuit-{scale:g}{step_name(step)}-s{seed}",
        blocks=_blocks(neurons, sizes[:, 1], rate, seed),
        rate=rate,
        resources=("neurons", "synapses"),
        sizes=sizes,
        ids=tuple(f"{name}/{i}" for name, k in zip(POPULATIONS, neurons, strict=True) for i in range(k)),
        unit=0.001 if step == SECOND else None,
        kinds=NodeKinds(POPULATIONS, np.repeat(np.arange(8, dtype=np.int32), neurons)) if kinds else None,
    )


def _blocks(neurons: IntArray, synapses: IntArray, rate: FloatArray, seed: int) -> Iterator[Connections]:
    """Connections of all neurons in order; adds every synapse to its target's ``synapses``."""
    from nmsolve.model.generators.kernels import merged

    rng = np.random.default_rng(seed)
    first = np.concatenate([[0], np.cumsum(neurons)])
    counts = synapse_counts(neurons)
    for source in range(len(POPULATIONS)):
        indptr, receiver = _population(rng, int(neurons[source]), first, counts[:, source], synapses)
        degree = np.diff(indptr)
        for a, b in row_blocks(degree):
            yield merged(int(first[source]) + a, degree[a:b], receiver[indptr[a] : indptr[b]], rate)


def _population(
    rng: np.random.Generator, senders: int, first: IntArray, counts: IntArray, synapses: IntArray
) -> tuple[IntArray, Int32Array]:
    """Return receivers of all synapses of a source population, sender by sender (rows ``indptr``).

    For each target population all senders are drawn, then all receivers. The numbers are drawn twice: to count how many
    synapses each sender has, and to put them in their place. Four bytes per synapse are all that is kept.
    """
    from nmsolve.model.generators.kernels import count, place

    degree = np.zeros(senders, np.int64)
    begins = []
    for target, k in enumerate(counts.tolist()):
        sender_begin = mark(rng)
        for length in pieces(k):
            count(rng.integers(0, senders, length), degree)
        begins.append((sender_begin, mark(rng)))
        for length in pieces(k):
            count(rng.integers(first[target], first[target + 1], length), synapses)
    indptr = np.concatenate([[0], np.cumsum(degree)])
    at = indptr[:-1].copy()
    out = np.empty(int(indptr[-1]), np.int32)
    for target, (k, (sender, receiver)) in enumerate(zip(counts.tolist(), begins, strict=True)):
        for length in pieces(k):
            to = receiver.integers(first[target], first[target + 1], length)
            place(sender.integers(0, senders, length), to, at, out)
    return indptr, out
