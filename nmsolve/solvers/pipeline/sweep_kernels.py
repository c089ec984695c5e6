"""The compiled part of pricing: the most valuable way through a :class:`~.sweep.Sweep` within limits on what it needs.

Needs are up to three whole numbers: time (with what tensors take, or that apart where it happens at the same time), and storage.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.model.basic_kernels import stable_order
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import AnyArray, BoolArray, FloatArray, IntArray
from nmsolve.solvers.pipeline.sweep import Sweep

#: How many ways to a node are compared with a new one.
LOOK_BACK = 64


class Asked(NamedTuple):
    """A question: prices (I,) of the items in the sweep's order, and R limits.

    ``needs`` (I, R) of every item taken; tensors that are cut add to need ``moves``; ``limit`` (R,).
    """

    price: IntArray
    needs: IntArray
    moves: int
    limit: IntArray


class RestBounds(NamedTuple):
    """M multipliers ``rate`` (M, R), and what a way from every node to the end is worth with them at most, ``rest`` (M,
    nodes)."""

    rate: FloatArray
    rest: FloatArray


@kernel
def within_limits(sweep: Sweep, asked: Asked) -> Sweep:
    """Return the sweep without arcs that no way within the limits takes: they lead to -1."""
    count, nodes, width = sweep.order.shape[0], sweep.left_to.shape[0], asked.limit.shape[0]
    left_to, taken_to = sweep.left_to.copy(), sweep.taken_to.copy()
    for r in range(width):
        paid = 1 if r == asked.moves else 0
        least = np.full(nodes, np.int64(2**62))
        least[0] = 0
        for i in range(count):
            for node in range(sweep.first[i], sweep.first[i + 1]):
                to = sweep.left_to[node]
                least[to] = min(least[to], least[node] + paid * sweep.left_cost[node])
                to = sweep.taken_to[node]
                if to >= 0:
                    least[to] = min(
                        least[to], least[node] + asked.needs[i, r] + paid * sweep.taken_cost[node]
                    )
        rest = np.zeros(nodes, np.int64)
        for i in range(count - 1, -1, -1):
            for node in range(sweep.first[i], sweep.first[i + 1]):
                out = rest[sweep.left_to[node]] + paid * sweep.left_cost[node]
                if least[node] + out > asked.limit[r]:
                    left_to[node] = -1
                to = sweep.taken_to[node]
                if to >= 0:
                    into = rest[to] + asked.needs[i, r] + paid * sweep.taken_cost[node]
                    if least[node] + into > asked.limit[r]:
                        taken_to[node] = -1
                    out = min(out, into)
                rest[node] = out
    return Sweep(
        sweep.order, sweep.first, left_to, sweep.left_cost, taken_to, sweep.taken_cost, sweep.into, sweep.tail
    )


@kernel
def remaining(sweep: Sweep, asked: Asked, rate: FloatArray) -> FloatArray:
    """(nodes,) the most that a way to the end is worth, prices less ``rate`` (R,) times needs; -inf where none leads there."""
    count = sweep.order.shape[0]
    out = np.zeros(sweep.left_to.shape[0])
    for i in range(count - 1, -1, -1):
        gain = float(asked.price[i])
        for r in range(rate.shape[0]):
            gain -= rate[r] * asked.needs[i, r]
        for node in range(sweep.first[i], sweep.first[i + 1]):
            best, to = -np.inf, sweep.left_to[node]
            if to >= 0:
                best = out[to] - rate[asked.moves] * sweep.left_cost[node]
            to = sweep.taken_to[node]
            if to >= 0:
                best = max(best, out[to] + gain - rate[asked.moves] * sweep.taken_cost[node])
            out[node] = best
    return out


@kernel
def followed(
    sweep: Sweep, asked: Asked, rate: FloatArray, rest: FloatArray
) -> tuple[BoolArray, int, IntArray]:
    """Return the way that ``rest`` of :func:`remaining` promises: what it takes (I,) in order, its price, its needs (R,)."""
    count, node, price = sweep.order.shape[0], 0, 0
    taken, needs = np.zeros(count, np.bool_), np.zeros(rate.shape[0], np.int64)
    for i in range(count):
        gain = float(asked.price[i])
        for r in range(rate.shape[0]):
            gain -= rate[r] * asked.needs[i, r]
        left, to = -np.inf, sweep.left_to[node]
        if to >= 0:
            left = rest[to] - rate[asked.moves] * sweep.left_cost[node]
        to = sweep.taken_to[node]
        if to >= 0 and rest[to] + gain - rate[asked.moves] * sweep.taken_cost[node] > left:
            taken[i] = True
            price += asked.price[i]
            needs += asked.needs[i]
            needs[asked.moves] += sweep.taken_cost[node]
            node = to
        else:
            needs[asked.moves] += sweep.left_cost[node]
            node = sweep.left_to[node]
    return taken, price, needs


@plain
def _reaches(
    asked: Asked, rest_bounds: RestBounds, node: int, price: int, needs: AnyArray, least: float
) -> bool:
    """Can a way that is here with this price and these needs end within the limits and be worth ``least``?"""
    for r in range(needs.shape[0]):
        if needs[r] > asked.limit[r]:
            return False
    for m in range(rest_bounds.rate.shape[0]):
        most = price + rest_bounds.rest[m, node]
        for r in range(needs.shape[0]):
            most += rest_bounds.rate[m, r] * (asked.limit[r] - needs[r])
        if most < least:
            return False
    return True


@kernel
def most_valuable(
    sweep: Sweep, asked: Asked, rest_bounds: RestBounds, least: float, room: int, thin: bool
) -> tuple[int, bool, BoolArray]:
    """Return the most that a way within the limits is worth if at least ``least``, else -1; and what it takes (I,).

    Ways to a node that need no less than another and are worth no more are forgotten. Where more than ``room`` of one step are
    left, neighbours are taken together: what the best is worth, and the least of every need. The second answer is then True:
    there may be no such way, but none is worth more. With ``thin`` the best of neighbours is kept as it is, and better ways may
    be missed.
    """
    count, width = sweep.order.shape[0], asked.limit.shape[0]
    size = 4096
    needs, price = np.zeros((size, width), np.int64), np.zeros(size, np.int64)
    came, takes = np.full(size, -1, np.int64), np.zeros(size, np.bool_)
    begin = np.zeros(sweep.left_to.shape[0] + 1, np.int64)
    begin[1] = 1
    filled, rough = 1, False
    for i in range(count):
        before = filled
        for node in range(sweep.first[i + 1], sweep.first[i + 2]):
            most = 0
            for k in range(sweep.into[node], sweep.into[node + 1]):
                tail = sweep.tail[k] // 2
                most += begin[tail + 1] - begin[tail]
            new_needs, new_price = np.empty((most, width), np.int64), np.empty(most, np.int64)
            new_came, new_takes = np.empty(most, np.int64), np.empty(most, np.bool_)
            found = 0
            for k in range(sweep.into[node], sweep.into[node + 1]):
                tail, taken = sweep.tail[k] // 2, sweep.tail[k] % 2 == 1
                cost = sweep.taken_cost[tail] if taken else sweep.left_cost[tail]
                if (sweep.taken_to[tail] if taken else sweep.left_to[tail]) < 0:
                    continue
                for label in range(begin[tail], begin[tail + 1]):
                    new_price[found] = price[label] + (asked.price[i] if taken else 0)
                    for r in range(width):
                        new_needs[found, r] = needs[label, r] + (asked.needs[i, r] if taken else 0)
                    new_needs[found, asked.moves] += cost
                    if _reaches(asked, rest_bounds, node, new_price[found], new_needs[found], least):
                        new_came[found], new_takes[found] = label, taken
                        found += 1
            order = stable_order(new_needs[:found, 0])
            while filled + found > size:
                needs, price = np.concatenate((needs, needs)), np.concatenate((price, price))
                came, takes = np.concatenate((came, came)), np.concatenate((takes, takes))
                size *= 2
            filled = _kept(
                order, new_needs, new_price, new_came, new_takes, needs, price, came, takes, filled
            )
            begin[node + 1] = filled
        if filled - before > room:
            filled = _thinned(
                needs, price, came, takes, begin, sweep.first[i + 1 : i + 3], room / (filled - before), thin
            )
            rough = not thin
    best, at = -1, -1
    last = sweep.left_to.shape[0] - 1
    for label in range(begin[last], begin[last + 1]):
        if price[label] > best:
            best, at = price[label], label
    inside = np.zeros(count, np.bool_)
    for i in range(count - 1, -1, -1):
        if at >= 0:
            inside[i] = takes[at]
            at = came[at]
    return best, rough, inside


@plain
def _kept(
    order: IntArray,
    new_needs: IntArray,
    new_price: IntArray,
    new_came: IntArray,
    new_takes: BoolArray,
    needs: IntArray,
    price: IntArray,
    came: IntArray,
    takes: BoolArray,
    start: int,
) -> int:
    """Write the new ways to a node, in ``order`` of what they need first, from ``start`` on, but for those that need no less than
    one of the last written and are worth no more. Returns where they end."""
    filled, width = start, new_needs.shape[1]
    for place in range(order.shape[0]):
        k, keeps, back = order[place], True, filled - 1
        while back >= start and back >= filled - (1 if width == 1 else LOOK_BACK) and keeps:
            worse = new_price[k] <= price[back]
            for r in range(width):
                worse &= new_needs[k, r] >= needs[back, r]
            keeps = not worse
            back -= 1
        if not keeps:
            continue
        if width == 1 and filled > start and needs[filled - 1, 0] == new_needs[k, 0]:
            filled -= 1
        for r in range(width):
            needs[filled, r] = new_needs[k, r]
        price[filled], came[filled], takes[filled] = new_price[k], new_came[k], new_takes[k]
        filled += 1
    return filled


@plain
def _thinned(
    needs: IntArray,
    price: IntArray,
    came: IntArray,
    takes: BoolArray,
    begin: IntArray,
    nodes: IntArray,
    part: float,
    thin: bool,
) -> int:
    """Leave a ``part`` of the ways to each of the ``nodes`` (first, end), whose ``begin`` changes; returns where the last
    ends."""
    start = int(begin[nodes[0]])
    to = start
    for node in range(nodes[0], nodes[1]):
        end = begin[node + 1]
        share = max(2, int((end - start) * part))
        to = _together(needs, price, came, takes, start, end, to, share, thin)
        start, begin[node + 1] = end, to
    return to


@plain
def _together(
    needs: IntArray,
    price: IntArray,
    came: IntArray,
    takes: BoolArray,
    start: int,
    end: int,
    to: int,
    share: int,
    thin: bool,
) -> int:
    """Take neighbours among the ways from ``start`` to ``end`` together, or with ``thin`` only the best of them, until there
    are at most ``share``; they are moved to ``to`` and after. Returns where they end."""
    if start == end:
        return to
    low, wide = needs[start, 0], max(1, needs[end - 1, 0] - needs[start, 0])
    cheap, dear = price[start], price[start]
    for k in range(start, end):
        cheap, dear = min(cheap, price[k]), max(dear, price[k])
    step = 2.0 / share
    kept = end - start
    while kept > share:  # how many cells of this size hold any
        kept, cell, step = 0, -1, step * 1.3
        for k in range(start, end):
            at = int(((needs[k, 0] - low) / wide + (price[k] - cheap) / max(1, dear - cheap)) / step)
            kept += at != cell
            cell = at
    first = start
    while first < end:
        last, best, cell = first, first, -1
        while last < end:
            at = int(((needs[last, 0] - low) / wide + (price[last] - cheap) / max(1, dear - cheap)) / step)
            if cell >= 0 and at != cell:
                break
            cell = at
            if price[last] > price[best]:
                best = last
            last += 1
        worth, source, taken = price[best], came[best], takes[best]
        for r in range(needs.shape[1]):
            least = needs[best, r]
            for k in range(first, first if thin else last):
                least = min(least, needs[k, r])
            needs[to, r] = least
        price[to], came[to], takes[to] = worth, source, taken
        to, first = to + 1, last
    return to
