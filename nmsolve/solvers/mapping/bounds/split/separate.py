"""Which rows the mean of the Gilmore-Lawler distances violates: metric, hypermetric, cliques."""

from __future__ import annotations

import numpy as np

from nmsolve.model.basic_kernels import stable_order
from nmsolve.model.compiled import compiled, kernel, plain
from nmsolve.model.types import FloatArray, Int32Array, IntArray

#: Most nodes of one row.
WIDTH = 10
#: Candidates for the two nodes that extend a hypermetric row, on either side.
CHOICE = 6


@compiled(fastmath=True)
def best_thirds(d: FloatArray, worth: FloatArray) -> None:
    """``worth[a, b] = d_ab - min_v (d_av + d_bv)`` for a < b; the diagonal of ``d`` must be inf."""
    k = len(d)
    for a in range(k):
        for b in range(a + 1, k):
            nearest = np.inf
            for v in range(k):
                nearest = min(nearest, d[a, v] + d[b, v])
            worth[a, b] = d[a, b] - nearest


@kernel
def hypermetric_rows(
    d: FloatArray, first: IntArray, second: IntArray, detour: float, largest: int, least: float
) -> tuple[Int32Array, FloatArray]:
    """Violated rows with signs that sum to 1: each pair with its best third node, then grown by two nodes at a time.

    Parameters
    ----------
    d : (k, k) symmetric distances of nodes, zero diagonal
    first, second : (s,) the pairs to begin with
    detour : right-hand side of triangle rows
    largest : nodes per row at most: 3 (triangle inequalities only), 5, 7 or 9
    least : violation over the root of the number of pairs from which a row is returned

    Returns
    -------
    (m, WIDTH) the nodes plus 1, negative for sign -, 0 for none; (m,) scaled violations
    """
    k = len(d)
    most = len(first) * ((largest - 1) // 2)
    rows = np.zeros((most, WIDTH), np.int32)
    gain = np.empty(most)
    count = 0
    node = np.empty(WIDTH, np.int64)
    sign = np.empty(WIDTH)
    field = np.empty(k)
    for pair in range(len(first)):
        a, b = first[pair], second[pair]
        nearest, c = np.inf, -1
        for v in range(k):
            if d[a, v] + d[b, v] < nearest and v != a and v != b:
                nearest, c = d[a, v] + d[b, v], v
        worth = d[a, b] - nearest + detour
        node[0], node[1], node[2] = a, b, c
        sign[0], sign[1], sign[2] = 1.0, 1.0, -1.0
        best, size = max(least, worth / np.sqrt(3.0)), 3
        if worth / np.sqrt(3.0) > least:
            _store(rows, count, node, sign, 3)
            gain[count] = best
            count += 1
        for v in range(k):
            field[v] = d[a, v] + d[b, v] - d[c, v]
        while size + 2 <= min(largest, k):
            worth += _grow(d, field, node, sign, size)
            size += 2
            scaled = worth / np.sqrt(size * (size - 1) / 2.0)
            if scaled > best:
                _store(rows, count, node, sign, size)
                gain[count] = scaled
                count += 1
                best = scaled
    return rows[:count], gain[:count]


@kernel
def _grow(d: FloatArray, field: FloatArray, node: FloatArray, sign: FloatArray, size: int) -> float:
    """Add the pair (+p, -q) of greatest ``field_p - field_q - d_pq`` among the best p and q; returns that gain."""
    k = len(d)
    plus = np.full(CHOICE, -1, np.int64)
    minus = np.full(CHOICE, -1, np.int64)
    for v in range(k):
        member = False
        for i in range(size):
            member |= node[i] == v
        if member:
            continue
        _insert(plus, field, v, 1.0)
        _insert(minus, field, v, -1.0)
    best, p, q = -np.inf, -1, -1
    for x in range(CHOICE):
        for y in range(CHOICE):
            i, j = int(plus[x]), int(minus[y])
            if i >= 0 and j >= 0 and i != j and field[i] - field[j] - d[i, j] > best:
                best, p, q = field[i] - field[j] - d[i, j], i, j
    node[size], sign[size] = p, 1.0
    node[size + 1], sign[size + 1] = q, -1.0
    for v in range(k):
        field[v] += d[p, v] - d[q, v]
    return best


@plain
def _insert(best: FloatArray, field: FloatArray, v: int, way: float) -> None:
    """Keep ``best`` the nodes with the greatest ``way * field``, greatest first."""
    at = len(best)
    while at > 0 and (best[at - 1] < 0 or way * field[v] > way * field[best[at - 1]]):
        at -= 1
    if at < len(best):
        for i in range(len(best) - 1, at, -1):
            best[i] = best[i - 1]
        best[at] = v


@kernel
def _store(rows: Int32Array, at: int, node: FloatArray, sign: FloatArray, size: int) -> None:
    """Write a row with its nodes in rising order, so that equal rows look equal."""
    order = stable_order(node[:size])
    for i in range(size):
        v = order[i]
        rows[at, i] = (node[v] + 1) if sign[v] > 0 else -(node[v] + 1)


@kernel
def clique_rows(d: FloatArray, sums: FloatArray, least: float, most: int) -> tuple[Int32Array, FloatArray]:
    """Violated clique rows: from every pair the nearest node is added, again and again; returned as above.

    ``sums`` (WIDTH + 1,) least sums of distances by size; sizes with sum 0 give no row.
    """
    k = len(d)
    rows = np.zeros((most, WIDTH), np.int32)
    gain = np.empty(most)
    count = 0
    node = np.empty(WIDTH, np.int64)
    sign = np.ones(WIDTH)
    field = np.empty(k)
    inside = np.zeros(k, np.bool_)
    for a in range(k):
        for b in range(a + 1, k):
            if d[a, b] >= sums[3] / 2:
                continue
            inside[:] = False
            inside[a] = inside[b] = True
            node[0], node[1] = a, b
            total, best = d[a, b], least
            for v in range(k):
                field[v] = d[a, v] + d[b, v]
            for size in range(3, min(len(sums), k + 1)):
                c = -1
                for v in range(k):
                    if not inside[v] and (c < 0 or field[v] < field[c]):
                        c = v
                total += field[c]
                inside[c] = True
                node[size - 1] = c
                for v in range(k):
                    field[v] += d[c, v]
                scaled = (sums[size] - total) / np.sqrt(size * (size - 1) / 2.0)
                if scaled > best and count < most and sums[size] > 0:
                    best = scaled
                    _store(rows, count, node, sign, size)
                    gain[count] = scaled
                    count += 1
    return rows[:count], gain[:count]
