"""What a move would change, judged from frozen tables; and making it, with the exact change."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.common.room import put
from nmsolve.heuristics.mapping.nets.axons import book_row, book_source
from nmsolve.heuristics.mapping.nets.state import LONE, PRICED, NetTables, Work, pairs_at, price_row, tree
from nmsolve.model.compiled import inlined, plain
from nmsolve.model.types import Int32Array


@plain
def weigh(t: NetTables, s: Work, v: int, rows: Int32Array) -> None:
    """Change of the objective for moving vertex ``v`` to each core, into ``s.fine`` (P,), up to rounding of prices.

    ``rows`` are the messages that reach ``v``. They add their prices; where one has no other destination on ``v``'s
    core, its prices grow first, since its tree is shorter without ``v``.
    """
    cores, here = t.hits.shape[1], t.room.core[v]
    hits, price, busy, rate, total, wide = t.hits, t.price, t.busy, t.rate, s.total, t.price.shape[1]
    total[:] = np.float32(0.0)
    s.fine[:] = 0.0
    s.side[:] = 0.0
    for row in rows:
        if busy[row] == 0:
            continue
        if hits[row, here] == 1:
            shorten(t, s, row, here)
        if busy[row] & PRICED:
            often = np.float32(rate[row])
            for p in range(
                wide
            ):  # becomes vector code; arrays have names above since each access to a field costs
                total[p] += often * np.float32(price[row, p])
    for i in range(t.out_ptr[v], t.out_ptr[v + 1]):
        row = t.out_row[i]
        if rate[row] > 0.0:
            _weigh_source(t, s, row)
    if len(t.pairs.other) > 0:
        _weigh_pairs(t, s, v)
    p, cols = 0, len(t.x)
    for _ in range(len(t.y)):
        for c in range(cols):
            s.fine[p] += t.unit * total[p] + s.side[c]
            p += 1
    at_home = s.fine[here]
    for p in range(cores):
        s.fine[p] -= at_home


@inlined
def shorten(t: NetTables, s: Work, row: int, here: int) -> None:
    """Add to ``s.fine`` and, for whole columns, ``s.side`` by how much the prices of ``row`` grow without ``here``."""
    cols, o, x, y, rate = len(t.x), t.origin[row], t.x, t.y, t.rate[row]
    line, c, own_line, own_col = here // cols, here % cols, o // cols, o % cols
    if here != o:
        s.fine[here] += rate * t.step
    low, high = int(t.low[row, c]), int(t.high[row, c])
    if low < line and line < high:
        return
    if low == high:
        low = high = own_line
        if c < own_col and c == t.span[row, 0]:
            first = c + 1
            while first < own_col and t.high[row, first] < 0:
                first += 1
            for k in range(first):
                s.side[k] += rate * (x[first] - x[max(k, c)])
        elif c > own_col and c == t.span[row, 1]:
            final = c - 1
            while final > own_col and t.high[row, final] < 0:
                final -= 1
            for k in range(final + 1, cols):
                s.side[k] += rate * (x[min(k, c)] - x[final])
    else:
        low, high = _ends_without(t, row, c, line)
        low, high = min(low, own_line), max(high, own_line)
    if line < low:
        for i in range(low):
            s.fine[i * cols + c] += rate * (y[low] - y[max(i, line)])
    elif line > high:
        for i in range(high + 1, len(y)):
            s.fine[i * cols + c] += rate * (y[min(i, line)] - y[high])


@inlined
def _ends_without(t: NetTables, row: int, c: int, line: int) -> tuple[int, int]:
    """First and last line that ``row`` reaches in column ``c`` without ``line``; there are others."""
    cols = len(t.x)
    low, high = int(t.low[row, c]), int(t.high[row, c])
    if line == low:
        low += 1
        while t.hits[row, low * cols + c] == 0:
            low += 1
    elif line == high:
        high -= 1
        while t.hits[row, high * cols + c] == 0:
            high -= 1
    return low, high


@inlined
def _weigh_source(t: NetTables, s: Work, row: int) -> None:
    """Add what ``row`` would cost from each core as its origin to ``s.fine`` and ``s.side``."""
    cols, lines, rate = len(t.x), len(t.y), t.rate[row]
    first, final = cols, -1
    s.down[:] = 0.0
    for c in range(cols):
        low, high = t.low[row, c], t.high[row, c]
        if high < 0:
            continue
        first, final = min(first, c), c
        for i in range(lines):
            s.down[i] += t.y[max(high, i)] - t.y[min(low, i)]
    if final < 0:
        return
    for c in range(cols):
        s.side[c] += rate * (t.x[max(final, c)] - t.x[min(first, c)])
    p = 0
    for i in range(lines):
        extra = rate * s.down[i]
        for _ in range(cols):
            s.fine[p] += extra
            p += 1
    if t.step > 0.0:
        for p in range(t.hits.shape[1]):
            if t.hits[row, p] > 0:
                s.fine[p] -= rate * t.step


@plain
def _weigh_pairs(t: NetTables, s: Work, v: int) -> None:
    """Add what the pairs of ``v`` would cost from each core to ``s.fine`` and ``s.side``; by columns and lines first."""
    cols, ptr, other, weight = len(t.x), t.pairs.ptr, t.pairs.other, t.pairs.weight
    s.across[:] = 0.0
    s.down[:] = 0.0
    for i in range(ptr[v], ptr[v + 1]):
        if other[i] != v:
            p = t.room.core[other[i]]
            s.fine[p] -= weight[i] * t.step
            s.across[p % cols] += weight[i]
            s.down[p // cols] += weight[i]
    for c in range(cols):
        for k in range(cols):
            s.side[k] += s.across[c] * abs(t.x[k] - t.x[c])
    for k in range(len(t.y)):
        far = 0.0
        for i in range(len(t.y)):
            far += s.down[i] * abs(t.y[k] - t.y[i])
        for c in range(cols):
            s.fine[k * cols + c] += far


@plain
def one_change(t: NetTables, s: Work, v: int, q: int, rows: Int32Array) -> float:
    """Change of the objective for moving ``v`` to core ``q`` alone, as :func:`weigh` finds it."""
    here, cols = t.room.core[v], len(t.x)
    hits, price, busy, rate = t.hits, t.price, t.busy, t.rate
    total: float = 0.0
    s.fine[:] = 0.0
    s.side[:] = 0.0
    for row in rows:
        if busy[row] == 0:
            continue
        if hits[row, here] == 1:
            shorten(t, s, row, here)
        total += rate[row] * price[row, q]
    total = t.unit * total + s.fine[q] + s.side[q % cols] - s.fine[here] - s.side[here % cols]
    for i in range(t.out_ptr[v], t.out_ptr[v + 1]):
        row = t.out_row[i]
        if rate[row] > 0.0:
            total += rate[row] * (tree(t, row, q)[0] - tree(t, row, here)[0])
    if len(t.pairs.other) > 0:
        total += pairs_at(t, v, q) - pairs_at(t, v, here)
    return total


@plain
def shift(t: NetTables, s: Work, v: int, q: int, rows: Int32Array) -> float:
    """Move vertex ``v`` to core ``q`` and bring all tables up to date; the exact change of the objective."""
    total: float = follow(t, s, v, q, rows)
    put(t.room, v, q)
    return total


@plain
def follow(t: NetTables, s: Work, v: int, q: int, rows: Int32Array) -> float:
    """Bring all tables but the room up to date for a move of vertex ``v`` to core ``q``; the exact change of the objective."""
    p, cols = t.room.core[v], len(t.x)
    hits, price, busy, paid, lone = t.hits, t.price, t.busy, t.paid, t.lone
    total: float = 0.0
    limited = len(t.inner) > 0
    for row in rows:
        leaves, comes = hits[row, p], hits[row, q]
        hits[row, p] = leaves - 1
        hits[row, q] = comes + 1
        if leaves > 2 and comes > 1:
            continue
        lone[row] += (leaves == 2) - (leaves == 1) + (comes == 0) - (comes == 1)
        busy[row] = (busy[row] & PRICED) | (LONE if lone[row] > 0 else np.uint8(0))
        stays = True
        if leaves == 1:
            stays = inner(t, row, p)
            _leave(t, row, p % cols, p // cols)
            if limited:
                book_row(t, row, p, -1)
        if comes == 0:
            stays = stays and price.shape[1] > 0 and price[row, q] == 0
            t.fan[row] += 1
            c = q % cols
            t.low[row, c], t.high[row, c] = min(t.low[row, c], q // cols), max(t.high[row, c], q // cols)
            if limited:
                book_row(t, row, q, 1)
        if not stays and t.rate[row] > 0.0:
            before = paid[row]
            total += t.rate[row] * (price_row(t, s, row) - before)
    for i in range(t.out_ptr[v], t.out_ptr[v + 1]):
        row = t.out_row[i]
        if limited:
            book_source(t, row, p, q)
        t.origin[row] = q
        if t.rate[row] > 0.0:
            before = paid[row]
            total += t.rate[row] * (price_row(t, s, row) - before)
    if len(t.pairs.other) > 0:
        total += pairs_at(t, v, q) - pairs_at(t, v, p)
    return total


@inlined
def inner(t: NetTables, row: int, p: int) -> bool:
    """True if the tree and the prices of ``row`` stay what they are when it no longer reaches core ``p``."""
    cols, o = len(t.x), t.origin[row]
    if t.step > 0.0 and p != o:
        return False
    line, c, own_line = p // cols, p % cols, o // cols
    low, high = t.low[row, c], t.high[row, c]
    if low == high:
        return bool(line == own_line and (c == o % cols or (t.span[row, 0] < c and c < t.span[row, 1])))
    if line == low:
        return bool(own_line <= line)
    if line == high:
        return bool(own_line >= line)
    return True


@inlined
def _leave(t: NetTables, row: int, c: int, line: int) -> None:
    """``row`` no longer reaches ``line`` in column ``c`` (its hits there are 0 already)."""
    t.fan[row] -= 1
    if t.low[row, c] == t.high[row, c]:
        t.low[row, c], t.high[row, c] = 32767, -1
    else:
        t.low[row, c], t.high[row, c] = _ends_without(t, row, c, line)
