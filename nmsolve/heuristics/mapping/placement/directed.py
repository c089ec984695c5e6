"""Annealing by several kinds of moves: what sends a node somewhere is drawn anew for every few proposals.

A kind only says which node is to go where. Prices, swaps and Metropolis' rule are those of :mod:`.proposals`, so a bad kind
wastes proposals and breaks nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.placement.anneal_direct import Direct
from nmsolve.heuristics.mapping.placement.anneal_direct import _price as direct_price
from nmsolve.heuristics.mapping.placement.anneal_direct import _swap as direct_swap
from nmsolve.heuristics.mapping.placement.proposals import allowed, line_near
from nmsolve.heuristics.mapping.placement.tables import Tabled, make_swap, table_price
from nmsolve.model.compiled import embedded_callee, inlined, plain
from nmsolve.model.splitmix import STEP, mix
from nmsolve.model.types import FloatArray, Int32Array, IntArray

#: Kinds of moves, by number: a node goes anywhere; within the window; near the weighted centroid of its neighbours; near one
#: of them; near a node that has a neighbour in common (in a layered network one of its own layer); near a node of its community;
#: over the border of a chip.
ARMS = ("uniform", "window", "centroid", "neighbour", "sibling", "community", "border")
UNIFORM, WINDOW, CENTROID, NEIGHBOUR, SIBLING, COMMUNITY, BORDER = range(len(ARMS))
#: Proposals of one kind in a row, so that the processor can foresee the branches.
RUN = 32
#: Columns of ``stats``: proposals, accepted ones, neighbour entries looked at or updated, change of cost, lines moved, entries
#: read to find a goal, sum of all accepted improvements.
DIRECTED_STATS = 7


class Aims(NamedTuple):
    """What moves are aimed by.

    Attributes
    ----------
    indptr, indices, weights : CSR of neighbours, float32 weights
    members, first, group : nodes by community; where the community of a node begins in ``members``, (groups + 1,); (n,)
    borders : (B, 2) int64 axis (0: columns) and line after which a chip ends
    """

    indptr: IntArray
    indices: Int32Array
    weights: FloatArray
    members: Int32Array
    first: IntArray
    group: Int32Array
    borders: IntArray


@embedded_callee
def _offset(here: int, there: int, length: int, wrap: bool) -> int:
    """Lines from ``here`` to ``there``, the short way round on a torus."""
    d = there - here
    if wrap:
        if 2 * d > length:
            return d - length
        if 2 * d < -length:
            return d + length
    return d


@embedded_callee
def _inside(line: int, length: int, wrap: bool) -> int:
    """The line on an axis of ``length``: round on a torus, else at most its end."""
    if wrap:
        return (line + length) % length
    return min(max(line, 0), length - 1)


@embedded_callee
def _pick(bits: Any, end: int) -> Any:
    """A whole number below ``end`` from 16 random bits."""
    return np.int64((bits * np.uint64(end)) >> np.uint64(16))


@embedded_callee
def _centroid(aims: Aims, u: int, cx: Int32Array, cy: Int32Array, grid: Any) -> Any:
    """The column and the row nearest to the mean of ``u``'s neighbours, weighted by traffic."""
    cols, rows = grid.dx.shape[0], grid.dy.shape[0]
    x0, y0 = np.int64(cx[u]), np.int64(cy[u])
    dx, dy, total = 0.0, 0.0, 0.0
    for k in range(aims.indptr[u], aims.indptr[u + 1]):
        v, w = aims.indices[k], aims.weights[k]
        dx += w * _offset(x0, np.int64(cx[v]), cols, grid.wrap_x)
        dy += w * _offset(y0, np.int64(cy[v]), rows, grid.wrap_y)
        total += w
    if total <= 0.0:
        return x0, y0
    x = x0 + np.int64(np.floor(dx / total + 0.5))
    y = y0 + np.int64(np.floor(dy / total + 0.5))
    return _inside(x, cols, grid.wrap_x), _inside(y, rows, grid.wrap_y)


@embedded_callee
def _goal(aims: Aims, arm: int, u: int, draw: Any) -> Any:
    """The node near which ``u`` is to go; ``u`` itself if there is none. ``draw`` are 32 random bits."""
    low, high = draw & np.uint64(0xFFFF), draw >> np.uint64(16)
    if arm == COMMUNITY:
        a = aims.first[aims.group[u]]
        return np.int64(aims.members[a + _pick(low, aims.first[aims.group[u] + 1] - a)])
    a = aims.indptr[u]
    if aims.indptr[u + 1] == a:
        return u
    w = np.int64(aims.indices[a + _pick(low, aims.indptr[u + 1] - a)])
    if arm == SIBLING:
        a = aims.indptr[w]
        return np.int64(aims.indices[a + _pick(high, aims.indptr[w + 1] - a)])
    return w


