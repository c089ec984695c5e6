"""Least cost of a few nodes on an unbounded grid: exact branch and bound over whole numbers.

``opt(S, w) = min sum w_uv (lx |x_u - x_v| + ly |y_u - y_v|)`` over placements of the nodes on different cells of
Z x Z, at most ``cols`` wide and ``rows`` high. Nodes are placed one by one, the most attached first. A state is cut
off when

``cost so far + sum_v (cheapest free cell of v towards the placed nodes) + opt(nodes left, alone)``

reaches the best known cost. Of the nodes left that share a cheapest cell, all but one pay for their second best.
``opt`` of the nodes left is known from the same search, done before on every end of the order ("Russian dolls", one
component at a time). Empty rows and columns can be closed up without making any distance longer, so cells further
out than there are nodes left need not be tried.
"""

from __future__ import annotations

import numpy as np

from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import BoolArray, IntArray

_BIG = 2**62


@kernel
def attachment_order(weight: IntArray, members: IntArray) -> IntArray:
    """``members`` in the order of placing: heaviest first, then always the one most attached to those before."""
    k = len(members)
    order = members.copy()
    pull = np.zeros(k, np.int64)
    total = np.zeros(k, np.int64)
    for i in range(k):
        for j in range(k):
            total[i] += weight[order[i], order[j]]
    for at in range(k):
        best = at
        for i in range(at + 1, k):
            if pull[i] > pull[best] or (pull[i] == pull[best] and total[i] > total[best]):
                best = i
        order[at], order[best] = order[best], order[at]
        pull[at], pull[best] = pull[best], pull[at]
        total[at], total[best] = total[best], total[at]
        for i in range(at + 1, k):
            pull[i] += weight[order[at], order[i]]
    return order


@plain
def _attach(
    d: int,
    k: int,
    fx: IntArray,
    fy: IntArray,
    taken: BoolArray,
    box: IntArray,
    cell: IntArray,
    regret: IntArray,
) -> tuple[int, int]:
    """Bounds on the cost between the ``d`` placed nodes and the others: (all of them, all but node ``d``).

    No two of them use one cell: of two that want the same, the one that loses less takes its second best. The two
    best cells are in the box of the placed nodes or at most two beyond.
    """
    side = taken.shape[0]
    x0, x1, y0, y1 = box[d, 0] - 2, box[d, 1] + 3, box[d, 2] - 2, box[d, 3] + 3
    total, others = 0, 0
    for v in range(k - 1, d - 1, -1):
        if v == d:
            others = total
        best, second, where = _BIG, _BIG, -1
        for y in range(y0, y1):
            base = fy[d, v, y]
            if base >= second:
                continue
            for x in range(x0, x1):
                c = base + fx[d, v, x]
                if c < second and not taken[y, x]:
                    if c < best:
                        best, second, where = c, best, y * side + x
                    else:
                        second = c
        total += best
        loss = second - best
        for u in range(k - 1, v, -1):
            if cell[u] == where and regret[u] >= 0:
                if loss > regret[u]:
                    total += regret[u]
                    regret[u] = -1
                else:
                    total += loss
                    loss = -1
                break
        cell[v], regret[v] = where, loss
    return total, others


@plain
def _candidates(
    d: int,
    limit: int,
    fx: IntArray,
    fy: IntArray,
    taken: BoolArray,
    reach: IntArray,
    diagonal: bool,
    cand: IntArray,
    cost: IntArray,
) -> int:
    """Free cells in ``reach`` for node ``d`` that cost less than ``limit``, cheapest first; returns how many."""
    side = taken.shape[0]
    count = 0
    row, col = fy[d, d], fx[d, d]
    for y in range(reach[2], reach[3] + 1):
        if row[y] >= limit:
            continue
        for x in range(reach[0], reach[1] + 1):
            c = row[y] + col[x]
            if c >= limit or taken[y, x] or (diagonal and x < y):
                continue
            i = count
            while i > 0 and cost[d, i - 1] > c:
                cost[d, i], cand[d, i] = cost[d, i - 1], cand[d, i - 1]
                i -= 1
            cost[d, i], cand[d, i] = c, y * side + x
            count += 1
    return count


@plain
def _reach(d: int, k: int, mid: int, grid: IntArray, box: IntArray, same: BoolArray, reach: IntArray) -> None:
    """The box that node ``d`` may be put in: (x0, x1, y0, y1), one of every set of mirror images.

    ``same[d]`` says whether all placed nodes are on the vertical, the horizontal, the diagonal line through the first.
    """
    left = k - d
    rows, cols = min(k, grid[2]), min(k, grid[3])
    reach[0] = max(box[d, 0] - left, box[d, 1] - cols + 1)
    reach[1] = min(box[d, 1] + left, box[d, 0] + cols - 1)
    reach[2] = max(box[d, 2] - left, box[d, 3] - rows + 1)
    reach[3] = min(box[d, 3] + left, box[d, 2] + rows - 1)
    if same[d, 0]:
        reach[0] = max(reach[0], mid)
    if same[d, 1]:
        reach[2] = max(reach[2], mid)


