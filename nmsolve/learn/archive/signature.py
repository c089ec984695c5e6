"""How near two graphs are, from a few numbers that no renumbering of the nodes changes (up to rounding)."""

from __future__ import annotations

import numpy as np

from nmsolve.learn.archive.arcs import Arcs
from nmsolve.model.types import FloatArray

#: Degrees, and weights relative to their mean, at which the shares of nodes and connections up to them are taken.
DEGREES: FloatArray = 2.0 ** np.arange(12, dtype=np.float64)
WEIGHTS: FloatArray = 2.0 ** np.arange(-4, 5, dtype=np.float64)
#: Moments of the spectrum.
MOMENTS = 8
#: Length of a signature.
SIZE = 2 + len(DEGREES) + len(WEIGHTS) + MOMENTS


def signature(graph: Arcs) -> FloatArray:
    """Return (SIZE,) float64: size and density (log2), histograms of degrees and weights as running sums, spectral moments.

    The moments are those of the normalised traffic's spectrum as the vector of ones sees it: ``1' S^k 1 / n`` for k = 1..8.
    """
    traffic, n = graph.traffic, graph.n
    degree = np.diff(traffic.indptr)
    relative = graph.weight / graph.weight.mean() if len(graph.weight) else graph.weight
    return np.concatenate(
        [
            [np.log2(n), np.log2(1.0 + degree.mean())],
            _up_to(degree.astype(np.float64), DEGREES),
            _up_to(relative, WEIGHTS),
            _moments(graph),
        ]
    )


def _up_to(values: FloatArray, limits: FloatArray) -> FloatArray:
    """Return the share of the values up to every limit; 0 where there are no values."""
    return np.searchsorted(np.sort(values), limits, side="right") / max(1, len(values))


def _moments(graph: Arcs) -> FloatArray:
    load = np.asarray(graph.traffic.sum(axis=1)).ravel()
    scale = 1.0 / np.sqrt(np.where(load > 0, load, 1.0))
    seen = [np.full(graph.n, graph.n**-0.5)]
    for _ in range(MOMENTS // 2):
        seen.append(scale * (graph.traffic @ (scale * seen[-1])))
    return np.array([seen[(k + 1) // 2] @ seen[k // 2] for k in range(1, MOMENTS + 1)])


def distance(a: FloatArray, b: FloatArray) -> float:
    """Return how far two signatures are from each other: the sum of all differences."""
    return float(np.abs(a - b).sum())
