"""All sets of items that a stage can be, as the ways through a small network: what prices of blocks are computed on.

The items come one after another, and each is *inside* the block or not. What must be remembered of those that came already: of
every tensor with ends still to come, whether its ends so far are inside, outside or both (then it is paid for); where a block
must be in one piece along the order, of every item to come, whether one that must not come after it is inside, or behind the
block. Where that is little, as in deep networks, there are few different memories (*nodes*) after each item, and a block is a
way from the first node to the last. Its times and prices do not matter to the network: they come with the question
(:mod:`.sweep_kernels`). The idea is that of dynamic programming over path decompositions (Bodlaender 1998).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from nmsolve.model.types import IntArray
from nmsolve.solvers.pipeline.data import PipelineData

#: What is known of a tensor's ends so far.
OUTSIDE, INSIDE, CUT = 0, 1, 2
#: What is known of those that must not come after an item.
BEFORE, WITHIN, BEHIND = 0, 1, 2


class Sweep(NamedTuple):
    """The network for I items: nodes of step i, from ``first[i]`` on, stand before the i-th item; the last node is the end.

    Attributes
    ----------
    order : (I,) the items in the order in which they come
    first : (I + 2,) first node of every step
    left_to, left_cost : (nodes,) where the way goes if the item is left out, and what the tensors cost that are then cut
    taken_to, taken_cost : (nodes,) the same if the item is taken; -1 where it cannot be
    into, tail : CSR over nodes of the arcs that come in: twice the node that they leave, one more if its item is taken
    """

    order: IntArray
    first: IntArray
    left_to: IntArray
    left_cost: IntArray
    taken_to: IntArray
    taken_cost: IntArray
    into: IntArray
    tail: IntArray


class _Nets(NamedTuple):
    """Tensors and order in positions: ``ends``, ``cost`` of tensors; tensors ``at`` and items ``after`` every position."""

    ends: list[list[int]]
    cost: list[int]
    at: list[list[int]]
    after: list[list[int]]


def sweep_of(data: PipelineData, cost: IntArray, most: int) -> Sweep | None:
    """Return the network of the problem's blocks with at most ``most`` nodes, None if that is not enough.

    ``cost`` (T,): of the tensors of ``data``, in whole numbers.
    """
    found = None
    for order in _orders(data):
        made = _network(data, cost, order, most)
        if made is not None and (found is None or len(made.left_to) < len(found.left_to)):
            found, most = made, len(made.left_to)
    return found


def _orders(data: PipelineData) -> Iterable[IntArray]:
    """Yield orders to try: that of the layers, and one that keeps few tensors open at a time."""
    first = np.full(data.count, len(data.item))
    np.minimum.at(first, data.item, np.arange(len(data.item)))
    natural = np.argsort(first, kind="stable")
    rank = np.empty(data.count, np.int64)
    rank[natural] = np.arange(data.count)
    yield _narrow(data, rank)
    if (rank[data.uses[:, 0]] < rank[data.uses[:, 1]]).all():
        yield natural


def _narrow(data: PipelineData, rank: IntArray) -> IntArray:
    """Return an order, along the order of stages, that opens few tensors and closes many; earlier layers first (``rank``)."""
    tensors: list[list[int]] = [[] for _ in range(data.count)]
    left = []
    for t, (a, users) in enumerate(zip(data.source, data.users, strict=True)):
        left.append(1 + len(users))
        for i in (a, *users):
            tensors[i].append(t)
    size, out = list(left), []
    after: list[list[int]] = [[] for _ in range(data.count)]
    for a, b in data.uses.tolist():
        after[a].append(b)
    waiting = np.bincount(data.uses[:, 1], minlength=data.count)
    ready = set(np.flatnonzero(waiting == 0).tolist())
    open_ = [False] * len(size)

    def change(i: int) -> tuple[int, int, int]:
        opens = sum(not open_[t] for t in tensors[i])
        closes = sum(left[t] == 1 for t in tensors[i])
        near = 0 if not tensors[i] or opens < len(tensors[i]) else 1
        return opens - closes, near, int(rank[i])

    while ready:
        i = min(ready, key=change)
        ready.remove(i)
        out.append(i)
        for t in tensors[i]:
            left[t] -= 1
            open_[t] = True
        for b in after[i]:
            waiting[b] -= 1
            if waiting[b] == 0:
                ready.add(b)
    return np.array(out, np.int64)


def _nets(data: PipelineData, cost: IntArray, order: IntArray) -> _Nets:
    """Return the tensors and the order of stages, in positions along ``order``."""
    place = np.empty(data.count, np.int64)
    place[order] = np.arange(data.count)
    ends, paid = [], []
    for a, users, c in zip(data.source, data.users, cost.tolist(), strict=True):
        if c:
            ends.append(sorted({int(place[a]), *place[list(users)].tolist()}))
            paid.append(c)
    at: list[list[int]] = [[] for _ in range(data.count)]
    for t, some in enumerate(ends):
        for k in some:
            at[k].append(t)
    after: list[list[int]] = [[] for _ in range(data.count)]
    for a, b in data.uses.tolist():
        after[int(place[a])].append(int(place[b]))
    return _Nets(ends, paid, at, after)


def _network(data: PipelineData, cost: IntArray, order: IntArray, most: int) -> Sweep | None:
    """Return the network along one order (positions in a topological order of ``data.uses``), None above ``most`` nodes."""
    nets = _nets(data, cost, order)
    step: dict[frozenset[tuple[int, int]], int] = {frozenset(): 0}
    first, arcs = [0, 1], []
    for i in range(data.count):
        following: dict[frozenset[tuple[int, int]], int] = {}
        for memory in step:
            known = dict(memory)
            state = known.pop(-1 - i, BEFORE)
            row = []
            for takes in (False, True):
                if takes and state == BEHIND:
                    row += [-1, 0]
                    continue
                own = WITHIN if takes else (BEFORE if state == BEFORE else BEHIND)
                now, paid = _after(nets, known, i, own)
                row += [first[-1] + following.setdefault(now, len(following)), paid]
            arcs.append(row)
        step = following
        first.append(first[-1] + len(step))
        if first[-1] > most:
            return None
    table = np.array([*arcs, [-1, 0, -1, 0]], np.int64)
    heads = np.stack([table[:, 0], table[:, 2]], axis=1).ravel()
    tail = np.argsort(heads, kind="stable")
    tail = tail[heads[tail] >= 0]
    into = np.searchsorted(heads[tail], np.arange(len(table) + 1))
    columns = [np.ascontiguousarray(table[:, k]) for k in range(4)]
    a, b, c, d = columns
    return Sweep(order, np.array(first, np.int64), a, b, c, d, into.astype(np.int64), tail.astype(np.int64))


def _after(nets: _Nets, known: dict[int, int], i: int, own: int) -> tuple[frozenset[tuple[int, int]], int]:
    """Return what is remembered after item i, and what the tensors cost that this cuts.

    ``known``: state of tensors (keys >= 0) and of items to come (-1 - item); ``own``: where item i is.
    """
    now, paid, end = dict(known), 0, INSIDE if own == WITHIN else OUTSIDE
    for t in nets.at[i]:
        ends = nets.ends[t]
        state = end if ends[0] == i else now[t]
        if state not in (CUT, end):
            state, paid = CUT, paid + nets.cost[t]
        now[t] = state
        if ends[-1] == i:
            del now[t]
    for b in nets.after[i]:
        now[-1 - b] = max(now.get(-1 - b, BEFORE), own)
    return frozenset(now.items()), paid