@plain
def _add_cell(
    d: int,
    k: int,
    y: int,
    x: int,
    w: IntArray,
    grid: IntArray,
    fx: IntArray,
    fy: IntArray,
    box: IntArray,
    same: BoolArray,
) -> None:
    """Note that node ``d - 1`` sits at (y, x): box, symmetry and the cost tables of the nodes ``d`` .. ``k - 1``."""
    mid = k + 2
    if d == 1:
        box[d, 0], box[d, 1], box[d, 2], box[d, 3] = x, x, y, y
        same[d, 0], same[d, 1] = True, True
        same[d, 2] = grid[0] == grid[1] and (grid[2] == grid[3] or min(grid[2], grid[3]) >= k)
    else:
        box[d, 0], box[d, 1] = min(box[d - 1, 0], x), max(box[d - 1, 1], x)
        box[d, 2], box[d, 3] = min(box[d - 1, 2], y), max(box[d - 1, 3], y)
        same[d, 0] = same[d - 1, 0] and x == mid
        same[d, 1] = same[d - 1, 1] and y == mid
        same[d, 2] = same[d - 1, 2] and x == y
    # No placement needs more than k rows or columns; two more on each side serve the bound.
    for v in range(d, k):
        sx, sy = w[d - 1, v] * grid[0], w[d - 1, v] * grid[1]
        for i in range(box[d, 1] - k - 1, box[d, 0] + k + 2):
            fx[d, v, i] = fx[d - 1, v, i] + sx * abs(i - x)
        for i in range(box[d, 3] - k - 1, box[d, 2] + k + 2):
            fy[d, v, i] = fy[d - 1, v, i] + sy * abs(i - y)


