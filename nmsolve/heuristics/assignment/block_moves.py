"""Block moves of a cost network: the strategies of a random tree of nodes are chosen anew, all at once, by a dynamic program.

All other nodes stay. Memory has prices in the dynamic program; what a move really costs and needs decides whether it stays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.heuristics.assignment.messages import Network
from nmsolve.heuristics.rng import below, uniform
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import AnyArray, FloatArray, IntArray

#: How the price of a byte too many changes every N moves, where there are such bytes and where not.
HARDER, SOFTER = 1.2, 0.95


class Needs(NamedTuple):
    """What choices need of memories.

    Attributes
    ----------
    ptr, first, last, amount, limit : as in :class:`~nmsolve.model.assignment.spans.Spans`
    charge : (choices,) what a choice's bytes cost
    """

    ptr: IntArray
    first: IntArray
    last: IntArray
    amount: IntArray
    limit: IntArray
    charge: FloatArray


class State(NamedTuple):
    """Where the search is.

    Attributes
    ----------
    at, best : (N,) strategies, and the best ones that keep within all memories
    used : (R,) bytes
    total : (5,) cost, bytes too many, cost of ``best``, what a byte too many costs, and the least that it costs
    """

    at: IntArray
    best: IntArray
    used: IntArray
    total: FloatArray


class Block(NamedTuple):
    """Room for one move.

    Attributes
    ----------
    nodes : (N,) its nodes, each after the one that it hangs on
    up : (N,) pair that a node hangs on, -1 for the first
    seen : (N,) how many pairs a node has with the block, -1 for its own nodes
    value : (choices,) least cost of what hangs on a node with one of its strategies
    pick : (entries,) for strategies of the upper node the best one of the lower, see ``Network.to``
    new : (N,) strategies by position in ``nodes``
    least : (widest node,) room
    """

    nodes: IntArray
    up: IntArray
    seen: IntArray
    value: FloatArray
    pick: IntArray
    new: IntArray
    least: FloatArray


@plain
def _other(net: Network, e: int, i: int) -> int:
    return int(net.ends[e, 1] if net.ends[e, 0] == i else net.ends[e, 0])


@plain
def _entry(net: Network, e: int, i: int, a: int, b: int) -> float:
    """Return the cost of strategy a of node i and b of the other node of a pair."""
    wide = net.ptr[net.ends[e, 1] + 1] - net.ptr[net.ends[e, 1]]
    if net.ends[e, 0] == i:
        return float(net.table[net.table_ptr[e] + a * wide + b])
    return float(net.table[net.table_ptr[e] + b * wide + a])


@plain
def _grow(net: Network, block: Block, most: int, rng: AnyArray) -> int:
    """Grow a random tree of at most this many nodes with no pair between them but those of the tree; its size."""
    count, n = 1, len(net.ptr) - 1
    block.nodes[0] = below(rng, n)
    block.up[0] = -1
    for i in range(n):
        block.seen[i] = 0
    block.seen[block.nodes[0]] = -1
    done = 0
    while done < count and count < most:
        # the next node to grow from: a random one of those not yet grown
        k = done + below(rng, count - done)
        block.nodes[done], block.nodes[k] = block.nodes[k], block.nodes[done]
        block.up[done], block.up[k] = block.up[k], block.up[done]
        i = block.nodes[done]
        done += 1
        start, size = net.pair_ptr[i], net.pair_ptr[i + 1] - net.pair_ptr[i]
        shift = below(rng, max(1, size))
        for p in range(size):
            e = net.pairs[start + (p + shift) % size]
            j = _other(net, e, i)
            if block.seen[j] != 0 or count >= most:
                continue
            touching = 0
            for q in range(net.pair_ptr[j], net.pair_ptr[j + 1]):
                touching += block.seen[_other(net, net.pairs[q], j)] == -1
            block.seen[j] = -1 if touching == 1 else 1
            if touching == 1:
                block.nodes[count], block.up[count] = j, e
                count += 1
    return count


@plain
def _add(net: Network, e: int, i: int, b: int, value: FloatArray) -> None:
    """Add to the values of a node's strategies what they cost with strategy b of the other node of a pair."""
    first, second = net.ends[e]
    wide, start = net.ptr[second + 1] - net.ptr[second], net.ptr[i]
    at, step = (net.table_ptr[e] + b, wide) if first == i else (net.table_ptr[e] + b * wide, 1)
    for a in range(net.ptr[i + 1] - start):
        value[start + a] += net.table[at + a * step]


