"""Layered spiking networks with local fan-out: the instances snn20k and snn100k."""

from __future__ import annotations

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.types import IntArray

#: Where a synapse goes: next layer, same layer, the one after next, back (cumulative probabilities).
NEXT, SAME, SKIP = 0.80, 0.92, 0.97
FAR = 0.05
SPREAD = 0.06


def snn(
    nodes: int = 20000, synapses: int = 600000, layers: int = 8, directed: int = 0, seed: int = 1
) -> LogicGraph:
    """Traffic of ``layers`` square sheets of neurons.

    Every neuron has ``synapses // nodes`` outputs: 80 % to the next sheet, 12 % to its own, 5 % skip one, 3 % go
    back; each lands around the same place of the sheet (Gaussian, 6 % of the side, wrapping round), 5 % anywhere.
    All synapses of a neuron carry its firing rate (log-normal, a whole number from 1 to 200); what two neurons
    send each other is added up. Nodes are shuffled. ``snn(20000, 600000, 8)`` has 20,000 nodes, 543,501 edges;
    ``snn(100000, 5000000, 16)`` 99,856 and 4,693,805.

    With ``directed`` (1) it is the same network as it spikes: every neuron multicasts at its rate.

    Raises
    ------
    InputError : fewer nodes than layers
    """
    if nodes < layers:
        raise InputError(f"{nodes} nodes in {layers} layers", "snn", "at least one node per layer")
    rng = np.random.default_rng(seed)
    side = max(1, round((nodes // layers) ** 0.5))
    n, fan = side * side * layers, synapses // nodes
    source = np.repeat(np.arange(n, dtype=np.int64), fan)
    target = _targets(rng, source, side, layers)
    rate = np.clip(np.rint(rng.lognormal(1.5, 1.0, n)), 1, 200)
    order = rng.permutation(n)
    new = np.empty(n, np.int64)
    new[order] = np.arange(n)
    return LogicGraph.from_edges(
        n,
        new[source],
        new[target],
        rate[source],
        directed=bool(directed),
        multicast=np.full(n, bool(directed)),
        rate=rate[order] if directed else None,
        name=f"snn-{n}-s{seed}",
    )


def _targets(rng: np.random.Generator, source: IntArray, side: int, layers: int) -> IntArray:
    """Target of every synapse. The order of the draws decides the instance: do not change it."""
    sheet, place = np.divmod(source, side * side)
    y, x = np.divmod(place, side)
    draw = rng.random(len(source))
    jump = np.where(draw < NEXT, 1, np.where(draw < SAME, 0, np.where(draw < SKIP, 2, -1)))
    sheet = np.clip(sheet + jump, 0, layers - 1)
    spread = side * SPREAD
    dx = np.rint(rng.normal(0, spread, len(source))).astype(np.int64)
    dy = np.rint(rng.normal(0, spread, len(source))).astype(np.int64)
    x, y = (x + dx) % side, (y + dy) % side
    far = rng.random(len(source)) < FAR
    x[far] = rng.integers(0, side, int(far.sum()))
    y[far] = rng.integers(0, side, int(far.sum()))
    out: IntArray = sheet * side * side + y * side + x
    return out
