"""Kernels of :mod:`.contract`: supports of strategies, pairs that determine a node, maps from one node to another."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.model.assignment.network import FORBIDDEN
from nmsolve.model.basic_kernels import copy_to
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import AnyArray, BoolArray, IntArray

#: What a pair says: its first node's strategy determines the second's, and the other way round.
FIRST, SECOND = 1, 2


class Tables(NamedTuple):
    """Fields of a :class:`~nmsolve.model.assignment.network.CostNetwork`."""

    ptr: IntArray
    cost: IntArray
    ends: IntArray
    table_ptr: IntArray
    table: IntArray


class Maps(NamedTuple):
    """What nodes do for the strategies of their roots: node i ``values[ptr[i] + k]`` for strategy k of ``root[i]``."""

    ptr: IntArray
    values: IntArray
    root: IntArray


@plain
def _partners(table: IntArray, at: int, step: int, alive: BoolArray, begin: int, end: int, most: int) -> int:
    """Return how many strategies of the other node go with one; stops at ``most``."""
    found = 0
    for b in range(begin, end):
        if alive[b] and table[at + (b - begin) * step] < FORBIDDEN:
            found += 1
            if found == most:
                break
    return found


@kernel
def prune(net: Tables, alive: BoolArray, dirty: BoolArray, log: IntArray) -> int:
    """Drop strategies that go with none of another node, until there are none; ``log`` gets (node, other) in order.

    Parameters
    ----------
    alive : (choices,) changed
    dirty : (N,) nodes whose pairs are looked at first; changed
    log : (choices, 2)

    Returns
    -------
    rows of ``log``
    """
    ptr, ends = net.ptr, net.ends
    count = 0
    changed = True
    again = np.zeros_like(dirty)
    while changed:
        changed = False
        again[:] = False
        for e in range(len(ends)):
            for side in range(2):
                u, v = ends[e, side], ends[e, 1 - side]
                if not (dirty[v] or again[v] or dirty[u]):
                    continue
                wide = ptr[ends[e, 1] + 1] - ptr[ends[e, 1]]
                row, step = (wide, 1) if side == 0 else (1, wide)
                lost = False
                for a in range(ptr[u], ptr[u + 1]):
                    at = net.table_ptr[e] + (a - ptr[u]) * row
                    if alive[a] and _partners(net.table, at, step, alive, ptr[v], ptr[v + 1], 1) == 0:
                        alive[a] = False
                        lost = True
                if lost:
                    log[count, 0], log[count, 1] = u, v
                    count += 1
                    again[u] = True
                    changed = True
        copy_to(dirty, again)
    return count


@plain
def relations(net: Tables, alive: BoolArray, out: IntArray) -> None:
    """Set ``out`` (E,) to which nodes of every pair determine the other: :data:`FIRST`, :data:`SECOND`, both or none."""
    ptr, ends = net.ptr, net.ends
    for e in range(len(ends)):
        wide = ptr[ends[e, 1] + 1] - ptr[ends[e, 1]]
        out[e] = FIRST | SECOND
        for side in range(2):
            u, v = ends[e, side], ends[e, 1 - side]
            row, step = (wide, 1) if side == 0 else (1, wide)
            for a in range(ptr[u], ptr[u + 1]):
                at = net.table_ptr[e] + (a - ptr[u]) * row
                if alive[a] and _partners(net.table, at, step, alive, ptr[v], ptr[v + 1], 2) > 1:
                    out[e] &= ~(FIRST << side)
                    break


@plain
def _top(parent: IntArray, short: IntArray, v: int) -> int:
    """Return the root of a node; ``short`` is shortened on the way."""
    while short[v] != v:
        short[v] = short[short[v]]
        v = short[v]
    return v


@plain
def forest(
    ends: IntArray,
    said: IntArray,
    lone: BoolArray,
    growth: IntArray,
    parent: IntArray,
    via: IntArray,
    short: IntArray,
    room: int,
) -> int:
    """Hang nodes below nodes that determine them.

    Parameters
    ----------
    said : (E,) see :func:`relations`
    lone : (N,) one strategy is left: anything determines them, the first of them does
    growth : (2, E) entries by which tables would grow if the second (row 0) or first node (row 1) hung below the other
    parent, via, short : (N,) set: the node above or -1, the pair that says so or -1, roots
    room : entries by which all tables may grow

    Returns
    -------
    nodes that hang
    """
    hung, hub = 0, -1
    for v in range(len(parent)):
        parent[v], via[v], short[v] = -1, -1, v
        if lone[v]:
            if hub < 0:
                hub = v
            else:
                parent[v], short[v] = hub, hub
                hung += 1
    for both in (True, False):
        for e in range(len(ends)):
            if both != (said[e] == FIRST | SECOND):
                continue
            for side in range(2):
                u, v = ends[e, side], ends[e, 1 - side]
                if said[e] & (FIRST << side) == 0 or lone[u] or lone[v] or parent[v] >= 0:
                    continue
                if _top(parent, short, u) != v and (both or growth[side, e] <= room):
                    parent[v], via[v], short[v] = u, e, short[u]
                    if not both:
                        room -= max(0, growth[side, e])
                    hung += 1
    for v in range(len(parent)):
        short[v] = _top(parent, short, v)
    return hung


@plain
def _partner(net: Tables, alive: BoolArray, e: int, v: int, a: int) -> int:
    """Return the strategy of ``v`` that goes with strategy ``a`` of the other node of pair ``e``, or any where none does."""
    ptr, second = net.ptr, net.ends[e, 1]
    wide = ptr[second + 1] - ptr[second]
    last = 0
    for b in range(ptr[v + 1] - ptr[v]):
        if alive[ptr[v] + b]:
            last = b
            at = a * wide + b if v == second else b * wide + a
            if net.table[net.table_ptr[e] + at] < FORBIDDEN:
                return b
    return last


@kernel
def find_maps(net: Tables, alive: BoolArray, parent: IntArray, via: IntArray, maps: Maps) -> None:
    """Set the values of ``maps``: the strategy of every node for each strategy left of its root, those ascending."""
    done = np.zeros(len(parent), np.bool_)
    way = np.empty(len(parent), np.int64)
    for start in range(len(parent)):
        length, v = 0, start
        while not done[v]:
            way[length] = v
            length += 1
            done[v] = True
            if parent[v] < 0:
                break
            v = parent[v]
        for k in range(length - 1, -1, -1):
            v = way[k]
            if parent[v] >= 0 and via[v] >= 0:
                above = maps.ptr[parent[v]]
                for j in range(maps.ptr[v + 1] - maps.ptr[v]):
                    maps.values[maps.ptr[v] + j] = _partner(net, alive, via[v], v, maps.values[above + j])
                continue
            place = maps.ptr[v]
            for a in range(net.ptr[v], net.ptr[v + 1]):
                if alive[a] and parent[v] < 0:
                    maps.values[place] = a - net.ptr[v]
                    place += 1
                elif alive[a]:
                    maps.values[maps.ptr[v] : maps.ptr[v + 1]] = a - net.ptr[v]


@plain
def compose(old: Maps, inner: Maps, out: Maps) -> None:
    """Set the values of ``out``: ``old`` after ``inner``, the maps of the roots of ``old``."""
    for i in range(len(old.root)):
        start = inner.ptr[old.root[i]]
        for j in range(inner.ptr[old.root[i] + 1] - start):
            out.values[out.ptr[i] + j] = old.values[old.ptr[i] + inner.values[start + j]]


@plain
def add_tables(old: Tables, maps: Maps, group: IntArray, flip: BoolArray, new: Tables) -> None:
    """Add every pair's table to the pair of its roots, or to the cost of the root that both nodes have.

    Parameters
    ----------
    group : (E,) pair of roots, -1 within one root
    flip : (E,) the pair of roots has the second node's first
    new : costs and tables are changed; sums stop at :data:`FORBIDDEN`
    """
    values, starts = maps.values, maps.ptr
    for e in range(len(old.ends)):
        u, v = old.ends[e, 0], old.ends[e, 1]
        wide, at = old.ptr[v + 1] - old.ptr[v], old.table_ptr[e]
        rows, columns = starts[u + 1] - starts[u], starts[v + 1] - starts[v]
        if group[e] < 0:
            start = new.ptr[maps.root[u]]
            for j in range(rows):
                more = old.table[at + values[starts[u] + j] * wide + values[starts[v] + j]]
                new.cost[start + j] = min(FORBIDDEN, new.cost[start + j] + min(FORBIDDEN, more))
            continue
        start = new.table_ptr[group[e]]
        for j in range(rows):
            row = at + values[starts[u] + j] * wide
            for k in range(columns):
                to = start + (k * rows + j if flip[e] else j * columns + k)
                more = old.table[row + values[starts[v] + k]]
                new.table[to] = min(FORBIDDEN, new.table[to] + min(FORBIDDEN, more))


@plain
def add_costs(old: Tables, maps: Maps, new: Tables) -> None:
    """Add every node's costs to those of its root's strategies."""
    for i in range(len(maps.root)):
        for j in range(maps.ptr[i + 1] - maps.ptr[i]):
            at = new.ptr[maps.root[i]] + j
            more = old.cost[old.ptr[i] + maps.values[maps.ptr[i] + j]]
            new.cost[at] = min(FORBIDDEN, new.cost[at] + min(FORBIDDEN, more))


@plain
def fold(net: Tables, gone: BoolArray) -> None:
    """Move tables that are a sum of a cost per row and one per column to the nodes; ``gone`` (E,) says which."""
    ptr, table, cost = net.ptr, net.table, net.cost
    for e in range(len(net.ends)):
        u, v = net.ends[e, 0], net.ends[e, 1]
        rows, columns, at = ptr[u + 1] - ptr[u], ptr[v + 1] - ptr[v], net.table_ptr[e]
        gone[e] = True
        for j in range(rows * columns):
            a, b = j // columns, j % columns
            apart = table[at + j] - table[at + a * columns] - table[at + b] + table[at]
            if table[at + j] >= FORBIDDEN or apart != 0:
                gone[e] = False
                break
        if gone[e]:
            least = table[at]
            for b in range(columns):
                least = min(least, table[at + b])
            for a in range(rows):
                cost[ptr[u] + a] = min(
                    FORBIDDEN, cost[ptr[u] + a] + table[at + a * columns] - table[at] + least
                )
            for b in range(columns):
                cost[ptr[v] + b] = min(FORBIDDEN, cost[ptr[v] + b] + table[at + b] - least)


@plain
def spread_demand(
    demand: IntArray, by_choice: IntArray, ptr: IntArray, maps: Maps, new_ptr: IntArray, out: AnyArray
) -> int:
    """Write the demands (choice, start, end, amount, memory) of every root's strategies to ``out``; returns how many.

    Parameters
    ----------
    by_choice : (choices + 1,) where the demands of a choice begin; ``demand`` is sorted by choice
    ptr, new_ptr : where the strategies of nodes and of roots begin
    out : (rows, 5); with no rows they are only counted
    """
    count = 0
    for i in range(len(maps.root)):
        for j in range(maps.ptr[i + 1] - maps.ptr[i]):
            choice = ptr[i] + maps.values[maps.ptr[i] + j]
            for d in range(by_choice[choice], by_choice[choice + 1]):
                if len(out):
                    out[count, 0] = new_ptr[maps.root[i]] + j
                    for k in range(1, 5):
                        out[count, k] = demand[d, k]
                count += 1
    return count