@plain
def _pass_up(net: Network, block: Block, e: int, i: int) -> None:
    """Add to the values of the upper node of a pair what hangs on it there: the best strategies of node i, the lower one."""
    first, second = net.ends[e]
    wide, start, table = net.ptr[second + 1] - net.ptr[second], net.ptr[i], net.table_ptr[e]
    size = net.ptr[i + 1] - start
    if first == i:  # rows are strategies of i
        to, up = net.to[e, 1], net.ptr[second]
        for b in range(wide):
            block.least[b] = np.inf
        for a in range(size):
            own = block.value[start + a]
            for b in range(wide):
                one = own + net.table[table + a * wide + b]
                if one < block.least[b]:
                    block.least[b] = one
                    block.pick[to + b] = a
        for b in range(wide):
            block.value[up + b] += block.least[b]
        return
    to, up = net.to[e, 0], net.ptr[first]
    for b in range(net.ptr[first + 1] - up):
        least, best = np.inf, 0
        for a in range(size):
            one = block.value[start + a] + net.table[table + b * wide + a]
            if one < least:
                least, best = one, a
        block.value[up + b] += least
        block.pick[to + b] = best


@plain
def _solve(
    net: Network,
    needs: Needs,
    state: State,
    block: Block,
    count: int,
    thrift: float,
    heat: float,
    rng: AnyArray,
) -> None:
    """Choose the block's strategies; costs are blurred by about ``heat``, prices of memory count ``thrift`` times."""
    for k in range(count):
        i = block.nodes[k]
        for a in range(net.ptr[i], net.ptr[i + 1]):
            block.value[a] = net.cost[a] + thrift * needs.charge[a] - heat * np.log(uniform(rng) + 1e-12)
    for k in range(count - 1, -1, -1):
        i = block.nodes[k]
        for p in range(net.pair_ptr[i], net.pair_ptr[i + 1]):
            e = net.pairs[p]
            j = _other(net, e, i)
            if block.seen[j] != -1:
                _add(net, e, i, state.at[j], block.value)
        if block.up[k] >= 0:
            _pass_up(net, block, block.up[k], i)
    for k in range(count):
        i, e = block.nodes[k], block.up[k]
        if e < 0:
            block.new[i] = 0
            for a in range(1, net.ptr[i + 1] - net.ptr[i]):
                if block.value[net.ptr[i] + a] < block.value[net.ptr[i] + block.new[i]]:
                    block.new[i] = a
        else:
            j = _other(net, e, i)
            to = net.to[e, 0] if net.ends[e, 0] == j else net.to[e, 1]
            block.new[i] = block.pick[to + block.new[j]]


@plain
def _local(net: Network, state: State, block: Block, count: int, new: bool) -> float:
    """Return what the block's nodes and their pairs cost, with their old strategies or the new ones."""
    total = 0.0
    for k in range(count):
        i = block.nodes[k]
        a = block.new[i] if new else state.at[i]
        total += net.cost[net.ptr[i] + a]
        for p in range(net.pair_ptr[i], net.pair_ptr[i + 1]):
            e = net.pairs[p]
            j = _other(net, e, i)
            inside = block.seen[j] == -1
            if not inside or net.ends[e, 0] == i:
                total += _entry(net, e, i, a, block.new[j] if new and inside else state.at[j])
    return total


@plain
def _take(net: Network, needs: Needs, state: State, i: int, a: int) -> float:
    """Give a node another strategy; by how much more bytes are too many."""
    more = 0
    for sign in (-1, 1):
        choice = net.ptr[i] + (state.at[i] if sign < 0 else a)
        for k in range(needs.ptr[choice], needs.ptr[choice + 1]):
            change = sign * needs.amount[k]
            for r in range(needs.first[k], needs.last[k]):
                over = state.used[r] - needs.limit[r]
                state.used[r] += change
                more += max(0, over + change) - max(0, over)
    state.at[i] = a
    return float(more)


