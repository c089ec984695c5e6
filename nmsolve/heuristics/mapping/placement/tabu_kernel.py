"""Robust tabu search (Taillard 1991) on a matrix of swap prices, for small boards with any distances.

Empty cores are filled with dummy nodes without traffic, so that a placement is a permutation ``seat`` of all n usable
cores. Let F be the traffic and D the distances, both without diagonal in F. The table

    ``toll[u, p] = sum over k of F[u, k] * D[p, seat k]   (+ F[k, u] * D[seat k, p] if the problem is not symmetric)``

says what u would pay on p. With ``S = F`` (``F + F'`` if not symmetric) and ``X[p, q] = D[p, q] + D[q, p] - D[p, p] -
D[q, q]``, the price of swapping u (on p) and v (on q) is

    ``toll[u, q] - toll[u, p] + toll[v, p] - toll[v, q] + S[u, v] * X[p, q]``.

After a swap of (a, b) the tables change by rank one: with ``f_u = F[u, a] - F[u, b]`` and ``g_r = D[r, q] - D[r, p]``
(p, q: old and new seat of a) ``toll[u, r]`` grows by ``f_u * g_r`` and the price of (u, v) by ``(f_u - f_v) * (g at v's
seat - g at u's seat)``; only pairs with a or b are read from the table again. Every loop over all pairs is contiguous and
compiles to vector instructions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nmsolve.model.compiled import compiled, kernel, plain
from nmsolve.model.splitmix import STEP, mix
from nmsolve.model.types import AnyArray, BoolArray, FloatArray, Int32Array, IntArray

#: Price of a swap that a side constraint forbids, or of two empty cores; absorbs every update.
FORBIDDEN = 1e30


class Dense(NamedTuple):
    """The problem: F, F', D, D', S, X (n, n) in float32 or float64; who may sit where (n, n) bool; who is real (n,)."""

    flow: AnyArray
    back: AnyArray
    dist: AnyArray
    across: AnyArray
    joint: AnyArray
    extra: AnyArray
    can: BoolArray
    real: BoolArray
    symmetric: bool


class Prices(NamedTuple):
    """A placement with its tables: ``seat`` (n,), ``toll`` and ``price`` (n, n; prices for u < v), least price per row."""

    seat: Int32Array
    toll: AnyArray
    price: AnyArray
    least: AnyArray


@kernel
def swap_price(u: int, v: int, seat: Int32Array, toll: AnyArray, dense: Dense) -> Any:
    """Change of cost if ``u`` and ``v`` swap seats, or FORBIDDEN."""
    p, q = seat[u], seat[v]
    if not (dense.can[u, q] and dense.can[v, p] and (dense.real[u] or dense.real[v])):
        return dense.flow.dtype.type(FORBIDDEN)
    return toll[u, q] - toll[u, p] + toll[v, p] - toll[v, q] + dense.joint[u, v] * dense.extra[p, q]


@compiled(fastmath={"nnan", "nsz"})
def least_of(row: AnyArray) -> Any:
    """Least entry of ``row``, FORBIDDEN if that is empty; without NaN the compiler may use vector lanes."""
    out = row.dtype.type(FORBIDDEN)
    for v in range(len(row)):
        out = row[v] if row[v] < out else out
    return out


@kernel
def fill(dense: Dense, now: Prices) -> None:
    """Compute ``toll``, ``price`` and ``least`` of ``now.seat`` from scratch."""
    seat, toll, price, least = now
    flow, back, dist, across = dense.flow, dense.back, dense.dist, dense.across
    n = len(seat)
    toll[:, :] = 0
    for u in range(n):
        line = toll[u]
        for k in range(n):
            w = flow[u, k]
            if w != 0:
                to = across[seat[k]]
                for p in range(n):
                    line[p] += w * to[p]
            if not dense.symmetric and back[u, k] != 0:
                w, to = back[u, k], dist[seat[k]]
                for p in range(n):
                    line[p] += w * to[p]
    for u in range(n):
        for v in range(u + 1, n):
            price[u, v] = swap_price(u, v, seat, toll, dense)
        least[u] = least_of(price[u, u + 1 :])


@plain
def _add_outer(toll: AnyArray, f: AnyArray, g: AnyArray) -> None:
    """``toll[u, r] += f[u] * g[r]``."""
    for u in range(len(f)):
        if f[u] != 0:
            line, fu = toll[u], f[u]
            for r in range(len(g)):
                line[r] += fu * g[r]


@plain
def _add_prices(price: AnyArray, f: AnyArray, d: AnyArray) -> None:
    """``price[u, v] += (f[u] - f[v]) * (d[v] - d[u])`` for u < v."""
    n = len(f)
    for u in range(n - 1):
        # Slices from 0 on: an index that starts at u + 1 keeps the compiler from using vectors.
        fu, du, row, fs, ds = f[u], d[u], price[u, u + 1 :], f[u + 1 :], d[u + 1 :]
        for v in range(len(row)):
            row[v] += (fu - fs[v]) * (ds[v] - du)


@kernel
def make_swap(a: int, b: int, dense: Dense, now: Prices, scratch: AnyArray) -> None:
    """Swap ``a`` and ``b`` and bring all tables up to date; ``scratch`` is (3, n)."""
    seat, toll, price, least = now
    n = len(seat)
    f, g, d = scratch[0], scratch[1], scratch[2]
    p, q = seat[a], seat[b]
    seat[a], seat[b] = q, p
    for side in range(1 if dense.symmetric else 2):
        # Rows of the transposes stand for columns, so that every read is contiguous.
        traffic, distance = (dense.back, dense.across) if side == 0 else (dense.flow, dense.dist)
        for k in range(n):
            f[k] = traffic[a, k] - traffic[b, k]
            g[k] = distance[q, k] - distance[p, k]
        for k in range(n):
            d[k] = g[seat[k]]
        _add_outer(toll, f, g)
        _add_prices(price, f, d)
    for k in range(n):
        if k != a:
            u, v = min(k, a), max(k, a)
            price[u, v] = swap_price(u, v, seat, toll, dense)
        if k != b:
            u, v = min(k, b), max(k, b)
            price[u, v] = swap_price(u, v, seat, toll, dense)
    for u in range(n - 1):
        least[u] = least_of(price[u, u + 1 :])


@kernel
def tabu_search(
    iterations: int,
    rng: IntArray,
    dense: Dense,
    now: Prices,
    until: Int32Array,
    best: Int32Array,
    count: FloatArray,
) -> None:
    """Make ``iterations`` best admissible swaps.

    Parameters
    ----------
    until : (n, n) int32; node u may return to seat p from iteration ``until[u, p]`` on
    best : (n,) int32 best placement, replaced if beaten
    count : iterations made, cost, cost of ``best``, all updated
    """
    seat, price, least = now.seat, now.price, now.least
    n = len(seat)
    scratch = np.zeros((3, n), price.dtype)
    random, low, span = rng[0], np.int64(0.9 * n), np.uint64(np.int64(0.2 * n) + 4)
    made = np.int64(count[0])
    for _ in range(iterations):
        made += 1
        goal = count[2] - count[1] - 1e-9 * abs(count[2])
        choice, a, b = np.float64(FORBIDDEN) / 2, -1, -1
        for u in range(n - 1):
            if least[u] >= choice:
                continue
            row, here, barred = price[u], seat[u], until[u]
            for v in range(u + 1, n):
                if row[v] >= choice:
                    continue
                if made >= barred[seat[v]] or made >= until[v, here] or row[v] < goal:
                    choice, a, b = np.float64(row[v]), u, v
        if a < 0:
            continue
        count[1] += choice
        random += STEP
        until[a, seat[a]] = made + low + np.int64(mix(random) % span)
        random += STEP
        until[b, seat[b]] = made + low + np.int64(mix(random) % span)
        make_swap(a, b, dense, now, scratch)
        if count[1] < count[2] - 1e-9 * abs(count[2]):
            count[2] = count[1]
            best[:] = seat
    count[0] = made
    rng[0] = random


@kernel
def kick(swaps: int, rng: IntArray, can: BoolArray, seat: Int32Array) -> None:
    """Perturb ``seat`` by random permitted swaps; the tables have to be filled again."""
    n, random = len(seat), rng[0]
    for _ in range(swaps):
        random += STEP
        u = np.int64(mix(random) % np.uint64(n))
        random += STEP
        v = np.int64(mix(random) % np.uint64(n))
        if can[u, seat[v]] and can[v, seat[u]]:
            seat[u], seat[v] = seat[v], seat[u]
    rng[0] = random


@kernel
def cross(rng: IntArray, can: BoolArray, nodes: int, other: Int32Array, seat: Int32Array) -> None:
    """Take about half of the differences from ``other``: each node, with probability 1/2, swaps to its seat there.

    Nodes (the first ``nodes`` of them, the rest are dummies) that sit alike in both stay; every swap is permitted.
    """
    n, random = len(seat), rng[0]
    holder = np.empty(n, np.int32)
    for k in range(n):
        holder[seat[k]] = k
    random += STEP
    first = np.int64(mix(random) % np.uint64(nodes))
    for i in range(nodes):
        random += STEP
        u = (first + i) % nodes
        if mix(random) & np.uint64(1) and seat[u] != other[u]:
            v = holder[other[u]]
            if can[u, seat[v]] and can[v, seat[u]]:
                seat[u], seat[v] = seat[v], seat[u]
                holder[seat[u]], holder[seat[v]] = u, v
    rng[0] = random
