"""The evaluator's compiled kernels: pairwise sums, route-union sums, link loads.

Routes are XY: along the row first (the column changes), then along the column. On a torus each axis goes the
shorter way round, a tie in the direction of growing numbers. With dead links they follow the route trees of
:mod:`nmsolve.hw.detours`. Flat arrays only, handed over in ``Rows``, ``CoreDistance`` and
``Links``, always read-only, so that each kernel is compiled once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.hw.cost import CoreDistance, pair_distance
from nmsolve.hw.links import Links, goes_up, link_before
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.graph import Rows
from nmsolve.model.types import BoolArray, FloatArray, Int32Array, IntArray


@plain
def pairwise_cost(
    rows: Rows, skip: BoolArray, core: IntArray, x: FloatArray, y: FloatArray, distance: CoreDistance
) -> float:
    """Sum of ``weight * distance`` over the stored edges of all rows that are not in ``skip``.

    ``x``, ``y`` are per *core* here, (P,) each; exact for whole numbers below 2**53.
    """
    indptr, source, targets, weights = rows.indptr, rows.source, rows.targets, rows.weights
    wrap_x, wrap_y, step, matrix = distance.wrap_x, distance.wrap_y, distance.step, distance.matrix
    total = 0.0
    dense = matrix.shape[0] > 0
    for i in range(source.shape[0]):
        if skip[i]:
            continue
        p = core[source[i]]
        px, py = x[p], y[p]
        part = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            q = core[targets[k]]
            if dense:
                part += weights[k] * matrix[p, q]
            elif p != q:
                dx, dy = abs(px - x[q]), abs(py - y[q])
                if wrap_x > 0.0:
                    dx = min(dx, wrap_x - dx)
                if wrap_y > 0.0:
                    dy = min(dy, wrap_y - dy)
                part += weights[k] * (dx + dy + step)
        total += part
    return total


class Union(NamedTuple):
    """How a message is charged by the union of its routes: ``step`` once for every remote core, and the length of the union.

    With ``dist`` (P, P) the routes are the trees ``before`` (P, P), or, where ``before`` is (0, 0), unknown: each remote
    core is then charged ``dist`` on its own. With ``dist`` (0, 0) they are XY.
    """

    step: float
    dist: FloatArray
    before: Int32Array


class Scratch(NamedTuple):
    """What :func:`union_row` notes: ``got`` (P,), ``on_tree`` (P,), ``columns`` (2, cols), ``reach`` (2, cols)."""

    got: IntArray
    on_tree: IntArray
    columns: IntArray
    reach: FloatArray


@kernel
def new_scratch(distance: CoreDistance, union: Union) -> Scratch:
    """Scratch for :func:`union_row`, for stamps from 0 on."""
    cols = distance.cols
    size = max(union.dist.shape[0], cols * distance.y.shape[0])
    got, on_tree = np.full(size, -1, np.int64), np.full(size, -1, np.int64)
    return Scratch(got, on_tree, np.full((2, cols), -1, np.int64), np.zeros((2, cols)))


@plain
def union_row(
    i: int, stamp: int, rows: Rows, core: IntArray, distance: CoreDistance, union: Union, scratch: Scratch
) -> float:
    """``step * remote cores + length of the union of the routes`` of row ``i``; see :func:`union_cost`.

    Everything in ``scratch`` is below ``stamp`` at first.
    """
    indptr, targets, cols, x, y = rows.indptr, rows.targets, distance.cols, distance.x, distance.y
    wrap_x, wrap_y, dist, before = distance.wrap_x, distance.wrap_y, union.dist, union.before
    got, on_tree, columns, reach = scratch.got, scratch.on_tree, scratch.columns, scratch.reach
    tree, dense = before.shape[0] > 0, dist.shape[0] > 0
    p = core[rows.source[i]]
    got[p] = stamp
    on_tree[p] = stamp
    pr, pc = p // cols, p % cols
    remote, length, right, left, n_cols = 0, 0.0, 0.0, 0.0, 0
    for k in range(indptr[i], indptr[i + 1]):
        q = core[targets[k]]
        if got[q] == stamp:
            continue
        got[q] = stamp
        remote += 1
        if tree:
            v = np.int64(q)
            while on_tree[v] < stamp:  # every link of the tree that no earlier target used
                on_tree[v] = stamp
                length += dist[p, v] - dist[p, before[p, v]]
                v = np.int64(before[p, v])
            continue
        if dense:
            length += dist[p, q]
            continue
        c, r = q % cols, q // cols
        if columns[0, c] != stamp:
            columns[0, c] = stamp
            columns[1, n_cols] = c
            n_cols += 1
            reach[0, c] = reach[1, c] = 0.0
            dx = abs(x[c] - x[pc])
            if goes_up(x[pc], x[c], wrap_x):
                right = max(right, dx if x[c] >= x[pc] else wrap_x - dx)
            else:
                left = max(left, dx if x[c] <= x[pc] else wrap_x - dx)
        dy = abs(y[r] - y[pr])
        if goes_up(y[pr], y[r], wrap_y):
            reach[0, c] = max(reach[0, c], dy if y[r] >= y[pr] else wrap_y - dy)
        else:
            reach[1, c] = max(reach[1, c], dy if y[r] <= y[pr] else wrap_y - dy)
    for j in range(n_cols):
        length += reach[0, columns[1, j]] + reach[1, columns[1, j]]
    return union.step * remote + length + right + left


@kernel
def union_cost(
    rows: Rows, by_union: BoolArray, core: IntArray, distance: CoreDistance, union: Union
) -> float:
    """Sum over the rows ``by_union`` of ``rate * (step * remote cores + length of the union of the routes)``."""
    scratch, total, rate = new_scratch(distance, union), 0.0, rows.rate
    for i in range(rows.source.shape[0]):
        if by_union[i]:
            total += rate[i] * union_row(i, i, rows, core, distance, union, scratch)
    return total


@plain
def add_traffic(rows: Rows, core: IntArray, total: FloatArray) -> None:
    """Add the traffic of all edges to ``total`` (P, P), sender's core by receiver's."""
    indptr, source, targets, weights = rows.indptr, rows.source, rows.targets, rows.weights
    for i in range(source.shape[0]):
        p = core[source[i]]
        for k in range(indptr[i], indptr[i + 1]):
            total[p, core[targets[k]]] += weights[k]


@kernel
def walk_routes(
    rows: Rows,
    by_union: BoolArray,
    core: IntArray,
    links: Links,
    slot: IntArray,
    loads: FloatArray,
    share: FloatArray,
) -> None:
    """Walk every route backwards and add its traffic to the links it uses.

    Adds to ``loads`` (4 * P,) and, for links with ``slot[link] >= 0``, to ``share[row, slot]``. A row that is ``by_union``
    loads a link once.
    """
    indptr, source, targets, weights, rate = rows.indptr, rows.source, rows.targets, rows.weights, rows.rate
    used = np.full(links.ends.shape[0], -1, np.int64)
    for i in range(source.shape[0]):
        p = core[source[i]]
        for k in range(indptr[i], indptr[i + 1]):
            w = rate[i] if by_union[i] else weights[k]
            q = core[targets[k]]
            v = q
            while v != p:
                u, link = link_before(links, p, q, v)
                if link < 0 or (by_union[i] and used[link] == i):
                    break  # no route, or used with everything before it: the routes of one row form a tree
                used[link] = i
                loads[link] += w
                if slot[link] >= 0:
                    share[i, slot[link]] += w
                v = u


@kernel
def latency_sums(rows: Rows, core: IntArray, distance: CoreDistance) -> tuple[float, float, float]:
    """Sum of traffic * latency, sum of traffic, largest latency, over messages between different cores.

    A multicast row counts once per destination core, with its rate. Distances are latencies.
    """
    indptr, source, targets, multicast = rows.indptr, rows.source, rows.targets, rows.multicast
    weights, rate = rows.weights, rows.rate
    size = distance.rows * distance.cols
    got = np.full(size, -1, np.int64)
    total, traffic, worst = 0.0, 0.0, 0.0
    for i in range(source.shape[0]):
        p = core[source[i]]
        for k in range(indptr[i], indptr[i + 1]):
            q = core[targets[k]]
            w = rate[i] if multicast[i] else weights[k]
            if q == p or w <= 0.0 or (multicast[i] and got[q] == i):
                continue
            got[q] = i
            time = pair_distance(p, q, distance)
            total += w * time
            traffic += w
            worst = max(worst, time)
    return total, traffic, worst
