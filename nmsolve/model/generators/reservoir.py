"""Spatial reservoirs: random recurrent networks whose synapses are mostly short."""

from __future__ import annotations

import numpy as np

from nmsolve.model.graph import LogicGraph
from nmsolve.model.types import FloatArray, IntArray

#: Mean number of neurons in a cell of the grid that stands in for a nearest-neighbour search.
PER_CELL = 2


def reservoir(
    nodes: int = 16384, fan: float = 100.0, sigma: float = 0.05, far: float = 0.05, seed: int = 1
) -> LogicGraph:
    """Neurons uniform in the unit square (a torus), with Poisson fan-out.

    A local synapse goes to a neuron in the grid cell that lies a Gaussian displacement away, a far one to any
    neuron. Directed, multicast; rates are log-normal with median 1 Hz and coefficient of variation 2. Several
    synapses between two neurons are one edge, all count in the target's ``synapses``.

    Parameters
    ----------
    nodes : number of neurons
    fan : mean fan-out
    sigma : standard deviation of the displacement, in sides of the square
    far : fraction of far synapses
    seed : seed of the random numbers
    """
    rng = np.random.default_rng(seed)
    place = rng.random((nodes, 2))
    side = max(1, int(np.sqrt(nodes / PER_CELL)))
    cell = _cell(place, side)
    order = np.argsort(cell, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=side * side))])
    source = np.repeat(np.arange(nodes), rng.poisson(fan, nodes))
    aim = _cell((place[source] + rng.normal(0.0, sigma, (len(source), 2))) % 1.0, side)
    inside = np.maximum(
        1, start[aim + 1] - start[aim]
    )  # an empty cell hands over to the next neuron in order
    pick = np.minimum(start[aim] + (rng.random(len(source)) * inside).astype(np.int64), nodes - 1)
    target = order[pick]
    is_far = rng.random(len(source)) < far
    target[is_far] = rng.integers(0, nodes, int(is_far.sum()))
    synapses = np.bincount(target, minlength=nodes)
    # variance of log-normal over mean^2 is exp(s^2) - 1 = CV^2
    rate = rng.lognormal(0.0, np.sqrt(np.log1p(2.0**2)), nodes)
    pair = source * nodes + target
    pair.sort()
    source, target = np.divmod(pair[np.flatnonzero(np.diff(pair, prepend=-1))], nodes)
    return LogicGraph.from_edges(
        nodes,
        source,
        target,
        rate[source],
        multicast=np.ones(nodes, bool),
        rate=rate,
        resources=("neurons", "synapses"),
        sizes=np.stack([np.ones(nodes, np.int64), synapses], axis=1),
        name=f"reservoir-{nodes}-s{seed}",
    )


def _cell(place: FloatArray, side: int) -> IntArray:
    """Cell number of every point of the unit square on a ``side`` x ``side`` grid."""
    xy = np.minimum((place * side).astype(np.int64), side - 1)
    out: IntArray = xy[:, 1] * side + xy[:, 0]
    return out
