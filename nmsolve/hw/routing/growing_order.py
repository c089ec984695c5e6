"""An order of channels that as many wanted dependencies as possible agree with.

Dependencies are added one by one, the most wanted first; one that would close a cycle is left out. The order is kept up to date
as Pearce and Kelly do (2007, "A dynamic topological sort algorithm for directed acyclic graphs"): only channels between the two
ends of a new dependency move.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.model.compiled import inlined, kernel
from nmsolve.model.types import BoolArray, FloatArray, IntArray


class Order(NamedTuple):
    """``rank`` (C,) place of every channel, ``at`` (C,) its inverse, ``on`` dependencies that the order has to keep.

    ``on`` (C, ways): which channels of the core that it leads to each one has to stay before. The rest is room for searches.
    """

    rank: IntArray
    at: IntArray
    on: BoolArray
    mark: IntArray
    stack: IntArray
    ahead: IntArray
    behind: IntArray


def new_order(rank: IntArray, shape: tuple[int, ...]) -> Order:
    """The order ``rank`` with nothing to keep."""
    n = len(rank)
    room = [np.empty(n, np.int64) for _ in range(3)]
    return Order(rank, np.argsort(rank), np.zeros(shape, bool), np.full(n, -1), room[0], room[1], room[2])


@inlined
def head_of(c: int, j: int, ways: int, lead: IntArray) -> int:
    """The channel that dependency ``j`` of channel ``c`` leads to."""
    return int(lead[c]) * ways + j


def entering(lead: IntArray, ways: int) -> IntArray:
    """Return (P, ways) channels that lead to every core, filled up with -1; ``lead`` (C,) is the core at each one's end or -1."""
    out = np.full((len(lead) // ways, ways), -1, np.int64)
    used = np.flatnonzero(lead >= 0)
    by = used[np.argsort(lead[used], kind="stable")]
    first = np.searchsorted(lead[by], np.arange(len(out)))
    out[lead[by], np.arange(len(by)) - first[lead[by]]] = by
    return out


def rebuild(order: Order, wish: FloatArray, lead: IntArray, enter: IntArray, ways: int) -> int:
    """Keep dependencies by falling ``wish`` (those below 0 never) as long as no cycle closes; how many were left out."""
    order.on[:] = False
    flat = wish.ravel()
    by = np.argsort(-flat, kind="stable")
    before, j = np.divmod(by[flat[by] >= 0.0], ways)
    return int(extend(order, before, lead[before] * ways + j, lead, enter))


@kernel
def extend(order: Order, before: IntArray, after: IntArray, lead: IntArray, enter: IntArray) -> int:
    """Keep dependencies ``before`` -> ``after`` (k,), one by one, that close no cycle; how many were left out.

    ``enter`` are the :func:`entering` channels.
    """
    order.mark[:] = -1
    ways, left = enter.shape[1], 0
    for i in range(len(before)):
        if keep(order, before[i], after[i], i, lead, enter, ways):
            order.on[before[i], after[i] % ways] = True
        else:
            left += 1
    return left


@kernel
def keep(order: Order, x: int, y: int, tick: int, lead: IntArray, enter: IntArray, ways: int) -> bool:
    """Move channels so that ``x`` comes before ``y``; False, and nothing moved, if ``y`` has to come before ``x``.

    ``tick`` must differ from call to call.
    """
    rank, at, mark, stack = order.rank, order.at, order.mark, order.stack
    low, high = rank[y], rank[x]
    if high < low:
        return True
    width, n, m, top = order.on.shape[1], 0, 0, 1
    stack[0], mark[y] = y, tick
    while top > 0:
        top -= 1
        c = stack[top]
        order.ahead[n] = rank[c]
        n += 1
        for j in range(width):
            if order.on[c, j]:
                e = head_of(c, j, ways, lead)
                if e == x:
                    return False
                if rank[e] < high and mark[e] != tick:
                    mark[e] = tick
                    stack[top] = e
                    top += 1
    stack[0], mark[x], top = x, tick, 1
    while top > 0:
        top -= 1
        c = stack[top]
        order.behind[m] = rank[c]
        m += 1
        core, own = c // ways, c % ways
        for j in range(width):
            e = enter[core, j]
            if e >= 0 and order.on[e, own] and rank[e] > low and mark[e] != tick:
                mark[e] = tick
                stack[top] = e
                top += 1
    _merge(rank, at, np.sort(order.behind[:m]), np.sort(order.ahead[:n]))
    return True


@kernel
def _merge(rank: IntArray, at: IntArray, behind: IntArray, ahead: IntArray) -> None:
    """Give the places of both groups to the first group, then to the second, each in its own order."""
    places = np.sort(np.concatenate((behind, ahead)))
    moved = np.concatenate((at[behind], at[ahead]))
    for i in range(len(places)):
        at[places[i]] = moved[i]
        rank[moved[i]] = places[i]
