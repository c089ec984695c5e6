"""Iterated local search with block moves on position tables: rotate a strip, swap two blocks, mirror a block, repair.

Annealing moves one or two nodes at a time; a block move changes many at once and is repaired by a descent from the nodes
it touched. A round that does not end better is undone swap by swap.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nmsolve.heuristics.mapping.placement.proposals import allowed, best_near
from nmsolve.heuristics.mapping.placement.tables import Tabled, make_swap, table_price
from nmsolve.model.compiled import embedded, plain
from nmsolve.model.splitmix import STEP, mix
from nmsolve.model.types import BoolArray, FloatArray, IntArray

#: Swaps of one round, block move and repair together; a round that needs more is undone.
LONGEST = 4096
#: Longest strip and largest block side; lines to either side that a repair looks at.
STRIP, SIDE, REPAIR = 12, 6, 4


class Round(NamedTuple):
    """Scratch of a round: swapped core pairs (LONGEST, 2), queue of nodes (n,), who is in it (n,)."""

    swaps: IntArray
    queue: IntArray
    queued: BoolArray


def new_round(n: int) -> Round:
    """Empty scratch for ``n`` nodes."""
    return Round(np.zeros((LONGEST, 2), np.int64), np.zeros(n, np.int64), np.zeros(n, np.bool_))


@plain
def exchange(s: Tabled, p: int, q: int) -> Any:
    """Exchange what sits on cores ``p`` and ``q``; the price.

    If a side constraint forbids it, nothing is done and the price is 1e300.
    """
    cols = s.grid.dx.shape[0]
    u, v = np.int64(s.seats.node[p]), np.int64(s.seats.node[q])
    if u == -2 or v == -2:
        return 1e300
    if u < 0:
        p, q, u, v = q, p, v, u
    if u < 0:
        return 0.0
    if not allowed(u, q, v, p, s.grid.domain, s.grid.domains):
        return 1e300
    price, _ = table_price(s, u, v, p % cols, p // cols, q % cols, q // cols, np.inf)
    make_swap(s, u, v, q % cols, q // cols)
    return np.float64(price)


@plain
def block_move(kind: int, cols: int, rows: int, bits: Any, swaps: IntArray) -> Any:
    """Write the core pairs of a random block move to ``swaps`` (to be exchanged in order); returns how many.

    ``kind`` 0: a strip moves on by one core, 1: two blocks change places, 2: a block is mirrored. ``bits`` are 64
    random ones.
    """
    upright = np.int64(bits) & 1  # the second axis plays the first one's part
    w, h = (rows, cols) if upright else (cols, rows)
    a = np.int64((bits >> np.uint64(1)) & np.uint64(1023))
    b = np.int64((bits >> np.uint64(11)) & np.uint64(1023))
    x = np.int64((bits >> np.uint64(21)) & np.uint64(0xFFFF))
    y = np.int64((bits >> np.uint64(37)) & np.uint64(0xFFFF))
    far = np.int64(bits >> np.uint64(53))
    wide: Any = min(w, 3 + a % (STRIP - 2))
    high: Any = 1
    if kind > 0:
        wide, high = min(w // 2 if kind == 1 else w, 1 + a % SIDE), min(h, 1 + b % SIDE)
    if wide < 1:
        return 0
    step = wide + far % 3 if kind == 1 else 0
    if wide + step > w:
        step = w - wide
    x, y = x % (w - wide - step + 1), y % (h - high + 1)
    made = 0
    for i in range(high):
        last = wide - 1 if kind == 0 else (wide if kind == 1 else wide // 2)
        for j in range(last):
            one, other = x + j, x + j + 1
            if kind == 1:
                other = x + j + step
            elif kind == 2:
                other = x + wide - 1 - j
            line = y + i
            swaps[made, 0] = one * cols + line if upright else line * cols + one
            swaps[made, 1] = other * cols + line if upright else line * cols + other
            made += 1
    return made


@embedded
def _push(u: int, tail: int, queue: IntArray, queued: BoolArray) -> Any:
    """Append node ``u`` (< 0: none) to the ring ``queue`` unless it waits there; the new tail."""
    if u < 0 or queued[u]:
        return tail
    queue[tail % len(queue)] = u
    queued[u] = True
    return tail + 1


@plain
def _repair(s: Tabled, made: int, total: float, scratch: Round, least: float) -> Any:
    """Descend from the nodes on the swapped cores; (swaps made, price of all), stopping short of LONGEST."""
    swaps, queue, queued = scratch
    node, cols = s.seats.node, s.grid.dx.shape[0]
    head, tail = 0, 0
    for k in range(made):
        for side in range(2):
            tail = _push(np.int64(node[swaps[k, side]]), tail, queue, queued)
    while head < tail:
        u = queue[head % len(queue)]
        queued[u] = False
        head += 1
        if made >= LONGEST:
            continue  # only empties the queue
        to = best_near(s, table_price, u, REPAIR, least)
        if to < 0:
            continue
        here = np.int64(s.seats.cy[u]) * cols + np.int64(s.seats.cx[u])
        total += exchange(s, here, to)
        swaps[made, 0], swaps[made, 1] = here, to
        made += 1
        tail = _push(u, tail, queue, queued)
        tail = _push(np.int64(node[here]), tail, queue, queued)
    return made, total


@plain
def search_blocks(
    s: Tabled,
    kind: int,
    rounds: int,
    least: float,
    rng: IntArray,
    scratch: Round,
    stats: FloatArray,
) -> None:
    """Make ``rounds`` block moves of one kind (:func:`block_move`) with repair; keep those that gain more than ``least``.

    Adds to ``stats``: rounds, kept ones, swaps made (undone ones twice), change of cost.
    """
    cols, rows = s.grid.dx.shape[0], s.grid.dy.shape[0]
    count, swaps = rng[0], scratch.swaps
    for _ in range(rounds):
        count += STEP
        wanted = block_move(kind, cols, rows, mix(count), swaps)
        made, total = 0, 0.0
        for k in range(wanted):
            price = exchange(s, swaps[k, 0], swaps[k, 1])
            if price < 1e299:
                total += price
                swaps[made, 0], swaps[made, 1] = swaps[k, 0], swaps[k, 1]
                made += 1
        made, total = _repair(s, made, total, scratch, least)
        stats[0] += 1
        stats[2] += made
        if total < -least:
            stats[1] += 1
            stats[3] += total
            continue
        stats[2] += made
        for k in range(made - 1, -1, -1):
            exchange(s, swaps[k, 0], swaps[k, 1])
    rng[0] = count
