"""What the policy of method M1 sees of a graph: seven features per node (M1.1), and its Laplacian (M1.2)."""

from __future__ import annotations

import numpy as np

from nmsolve.model.graph import LogicGraph
from nmsolve.model.types import FloatArray, IntArray

#: Multicast flag; channels in, out, both; weights in, out, both.
FEATURES = 7


def node_features(graph: LogicGraph, mean: bool = False) -> FloatArray:
    """Return (n, 7) float64: multicast flag, channels in, out and both, weights in, out and both; columns scaled to 0..1.

    A channel is an edge; a node is a multicast node if it sends a multicast message. Weights count by their amount, as their
    sum or, with ``mean``, as their mean per channel (0 without channels); "both" is the sum of the two before it. A column
    of equal values is 0.
    """
    row = np.repeat(np.arange(graph.rows), np.diff(graph.indptr))
    source, amount = graph.source[row], np.abs(graph.weights)
    out = np.zeros((graph.n, FEATURES))
    out[graph.source[graph.multicast], 0] = 1.0
    for column, ends in ((1, graph.targets), (2, source)):
        out[:, column] = np.bincount(ends, minlength=graph.n)
        out[:, column + 3] = np.bincount(ends, amount, graph.n)
    if mean:
        out[:, 4:6] /= np.maximum(out[:, 1:3], 1.0)
    out[:, 3], out[:, 6] = out[:, 1] + out[:, 2], out[:, 4] + out[:, 5]
    low, high = out.min(axis=0, initial=0.0), out.max(axis=0, initial=0.0)
    if graph.n:
        low, high = out.min(axis=0), out.max(axis=0)
    return np.asarray((out - low) / np.where(high > low, high - low, 1.0))


def traffic_of(graph: LogicGraph, nodes: IntArray) -> FloatArray:
    """Return (k, k) float64, the interaction weights between ``nodes`` (k,) in both directions, by their amount."""
    place = np.full(graph.n, -1, np.int64)
    place[nodes] = np.arange(len(nodes))
    row = np.repeat(np.arange(graph.rows), np.diff(graph.indptr))
    a, b = place[graph.source[row]], place[graph.targets]
    inside = (a >= 0) & (b >= 0) & (a != b)
    out = np.zeros((len(nodes), len(nodes)))
    np.add.at(out, (a[inside], b[inside]), np.abs(graph.weights[inside]))
    return np.asarray(out + out.T)


def laplacian(traffic: FloatArray) -> FloatArray:
    """Return (N, N) float64, ``I - D^-1/2 A D^-1/2`` of a symmetric A with degrees D; rows without weight are 0."""
    load = traffic.sum(axis=1)
    scale = np.where(load > 0, 1.0 / np.sqrt(np.where(load > 0, load, 1.0)), 0.0)
    return np.asarray(np.diag((load > 0).astype(np.float64)) - scale[:, None] * traffic * scale[None, :])
