"""Depth-first search over mappings with best trees: exact for multicast hops and energy on small boards."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.common.room import fits, put
from nmsolve.model.basic_kernels import copy_to
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import BoolArray, FloatArray, IntArray
from nmsolve.solvers.mapping.joint.anneal import TreeState

#: Entries of ``counter``: depth, 1 while going down, tree nodes so far, mappings found.
DEPTH, DOWN, NODES, FOUND = range(4)
#: Relative margin when sums of floats are compared; they are exact where figures are whole.
MARGIN = 1e-9


class Branching(NamedTuple):
    """The search between two slices: ``sets`` (M,) cores reached so far, ``open`` (M,) nodes of messages not yet placed,
    ``placed`` (n,), the ``node`` of every depth with its cores in order of cost (``order``, ``tried``, ``width``); ``first``
    the cores allowed to the node of depth 0, ``root`` that node; ``best`` (n,), ``limit`` (1,) its cost."""

    sets: IntArray
    open: IntArray
    placed: BoolArray
    node: IntArray
    order: IntArray
    tried: IntArray
    width: IntArray
    first: BoolArray
    root: int
    best: IntArray
    limit: FloatArray
    counter: IntArray


def new_search(s: TreeState, root: int, first: IntArray, limit: float) -> Branching:
    """Nothing placed; ``root`` goes to one of the cores ``first``; only mappings cheaper than ``limit`` count."""
    n, cores = len(s.room.core), len(s.room.capacity)
    allowed = np.zeros(cores, bool)
    allowed[first] = True
    s.room.core[:] = -1
    s.room.load[:] = 0
    above = (
        2.0 * float(s.rate.sum() * s.cost[np.isfinite(s.cost)].max(initial=0.0)) + 1.0
    )  # margins need a number
    limit = min(limit, above)
    return Branching(
        np.zeros(len(s.rate), np.int64), np.diff(s.pin_ptr), np.zeros(n, bool), np.zeros(n, np.int64),
        np.zeros((n, cores), np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64), allowed, root,
        np.full(n, -1, np.int64), np.array([limit]), np.array([0, 1, 0, 0], np.int64),
    )  # fmt: skip


@kernel
def search(s: TreeState, b: Branching, nodes: int) -> bool:
    """Look at ``nodes`` more tree nodes; True once all is searched."""
    n = len(s.room.core)
    until = b.counter[NODES] + nodes
    rise = np.zeros(len(s.room.capacity))
    while b.counter[NODES] < until:
        depth = b.counter[DEPTH]
        if b.counter[DOWN] == 1:
            b.counter[NODES] += 1
            if depth == n:
                cost = _placed_cost(s, b)
                if cost < b.limit[0] - MARGIN * abs(b.limit[0]):
                    b.limit[0] = cost
                    copy_to(b.best, s.room.core)
                    b.counter[FOUND] += 1
            elif _branch(s, b, depth, rise):
                _place(s, b, b.node[depth], b.order[depth, 0])
                b.tried[depth] = 1
                b.counter[DEPTH] += 1
                continue
            b.counter[DOWN] = 0
        if b.counter[DEPTH] == 0:
            return True
        depth = b.counter[DEPTH] - 1
        _take(s, b, b.node[depth])
        if b.tried[depth] < b.width[depth]:
            _place(s, b, b.node[depth], b.order[depth, b.tried[depth]])
            b.tried[depth] += 1
            b.counter[DOWN] = 1
        else:
            b.counter[DEPTH] = depth
    return False


@plain
def _placed_cost(s: TreeState, b: Branching) -> float:
    total = 0.0
    for m in range(len(s.rate)):
        total += s.rate[m] * s.cost[b.sets[m], 0]
    return total


@plain
def _branch(s: TreeState, b: Branching, depth: int, rise: FloatArray) -> bool:
    """Bound the rest; False if it cannot beat ``limit``, else the node to place and its cores in order are set.

    A tree to more cores costs no less, so a message costs at least what it does now, and its k open nodes may each charge
    a k-th of what they alone would add: ``sum_m rate_m cost(A_m) + sum_u min_p sum_{m at u} rate_m (cost(A_m + p) -
    cost(A_m)) / k_m``. The node of the greatest such minimum is placed next.
    """
    cores = len(rise)
    low, chosen, most = _placed_cost(s, b), -1, -1.0
    slack = b.limit[0] - MARGIN * abs(b.limit[0])
    total = low
    for u in range(len(s.room.core)):
        if b.placed[u]:
            continue
        least = np.inf
        for p in range(cores):
            if fits(s.room, u, p, -1):
                least = min(least, _rise(s, b, u, p, True))
        total += least
        if total >= slack:
            return False
        if (depth == 0 and u == b.root) or (depth > 0 and least > most):
            most, chosen = least, u
    if chosen < 0:
        return False
    count = 0
    for p in range(cores):
        if (depth > 0 or b.first[p]) and fits(s.room, chosen, p, -1):
            shared = _rise(s, b, chosen, p, True)
            if total - most + shared < slack:
                rise[p] = _rise(s, b, chosen, p, False)
                k = count
                while k > 0 and rise[b.order[depth, k - 1]] > rise[p]:
                    b.order[depth, k] = b.order[depth, k - 1]
                    k -= 1
                b.order[depth, k] = p
                count += 1
    b.node[depth], b.width[depth] = chosen, count
    return count > 0


@plain
def _rise(s: TreeState, b: Branching, u: int, p: int, shared: bool) -> float:
    """What node ``u`` on core ``p`` adds, ``shared`` with the other open nodes of its messages."""
    total = 0.0
    for j in range(s.of_ptr[u], s.of_ptr[u + 1]):
        m = s.of[j]
        more = s.rate[m] * (s.cost[b.sets[m] | (1 << p), 0] - s.cost[b.sets[m], 0])
        total += more / b.open[m] if shared else more
    return total


@plain
def _place(s: TreeState, b: Branching, u: int, p: int) -> None:
    put(s.room, u, p)
    b.placed[u] = True
    for j in range(s.of_ptr[u], s.of_ptr[u + 1]):
        m = s.of[j]
        b.open[m] -= 1
        b.sets[m] |= 1 << p


@plain
def _take(s: TreeState, b: Branching, u: int) -> None:
    """Undo :func:`_place`; sets are rebuilt from the nodes that stay."""
    p = s.room.core[u]
    s.room.core[u] = -1
    b.placed[u] = False
    for r in range(s.room.sizes.shape[1]):
        s.room.load[p, r] -= s.room.sizes[u, r]
    for j in range(s.of_ptr[u], s.of_ptr[u + 1]):
        m = s.of[j]
        b.open[m] += 1
        cores = 0
        for i in range(s.pin_ptr[m], s.pin_ptr[m + 1]):
            if b.placed[s.pins[i]]:
                cores |= 1 << s.room.core[s.pins[i]]
        b.sets[m] = cores
