"""What the search for rows begins with where there is a grid: sets, with demands, as the bound ``subgraphs`` finds them.

Its sets share the traffic and nothing is led along paths; demands between them are hard to find from lengths alone (comm-256: 15,118
of 18,399 in 60 s with this start for half of the time, 14,776 without).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nmsolve.model.compiled import callee, kernel
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.mapping.bounds.spread.grid import WIDEST, Grid
from nmsolve.solvers.mapping.bounds.spread.rows import Network, Rows
from nmsolve.solvers.mapping.bounds.spread.sets import Sets, rows_of
from nmsolve.solvers.mapping.bounds.subgraphs.oracle import free_placement, solve

#: The largest demand of a set, and states of one exact search.
LARGEST, STATES = 63, 60_000


def started(certificate: dict[str, Any], grid: Grid, net: Network) -> tuple[Rows, Sets, FloatArray]:
    """Return the sets of a certificate of ``subgraphs`` with demands in small whole numbers: rows, sets, and (rows,) what they pay."""
    size, count = certificate["set_size"], certificate["share_count"]
    node = np.full((len(size), WIDEST), -1, np.int64)
    node[np.arange(WIDEST) < size[:, None]] = certificate["set_nodes"]
    of = np.repeat(np.arange(len(size)), count)
    ends = [(node[of] == certificate[name][:, None]).argmax(axis=1) for name in ("share_u", "share_v")]
    share = np.zeros((len(size), WIDEST, WIDEST))
    share[of, np.minimum(*ends), np.maximum(*ends)] = certificate["share"]
    per = share.max(axis=(1, 2), initial=1e-300) / LARGEST
    demand = np.floor(share / per[:, None, None]).astype(np.int64)
    cost = _searched(demand, grid.links)
    kept = cost > 0
    rows, sets = rows_of(node[kept], demand[kept], cost[kept], grid, net)
    return rows, sets, per[kept] / certificate["unit"] * sets.worth


@kernel
def _searched(demand: IntArray, links: IntArray) -> IntArray:
    """Least costs (s,) of demands (s, WIDEST, WIDEST) on the grid; 0 where they do not join their nodes, or the search is long."""
    cost = np.zeros(len(demand), np.int64)
    for s in range(len(demand)):
        both = demand[s] + demand[s].T
        used = np.flatnonzero(both.sum(axis=1))
        k = len(used)
        w = np.zeros((k, k), np.int64)
        for i in range(k):
            for j in range(k):
                w[i, j] = both[used[i], used[j]]
        if k < 3 or not _joined(w):
            continue
        place = np.zeros((2, k, 2), np.int64)
        free_placement(w, links, place[0])
        least, _, done = solve(w, links, place[0], 2**50, STATES, place[1])
        cost[s] = least if done else 0
    return cost


@callee
def _joined(w: IntArray) -> bool:
    """Whether demands (k, k) join all nodes."""
    reached = np.zeros(len(w), np.bool_)
    reached[0] = True
    for _ in range(len(w)):
        for i in range(len(w)):
            for j in range(len(w)):
                if reached[i] and w[i, j] > 0:
                    reached[j] = True
    return bool(reached.all())