@embedded_callee
def _over_border(aims: Aims, grid: Any, bits: Any, more: Any) -> tuple[int, int, int, int]:
    """Two cores, columns and rows, at most two lines from a random border of chips and on either side of it."""
    cols, rows = grid.dx.shape[0], grid.dy.shape[0]
    b = _pick(bits & np.uint64(0xFFFF), len(aims.borders))
    upright, after = aims.borders[b, 0] == 0, aims.borders[b, 1]
    side = np.int64((more >> np.uint64(16)) & np.uint64(1))
    near = np.int64((more >> np.uint64(17)) & np.uint64(1))
    far = np.int64((more >> np.uint64(18)) & np.uint64(1))
    length, other = (cols, rows) if upright else (rows, cols)
    low, high = max(0, after - near), min(length - 1, after + 1 + far)
    a, z = (low, high) if side == 0 else (high, low)
    here = _pick(bits >> np.uint64(48), other)
    there = line_near(here, min(1, other - 1), other, False, more & np.uint64(0xFFFF))
    return (a, here, z, there) if upright else (here, a, there, z)


@inlined
def anneal_by_arms(
    s: Any, price: Callable[..., Any], swap: Callable[..., Any], aims: Aims, ends: FloatArray, steps: int, temperature: float,
    reach: int, rng: IntArray, quantiles: FloatArray, stats: FloatArray,
) -> None:  # fmt: skip
    """Propose about ``steps`` moves or swaps at one temperature, kinds drawn with the cumulative shares ``ends`` (arms,).

    Adds to ``stats`` (arms, DIRECTED_STATS), a row per kind.
    """
    node, cx, cy = s.seats
    n, cols, rows = cx.shape[0], s.grid.dx.shape[0], s.grid.dy.shape[0]
    wx, wy = min(reach, cols - 1), min(reach, rows - 1)
    jx, jy = min(max(1, reach // 3), cols - 1), min(max(1, reach // 3), rows - 1)
    low16, count = np.uint64(0xFFFF), rng[0]
    for _ in range((steps + RUN - 1) // RUN):
        count += STEP
        luck = float(mix(count) >> np.uint64(11)) * (1.0 / 9007199254740992.0)
        arm = 0
        while arm < len(ends) - 1 and luck >= ends[arm]:
            arm += 1
        rx, ry = wx, wy
        if arm == UNIFORM:
            rx, ry = cols - 1, rows - 1
        elif arm == CENTROID:
            rx, ry = jx, jy
        elif arm != WINDOW:
            rx, ry = min(1, cols - 1), min(1, rows - 1)
        accepted, entries, moved, gain, read, better = 0, 0, 0, 0.0, 0, 0.0
        for _ in range(RUN):
            count += STEP
            bits = mix(count)
            count += STEP
            more = mix(count)
            if arm == BORDER:
                x0, y0, x1, y1 = _over_border(aims, s.grid, bits, more)
                u = np.int64(node[y0 * cols + x0])
                if u < 0:
                    continue
            else:
                u = np.int64(((bits >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))
                x0, y0 = np.int64(cx[u]), np.int64(cy[u])
                x1, y1 = x0, y0
                if arm == CENTROID:
                    x1, y1 = _centroid(aims, u, cx, cy, s.grid)
                    read += aims.indptr[u + 1] - aims.indptr[u]
                elif arm >= NEIGHBOUR:
                    w = _goal(aims, arm, u, (more >> np.uint64(16)) & np.uint64(0xFFFFFFFF))
                    x1, y1 = np.int64(cx[w]), np.int64(cy[w])
                x1 = line_near(x1, rx, cols, s.grid.wrap_x, bits & low16)
                y1 = line_near(y1, ry, rows, s.grid.wrap_y, more & low16)
            v = np.int64(node[y1 * cols + x1])
            if v == u or v == -2:
                continue
            if not allowed(u, y1 * cols + x1, v, y0 * cols + x0, s.grid.domain, s.grid.domains):
                continue
            limit = temperature * quantiles[more >> np.uint64(52)]
            change, looked = price(s, u, v, x0, y0, x1, y1, limit)
            entries += looked
            if change > limit:
                continue
            accepted += 1
            gain += change
            if change < 0:
                better -= change
            moved += max(abs(x1 - x0), abs(y1 - y0))
            entries += swap(s, u, v, x1, y1)
        row = stats[arm]
        row[0] += RUN
        row[1] += accepted
        row[2] += entries
        row[3] += gain
        row[4] += moved
        row[5] += read
        row[6] += better
    rng[0] = count


@plain
def arms_table(
    s: Tabled, aims: Aims, ends: FloatArray, steps: int, temperature: float, reach: int, rng: IntArray,
    quantiles: FloatArray, stats: FloatArray,
) -> None:  # fmt: skip
    """:func:`anneal_by_arms` on position tables."""
    anneal_by_arms(s, table_price, make_swap, aims, ends, steps, temperature, reach, rng, quantiles, stats)


@plain
def arms_direct(
    s: Direct, aims: Aims, ends: FloatArray, steps: int, temperature: float, reach: int, rng: IntArray,
    quantiles: FloatArray, stats: FloatArray,
) -> None:  # fmt: skip
    """:func:`anneal_by_arms` with prices from the neighbours."""
    anneal_by_arms(s, direct_price, direct_swap, aims, ends, steps, temperature, reach, rng, quantiles, stats)
