"""The sets of nodes with their exact values, and the placements that gave them (numba)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.model.compiled import kernel
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.bounds.subgraphs.form import Form
from nmsolve.solvers.mapping.bounds.subgraphs.oracle import free_placement, solve

#: Placements remembered per set; the worst gives way.
PLACEMENTS = 48
#: States after which a set's search is given up.
MAX_STATES = 60_000


class Pool(NamedTuple):
    """Sets of nodes, flat.

    Attributes
    ----------
    nodes : (S, K) members, -1 beyond ``size``
    size : (S,)
    ptr : (S + 1,) entries of each set: its pairs with traffic
    pair, first, second : (E,) number of the pair, and its ends as positions in the set
    distance : (E, PLACEMENTS) grid distance of the pair in each known placement
    place : (S, PLACEMENTS, K, 2) the placements; filled : (S,) how many there are
    """

    nodes: IntArray
    size: IntArray
    ptr: IntArray
    pair: IntArray
    first: IntArray
    second: IntArray
    distance: IntArray
    place: IntArray
    filled: IntArray


def make_pool(form: Form, sets: list[list[int]]) -> Pool:
    """A pool without placements for the given sets."""
    edges = int((form.weight > 0).sum())
    number = {(int(u), int(v)): q for q, (u, v) in enumerate(form.pair[:edges].tolist())}
    widest = max((len(s) for s in sets), default=1)
    nodes = np.full((len(sets), widest), -1, np.int64)
    rows: list[tuple[int, int, int]] = []
    ptr = [0]
    for i, members in enumerate(sets):
        inside = sorted(members)
        nodes[i, : len(inside)] = inside
        for b, v in enumerate(inside):
            rows += [(number[u, v], a, b) for a, u in enumerate(inside[:b]) if (u, v) in number]
        ptr.append(len(rows))
    flat = np.array(rows, np.int64).reshape(-1, 3)
    return Pool(
        nodes,
        np.array([len(s) for s in sets], np.int64),
        np.array(ptr, np.int64),
        flat[:, 0].copy(),
        flat[:, 1].copy(),
        flat[:, 2].copy(),
        np.zeros((len(flat), PLACEMENTS), np.int64),
        np.zeros((len(sets), PLACEMENTS, widest, 2), np.int64),
        np.zeros(len(sets), np.int64),
    )


def joined(pool: Pool, keep: IntArray, more: Pool | None = None) -> tuple[Pool, IntArray]:
    """The sets ``keep`` of a pool, then those of ``more``; and the old entries that were kept."""
    entries = np.concatenate(
        [np.arange(pool.ptr[i], pool.ptr[i + 1]) for i in keep] or [np.zeros(0, np.int64)]
    )
    length = np.diff(pool.ptr)[keep]
    old = Pool(
        pool.nodes[keep], pool.size[keep], np.concatenate([[0], np.cumsum(length)]), pool.pair[entries],
        pool.first[entries], pool.second[entries], pool.distance[entries], pool.place[keep], pool.filled[keep],
    )  # fmt: skip
    if more is None:
        return old, entries
    widest = max(old.nodes.shape[1], more.nodes.shape[1])

    def wide(a: IntArray, axis: int, fill: int) -> IntArray:
        pad = [(0, 0)] * a.ndim
        pad[axis] = (0, widest - a.shape[axis])
        return np.pad(a, pad, constant_values=fill)

    both = Pool(
        np.concatenate([wide(old.nodes, 1, -1), wide(more.nodes, 1, -1)]),
        np.concatenate([old.size, more.size]),
        np.concatenate([old.ptr, old.ptr[-1] + more.ptr[1:]]),
        np.concatenate([old.pair, more.pair]),
        np.concatenate([old.first, more.first]),
        np.concatenate([old.second, more.second]),
        np.concatenate([old.distance, more.distance]),
        np.concatenate([wide(old.place, 2, 0), wide(more.place, 2, 0)]),
        np.concatenate([old.filled, more.filled]),
    )
    return both, entries


@kernel
def component_of(w: IntArray) -> IntArray:
    """(k,) number of the component of every node of a weight matrix."""
    k = len(w)
    label = np.full(k, -1, np.int64)
    stack = np.zeros(k, np.int64)
    count = 0
    for root in range(k):
        if label[root] >= 0:
            continue
        label[root], stack[0], top = count, root, 1
        while top:
            top -= 1
            u = stack[top]
            for v in range(k):
                if w[u, v] > 0 and label[v] < 0:
                    label[v], stack[top] = count, v
                    top += 1
        count += 1
    return label


@kernel
def solve_parts(
    w: IntArray, grid: IntArray, hint: IntArray, hinted: bool, budget: int, out: IntArray
) -> tuple[int, bool, bool]:
    """Least cost of any set, component by component: (cost, better than the hint, proved); placement to ``out``."""
    label = component_of(w)
    total, better, proved = 0, not hinted, True
    for c in range(label.max() + 1):
        members = np.flatnonzero(label == c)
        m = len(members)
        sub, place = np.zeros((m, m), np.int64), np.zeros((m, 2), np.int64)
        for a in range(m):
            place[a] = hint[members[a]]
            for b in range(m):
                sub[a, b] = w[members[a], members[b]]
        if not hinted:
            free_placement(sub, grid, place)
        upper = 0
        for a in range(m):
            for b in range(a):
                dx, dy = abs(place[a, 0] - place[b, 0]), abs(place[a, 1] - place[b, 1])
                upper += sub[a, b] * (grid[0] * dx + grid[1] * dy)
        if m > 1:
            cost, _, done = solve(sub, grid, place.copy(), upper, budget, place)
            better, proved = better or cost < upper, proved and done
            total += cost
        for a in range(m):
            out[members[a], 0], out[members[a], 1] = place[a, 0] + 4 * len(w) * c, place[a, 1]
    return total, better, proved


@kernel
def price(pool: Pool, grid: IntArray, share: IntArray, which: IntArray, value: IntArray) -> None:
    """Exact least cost of the sets ``which`` under the whole ``share`` (E,); better placements join the pool.

    ``value[i]`` becomes the least cost of set ``i`` on the free ``grid``, -1 if its search was too long.
    """
    first, second, distance, place, filled = pool.first, pool.second, pool.distance, pool.place, pool.filled
    for i in which:
        k, a, z = pool.size[i], pool.ptr[i], pool.ptr[i + 1]
        w = np.zeros((k, k), np.int64)
        for e in range(a, z):
            w[first[e], second[e]] = w[second[e], first[e]] = share[e]
        cost = np.zeros(filled[i] + 1, np.int64)
        for p in range(filled[i]):
            for e in range(a, z):
                cost[p] += share[e] * distance[e, p]
        known = filled[i] > 0
        hint = place[i, np.argmin(cost[: filled[i]]), :k] if known else np.zeros((k, 2), np.int64)
        found = np.zeros((k, 2), np.int64)
        total, better, proved = solve_parts(w, grid, hint, known, MAX_STATES, found)
        value[i] = total if proved else -1
        if better:
            slot = filled[i] if filled[i] < place.shape[1] else np.argmax(cost[: filled[i]])
            filled[i] = max(filled[i], slot + 1)
            place[i, slot, :k] = found
            for e in range(a, z):
                u, v = first[e], second[e]
                dx, dy = abs(found[u, 0] - found[v, 0]), abs(found[u, 1] - found[v, 1])
                distance[e, slot] = grid[0] * dx + grid[1] * dy
