"""Depth-first branch and bound where cores hold several nodes, in slices that can be stopped and resumed.

The bound is in :mod:`packing_bound`; costs are *doubled*, as there. The search branches on the node with the fewest cores left.
Cores that a bound excludes for a node stay excluded below.
"""

from __future__ import annotations

import numpy as np

from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import BoolArray
from nmsolve.solvers.mapping.branch_bound.packing_bound import bound_open
from nmsolve.solvers.mapping.branch_bound.packing_state import Packing
from nmsolve.solvers.mapping.branch_bound.search import DEPTH, LIMIT, NODES, finish


@kernel
def pack(t: Packing, budget: int) -> bool:
    """Expand up to ``budget`` partial mappings; True once everything is exhausted.

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
                t.turn[d] = t.children[d]
                return True
            leave(t, t.node[d - 1])
            t.state[DEPTH] = d - 1
            continue
        t.turn[d] = k + 1
        seat(t, d, t.node[d], t.child_core[d, k])
        t.state[DEPTH] = d + 1
        if d + 1 < n:
            expand(t, d + 1)
            continue
        finish(t)
    return False


@plain
def leave(t: Packing, u: int) -> None:
    """Take node ``u`` from its core."""
    t.held[t.core[u]] -= 1
    t.core[u] = -1


@plain
def seat(t: Packing, d: int, u: int, p: int) -> None:
    """Put node ``u`` on core ``p``: cost so far, room, linear terms and domains of depth ``d + 1``."""
    t.core[u] = p
    t.held[p] += 1
    t.fixed[d + 1] = t.fixed[d] + t.linear[d, u, p]
    for q in range(len(t.held)):
        for r in range(t.size.shape[1]):
            t.free[d + 1, q, r] = t.free[d, q, r] - (t.size[u, r] if q == p else 0)
    for v in range(len(t.core)):
        if t.core[v] < 0:
            out, back = t.traffic[v, u], t.traffic[u, v]
            for q in range(len(t.held)):
                t.linear[d + 1, v, q] = t.linear[d, v, q] + out * t.dense[q, p] + back * t.dense[p, q]
                t.domain[d + 1, v, q] = t.domain[d, v, q]
            t.domain[d + 1, v, p] &= not t.apart[u, v] and holds(t, d + 1, p, v)


@plain
def holds(t: Packing, d: int, p: int, v: int) -> bool:
    """True if core ``p`` has room for node ``v`` at depth ``d``."""
    fits = True
    for r in range(t.size.shape[1]):
        fits = fits and t.size[v, r] <= t.free[d, p, r]
    return fits


@kernel
def expand(t: Packing, d: int) -> None:
    """Bound the partial mapping at depth ``d``, exclude cores, and list the children of the node with the fewest."""
    t.state[NODES] += 1
    t.turn[d] = 0
    t.children[d] = 0
    low = bound_open(t, d)
    if low < t.state[LIMIT]:
        exclude(t, d, low)
        first = representatives(t)
        choose(t, d, first)
        list_children(t, d, first)


@plain
def exclude(t: Packing, d: int, low: int) -> None:
    """Make ``t.cost`` the bounds of the children; take the cores where these are not below the limit out of the domains."""
    step, limit = 2 * t.grain, t.state[LIMIT]
    for u in range(len(t.core)):
        if t.core[u] < 0:
            for p in range(len(t.held)):
                bound = (low + t.cost[u, p] + step - 1) // step * step
                t.domain[d, u, p] = t.domain[d, u, p] and bound < limit
                t.cost[u, p] = bound if t.domain[d, u, p] else limit


@plain
def choose(t: Packing, d: int, first: BoolArray) -> None:
    """Choose the open node with the fewest children, among those the one with the highest total bound."""
    fewest, highest = len(t.held) + 1, -1
    for u in range(len(t.core)):
        if t.core[u] < 0:
            number = total = 0
            for p in range(len(t.held)):
                total += t.cost[u, p]
                number += t.domain[d, u, p] and first[p]
            if number < fewest or (number == fewest and total > highest):
                t.node[d], fewest, highest = u, number, total


@plain
def list_children(t: Packing, d: int, first: BoolArray) -> None:
    """List the cores left to the chosen node by rising bound."""
    u, count = t.node[d], 0
    for p in range(len(t.held)):
        if not (t.domain[d, u, p] and first[p]):
            continue
        k = count
        while k > 0 and t.child_bound[d, k - 1] > t.cost[u, p]:  # insertion keeps the list sorted and stable
            t.child_core[d, k] = t.child_core[d, k - 1]
            t.child_bound[d, k] = t.child_bound[d, k - 1]
            k -= 1
        t.child_core[d, k] = p
        t.child_bound[d, k] = t.cost[u, p]
        count += 1
    t.children[d] = count


@kernel
def representatives(t: Packing) -> BoolArray:
    """(P,) True for the first core of each orbit of the symmetries that keep every core with nodes in place."""
    first = np.ones(len(t.held), np.bool_)
    for p in range(len(t.held)):
        for q in range(p):
            if t.held[p] == 0 and t.held[q] == 0 and t.like[p] == t.like[q]:
                first[p] = False
    for g in t.maps:
        keeps = True
        for p in range(len(t.held)):
            if t.held[p] > 0 and g[p] != p:
                keeps = False
                break
        if keeps:
            for p in range(len(t.held)):
                first[p] = first[p] and g[p] >= p
    return first
