"""Kernels on position tables (separable distances): annealed moves and swaps, and the final descent."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.placement.proposals import allowed, line_near
from nmsolve.heuristics.mapping.placement.tables import (
    Grid,
    Net,
    Seats,
    Tables,
    make_swap,
    neighbours,
    pair_weight,
)
from nmsolve.model.compiled import kernel
from nmsolve.model.splitmix import STEP, mix
from nmsolve.model.types import FloatArray, IntArray


@kernel
def anneal_table(
    steps: int,
    temperature: float,
    reach: int,
    rng: IntArray,
    quantiles: FloatArray,
    net: Net,
    grid: Grid,
    seats: Seats,
    tables: Tables,
    stats: FloatArray,
) -> None:
    """Propose ``steps`` moves or swaps to cores within ``reach`` lines, at one temperature (float32).

    Adds to ``stats``: proposals, accepted ones, neighbour entries updated, change of cost, lines moved.
    """
    # Fields are read into locals before the loop: reading them inside would count references every time.
    node, cx, cy = seats
    lines, joined, change = tables
    dx, dy, wrap_x, wrap_y, domain, domains = grid
    indptr, indices, weights = net
    n, cols, rows = cx.shape[0], dx.shape[0], dy.shape[0]
    rx, ry = min(reach, cols - 1), min(reach, rows - 1)
    low16 = np.uint64(0xFFFF)
    restricted = domains.shape[0] > 1
    accepted, entries, moved, gain, count = 0, 0, 0, 0.0, rng[0]
    for _ in range(steps):
        count += STEP
        bits = mix(count)
        count += STEP
        more = mix(count)
        u = np.int64(((bits >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))
        x0, y0 = np.int64(cx[u]), np.int64(cy[u])
        x1 = line_near(x0, rx, cols, wrap_x, bits & low16)
        y1 = line_near(y0, ry, rows, wrap_y, more & low16)
        v = np.int64(node[y1 * cols + x1])
        if v == u or v == -2:
            continue
        if restricted and not allowed(u, y1 * cols + x1, v, y0 * cols + x0, domain, domains):
            continue
        price = lines[u, x1] - lines[u, x0] + lines[u, cols + y1] - lines[u, cols + y0]
        if v >= 0:
            price += lines[v, x0] - lines[v, x1] + lines[v, cols + y0] - lines[v, cols + y1]
        limit = temperature * quantiles[more >> np.uint64(52)]
        if price > limit:
            continue
        if neighbours(u, v, joined):
            away = dx[x0, x1] + dy[y0, y1]
            price += np.float32(2) * pair_weight(u, v, indptr, indices, weights) * away
            if price > limit:
                continue
        accepted += 1
        gain += price
        moved += max(abs(x1 - x0), abs(y1 - y0))
        entries += make_swap(u, v, x1, y1, net, dx, dy, seats, lines, change)
    rng[0] = count
    stats[0] += steps
    stats[1] += accepted
    stats[2] += entries
    stats[3] += gain
    stats[4] += moved


@kernel
def descend_table(
    first: int,
    end: int,
    reach: int,
    least: float,
    net: Net,
    grid: Grid,
    seats: Seats,
    tables: Tables,
) -> int:
    """Make the best improving move or swap of each node ``first .. end - 1`` within ``reach`` lines, if any.

    A price counts as an improvement below ``-least`` (above the rounding of the tables). Returns how many were made.
    """
    node, cx, cy = seats
    lines, joined, change = tables
    dx, dy, domain, domains = grid.dx, grid.dy, grid.domain, grid.domains
    indptr, indices, weights = net
    cols, rows = dx.shape[0], dy.shape[0]
    made = 0
    for u in range(first, end):
        x0, y0 = int(cx[u]), int(cy[u])
        best, bx, by = np.float64(-least), -1, -1
        left, right = max(0, x0 - reach), min(cols, x0 + reach + 1)
        for y1 in range(max(0, y0 - reach), min(rows, y0 + reach + 1)):
            for x1 in range(left, right):
                v = np.int64(node[y1 * cols + x1])
                if v == u or v == -2 or not allowed(u, y1 * cols + x1, v, y0 * cols + x0, domain, domains):
                    continue
                price = lines[u, x1] - lines[u, x0] + lines[u, cols + y1] - lines[u, cols + y0]
                if v >= 0:
                    price += lines[v, x0] - lines[v, x1] + lines[v, cols + y0] - lines[v, cols + y1]
                if price < best and neighbours(u, v, joined):
                    away = dx[x0, x1] + dy[y0, y1]
                    price += np.float32(2) * pair_weight(u, v, indptr, indices, weights) * away
                if price < best:
                    best, bx, by = np.float64(price), x1, y1
        if bx >= 0:
            v = np.int64(node[by * cols + bx])
            make_swap(u, v, bx, by, net, dx, dy, seats, lines, change)
            made += 1
    return made
