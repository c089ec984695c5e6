"""Depth-first branch and bound over partial mappings, in slices that can be stopped and resumed.

Costs inside are *doubled* so that the Gilmore-Lawler bound, which counts every open pair from both ends, stays
whole. At a partial mapping with open nodes U and free cores Q,

``bound = 2 * fixed + min over assignments of sum_u (2 * linear[u, p] + least[u, p])``

where ``linear`` is u's traffic to mapped nodes and ``least`` the minimal scalar product of its traffic to open nodes with
the distances from p to free cores (Gilmore 1962, Lawler 1963). The assignment's reduced costs bound every child; cores they
exclude for a node stay excluded below. :func:`widen` bounds one partial mapping by the split bound as well (:mod:`ascent`).
"""

from __future__ import annotations

from math import ceil, exp
from typing import Any, NamedTuple, Protocol

import numpy as np

from nmsolve.model.basic_kernels import copy_to
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import BoolArray, IntArray
from nmsolve.solvers.mapping.branch_bound.ascent import ascend
from nmsolve.solvers.mapping.branch_bound.assignment import FAR, assign
from nmsolve.solvers.mapping.branch_bound.relaxation import SIZE, Relaxation

#: Cost of a core that a node is not allowed on; sums of a few dozen stay inside int64.
NEVER = 2**53
#: Entries of ``Tree.state``.
DEPTH, NODES, LIMIT, FOUND, BASE = 0, 1, 2, 3, 4
#: Children count ``exp(missing / (SCALE * missing of the parent))`` where a line to branch on is chosen.
SCALE = 0.15
#: Symmetries of the board are looked for above this depth; hardly any is left below.
SYMMETRIC = 4


class Tree(NamedTuple):
    """The problem's arrays and the state of the search.

    Attributes
    ----------
    traffic : (n, n) int64 directed weights
    dense : (P, P) int64 distances; cheap : the cheaper direction of each
    weight : (n, n) int64 traffic both ways
    heavy : (n, n) int64, node u's others by falling weight; near : (P, P) int64, core p's others by rising distance
    domain : (n + 1, n, P) bool, cores left to every node, per depth
    maps : (G, P) int64 symmetries of the board that keep the first domain, the identity among them
    linear : (n + 1, n, P) int64 per depth; fixed : (n + 1,) int64 per depth
    child_node, child_core, child_bound : (n + 1, max(n, P)) int64 per depth, by rising (doubled) bound
    children, turn : (n + 1,) int64 number of children per depth, and how many were entered
    core : (n,) int64 core of every node or -1; used : (P,) int64
    best : (n,) int64 best mapping found
    state : (5,) int64 depth (-1 if nothing is expanded yet), nodes expanded, doubled value every mapping must stay
        below, mappings found, depth at which the search began
    grain : all model objectives are multiples of this (>= 1)
    """

    traffic: IntArray
    dense: IntArray
    cheap: IntArray
    weight: IntArray
    heavy: IntArray
    near: IntArray
    domain: BoolArray
    maps: IntArray
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


class Stack(Protocol):
    """What a depth-first search has, however many nodes a core holds; shapes as in :class:`Tree`."""

    @property
    def core(self) -> IntArray: ...
    @property
    def fixed(self) -> IntArray: ...
    @property
    def best(self) -> IntArray: ...
    @property
    def state(self) -> IntArray: ...
    @property
    def child_bound(self) -> IntArray: ...
    @property
    def children(self) -> IntArray: ...
    @property
    def turn(self) -> IntArray: ...


