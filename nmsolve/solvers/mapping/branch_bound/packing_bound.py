"""The bound of a partial mapping where cores hold several nodes. Costs are *doubled*, so that a pair of open nodes can be counted
once from either end. With open nodes U

``bound = 2 * fixed + sum over u in U of min over cores p of (2 * linear[u, p] + least[u, p])``

where ``linear`` is u's traffic to mapped nodes and ``least`` the minimal scalar product of its traffic to open nodes with the
distances from p, where every core takes no more open nodes than it has room for: on core p the heaviest ones are free, the next
heaviest go to the nearest cores. So traffic that the remaining room cannot hold together pays at least one hop.
"""

from __future__ import annotations

import numpy as np

from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.branch_bound.assignment import FAR, assign
from nmsolve.solvers.mapping.branch_bound.packing_state import Packing
from nmsolve.solvers.mapping.branch_bound.search import NEVER

#: Nodes are assigned to what cores have room for up to so much room for every open node.
SPARE = 2


@plain
def places(t: Packing, d: int, p: int, u: int) -> int:
    """The most open nodes that core ``p`` has room for at depth ``d``; beside node ``u`` if that is not -1."""
    most = len(t.core)
    for r in range(t.size.shape[1]):
        left, count = t.free[d, p, r], 0
        if u >= 0:
            left -= t.size[u, r]
        for v in t.rising[r]:
            if t.core[v] < 0 and v != u:
                if t.size[v, r] > left:
                    break
                left -= t.size[v, r]
                count += 1
        most = min(most, count)
    return most


@plain
def least_cost(t: Packing, d: int, u: int, p: int) -> int:
    """Doubled linear cost of the open node ``u`` on core ``p`` plus the minimal scalar product; ``NEVER`` if there is no room."""
    cost, own, k = 2 * int(t.linear[d, u, p]), 0, 0
    if t.near[p, 0] == p:
        own, k = places(t, d, p, u), 1
    left = t.slots[t.near[p, k]] if k < len(t.held) else 0
    for v in t.heavy[u]:
        if t.core[v] >= 0 or v == u:
            continue
        w = t.weight[u, v]
        if w == 0:
            break
        if own > 0 and not t.apart[u, v]:
            own -= 1
            cost += w * t.cheap[p, p]
            continue
        while left == 0:
            k += 1
            if k >= len(t.held):
                return NEVER
            left = t.slots[t.near[p, k]]
        left -= 1
        cost += w * t.cheap[p, t.near[p, k]]
    return cost


@plain
def list_costs(t: Packing, d: int) -> int:
    """Fill ``t.slots`` and ``t.cost`` at depth ``d``; return how many open nodes all cores have room for at most."""
    room = 0
    for p in range(len(t.held)):
        t.slots[p] = places(t, d, p, -1)
        room += int(t.slots[p])
    for u in range(len(t.core)):
        if t.core[u] < 0:
            for p in range(len(t.held)):
                t.cost[u, p] = least_cost(t, d, u, p) if t.domain[d, u, p] else NEVER
    return room


@kernel
def bound_open(t: Packing, d: int) -> int:
    """Return the doubled bound at depth ``d``, at least the limit if there is no way on; ``t.cost`` becomes reduced costs.

    Where all cores together have hardly more room than there are open nodes, these are assigned to what cores have room for.
    """
    room, open_nodes, low = list_costs(t, d), 0, 2 * NEVER
    for u in range(len(t.core)):
        open_nodes += t.core[u] < 0
    if room > SPARE * open_nodes:
        low = cheapest_open(t)
    elif room >= open_nodes:
        low = assign_open(t, open_nodes, room)
    return low + 2 * int(t.fixed[d])


@plain
def cheapest_open(t: Packing) -> int:
    """Sum of the least costs of open nodes; takes it off ``t.cost``."""
    low = 0
    for u in range(len(t.core)):
        if t.core[u] < 0:
            least = NEVER
            for p in range(len(t.held)):
                least = min(least, int(t.cost[u, p]))
            low += least
            for p in range(len(t.held)):
                t.cost[u, p] -= least
    return low


@kernel
def assign_open(t: Packing, rows: int, cols: int) -> int:
    """Least sum of costs with no more of the ``rows`` open nodes on a core than it has slots, of ``cols`` in all.

    ``t.cost`` becomes the reduced costs: what a node on a core costs more at least.
    """
    cost, core_of = np.empty((rows, cols), np.int64), np.empty(cols, np.int64)
    i = j = 0
    for p in range(len(t.held)):
        for _ in range(t.slots[p]):
            core_of[j] = p
            j += 1
    for u in range(len(t.core)):
        if t.core[u] < 0:
            for j in range(cols):
                cost[i, j] = t.cost[u, core_of[j]]
            i += 1
    row_dual, col_dual = np.empty(rows + 1, np.int64), np.empty(cols + 1, np.int64)
    work = np.empty((4, cols + 1), np.int64)
    low = int(assign(cost, rows, cols, FAR, row_dual, col_dual, work[0], work[1], work[2], work[3]))
    i = 0
    for u in range(len(t.core)):
        if t.core[u] < 0:
            reduce_costs(t, u, row_dual[i + 1], col_dual, core_of)
            i += 1
    return low


@plain
def reduce_costs(t: Packing, u: int, row_dual: int, col_dual: IntArray, core_of: IntArray) -> None:
    """Take the duals off the costs of node ``u``: of a core, the dual of its dearest slot."""
    for p in range(len(t.held)):
        dearest = -NEVER
        for j in range(len(core_of)):
            if core_of[j] == p:
                dearest = max(dearest, col_dual[j + 1])
        t.cost[u, p] = NEVER if dearest == -NEVER else t.cost[u, p] - row_dual - dearest
