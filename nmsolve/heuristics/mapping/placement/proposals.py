"""Annealing and descent by moves and swaps of nodes, whatever prices them.

The kernels of a state, which has ``grid`` and ``seats``, call the loops here with the functions ``price(s, u, v, x0, y0, x1, y1,
limit)`` and ``swap(s, u, v, x1, y1)`` (see :mod:`.tables`) and become one with them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nmsolve.heuristics.mapping.placement.tables import Grid, Seats
from nmsolve.model.compiled import embedded, inlined, plain
from nmsolve.model.splitmix import STEP, mix
from nmsolve.model.types import AnyArray, BoolArray, FloatArray, Int32Array, IntArray

#: Exponential variates (4096 quantiles): a move is made if its price is below temperature times one of them, which
#: is Metropolis' rule without a logarithm in the loop.
QUANTILES: AnyArray = -np.log((np.arange(4096) + 0.5) / 4096).astype(np.float32)


#: Factor of the congruential generator (Knuth) that draws the tries of a visit; its upper bits are random enough for that.
FACTOR = np.uint64(6364136223846793005)


@embedded
def around(line: int, length: int) -> Any:
    """``line`` on an axis of ``length``, if that is a ring: at most one round outside."""
    if line < 0:
        return line + length
    return line - length if line >= length else line


@embedded
def drawn(bits: Any, end: int) -> Any:
    """Whole number in [0, end) from the lowest 16 of random ``bits``."""
    return np.int64(((bits & np.uint64(0xFFFF)) * np.uint64(end)) >> np.uint64(16))


@plain
def scramble(swaps: int, rng: IntArray, grid: Grid, seats: Seats) -> None:
    """Make ``swaps`` random permitted moves and swaps, whatever they cost; tables have to be built again."""
    n, cols, count = len(seats.cx), grid.dx.shape[0], rng[0]
    for _ in range(swaps):
        count += STEP
        bits = mix(count)
        u = np.int64(((bits >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))
        low = bits & np.uint64(0xFFFFFFFF)
        q = np.int64((low * np.uint64(len(seats.node))) >> np.uint64(32))
        p, v = np.int64(seats.cy[u]) * cols + np.int64(seats.cx[u]), np.int64(seats.node[q])
        if v != -2 and v != u and allowed(u, q, v, p, grid.domain, grid.domains):
            put(u, v, p, q, cols, seats)
    rng[0] = count


@embedded
def put(u: int, v: int, p: int, q: int, cols: int, seats: Seats) -> None:
    """Put ``u`` on core ``q`` and ``v`` (< 0: none) on ``p``, where ``u`` was."""
    seats.cx[u], seats.cy[u], seats.node[q], seats.node[p] = q % cols, q // cols, u, v
    if v >= 0:
        seats.cx[v], seats.cy[v] = p % cols, p // cols


@embedded
def allowed(u: int, p: int, v: int, q: int, domain: Int32Array, domains: BoolArray) -> bool:
    """True if ``u`` may sit on core ``p`` and ``v`` (< 0: none) on ``q``."""
    if domains.shape[0] == 1:
        return True
    return domains[domain[u], p] and (v < 0 or domains[domain[v], q])


@embedded
def exchangeable(u: int, p: int, v: int, q: int, domain: Int32Array, domains: BoolArray) -> Any:
    """:func:`allowed`, where ``u`` may be none (< 0), too."""
    return allowed(v, q, u, p, domain, domains) if u < 0 else allowed(u, p, v, q, domain, domains)


@inlined
def anneal(
    s: Any, price: Callable[..., Any], swap: Callable[..., Any], order: IntArray, first: int, visits: int, tries: int,
    temperature: float, reach: int, rng: IntArray, quantiles: FloatArray, stats: FloatArray,
) -> None:  # fmt: skip
    """Visit ``visits`` cores in ``order`` (k,) from number ``first`` on, round and round, at one temperature.

    Each is proposed to exchange what it holds with ``tries`` cores within ``reach`` lines, one after the other. The core is kept
    and not the node: the same proposal then undoes what an exchange has done, and Metropolis' rule holds.

    Adds to ``stats``: proposals, accepted ones, neighbour entries looked at or updated, change of cost, lines moved.
    """
    node, cols, rows = s.seats.node, s.grid.dx.shape[0], s.grid.dy.shape[0]
    wrap_x, wrap_y = s.grid.wrap_x, s.grid.wrap_y
    rx, ry = min(reach, (cols - 1) // 2 if wrap_x else cols), min(reach, (rows - 1) // 2 if wrap_y else rows)
    accepted, entries, moved, gain, count, at = 0, 0, 0, 0.0, rng[0], first
    for _ in range(visits):
        p = order[at]
        at = at + 1 if at + 1 < len(order) else 0
        x0, y0 = np.int64(p % cols), np.int64(p // cols)
        left, right, low, high = x0 - rx, x0 + rx, y0 - ry, y0 + ry
        if not wrap_x:
            left, right = max(0, left), min(cols - 1, right)
        if not wrap_y:
            low, high = max(0, low), min(rows - 1, high)
        count += STEP
        bits = mix(count)
        u = np.int64(node[p])
        for _ in range(tries):
            bits = bits * FACTOR + STEP
            x1 = around(left + drawn(bits >> np.uint64(32), right - left + 1), cols)
            y1 = around(low + drawn(bits >> np.uint64(16), high - low + 1), rows)
            q = y1 * cols + x1
            v = np.int64(node[q])
            if v == u or v == -2:  # the core itself, or two empty ones
                continue
            limit = temperature * quantiles[bits >> np.uint64(52)]
            if u < 0:
                change, looked = price(s, v, u, x1, y1, x0, y0, limit)
            else:
                change, looked = price(s, u, v, x0, y0, x1, y1, limit)
            entries += looked
            if change > limit or not exchangeable(u, q, v, p, s.grid.domain, s.grid.domains):
                continue
            accepted += 1
            gain += change
            moved += max(abs(x1 - x0), abs(y1 - y0))
            entries += swap(s, v, u, x0, y0) if u < 0 else swap(s, u, v, x1, y1)
            u = v
    rng[0] = count
    stats[0] += visits * tries
    stats[1] += accepted
    stats[2] += entries
    stats[3] += gain
    stats[4] += moved


@inlined
def best_near(s: Any, price: Callable[..., Any], u: int, reach: int, least: float) -> int:
    """The core within ``reach`` lines that node ``u`` had best move or swap to, or -1 if none gains more than ``least``."""
    cols, rows = s.grid.dx.shape[0], s.grid.dy.shape[0]
    x0, y0 = int(s.seats.cx[u]), int(s.seats.cy[u])
    best, to = np.float64(-least), -1
    for y1 in range(max(0, y0 - reach), min(rows, y0 + reach + 1)):
        for x1 in range(max(0, x0 - reach), min(cols, x0 + reach + 1)):
            q = y1 * cols + x1
            v = np.int64(s.seats.node[q])
            if v == u or v == -2 or not allowed(u, q, v, y0 * cols + x0, s.grid.domain, s.grid.domains):
                continue
            change, _ = price(s, u, v, x0, y0, x1, y1, best)
            if change < best:
                best, to = np.float64(change), q
    return to


@inlined
def descend(
    s: Any,
    price: Callable[..., Any],
    swap: Callable[..., Any],
    first: int,
    end: int,
    reach: int,
    least: float,
) -> int:
    """Make the best improving move or swap of each node ``first .. end - 1`` within ``reach`` lines, if any.

    A price counts as an improvement below ``-least`` (above the rounding). Returns how many were made.
    """
    made = 0
    for u in range(first, end):
        to = best_near(s, price, u, reach, least)
        if to >= 0:
            swap(s, u, np.int64(s.seats.node[to]), to % s.grid.dx.shape[0], to // s.grid.dx.shape[0])
            made += 1
    return made
