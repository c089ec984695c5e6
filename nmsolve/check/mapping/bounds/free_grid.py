"""Least cost of a few nodes on an unbounded grid, searched again: the checker's own search, which shares nothing with the finder.

Plain depth-first search over cells with a table of costs per node and cell. A state is cut off by what it has cost,
plus the cheapest free cell of every node left, plus the least cost of the nodes left among themselves, which the same
search has found before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import BoolArray, IntArray

#: Subsets up to this size are bounded by their links alone while others are searched.
_SMALL = 2
#: Cells that the searches of one certificate may price, all sets together (about ten minutes).
MOST_CELLS = 200_000_000_000


@dataclass
class Effort:
    """How many more cells may be priced: one of these goes through all searches of a certificate."""

    left: int = MOST_CELLS


def connected_parts(weight: IntArray, nodes: Iterable[int]) -> list[list[int]]:
    """The connected parts of ``nodes`` under the positive entries of ``weight``."""
    left, out = set(nodes), []
    while left:
        part = [left.pop()]
        for u in part:
            near = [v for v in left if weight[u, v] > 0]
            part += near
            left.difference_update(near)
        out.append(sorted(part))
    return out


def least_cost(weight: IntArray, grid: IntArray, claim: int, effort: Effort) -> int:
    """The least cost of a connected set of nodes if it is below ``claim``, else ``claim``.

    ``grid``: link in x, link in y, rows, columns. Raises TimeoutError once ``effort``, which it lessens, is used up.
    """
    return _least(weight, list(range(len(weight))), grid, claim, {}, effort)


def _least(
    weight: IntArray,
    nodes: list[int],
    grid: IntArray,
    upper: int,
    known: dict[frozenset[int], int],
    effort: Effort,
) -> int:
    """Least cost of connected ``nodes``, at most ``upper``."""
    if len(nodes) == 1:
        return min(upper, 0)
    order = _order(weight, nodes)
    alone = [_alone(weight, order[i:], grid, known, effort) for i in range(1, len(order))]
    w = np.ascontiguousarray(weight[np.ix_(order, order)])
    cost, priced = _descend(w, np.array([0, *alone, 0], np.int64), grid, upper, effort.left)
    effort.left -= int(priced)
    if effort.left < 0:
        raise TimeoutError
    return int(cost)


def _alone(
    weight: IntArray, nodes: list[int], grid: IntArray, known: dict[frozenset[int], int], effort: Effort
) -> int:
    """Least cost of nodes that need not be connected (few nodes: every link at its least)."""
    total = 0
    for part in connected_parts(weight, nodes):
        inside = int(weight[np.ix_(part, part)].sum()) // 2
        if len(part) <= _SMALL:
            total += inside * int(min(grid[0], grid[1]))
            continue
        key = frozenset(part)
        if key not in known:
            far = inside * len(part) * int(grid[0] + grid[1]) + 1
            known[key] = _least(weight, part, grid, far, known, effort)
        total += known[key]
    return total


def _order(weight: IntArray, nodes: list[int]) -> list[int]:
    """Most attached to the earlier ones first, starting from the one with most neighbours."""
    left = list(nodes)
    first = max(left, key=lambda v: (int((weight[v, left] > 0).sum()), int(weight[v, left].sum())))
    order = [first]
    left.remove(first)
    while left:
        v = max(left, key=lambda u: int(weight[u, order].sum()))
        order.append(v)
        left.remove(v)
    return order


@plain
def _rest(
    w: IntArray, grid: IntArray, depth: int, y: int, x: int, area: tuple[int, int, int, int], side: int,
    cost: IntArray, used: BoolArray, loss: IntArray, leader: IntArray,
) -> tuple[np.int64, np.int64]:  # fmt: skip
    """What the nodes after ``depth``, just put at (``y``, ``x``), cost at least, and the next one's part of it.

    Fills their costs of every cell of ``area``. Each takes its cheapest free cell; of two that want the same, one
    must take another. The next node does not vie: its cell is chosen first.
    """
    d = depth + 1
    top, bottom, left, right = area
    total, own = np.int64(0), np.int64(0)
    leader[:] = -1
    for v in range(d, len(w)):
        least, second, at = np.int64(2**62), np.int64(2**62), -1
        for yy in range(top, bottom + 1):
            for xx in range(left, right + 1):
                q = yy * side + xx
                c = cost[depth, v, q] + w[depth, v] * (grid[0] * abs(xx - x) + grid[1] * abs(yy - y))
                cost[d, v, q] = c
                if c < second and not used[q]:
                    if c < least:
                        second, least, at = least, c, q
                    else:
                        second = c
        total += least
        if v == d:
            own = least
            continue
        loss[v] = min(second - least, np.int64(2**50))
        for u in range(d + 1, v):
            if leader[u] == at:  # one of the two must take another cell
                total += min(loss[u], loss[v])
                leader[u] = at if loss[u] > loss[v] else -1
                at = at if leader[u] < 0 else -1
                break
        leader[v] = at
    return total, own


@plain
def _cells(
    area: tuple[int, int, int, int],
    alike: bool,
    side: int,
    limit: int,
    cost: IntArray,
    used: BoolArray,
    out: IntArray,
) -> int:
    """Free cells of ``area`` that cost less than ``limit``, cheapest first, into ``out``; how many.

    The second node's ``area`` is a quarter, since it may be mirrored to the right and down; where x and y are ``alike``,
    across the diagonal as well.
    """
    top, bottom, left, right = area
    count = 0
    for y in range(top, bottom + 1):
        for x in range(left, right + 1):
            q = y * side + x
            if used[q] or cost[q] >= limit or (alike and y - top > x - left):
                continue
            i = count
            while i > 0 and cost[out[i - 1]] > cost[q]:
                out[i] = out[i - 1]
                i -= 1
            out[i] = q
            count += 1
    return count


@kernel
def _descend(
    w: IntArray, alone: IntArray, grid: IntArray, upper: int, most: int
) -> tuple[np.int64, np.int64]:
    """Least cost below ``upper`` with nodes in the order of ``w``, else ``upper``; and how many cells were priced.

    The search is broken off once that is more than ``most``: the cost then says nothing.
    """
    k = len(w)
    high, wide = min(k, grid[2]), min(k, grid[3])
    side = 2 * k + 3
    cells = side * side
    centre = (k + 1) * side + k + 1
    cost = np.zeros((k + 1, k, cells), np.int64)
    used = np.zeros(cells, np.bool_)
    box = np.zeros((k + 1, 4), np.int64)  # of the placed nodes: top, bottom, left, right
    tried = np.full(k, -1, np.int64)  # position in the list of cells
    cell_list, lists = np.zeros((k, cells), np.int64), np.zeros(k, np.int64)
    paid, others, where = np.zeros(k + 1, np.int64), np.zeros(k, np.int64), np.zeros(k, np.int64)
    loss, leader = np.zeros(k, np.int64), np.full(k, -1, np.int64)
    cell_list[0, 0], lists[0] = centre, 1
    depth, priced = 0, np.int64(0)
    while depth >= 0:
        if tried[depth] >= 0:
            used[where[depth]] = False
        tried[depth] += 1
        if tried[depth] >= lists[depth]:
            tried[depth] = -1
            depth -= 1
            continue
        p = cell_list[depth, tried[depth]]
        where[depth] = p
        if others[depth] + cost[depth, depth, p] >= upper:  # the later ones cost more
            used[p] = False
            tried[depth] = -1
            depth -= 1
            continue
        used[p] = True
        d = depth + 1
        paid[d] = paid[depth] + cost[depth, depth, p]
        priced += 1
        if priced > most:
            return np.int64(upper), priced
        if paid[d] + alone[d] >= upper:
            continue
        if d == k:
            upper = paid[d]
            continue
        y, x = p // side, p % side
        if depth == 0:
            box[d, 0], box[d, 1], box[d, 2], box[d, 3] = y, y, x, x
        else:
            box[d, 0], box[d, 1] = min(box[depth, 0], y), max(box[depth, 1], y)
            box[d, 2], box[d, 3] = min(box[depth, 2], x), max(box[depth, 3], x)
        top, bottom = box[d, 1] - high + 1, box[d, 0] + high - 1
        left, right = box[d, 3] - wide + 1, box[d, 2] + wide - 1
        area = (top, bottom, left, right)
        priced += (k - d) * (bottom - top + 1) * (right - left + 1)
        rest, own = _rest(w, grid, depth, y, x, area, side, cost, used, loss, leader)
        others[d] = paid[d] + alone[d] + rest - own
        if others[d] + own >= upper:
            continue
        alike = d == 1 and grid[0] == grid[1] and high == wide
        corner = (y, bottom, x, right) if d == 1 else area
        tried[d] = -1
        lists[d] = _cells(corner, alike, side, upper - others[d], cost[d, d], used, cell_list[d])
        depth = d
    return np.int64(upper), priced
