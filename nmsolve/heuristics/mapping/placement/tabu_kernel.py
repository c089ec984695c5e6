"""Robust tabu search on a dense matrix of swap prices (Taillard 1991), for small boards with any distances.

Empty cores are filled with dummy nodes without traffic, so that a placement is a permutation ``seat`` of all n usable
cores. The cost is ``sum over ordered pairs of flow[i, j] * dist[seat i, seat j]``, half of it if both matrices are
symmetric (``symmetric``: every pair once). After a swap of (a, b) the prices of all swaps without a and b are updated in
O(1) each, the others computed anew in O(n).
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from nmsolve.heuristics.mapping.placement.proposals import STEP, mix
from nmsolve.model.types import BoolArray, FloatArray, IntArray

#: Price of a swap that a side constraint forbids, or of two empty cores.
FORBIDDEN = 1e300


@nb.njit(cache=True, nogil=True)
def dense_price(u: int, v: int, flow: FloatArray, dist: FloatArray, seat: IntArray, symmetric: bool) -> Any:
    """Change of cost if nodes ``u`` and ``v`` swap seats, in O(n)."""
    p, q = seat[u], seat[v]
    price = 0.0
    for k in range(len(seat)):
        if k != u and k != v:
            price += (flow[u, k] - flow[v, k]) * (dist[q, seat[k]] - dist[p, seat[k]])
    if symmetric:
        return price
    for k in range(len(seat)):
        if k != u and k != v:
            price += (flow[k, u] - flow[k, v]) * (dist[seat[k], q] - dist[seat[k], p])
    return price + (flow[u, v] - flow[v, u]) * (dist[q, p] - dist[p, q])


@nb.njit(cache=True, nogil=True)
def fill_prices(
    first: int,
    end: int,
    flow: FloatArray,
    dist: FloatArray,
    seat: IntArray,
    can: BoolArray,
    symmetric: bool,
    price: FloatArray,
) -> None:
    """Prices of all swaps (u, v), u < v, with ``first <= u < end``; ``can[u, p]``: node u may sit on p."""
    for u in range(first, end):
        for v in range(u + 1, len(seat)):
            if can[u, seat[v]] and can[v, seat[u]] and can[u, -1] | can[v, -1]:
                price[u, v] = dense_price(u, v, flow, dist, seat, symmetric)
            else:
                price[u, v] = FORBIDDEN


@nb.njit(cache=True, nogil=True)
def _swap(
    a: int,
    b: int,
    flow: FloatArray,
    dist: FloatArray,
    seat: IntArray,
    can: BoolArray,
    symmetric: bool,
    price: FloatArray,
    scratch: FloatArray,
) -> None:
    """Swap ``a`` and ``b`` and bring all prices up to date.

    With ``f_k = flow[k, a] - flow[k, b]`` and ``d_k = dist[seat k, p] - dist[seat k, q]`` (p, q: new seats of a, b) the
    price of (u, v) changes by ``(f_u - f_v) * (d_v - d_u)``; asymmetric matrices add the same of their transposes.
    """
    n = len(seat)
    seat[a], seat[b] = seat[b], seat[a]
    for side in range(1 if symmetric else 2):
        f, d = scratch[0], scratch[1]
        p, q = seat[a], seat[b]
        for k in range(n):
            if side == 0:
                f[k] = flow[a, k] - flow[b, k]
                d[k] = dist[p, seat[k]] - dist[q, seat[k]]
            else:
                f[k] = flow[k, a] - flow[k, b]
                d[k] = dist[seat[k], p] - dist[seat[k], q]
        for u in range(n):
            fu, du, row = f[u], d[u], price[u]
            for v in range(u + 1, n):
                row[v] += (fu - f[v]) * (d[v] - du)
    for k in range(n):
        for c in (a, b):
            if k != c:
                u, v = min(k, c), max(k, c)
                if can[u, seat[v]] and can[v, seat[u]] and can[u, -1] | can[v, -1]:
                    price[u, v] = dense_price(u, v, flow, dist, seat, symmetric)
                else:
                    price[u, v] = FORBIDDEN


@nb.njit(cache=True, nogil=True)
def tabu_search(
    iterations: int,
    rng: IntArray,
    flow: FloatArray,
    dist: FloatArray,
    can: BoolArray,
    symmetric: bool,
    seat: IntArray,
    price: FloatArray,
    until: IntArray,
    best: IntArray,
    now: FloatArray,
) -> None:
    """Make ``iterations`` best admissible swaps.

    Parameters
    ----------
    can : (n, n + 1) bool; the last column is True for real nodes
    until : (n, n) int64; node u may return to seat p from iteration ``until[u, p]`` on
    best : (n,) best placement, replaced if beaten
    now : iterations made, cost, cost of ``best``, all updated
    """
    n = len(seat)
    scratch = np.zeros((2, n))
    count, low, span = rng[0], np.int64(0.9 * n), np.uint64(np.int64(0.2 * n) + 4)
    made = np.int64(now[0])
    for _ in range(iterations):
        made += 1
        goal = now[2] - now[1] - 1e-9 * abs(now[2])
        choice, a, b = FORBIDDEN, -1, -1
        for u in range(n):
            row, here = price[u], seat[u]
            for v in range(u + 1, n):
                if row[v] < choice:
                    there, back = until[u, seat[v]], until[v, here]
                    if made >= there or made >= back or row[v] < goal:
                        choice, a, b = row[v], u, v
        if a < 0:
            continue
        now[1] += price[a, b]
        count += STEP
        until[a, seat[a]] = made + low + np.int64(mix(count) % span)
        count += STEP
        until[b, seat[b]] = made + low + np.int64(mix(count) % span)
        _swap(a, b, flow, dist, seat, can, symmetric, price, scratch)
        if now[1] < now[2] - 1e-9 * abs(now[2]):
            now[2] = now[1]
            best[:] = seat
    now[0] = made
    rng[0] = count


@nb.njit(cache=True, nogil=True)
def kick(
    swaps: int,
    rng: IntArray,
    flow: FloatArray,
    dist: FloatArray,
    can: BoolArray,
    symmetric: bool,
    seat: IntArray,
    now: FloatArray,
) -> None:
    """Perturb ``seat`` by random permitted swaps; ``now[1]`` follows, the price matrix has to be filled again."""
    n, count = len(seat), rng[0]
    for _ in range(swaps):
        count += STEP
        u = np.int64(mix(count) % np.uint64(n))
        count += STEP
        v = np.int64(mix(count) % np.uint64(n))
        if u != v and can[u, seat[v]] and can[v, seat[u]]:
            now[1] += dense_price(u, v, flow, dist, seat, symmetric)
            seat[u], seat[v] = seat[v], seat[u]
    rng[0] = count
