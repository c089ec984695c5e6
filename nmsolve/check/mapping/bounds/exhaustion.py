"""Own depth-first search of the re-check: it ends only if no mapping costs as little as is said to be impossible.

Everything is doubled and whole. A partial mapping is closed by its cost so far, plus the least assignment of the open nodes to
the free cores, where a node pays its traffic to placed nodes, and to open ones the least scalar product of its weights with
the distances (Gilmore 1962). The assignment is found by reducing the matrix until zeros hold it; what is left of an entry
then says how much more that node on that core costs at least.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import BoolArray, IntArray

#: Cost of a core that a node may not use; no sum of real costs comes near it.
BANNED = 2**50
#: Sums of real costs are below this.
MOST_COST = 2**44


class Exhaustion(NamedTuple):
    """The problem and the stack of a search.

    Attributes
    ----------
    there, back : (n, n) int64 traffic of u to v, and of v to u
    far : (k, k) int64 distances; near : the shorter way of each
    heavy : (n, n) int64 others of a node by falling traffic both ways; close : (k, k) others of a core by rising ``near``
    left : (n + 1, n, k) bool cores that a node may use, per depth
    linear : (n + 1, n, k) int64 doubled traffic to placed nodes; spent : (n + 1,) doubled cost among them
    place : (n,) int64 core or -1; taken : (k,) bool
    node, core : (n + 1, k) int64 children per depth; children, turn : (n + 1,) how many there are, and were entered
    cost : (k, k) int64, line : (7, k) int64 work space
    """

    there: IntArray
    back: IntArray
    far: IntArray
    near: IntArray
    heavy: IntArray
    close: IntArray
    left: BoolArray
    linear: IntArray
    spent: IntArray
    place: IntArray
    taken: BoolArray
    node: IntArray
    core: IntArray
    children: IntArray
    turn: IntArray
    cost: IntArray
    line: IntArray


def new_search(traffic: IntArray, far: IntArray, allowed: BoolArray) -> Exhaustion:
    """A search for traffic (n, n), distances (k, k), n <= k, and the cores that nodes may use (n, k)."""
    n, k = allowed.shape
    both, near = traffic + traffic.T, np.minimum(far, far.T)
    left = np.zeros((n + 1, n, k), bool)
    left[0] = allowed
    whole = np.int64
    return Exhaustion(
        there=traffic,
        back=np.ascontiguousarray(traffic.T),
        far=far,
        near=near,
        heavy=np.argsort(-both, axis=1, kind="stable").astype(whole),
        close=np.argsort(near, axis=1, kind="stable").astype(whole),
        left=left,
        linear=np.zeros((n + 1, n, k), whole),
        spent=np.zeros(n + 1, whole),
        place=np.full(n, -1, whole),
        taken=np.zeros(k, bool),
        node=np.zeros((n + 1, k), whole),
        core=np.zeros((n + 1, k), whole),
        children=np.zeros(n + 1, whole),
        turn=np.zeros(n + 1, whole),
        cost=np.zeros((k, k), whole),
        line=np.zeros((7, k), whole),
    )


@kernel
def exhaust(s: Exhaustion, first: IntArray, onto: IntArray, most: int, budget: int) -> int:
    """Search below the mapping of the nodes ``first`` onto the cores ``onto`` for one of doubled cost ``most`` or less.

    Returns
    -------
    partial mappings bounded, if there is none; -1 if there is one; -2 if more than ``budget`` would have to be bounded
    """
    n, base, done = s.place.shape[0], first.shape[0], 0
    s.place[:] = -1
    s.taken[:] = False
    for d in range(base):
        put(s, d, first[d], onto[d])
    d = base
    fresh = True
    while True:
        if fresh:
            if d == n:
                if s.spent[n] <= most:
                    return -1
                s.children[d] = 0
            else:
                done += 1
                if done > budget:
                    return -2
                list_children(s, d, most)
            s.turn[d] = 0
        if s.turn[d] < s.children[d]:
            put(s, d, s.node[d, s.turn[d]], s.core[d, s.turn[d]])
            s.turn[d] += 1
            d += 1
            fresh = True
        elif d == base:
            return done
        else:
            d -= 1
            u = s.node[d, s.turn[d] - 1]
            s.taken[s.place[u]] = False
            s.place[u] = -1
            fresh = False


@plain
def put(s: Exhaustion, d: int, u: int, p: int) -> None:
    """Place node ``u`` on core ``p`` at depth ``d``."""
    n, k = s.place.shape[0], s.taken.shape[0]
    s.place[u] = p
    s.taken[p] = True
    s.spent[d + 1] = s.spent[d] + s.linear[d, u, p]
    for v in range(n):
        if s.place[v] < 0:
            there, back = 2 * s.there[v, u], 2 * s.back[v, u]
            for q in range(k):
                s.left[d + 1, v, q] = s.left[d, v, q]
                s.linear[d + 1, v, q] = s.linear[d, v, q] + there * s.far[q, p] + back * s.far[p, q]


@plain
def list_children(s: Exhaustion, d: int, most: int) -> None:
    """Bound the partial mapping of depth ``d``; list what it is split into, unless it costs more than ``most`` anyway."""
    n, k = s.place.shape[0], s.taken.shape[0]
    s.children[d] = 0
    nodes, cores = s.line[2], s.line[3]
    rows = cols = 0
    for u in range(n):
        if s.place[u] < 0:
            nodes[rows] = u
            rows += 1
    for p in range(k):
        if not s.taken[p]:
            cores[cols] = p
            cols += 1
    fill(s, d, rows, cols)
    low = s.spent[d] + reduced(s.cost, cols, s.line)
    if low > most:
        return
    # a core that costs a node too much here does so further down, too
    for i in range(rows):
        for j in range(cols):
            if low + s.cost[i, j] > most:
                s.left[d, nodes[i], cores[j]] = False
    # the line with the fewest children: a node, or a core if there is none to spare
    best, fewest = 0, cols + 1
    for i in range(rows + (cols if rows == cols else 0)):
        open_ones = 0
        for j in range(cols):
            open_ones += low + (s.cost[i, j] if i < rows else s.cost[j, i - rows]) <= most
        if open_ones < fewest:
            best, fewest = i, open_ones
    for j in range(cols):
        row, col = (best, j) if best < rows else (j, best - rows)
        if low + s.cost[row, col] <= most:
            s.node[d, s.children[d]], s.core[d, s.children[d]] = nodes[row], cores[col]
            s.children[d] += 1


@plain
def fill(s: Exhaustion, d: int, rows: int, cols: int) -> None:
    """Fill ``s.cost`` with what every open node costs at least on every free core; rows without a node cost nothing."""
    nodes, cores = s.line[2], s.line[3]
    for i in range(cols):
        for j in range(cols):
            s.cost[i, j] = 0
    for j in range(cols):
        p, at = cores[j], s.line[0]
        short = 0
        for q in s.close[p]:
            if not s.taken[q] and q != p:
                at[short] = s.near[p, q]
                short += 1
        for i in range(rows):
            u = nodes[i]
            if not s.left[d, u, p]:
                s.cost[i, j] = BANNED
                continue
            total, used = s.linear[d, u, p], 0
            for v in s.heavy[u]:
                if s.place[v] < 0 and v != u:
                    w = s.there[u, v] + s.back[u, v]
                    if w == 0:
                        break
                    total += w * at[used]
                    used += 1
            s.cost[i, j] = total


@plain
def reduced(c: IntArray, k: int, line: IntArray) -> int:
    """Least assignment of ``c`` (k, k): subtracts from rows and columns until zeros hold one; :data:`BANNED` if there is none.

    All entries stay >= 0, so that each says what an assignment with it costs more at least. ``line`` is work space, of which
    rows 2 and 3 are left alone.
    """
    row_of, lost, total = line[0], line[1], 0
    for i in range(k):
        least = c[i, 0]
        for j in range(1, k):
            least = min(least, c[i, j])
        if least >= BANNED // 2:
            return BANNED
        total += least
        for j in range(k):
            c[i, j] -= least
    for j in range(k):
        row_of[j] = -1
        least = c[0, j]
        for i in range(1, k):
            least = min(least, c[i, j])
        if least >= BANNED // 2:
            return BANNED
        total += least
        for i in range(k):
            c[i, j] -= least
    for i in range(k):
        lost[i] = 1
        for j in range(k):
            if lost[i] == 1 and c[i, j] == 0 and row_of[j] < 0:
                row_of[j] = i
                lost[i] = 0
    for i in range(k):
        if lost[i] == 1:
            more = joined(c, k, i, line)
            if more >= BANNED // 2:
                return BANNED
            total += more
    return total


@plain
def joined(c: IntArray, k: int, first: int, line: IntArray) -> int:
    """Give row ``first`` a column, others changing theirs, along the cheapest way; what it costs, taken off ``c``."""
    row_of, away, before, seen = line[0], line[4], line[5], line[6]
    for j in range(k):
        away[j], before[j], seen[j] = c[first, j], first, 0
    while True:
        last = -1
        for j in range(k):
            if seen[j] == 0 and (last < 0 or away[j] < away[last]):
                last = j
        if away[last] >= BANNED // 2:
            return BANNED
        seen[last] = 1
        row = row_of[last]
        if row < 0:
            break
        for j in range(k):
            if seen[j] == 0 and away[last] + c[row, j] < away[j]:
                away[j], before[j] = away[last] + c[row, j], row
    least = away[last]
    for j in range(k):
        if seen[j] == 1 and j != last and away[j] < least:
            change, row = least - away[j], row_of[j]
            for i in range(k):
                c[i, j] += change
                c[row, i] -= change
    for j in range(k):
        c[first, j] -= least
    at = last
    while True:
        row = before[at]
        other = -1
        for j in range(k):
            if j != at and row_of[j] == row:
                other = j
        row_of[at] = row
        if row == first:
            return int(least)
        at = other