@kernel
def _search(
    w: IntArray, rest: IntArray, grid: IntArray, upper: int, budget: int, out: IntArray
) -> tuple[int, int, bool]:
    """Depth-first search with the nodes in the order of ``w``.

    ``rest[d]`` bounds the cost among nodes ``d..`` alone. Returns (least cost if below ``upper``, else ``upper``;
    states visited; whether the search is complete). A placement that was found goes to ``out`` (k, 2).
    """
    k = len(w)
    side = 2 * k + 5
    mid = k + 2
    fx, fy = np.zeros((k + 1, k, side), np.int64), np.zeros((k + 1, k, side), np.int64)
    taken = np.zeros((side, side), np.bool_)
    box, same, reach = np.zeros((k + 1, 4), np.int64), np.zeros((k + 1, 3), np.bool_), np.zeros(4, np.int64)
    cand, cost = np.zeros((k, side * side), np.int64), np.zeros((k, side * side), np.int64)
    count, at, others = np.zeros(k, np.int64), np.zeros(k, np.int64), np.zeros(k, np.int64)
    spent, place = np.zeros(k + 1, np.int64), np.zeros(k, np.int64)
    cell, regret = np.zeros(k, np.int64), np.zeros(k, np.int64)
    count[0], cand[0, 0] = 1, mid * side + mid
    states, depth = 0, 0
    while depth >= 0:
        if at[depth] > 0:
            taken[place[depth] // side, place[depth] % side] = False
        i = at[depth]
        if i >= count[depth] or spent[depth] + cost[depth, i] + others[depth] + rest[depth] >= upper:
            at[depth] = 0
            depth -= 1
            continue
        at[depth] += 1
        place[depth] = cand[depth, i]
        y, x = place[depth] // side, place[depth] % side
        taken[y, x] = True
        d = depth + 1
        spent[d] = spent[depth] + cost[depth, i]
        states += 1
        if d == k:
            upper = spent[d]
            for v in range(k):
                out[v, 0], out[v, 1] = place[v] % side - mid, place[v] // side - mid
            continue
        if states > budget:
            return upper, states, False
        _add_cell(d, k, y, x, w, grid, fx, fy, box, same)
        attach, others[d] = _attach(d, k, fx, fy, taken, box, cell, regret)
        if spent[d] + attach + rest[d] >= upper:
            continue
        _reach(d, k, mid, grid, box, same, reach)
        limit = upper - spent[d] - others[d] - rest[d]
        count[d] = _candidates(d, limit, fx, fy, taken, reach, same[d, 2], cand, cost)
        depth = d
    return upper, states, True


@plain
def _cost(w: IntArray, members: IntArray, position: IntArray, grid: IntArray) -> int:
    """Cost among ``members`` at ``position`` (k, 2)."""
    total = 0
    for i in range(len(members)):
        u = members[i]
        for j in range(i):
            v = members[j]
            dx, dy = abs(position[u, 0] - position[v, 0]), abs(position[u, 1] - position[v, 1])
            total += w[u, v] * (grid[0] * dx + grid[1] * dy)
    return total


@kernel
def _rest(w: IntArray, order: IntArray, first: int, label: IntArray, value: IntArray) -> IntArray:
    """Bounds for the ends of ``order`` (positions of one component of those from ``first`` on) from solved suffixes.

    The nodes left hold all positions >= t of the component for some t: its components there are solved, and every
    edge outside them is at least one link long.
    """
    k, m = len(w), len(order)
    out = np.zeros(m + 1, np.int64)
    left = np.zeros(k, np.bool_)
    for d in range(m - 1, 0, -1):
        left[order[d]] = True
        t = k
        for p in range(k - 1, first, -1):
            if left[p]:
                t = p
            elif label[first, p] == label[first, order[0]]:
                break
        if t < k:
            for p in range(t, k):
                if left[p] and label[t, p] == p:
                    out[d] += value[t, p]
        for i in range(d, m):
            for j in range(d, i):
                if order[i] < t or order[j] < t:
                    out[d] += w[order[i], order[j]]
    return out


@kernel
def _suffixes(w: IntArray, hint: IntArray, grid: IntArray, budget: int) -> tuple[IntArray, int, bool]:
    """Least cost among the nodes ``i..`` alone for every ``i >= 1``, and the states visited; ``hint`` is a placement.

    ``label[i, p]`` names the component of position ``p`` among ``i..`` by its first position, ``value`` is its cost.
    """
    k = len(w)
    label, value = np.full((k + 1, k), -1, np.int64), np.zeros((k + 1, k), np.int64)
    total = np.zeros(k + 1, np.int64)
    states = 0
    for i in range(k - 1, 0, -1):
        label[i], value[i] = label[i + 1], value[i + 1]
        label[i, i] = i
        for p in range(i + 1, k):
            if w[i, p] > 0 and label[i, p] != i:
                old = label[i, p]
                for q in range(i + 1, k):
                    if label[i, q] == old:
                        label[i, q] = i
                value[i, old] = 0
        members = np.flatnonzero(label[i] == i)
        m = len(members)
        if m > 1:
            order = attachment_order(w, members)
            sub = np.zeros((m, m), np.int64)
            for a in range(m):
                for b in range(m):
                    sub[a, b] = w[order[a], order[b]]
            rest = _rest(w, order, i, label, value)
            found = np.zeros((m, 2), np.int64)
            cost, visited, done = _search(sub, rest, grid, _cost(w, members, hint, grid), budget, found)
            states += visited
            if not done:
                return total, states, False
            value[i, i] = cost
        total[i] = value[i].sum()
    return total, states, True


@kernel
def free_placement(weight: IntArray, grid: IntArray, out: IntArray) -> None:
    """A placement to start from: the most attached nodes first, each on the cheapest free cell."""
    k = len(weight)
    order = attachment_order(weight, np.arange(k))
    wide, high = min(k, grid[3]), min(k, grid[2])
    x0, y0 = -((wide - 1) // 2), -((high - 1) // 2)
    out[order[0]] = 0
    for i in range(1, k):
        v = order[i]
        best = _BIG
        for y in range(y0, y0 + high):
            for x in range(x0, x0 + wide):
                cost = 0
                for j in range(i):
                    u = order[j]
                    dx, dy = abs(out[u, 0] - x), abs(out[u, 1] - y)
                    if dx + dy == 0:
                        cost = _BIG
                        break
                    cost += weight[u, v] * (grid[0] * dx + grid[1] * dy)
                if cost < best:
                    best, out[v, 0], out[v, 1] = cost, x, y


@kernel
def solve(
    weight: IntArray, grid: IntArray, hint: IntArray, upper: int, budget: int, out: IntArray
) -> tuple[int, int, bool]:
    """Exact least cost of a connected set of nodes if it is below ``upper``.

    Parameters
    ----------
    weight : (k, k) int64 symmetric, >= 0, zero diagonal; connected. ``sum(weight) * k * link`` must be below 2**61
    grid : (4,) int64: least link in x and in y, most rows and columns
    hint : (k, 2) any placement of the nodes on different cells
    upper : only placements cheaper than this are looked for
    budget : most states for every search
    out : (k, 2) receives the placement, if one is found

    Returns
    -------
    The least cost or ``upper``, whichever is less; states visited; True if that is proved (the budget lasted).
    """
    k = len(weight)
    order = attachment_order(weight, np.arange(k))
    w, place = np.zeros((k, k), np.int64), np.zeros((k, 2), np.int64)
    for a in range(k):
        place[a] = hint[order[a]]
        for b in range(k):
            w[a, b] = weight[order[a], order[b]]
    rest, states, done = _suffixes(w, place, grid, budget)
    if not done:
        return upper, states, False
    cost, visited, done = _search(w, rest, grid, upper, budget, place)
    if cost < upper:
        for a in range(k):
            out[order[a]] = place[a]
    return cost, states + visited, done
