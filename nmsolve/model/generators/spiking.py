"""Layered spiking networks with local fan-out: the instances snn20k and snn100k."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.generators.draws import mark, pieces, row_blocks, skip
from nmsolve.model.network import Connections, Network
from nmsolve.model.types import FloatArray, Int32Array, IntArray

#: Where a synapse goes: next layer, same layer, the one after next, back (cumulative probabilities).
NEXT, SAME, SKIP = 0.80, 0.92, 0.97
FAR = 0.05


def snn(
    nodes: int = 20000,
    synapses: int = 600000,
    layers: int = 8,
    sigma: float = 0.06,
    directed: int = 0,
    seed: int = 1,
) -> Network:
    """Return traffic of ``layers`` square sheets of neurons.

    Every neuron has ``synapses // nodes`` outputs: 80 % to the next sheet, 12 % to its own, 5 % skip one, 3 % go
    back; each lands around the same place of the sheet (Gaussian, ``sigma`` of the side, wrapping round), 5 %
    anywhere.
    All synapses of a neuron carry its firing rate (log-normal, a whole number from 1 to 200); what two neurons
    send each other is added up. Nodes are shuffled. ``snn(20000, 600000, 8)`` has 20,000 nodes, 543,501 edges;
    ``snn(100000, 5000000, 16)`` 99,856 and 4,693,805; ``snn(1000000, 50000000, 16, 0.02)``, whose neurons reach as many
    neighbours as those of the smaller ones, 1,000,000 and 47,305,548.

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
    begins = _begins(rng, n * fan, side)
    rate = np.clip(np.rint(rng.lognormal(1.5, 1.0, n)), 1, 200)
    order = rng.permutation(n)
    return Network(
        n=n,
        name=f"snn-{n}-s{seed}",
        blocks=(_directed if directed else _undirected)(
            begins, Sheets(side, layers, sigma), fan, rate, order
        ),
        directed=bool(directed),
        multicast=bool(directed),
        rate=rate[order] if directed else None,
        unit=1.0,
    )


def _directed(
    begins: Begins, sheets: Sheets, fan: int, rate: FloatArray, order: IntArray
) -> Iterator[Connections]:
    """Node ``i`` of the graph is neuron ``order[i]``; ``rate`` and targets are in the order of neurons."""
    from nmsolve.model.generators.kernels import merged

    target = _targets(begins, sheets, fan).reshape(len(order), fan)
    new = np.empty(len(order), np.int32)
    new[order] = np.arange(len(order))
    degree, ordered = np.full(len(order), fan), rate[order]
    for a, b in row_blocks(degree):
        yield merged(a, degree[a:b], new[target[order[a:b]]].ravel(), ordered, each_synapse=True)


def _undirected(
    begins: Begins, sheets: Sheets, fan: int, rate: FloatArray, order: IntArray
) -> Iterator[Connections]:
    """As :func:`_directed`, every connection at its lower node with the traffic of both directions."""
    from nmsolve.model.generators.kernels import degrees_both_ways, merged_both_ways, place_both_ways

    target = _targets(begins, sheets, fan)
    new = np.empty(len(order), np.int64)
    new[order] = np.arange(len(order))
    degree = degrees_both_ways(target, fan, new)
    indptr = np.concatenate([[0], np.cumsum(degree)])
    partner = np.empty(int(indptr[-1]), np.int32)
    place_both_ways(target, fan, new, indptr[:-1].copy(), partner)
    del target
    ordered = rate[order]
    for a, b in row_blocks(degree):
        yield merged_both_ways(a, degree[a:b], partner[indptr[a] : indptr[b]], ordered)


class Sheets(NamedTuple):
    """``layers`` squares of ``side`` neurons; ``sigma`` is how far a synapse goes, as a fraction of the side."""

    side: int
    layers: int
    sigma: float


class Begins(NamedTuple):
    """Generators at the beginning of the arrays that are drawn per synapse (the last two: per far synapse)."""

    jump: np.random.Generator
    dx: np.random.Generator
    dy: np.random.Generator
    far: np.random.Generator
    far_x: np.random.Generator
    far_y: np.random.Generator


def _begins(rng: np.random.Generator, synapses: int, side: int) -> Begins:
    """Move ``rng`` over these arrays. Their order decides the instance: do not change it."""
    jump = skip(rng, lambda r, k: r.random(k), synapses)
    dx = skip(rng, lambda r, k: r.normal(0.0, 1.0, k), synapses)
    dy = skip(rng, lambda r, k: r.normal(0.0, 1.0, k), synapses)
    far, number = mark(rng), 0
    for length in pieces(synapses):
        number += int((rng.random(length) < FAR).sum())
    far_x = skip(rng, lambda r, k: r.integers(0, side, k), number)
    far_y = skip(rng, lambda r, k: r.integers(0, side, k), number)
    return Begins(jump, dx, dy, far, far_x, far_y)


def _targets(begins: Begins, sheets: Sheets, fan: int) -> Int32Array:
    """Return (n * fan,) target of every synapse, neuron by neuron."""
    side, layers, spread = sheets.side, sheets.layers, sheets.side * sheets.sigma
    out = np.empty(side * side * layers * fan, np.int32)
    at = 0
    for length in pieces(len(out)):
        sheet, place = np.divmod(np.arange(at, at + length) // fan, side * side)
        y, x = np.divmod(place, side)
        draw = begins.jump.random(length)
        sheet += np.where(draw < NEXT, 1, np.where(draw < SAME, 0, np.where(draw < SKIP, 2, -1)))
        sheet = np.clip(sheet, 0, layers - 1)
        x = (x + np.rint(begins.dx.normal(0, spread, length)).astype(np.int64)) % side
        y = (y + np.rint(begins.dy.normal(0, spread, length)).astype(np.int64)) % side
        far = begins.far.random(length) < FAR
        x[far] = begins.far_x.integers(0, side, int(far.sum()))
        y[far] = begins.far_y.integers(0, side, int(far.sum()))
        out[at : at + length] = sheet * side * side + y * side + x
        at += length
    return out
