"""What the policy of method M1 sees of a graph: seven features per node (M1.1), its Laplacian (M1.2), and smooth axes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, diags_array

from nmsolve.heuristics.mapping.placement.spectral import smoothest
from nmsolve.hw.deltas import arcs
from nmsolve.model.graph import LogicGraph
from nmsolve.model.types import FloatArray, IntArray

#: Multicast flag; channels in, out, both; weights in, out, both.
FEATURES = 7
#: Up to this many nodes eigenvectors come from the whole matrix.
DENSE = 128


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


class Traffic(NamedTuple):
    """Who every node talks to, both directions added up, as CSR over nodes; the mean node has a traffic of 1.

    Attributes
    ----------
    indptr, other, weight : the neighbours of every node, without the node itself, and the traffic with them, by its amount
    load : (n,) traffic of a node, at least 1e-6
    mean : (n, n) CSR, every neighbour's share in a node's traffic (M1.2: the Laplacian is the identity minus this); rows sum
        to 1, rows of nodes without traffic are empty
    """

    indptr: IntArray
    other: IntArray
    weight: FloatArray
    load: FloatArray
    mean: csr_array


def traffic_of(graph: LogicGraph) -> Traffic:
    """Return the traffic of a graph."""
    indptr, other, sent, received = arcs(graph)
    n, weight = graph.n, np.abs(sent) + np.abs(received)
    both = csr_array((weight, np.array(other, np.int64), np.array(indptr)), shape=(n, n))
    both.setdiag(0.0)
    both.eliminate_zeros()
    both.sort_indices()
    both = both * (n / (float(both.sum()) or 1.0))
    load = np.maximum(np.asarray(both.sum(axis=1)).ravel(), 1e-6)
    share = csr_array(diags_array(1.0 / load) @ both)
    rows, ends = (a.astype(np.int64) for a in (both.indptr, both.indices))
    return Traffic(rows, ends, np.asarray(both.data), load, share)


def smooth_axes(traffic: Traffic, nodes: IntArray) -> FloatArray:
    """Return (2, k) the two smoothest axes (Hall 1970) of the traffic between ``nodes`` (k,); zeros where there are none.

    Eigenvectors have no sign of their own: the entry of largest amount is made positive.
    """
    out = np.zeros((2, len(nodes)))
    inside = traffic.mean[nodes][:, nodes] if len(nodes) < len(traffic.load) else traffic.mean
    root = np.sqrt(traffic.load[nodes])
    normal = csr_array(diags_array(root) @ inside @ diags_array(1.0 / root))
    if len(nodes) < 3 or normal.nnz == 0:
        return out
    vectors = smoothest(normal, 2, DENSE)
    if vectors is None:
        return out
    found = (vectors / root[:, None]).T
    peak = np.take_along_axis(found, np.abs(found).argmax(axis=1)[:, None], axis=1)
    out[:] = found * np.where(peak < 0, -1.0, 1.0) / np.maximum(np.abs(peak), 1e-12)
    return out