@plain
def _keep(state: State) -> None:
    """Make the solution the best one if it is and nothing is too much."""
    if state.total[1] == 0 and state.total[0] < state.total[2]:
        state.total[2] = state.total[0]
        for i in range(len(state.at)):
            state.best[i] = state.at[i]


@plain
def measure(net: Network, needs: Needs, state: State) -> None:
    """Set the used bytes and the totals from ``at``, and ``best`` if nothing is too much."""
    total = 0.0
    for r in range(len(state.used)):
        state.used[r] = 0
    for i in range(len(net.ptr) - 1):
        choice = net.ptr[i] + state.at[i]
        total += net.cost[choice]
        for k in range(needs.ptr[choice], needs.ptr[choice + 1]):
            for r in range(needs.first[k], needs.last[k]):
                state.used[r] += needs.amount[k]
    for e in range(len(net.ends)):
        total += _entry(net, e, net.ends[e, 0], state.at[net.ends[e, 0]], state.at[net.ends[e, 1]])
    state.total[0], state.total[1] = total, 0.0
    for r in range(len(needs.limit)):
        state.total[1] += max(0, state.used[r] - needs.limit[r])
    _keep(state)


@kernel
def round_messages(net: Network, unary: FloatArray, message: FloatArray, at: IntArray) -> None:
    """Set ``at``: node after node takes what is cheapest with the nodes before it and the messages of those after it."""
    for i in range(len(net.ptr) - 1):
        size = net.ptr[i + 1] - net.ptr[i]
        cost = unary[net.ptr[i] : net.ptr[i + 1]].copy()
        for p in range(net.pair_ptr[i], net.pair_ptr[i + 1]):
            e = net.pairs[p]
            for a in range(size):
                if net.ends[e, 0] == i:
                    cost[a] += message[net.to[e, 0] + a]
                else:
                    cost[a] += _entry(net, e, i, a, at[net.ends[e, 0]])
        at[i] = np.argmin(cost)


@plain
def anneal(
    net: Network,
    needs: Needs,
    state: State,
    block: Block,
    heats: FloatArray,
    begin: int,
    end: int,
    rng: AnyArray,
) -> int:
    """Make moves number ``begin`` to ``end`` of an annealing; how many changed something.

    A move stays if it makes cost and bytes too many, at their price, no dearer than chance at this temperature allows. Every N
    moves the price rises where bytes are too many; where they are not, it falls in the first half.

    Parameters
    ----------
    heats : (3,) first and last temperature, and the number of moves of the whole annealing
    """
    taken = 0
    n = len(net.ptr) - 1
    for move in range(begin, end):
        if move % n == 0 and (state.total[1] > 0 or 2 * move < heats[2]):
            state.total[3] = max(state.total[4], state.total[3] * (HARDER if state.total[1] > 0 else SOFTER))
        heat = heats[0] * (heats[1] / heats[0]) ** (move / heats[2])
        most = 1 + below(rng, 8 if below(rng, 3) > 0 else n)
        count = _grow(net, block, most, rng)
        thrift = 2.0 * uniform(rng)
        _solve(net, needs, state, block, count, thrift, heat if below(rng, 4) > 0 else 0.0, rng)
        changed = 0
        for k in range(count):
            changed += block.new[block.nodes[k]] != state.at[block.nodes[k]]
        if changed == 0:
            continue
        dearer = _local(net, state, block, count, True) - _local(net, state, block, count, False)
        allowed = -heat * np.log(uniform(rng) + 1e-12)
        if state.total[1] == 0 and dearer > allowed:
            continue
        more = 0.0
        for k in range(count):  # the old strategies are kept where the new ones were
            i = block.nodes[k]
            if block.new[i] != state.at[i]:
                old = state.at[i]
                more += _take(net, needs, state, i, block.new[i])
                block.new[i] = old
        if dearer + state.total[3] * more > allowed:
            for k in range(count):
                i = block.nodes[k]
                if block.new[i] != state.at[i]:
                    _take(net, needs, state, i, block.new[i])
            continue
        taken += 1
        state.total[0] += dearer
        state.total[1] = max(0.0, state.total[1] + more)
        _keep(state)
    return taken
