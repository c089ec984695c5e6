"""Depth-first branch and bound over partial mappings, in slices that can be stopped and resumed.

Costs inside are *doubled* so that the Gilmore-Lawler bound, which counts every open pair from both ends, stays
whole. At a partial mapping with open nodes U and free cores Q,

``bound = 2 * fixed + min over assignments of sum_u (2 * linear[u, p] + least[u, p])``

where ``linear`` is u's traffic to mapped nodes and ``least`` the minimal scalar product of its traffic to open nodes with the
distances from p to free cores (Gilmore 1962, Lawler 1963). The assignment's reduced costs bound every child.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from nmsolve.model.types import BoolArray, IntArray
from nmsolve.solvers.mapping.branch_bound.assignment import assign

#: Cost of a core that a node is not allowed on; sums of a few dozen stay inside int64.
NEVER = 2**53
#: Entries of ``Tree.state``.
DEPTH, NODES, LIMIT, FOUND = 0, 1, 2, 3


class Tree(NamedTuple):
    """The problem's arrays and the state of the search.

    Attributes
    ----------
    traffic : (n, n) int64 directed weights
    dense : (P, P) int64 distances; cheap : the cheaper direction of each
    weight : (n, n) int64 traffic both ways
    heavy : (n, n) int64, node u's others by falling weight; near : (P, P) int64, core p's others by rising distance
    allowed : (n, P) bool
    linear : (n + 1, n, P) int64 per depth; fixed : (n + 1,) int64 per depth
    child_node, child_core, child_bound : (n + 1, max(n, P)) int64 per depth, by rising (doubled) bound
    children, turn : (n + 1,) int64 number of children per depth, and how many were entered
    core : (n,) int64 core of every node or -1; used : (P,) int64
    best : (n,) int64 best mapping found
    state : (4,) int64 depth, nodes expanded, doubled value every mapping must stay below, mappings found
    grain : all model objectives are multiples of this (>= 1)
    """

    traffic: IntArray
    dense: IntArray
    cheap: IntArray
    weight: IntArray
    heavy: IntArray
    near: IntArray
    allowed: BoolArray
    linear: IntArray
    fixed: IntArray
    child_node: IntArray
    child_core: IntArray
    child_bound: IntArray
    children: IntArray
    turn: IntArray
    core: IntArray
    used: IntArray
    best: IntArray
    state: IntArray
    grain: int


def new_tree(traffic: IntArray, dense: IntArray, allowed: BoolArray, limit: int, grain: int) -> Tree:
    """A search that looks for mappings with model objective below ``limit``; nothing is expanded yet."""
    n, cores = allowed.shape
    weight, cheap = traffic + traffic.T, np.minimum(dense, dense.T)
    blank = np.zeros((n + 1, max(n, cores)), np.int64)
    state = np.array([-1, 0, 2 * limit, 0], np.int64)
    return Tree(
        traffic=traffic,
        dense=dense,
        cheap=cheap,
        weight=weight,
        heavy=np.argsort(-weight, axis=1, kind="stable").astype(np.int64),
        near=np.argsort(cheap, axis=1, kind="stable").astype(np.int64),
        allowed=allowed,
        linear=np.zeros((n + 1, n, cores), np.int64),
        fixed=np.zeros(n + 1, np.int64),
        child_node=blank.copy(),
        child_core=blank.copy(),
        child_bound=blank.copy(),
        children=np.zeros(n + 1, np.int64),
        turn=np.zeros(n + 1, np.int64),
        core=np.full(n, -1, np.int64),
        used=np.zeros(cores, np.int64),
        best=np.full(n, -1, np.int64),
        state=state,
        grain=grain,
    )


@nb.njit(cache=True, nogil=True)
def search(t: Tree, budget: int) -> bool:
    """Expand up to ``budget`` partial mappings; True once the tree is exhausted.

    ``t.state[LIMIT]`` is then twice the optimum if a mapping was found, or nothing lies below the first limit.
    """
    n = t.core.shape[0]
    if t.state[DEPTH] < 0:
        expand(t, 0)
        t.state[DEPTH] = 0
    end = t.state[NODES] + budget
    while t.state[NODES] < end:
        d = t.state[DEPTH]
        k = t.turn[d]
        if k == t.children[d] or t.child_bound[d, k] >= t.state[LIMIT]:
            if d == 0:
                t.turn[0] = t.children[0]
                return True
            d -= 1
            u = t.child_node[d, t.turn[d] - 1]
            t.used[t.core[u]] = 0
            t.core[u] = -1
            t.state[DEPTH] = d
            continue
        t.turn[d] = k + 1
        enter(t, d, t.child_node[d, k], t.child_core[d, k])
        t.state[DEPTH] = d + 1
        if d + 1 == n:
            t.children[n] = 0
            t.turn[n] = 0
            if 2 * t.fixed[n] < t.state[LIMIT]:
                t.state[LIMIT] = 2 * t.fixed[n]
                t.state[FOUND] += 1
                t.best[:] = t.core
        else:
            expand(t, d + 1)
    return False


@nb.njit(cache=True, nogil=True)
def enter(t: Tree, d: int, u: int, p: int) -> None:
    """Put node ``u`` on core ``p``: the cost so far and the linear terms of depth ``d + 1``."""
    t.core[u] = p
    t.used[p] = 1
    t.fixed[d + 1] = t.fixed[d] + t.linear[d, u, p]
    for v in range(t.core.shape[0]):
        if t.core[v] < 0:
            out, back = t.traffic[v, u], t.traffic[u, v]
            for q in range(t.used.shape[0]):
                t.linear[d + 1, v, q] = t.linear[d, v, q] + out * t.dense[q, p] + back * t.dense[p, q]


@nb.njit(cache=True, nogil=True)
def expand(t: Tree, d: int) -> None:
    """Bound the partial mapping at depth ``d`` and list its children by rising bound."""
    t.state[NODES] += 1
    nodes, cores = open_places(t)
    rows, cols = len(nodes), len(cores)
    t.turn[d] = 0
    t.children[d] = 0
    if rows > cols:
        return
    cost = open_costs(t, d, nodes, cores)
    row_dual, col_dual = np.empty(rows + 1, np.int64), np.empty(cols + 1, np.int64)
    work = np.empty((4, cols + 1), np.int64)
    low = assign(cost, rows, cols, row_dual, col_dual, work[0], work[1], work[2], work[3])
    low += 2 * t.fixed[d]
    if low >= t.state[LIMIT] or low >= NEVER:
        return
    bound = np.empty((rows, cols), np.int64)
    step = 2 * t.grain
    for i in range(rows):
        for j in range(cols):
            child = low + cost[i, j] - row_dual[i + 1] - col_dual[j + 1]
            bound[i, j] = (child + step - 1) // step * step
    branch(t, d, nodes, cores, bound)


@nb.njit(cache=True, nogil=True)
def open_places(t: Tree) -> tuple[IntArray, IntArray]:
    """Nodes not on a core yet, and cores without a node."""
    nodes, cores = np.empty(len(t.core), np.int64), np.empty(len(t.used), np.int64)
    rows = cols = 0
    for u in range(len(t.core)):
        if t.core[u] < 0:
            nodes[rows] = u
            rows += 1
    for p in range(len(t.used)):
        if t.used[p] == 0:
            cores[cols] = p
            cols += 1
    return nodes[:rows], cores[:cols]


@nb.njit(cache=True, nogil=True)
def open_costs(t: Tree, d: int, nodes: IntArray, cores: IntArray) -> IntArray:
    """(open nodes, free cores) doubled linear cost plus minimal scalar product; ``NEVER`` where not allowed."""
    rows, cols = len(nodes), len(cores)
    weights, distances = np.zeros((rows, rows), np.int64), np.zeros((cols, cols), np.int64)
    for i in range(rows):
        k = 0
        for v in t.heavy[nodes[i]]:
            if t.core[v] < 0 and v != nodes[i]:
                weights[i, k] = t.weight[nodes[i], v]
                k += 1
    for j in range(cols):
        k = 0
        for q in t.near[cores[j]]:
            if t.used[q] == 0 and q != cores[j]:
                distances[j, k] = t.cheap[cores[j], q]
                k += 1
    cost = np.empty((rows, cols), np.int64)
    for i in range(rows):
        for j in range(cols):
            if not t.allowed[nodes[i], cores[j]]:
                cost[i, j] = NEVER
                continue
            least = 0
            for k in range(rows - 1):
                if weights[i, k] == 0:
                    break
                least += weights[i, k] * distances[j, k]
            cost[i, j] = 2 * t.linear[d, nodes[i], cores[j]] + least
    return cost


@nb.njit(cache=True, nogil=True)
def branch(t: Tree, d: int, nodes: IntArray, cores: IntArray, bound: IntArray) -> None:
    """Choose a node (all its cores) or, where every core is needed, a core (all its nodes), and list the children.

    The choice leaves the fewest children below the limit, among those with the highest total bound.
    """
    rows, cols = bound.shape
    limit = t.state[LIMIT]
    best_row, best_col, fewest, highest = -1, -1, 2**62, -1
    for line in range(rows + (cols if rows == cols else 0)):
        by_row = line < rows
        left, total = 0, 0
        for k in range(cols if by_row else rows):
            b = bound[line, k] if by_row else bound[k, line - rows]
            if b < limit:
                left += 1
            total += min(b, limit)
        if left < fewest or (left == fewest and total > highest):
            fewest, highest = left, total
            best_row, best_col = (line, -1) if by_row else (-1, line - rows)
    count = 0
    for c in range(cols if best_row >= 0 else rows):
        i, j = (best_row, c) if best_row >= 0 else (c, best_col)
        b = bound[i, j]
        if b >= limit:
            continue
        k = count
        while k > 0 and t.child_bound[d, k - 1] > b:  # insertion keeps the list sorted and stable
            t.child_node[d, k] = t.child_node[d, k - 1]
            t.child_core[d, k] = t.child_core[d, k - 1]
            t.child_bound[d, k] = t.child_bound[d, k - 1]
            k -= 1
        t.child_node[d, k], t.child_core[d, k], t.child_bound[d, k] = nodes[i], cores[j], b
        count += 1
    t.children[d] = count


def open_bound(t: Tree) -> int:
    """Lower bound on every mapping below the limit: the least (doubled) bound of a child not yet entered, halved up."""
    low = int(t.state[LIMIT])
    for d in range(int(t.state[DEPTH]) + 1):
        if t.turn[d] < t.children[d]:
            low = min(low, int(t.child_bound[d, t.turn[d]]))
    return -(-low // 2)
