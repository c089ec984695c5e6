"""M2.7: force-directed refinement of the placement."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.published.m2.topology import Piece, Topology
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import FloatArray, IntArray

#: Share of the parts that may move in one round (step S9 of the source).
SHARE = 0.05
#: Parts handled in one kernel call.
BATCH = 64


def force_directed_refinement(
    groups: Topology, core: IntArray, cols: int, rounds: int, poll: Callable[[], None]
) -> IntArray:
    """M2.7: let connections pull their parts together, by swaps.

    Connection (u, v, w) pulls u by ``w (x_v - x_u, y_v - y_u)`` and v by the opposite. A round takes the 5
    % of the parts with the largest resultant, largest first. For each, the partner in the wanted direction
    (no component against the force) with the least swap cost is found and swapped with if that cost is
    negative; the cost is the change of the sum of both parts' resultants. Rounds end when none of them
    swaps, or at the limit.

    Parameters
    ----------
    core : (parts,) int64 cores; cols : columns of the board; rounds : the limit

    Returns
    -------
    (parts,) int64 new cores; ``core`` is not changed.
    """
    y, x = (a.astype(np.float64) for a in np.divmod(core, cols))
    field = Field(x, y, *np.zeros((4, groups.n)))
    _pulls(groups.piece, field)
    for _ in range(rounds):
        force = np.hypot(field.pull_x - field.degree * x, field.pull_y - field.degree * y)
        strongest = np.argsort(-force, kind="stable")[: max(1, int(SHARE * groups.n))]
        swaps = 0
        for at in range(0, len(strongest), BATCH):
            swaps += _swaps(groups.piece, field, strongest[at : at + BATCH])
            poll()
        if swaps == 0:
            break
    out: IntArray = (np.rint(y) * cols + np.rint(x)).astype(np.int64)
    return out


class Field(NamedTuple):
    """(parts,) each: positions, sums of weight times neighbour position, sums of weights; ``link`` is scratch, all zero.

    The resultant on part u is ``pull[u] - degree[u] * position``.
    """

    x: FloatArray
    y: FloatArray
    pull_x: FloatArray
    pull_y: FloatArray
    degree: FloatArray
    link: FloatArray


@plain
def _pulls(edges: Piece, field: Field) -> None:
    """Fill the sums, which are zero."""
    _, indptr, indices, weights = edges
    x, y, pull_x, pull_y, degree, _ = field
    for u in range(len(x)):
        for e in range(indptr[u], indptr[u + 1]):
            pull_x[u] += weights[e] * x[indices[e]]
            pull_y[u] += weights[e] * y[indices[e]]
            degree[u] += weights[e]


@kernel
def _swaps(edges: Piece, field: Field, chunk: IntArray) -> int:
    """Best swap of every part in ``chunk``; returns how many were made."""
    _, indptr, indices, weights = edges
    x, y, pull_x, pull_y, degree, link = field
    made = 0
    for u in chunk:
        fx, fy = pull_x[u] - degree[u] * x[u], pull_y[u] - degree[u] * y[u]
        for e in range(indptr[u], indptr[u + 1]):
            link[indices[e]] = weights[e]
        best, least = -1, -1e-9 * (1.0 + abs(fx) + abs(fy))
        own = np.hypot(fx, fy)
        for v in range(len(x)):
            dx, dy = x[v] - x[u], y[v] - y[u]
            if v == u or dx * fx < 0.0 or dy * fy < 0.0 or dx * fx + dy * fy <= 0.0:
                continue
            w = link[v]
            now = own + np.hypot(pull_x[v] - degree[v] * x[v], pull_y[v] - degree[v] * y[v])
            ux, uy = pull_x[u] - w * dx - degree[u] * x[v], pull_y[u] - w * dy - degree[u] * y[v]
            vx, vy = pull_x[v] + w * dx - degree[v] * x[u], pull_y[v] + w * dy - degree[v] * y[u]
            change = np.hypot(ux, uy) + np.hypot(vx, vy) - now
            if change < least:
                best, least = v, change
        for e in range(indptr[u], indptr[u + 1]):
            link[indices[e]] = 0.0
        if best >= 0:
            made += 1
            dx, dy = x[best] - x[u], y[best] - y[u]
            for e in range(indptr[u], indptr[u + 1]):
                pull_x[indices[e]] += weights[e] * dx
                pull_y[indices[e]] += weights[e] * dy
            for e in range(indptr[best], indptr[best + 1]):
                pull_x[indices[e]] -= weights[e] * dx
                pull_y[indices[e]] -= weights[e] * dy
            x[u], x[best] = x[best], x[u]
            y[u], y[best] = y[best], y[u]
    return made
