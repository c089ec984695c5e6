"""What a prediction of multipliers knows of a node: numbers without a unit, so that a graph with other weights looks the same.

Every node has its own figures (load, number and evenness of its partners, the supergradient of the bound where the
ascent would begin without a prediction) and those of its surroundings: means over partners, over partners of partners, and
so on, weighted by traffic.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, diags_array

from nmsolve.model.compiled import plain
from nmsolve.model.types import FloatArray, Int32Array, IntArray

#: Steps outwards over which figures are averaged.
REACHES = (1, 2, 4)
#: Figures of a node alone, and of the whole graph; columns of :func:`node_features`.
OWN, WHOLE = 12, 3
#: Numbers of heaviest partners whose part of a node's traffic is a figure.
HEAVIEST = (1, 3, 7)
WIDTH = OWN * (1 + len(REACHES)) + WHOLE


def scale_of(traffic: csr_array) -> float:
    """Return the mean load of the nodes that have any: the unit of multipliers. 0 without traffic."""
    load = np.asarray(traffic.sum(axis=1)).ravel()
    used = int((load > 0).sum())
    return float(load.sum()) / used if used else 0.0


def node_features(traffic: csr_array, gradient: FloatArray, lines: int) -> FloatArray:
    """Return (n, WIDTH) features.

    Parameters
    ----------
    traffic : (n, n) symmetric, no negative entries, nothing on the diagonal
    gradient : (n,) supergradient of the bound at multipliers of 0, in any unit
    lines : eigenvalues that the bound looks at
    """
    n = traffic.shape[0]
    load = np.asarray(traffic.sum(axis=1)).ravel()
    unit = scale_of(traffic) or 1.0
    partners = np.diff(traffic.indptr).astype(np.float64)
    inverse = np.where(load > 0, 1 / np.where(load > 0, load, 1.0), 0.0)
    even = np.asarray(traffic.multiply(traffic).sum(axis=1)).ravel() * inverse**2
    relative = load / unit
    slope = gradient - gradient.mean()
    slope = slope / (np.sqrt(float((slope**2).mean())) or 1.0)
    walk = csr_array(diags_array(inverse) @ traffic)
    shares, back = np.empty((HEAVIEST[-1], n)), np.empty(n)
    sparse = (
        traffic.indptr.astype(np.int64),
        traffic.indices.astype(np.int32),
        traffic.data.astype(np.float64),
    )
    look_around(*sparse, inverse, np.zeros(n), np.empty(HEAVIEST[-1]), shares, back)
    own = np.column_stack(
        [
            relative - 1, np.sqrt(relative) - 1, np.log(relative + 0.05), np.log1p(partners) - np.log1p(partners.mean()),
            even, np.sqrt(even), np.clip(slope, -4, 4), np.where(load > 0, 0.0, 1.0),
            *(shares[most - 1] for most in HEAVIEST), np.sqrt(back),
        ]
    )  # fmt: skip
    columns, now, steps = [own], own, 0
    for reach in REACHES:
        for _ in range(reach - steps):
            now = walk @ now
        steps = reach
        columns.append(now)
    whole = [np.log(n) - 5, np.log(max(lines, 1)) - 3, lines / n]
    columns.append(np.tile(np.array(whole), (n, 1)))
    out: FloatArray = np.column_stack(columns)
    return out


@plain
def look_around(
    indptr: IntArray, indices: Int32Array, weights: FloatArray, inverse: FloatArray, mark: FloatArray, top: FloatArray,
    shares: FloatArray, back: FloatArray,
) -> None:  # fmt: skip
    """Note what part of its traffic each node has with its heaviest partners, and how probably three steps lead back.

    Parameters
    ----------
    indptr, indices, weights : CSR of the symmetric traffic
    inverse : (n,) one over the load of every node
    mark, top : (n,) zeros, and (t,) for the heaviest partners of one node; both are worked in
    shares : (t,) x n, set: the sum over the 1, 2 ... t heaviest partners
    back : (n,) set: where partners are each other's partners, it is large
    """
    most = len(top)
    for u in range(len(indptr) - 1):
        top[:] = 0.0
        for e in range(indptr[u], indptr[u + 1]):
            x = indices[e]
            mark[x] = weights[e] * inverse[x]
            if weights[e] > top[most - 1]:
                i = most - 1
                while i > 0 and top[i - 1] < weights[e]:
                    top[i] = top[i - 1]
                    i -= 1
                top[i] = weights[e]
        total = 0.0
        for e in range(indptr[u], indptr[u + 1]):
            v = indices[e]
            home = 0.0
            for f in range(indptr[v], indptr[v + 1]):
                home += weights[f] * mark[indices[f]]
            total += weights[e] * inverse[v] * home
        back[u] = total * inverse[u]
        for e in range(indptr[u], indptr[u + 1]):
            mark[indices[e]] = 0.0
        kept = 0.0
        for i in range(most):
            kept += top[i]
            shares[i, u] = kept * inverse[u]
