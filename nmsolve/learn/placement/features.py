"""What the policy sees of a graph: structure and spectrum, the same whatever the nodes are called."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, diags_array

from nmsolve.heuristics.mapping.placement.spectral import smoothest
from nmsolve.hw.deltas import arcs
from nmsolve.model.graph import LogicGraph
from nmsolve.model.types import FloatArray

#: Logarithms of load, degree and heaviest neighbour, share sent, multicast flag, size of four eigenvectors' entries.
FEATURES = 9
#: Eigenvectors, beside the constant one.
AXES = 4
#: Up to this many nodes eigenvectors come from the whole matrix.
DENSE = 128


class Traffic(NamedTuple):
    """A graph's traffic.

    Attributes
    ----------
    matrix : (n, n) symmetric, both directions added up, divided by the mean traffic of a node; without entries if there is none
    load : (n,) its row sums, at least 1e-6
    axes : (AXES, n) eigenvectors of the normalised matrix from the smoothest on, of length sqrt(n), zeros where there are none;
        the entry of largest amount is positive
    features : (n, FEATURES)
    """

    matrix: csr_array
    load: FloatArray
    axes: FloatArray
    features: FloatArray


def traffic_of(graph: LogicGraph) -> Traffic:
    """Return what the policy sees of a graph."""
    indptr, other, sent, received = arcs(graph)
    weight = np.abs(sent) + np.abs(received)
    scale = float(weight.sum()) / graph.n or 1.0
    matrix = csr_array((weight / scale, np.array(other), np.array(indptr)), shape=(graph.n, graph.n))
    load = np.maximum(np.asarray(matrix.sum(axis=1)).ravel(), 1e-6)
    axes = _axes(matrix, load)
    row = np.repeat(np.arange(graph.n), np.diff(indptr))
    peak, out, flag = np.zeros(graph.n), np.zeros(graph.n), np.zeros(graph.n)
    np.maximum.at(peak, row, weight / scale)
    np.add.at(out, row, np.abs(sent) / scale)
    flag[graph.source[graph.multicast]] = 1.0
    degree = np.diff(indptr)
    columns = [np.log(load), np.log((degree + 1.0) / (degree.mean() + 1.0)), np.log(1e-6 + peak / load)]
    columns += [out / load, flag, *np.log1p(axes**2)]
    return Traffic(matrix, load, axes, np.clip(np.stack(columns, axis=1), -4.0, 4.0))


def _axes(matrix: csr_array, load: FloatArray) -> FloatArray:
    n = matrix.shape[0]
    out = np.zeros((AXES, n))
    side = diags_array(1 / np.sqrt(load))
    normal = side @ matrix @ side
    vectors = smoothest(normal, AXES, DENSE)
    if vectors is None:
        return out
    found = (vectors / np.sqrt(load)[:, None]).T
    found *= np.sqrt(n) / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
    peak = found[np.arange(len(found)), np.abs(found).argmax(axis=1)]
    out[: len(found)] = found * np.where(peak < 0, -1.0, 1.0)[:, None]
    return out
