"""What a prediction of multipliers knows of a node: numbers without a unit, so that a graph with other weights looks the same.

Every node has its own figures (load, number and evenness of its partners, the supergradient of the bound where the
ascent would begin without a prediction) and those of its surroundings: means over partners, over partners of partners, and
so on, weighted by traffic.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, diags_array

from nmsolve.model.types import FloatArray

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
    own = np.column_stack(
        [
            relative - 1, np.sqrt(relative) - 1, np.log(relative + 0.05), np.log1p(partners) - np.log1p(partners.mean()),
            even, np.sqrt(even), np.clip(slope, -4, 4), np.where(load > 0, 0.0, 1.0),
            *heaviest_shares(walk), closure(walk),
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


def heaviest_shares(walk: csr_array) -> FloatArray:
    """Return (len(HEAVIEST), n) the part of a node's traffic with its heaviest partners; rows of ``walk`` (n, n) sum to 1."""
    n = walk.shape[0]
    row = np.repeat(np.arange(n), np.diff(walk.indptr))
    order = np.lexsort((-walk.data, row))
    rank = np.arange(len(row)) - walk.indptr[row]
    out = np.zeros((len(HEAVIEST), n))
    for i, most in enumerate(HEAVIEST):
        out[i] = np.bincount(row, walk.data[order] * (rank < most), n)
    return out


def closure(walk: csr_array) -> FloatArray:
    """Return (n,) how probable it is that a walk of three steps comes back: how much a node's partners are partners."""
    out: FloatArray = np.asarray((walk @ walk).multiply(walk.T).sum(axis=1)).ravel()
    return np.sqrt(out)