def new_tree(
    traffic: IntArray, dense: IntArray, allowed: BoolArray, maps: IntArray, limit: int, grain: int
) -> Tree:
    """A search that looks for mappings with model objective below ``limit``; nothing is expanded yet."""
    n, cores = allowed.shape
    weight, cheap = traffic + traffic.T, np.minimum(dense, dense.T)
    blank = np.zeros((n + 1, max(n, cores)), np.int64)
    state = np.array([-1, 0, 2 * limit, 0, 0], np.int64)
    domain = np.zeros((n + 1, n, cores), bool)
    domain[0] = allowed
    return Tree(
        traffic=traffic,
        dense=dense,
        cheap=cheap,
        weight=weight,
        heavy=np.argsort(-weight, axis=1, kind="stable").astype(np.int64),
        near=np.argsort(cheap, axis=1, kind="stable").astype(np.int64),
        domain=domain,
        maps=maps,
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


def twin(t: Tree) -> Tree:
    """Return the same search with a state of its own, for another thread; it has counted no partial mapping yet."""
    own: dict[str, Any] = {k: v.copy() for k, v in t._asdict().items() if isinstance(v, np.ndarray)}
    other = t._replace(**own)
    other.state[NODES] = 0
    return other


@kernel
def begin(t: Tree, core: IntArray, domain: BoolArray) -> None:
    """Search from the partial mapping ``core`` ((n,), -1 for open nodes) next, open nodes on ``domain`` (n, P).

    What was left of another search is dropped.
    """
    t.core[:] = -1
    t.used[:] = 0
    depth = 0
    for u in range(core.shape[0]):
        if core[u] >= 0:
            enter(t, depth, u, core[u])
            depth += 1
    t.domain[depth] = domain
    t.state[BASE] = depth
    t.state[DEPTH] = -1


@kernel
def search(t: Tree, budget: int) -> bool:
    """Expand up to ``budget`` partial mappings; True once everything below the first one is exhausted.

    ``t.state[LIMIT]`` is then twice the optimum if a mapping was found, or nothing lies below the first limit.
    """
    n = t.core.shape[0]
    base = t.state[BASE]
    if t.state[DEPTH] < 0:
        expand(t, base)
        t.state[DEPTH] = base
    end = t.state[NODES] + budget
    while t.state[NODES] < end:
        d = t.state[DEPTH]
        k = t.turn[d]
        if k == t.children[d] or t.child_bound[d, k] >= t.state[LIMIT]:
            if d == base:
                t.turn[d] = t.children[d]
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
            finish(t)
        else:
            expand(t, d + 1)
    return False


@plain
def finish(t: Stack) -> None:
    """Keep the mapping, now complete, if it is below the limit; it has no children."""
    n = t.core.shape[0]
    t.children[n] = 0
    t.turn[n] = 0
    if 2 * t.fixed[n] < t.state[LIMIT]:
        t.state[LIMIT] = 2 * t.fixed[n]
        t.state[FOUND] += 1
        copy_to(t.best, t.core)


@kernel
def enter(t: Tree, d: int, u: int, p: int) -> None:
    """Put node ``u`` on core ``p``: the cost so far and the linear terms of depth ``d + 1``."""
    t.core[u] = p
    t.used[p] = 1
    t.domain[d + 1] = t.domain[d]
    t.fixed[d + 1] = t.fixed[d] + t.linear[d, u, p]
    for v in range(t.core.shape[0]):
        if t.core[v] < 0:
            out, back = t.traffic[v, u], t.traffic[u, v]
            for q in range(t.used.shape[0]):
                t.linear[d + 1, v, q] = t.linear[d, v, q] + out * t.dense[q, p] + back * t.dense[p, q]


@kernel
def expand(t: Tree, d: int) -> None:
    """Bound the partial mapping at depth ``d`` and list its children by rising bound."""
    nodes, cores = open_places(t)
    bound = child_bounds(t, d, nodes, cores)
    if bound.size:
        exclude(t, d, nodes, cores, bound)
        branch(t, d, nodes, cores, bound, False)


@kernel
def widen(t: Tree, x: Relaxation, steps: int) -> None:
    """Bound the partial mapping of :func:`begin` by both bounds and list its children at its depth.

    Multipliers start from those ``x`` holds at this depth and end one level deeper.
    """
    d = t.state[BASE]
    nodes, cores = open_places(t)
    bound = child_bounds(t, d, nodes, cores)
    if bound.size == 0:
        return
    limit, grain = t.state[LIMIT], 2 * t.grain
    target = (limit - grain) / x.unit
    low = ascend(x, t.core, t.used, t.domain[d], d, target + 1e-7 * abs(target) + 1e-9, steps)
    margin = 1e-10 * (abs(low) + x.scalar[SIZE])
    if low == np.inf or (low - margin) * x.unit > limit - grain:
        return
    for i in range(len(nodes)):
        for j in range(len(cores)):
            child = (low + x.reduced[i, j] - margin) * x.unit
            if child > limit - grain:
                bound[i, j] = limit
            else:
                bound[i, j] = max(bound[i, j], ceil(child / grain) * grain)
    exclude(t, d, nodes, cores, bound)
    branch(t, d, nodes, cores, bound, True)


@kernel
def child_bounds(t: Tree, d: int, nodes: IntArray, cores: IntArray) -> IntArray:
    """(open nodes, free cores) doubled Gilmore-Lawler bounds of the children; empty if none can be below the limit."""
    t.state[NODES] += 1
    rows, cols = len(nodes), len(cores)
    t.turn[d] = 0
    t.children[d] = 0
    none = np.empty((0, 0), np.int64)
    if rows > cols:
        return none
    cost = open_costs(t, d, nodes, cores)
    row_dual, col_dual = np.empty(rows + 1, np.int64), np.empty(cols + 1, np.int64)
    work = np.empty((4, cols + 1), np.int64)
    low = assign(cost, rows, cols, FAR, row_dual, col_dual, work[0], work[1], work[2], work[3])
    low += 2 * t.fixed[d]
    if low >= t.state[LIMIT] or low >= NEVER:
        return none
    bound = np.empty((rows, cols), np.int64)
    step = 2 * t.grain
    for i in range(rows):
        for j in range(cols):
            child = low + cost[i, j] - row_dual[i + 1] - col_dual[j + 1]
            bound[i, j] = (child + step - 1) // step * step
    return bound


@plain
def exclude(t: Tree, d: int, nodes: IntArray, cores: IntArray, bound: IntArray) -> None:
    """Take the cores at which a child is not below the limit out of the domains."""
    for i in range(len(nodes)):
        for j in range(len(cores)):
            if bound[i, j] >= t.state[LIMIT]:
                t.domain[d, nodes[i], cores[j]] = False


@kernel
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


@kernel
def open_costs(t: Tree, d: int, nodes: IntArray, cores: IntArray) -> IntArray:
    """(open nodes, free cores) doubled linear cost plus minimal scalar product; ``NEVER`` where not allowed."""
    rows, cols = len(nodes), len(cores)
    least = np.zeros((max(1, cols - 1), cols), np.int64)
    for j in range(cols):
        k = 0
        for q in t.near[cores[j]]:
            if t.used[q] == 0 and q != cores[j]:
                least[k, j] = t.cheap[cores[j], q]
                k += 1
    cost = np.empty((rows, cols), np.int64)
    for i in range(rows):
        u, line, k = nodes[i], cost[i], 0
        for j in range(cols):
            line[j] = 2 * t.linear[d, u, cores[j]]
        for v in t.heavy[u]:
            if t.core[v] < 0 and v != u:
                w, distance = t.weight[u, v], least[k]
                if w == 0:
                    break
                for j in range(cols):
                    line[j] += w * distance[j]
                k += 1
        for j in range(cols):
            if not t.domain[d, u, cores[j]]:
                line[j] = NEVER
    return cost


@kernel
def branch(t: Tree, d: int, nodes: IntArray, cores: IntArray, bound: IntArray, wide: bool) -> None:
    """Choose a node (all its cores) or, where every core is needed, a core (all its nodes), and list the children.

    A node needs only one core of those that symmetries swap which keep the cores in use. The choice leaves the fewest
    children below the limit, among those with the highest total bound; ``wide``: children count by what they miss.
    """
    rows, cols = bound.shape
    limit = t.state[LIMIT]
    first = representatives(t, d, cores)
    unit = max(1.0, SCALE * (limit - bound.min()))
    best_line, fewest, highest = -1, 1e300, -1
    for line in range(rows + (cols if rows == cols else 0)):
        by_row = line < rows
        left, total = 0.0, 0
        for k in range(cols if by_row else rows):
            b = bound[line, k] if by_row else bound[k, line - rows]
            if by_row and not first[k]:
                b = limit
            if b < limit:
                left += exp((limit - b) / unit) if wide else 1.0
            total += min(b, limit)
        if left < fewest or (left == fewest and total > highest):
            fewest, highest, best_line = left, total, line
    count = 0
    for c in range(cols if best_line < rows else rows):
        i, j = (best_line, c) if best_line < rows else (c, best_line - rows)
        b = bound[i, j]
        if b >= limit or (best_line < rows and not first[c]):
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


@kernel
def representatives(t: Tree, d: int, cores: IntArray) -> BoolArray:
    """Which free cores are the first of those that the symmetries keeping every used core in place swap."""
    out = np.ones(len(cores), np.bool_)
    if d >= SYMMETRIC:
        return out
    for g in t.maps:
        keeps = True
        for p in range(len(t.used)):
            if t.used[p] == 1 and g[p] != p:
                keeps = False
                break
        if keeps:
            for k in range(len(cores)):
                if g[cores[k]] < cores[k]:
                    out[k] = False
    return out


def open_bound(t: Stack) -> int:
    """Lower bound on every mapping below the limit: the least (doubled) bound of a child not yet entered, halved up."""
    low = int(t.state[LIMIT])
    for d in range(int(t.state[BASE]), int(t.state[DEPTH]) + 1):
        if t.turn[d] < t.children[d]:
            low = min(low, int(t.child_bound[d, t.turn[d]]))
    return -(-low // 2)
