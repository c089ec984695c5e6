"""The ascent on shares, metric multipliers and prices, against a model of the exact parts (numba).

Every pair ``q`` has the capacity ``c_q = weight_q + sum of multipliers of the rows that end in q - of those that use
q``; its parts (sets, and the stars of both ends) share it out. A set's value is taken as the least over the placements
known so far: an upper model of the true, exact value, which :mod:`pool` computes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.model.basic_kernels import copy_to, stable_order
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.types import FloatArray, IntArray

#: Weight of the newest distances in the running mean that sets the direction.
FRESH = 0.3
#: Steps without gain before the step is cut, and by how much.
PATIENCE, CUT = 12, 0.7
#: How fast multipliers and, times the nodes, prices move beside shares.
ROW_RATE, PRICE_RATE = 0.08, 64.0
#: How much an idle part counts in a pair's mean distance, as part of the mean weight of an edge.
IDLE = 0.02


class Multipliers(NamedTuple):
    """Multipliers: ``share`` of set entries then star entries, ``tau`` of metric rows, ``price`` of classes of cores."""

    share: FloatArray
    tau: FloatArray
    price: FloatArray

    def toward(self, other: Multipliers, part: float) -> Multipliers:
        """The point at ``part`` of the way to ``other``; feasible as both are."""
        mix = [(1 - part) * a + part * b for a, b in zip(self, other, strict=True)]
        return Multipliers(*mix)

    def copy(self) -> Multipliers:
        """Independent arrays."""
        return Multipliers(*(a.copy() for a in self))


class Parts(NamedTuple):
    """The parts of a form: sets with the placements known so far, and stars.

    Attributes
    ----------
    full, weight, row, star_ptr, near, cores (``count`` there) : as in :class:`~.form.Form`; weights as float64
    set_ptr, pool, filled : entries of every set, (entries, places) distances in known placements, how many are known
    step_cost : ``Form.step``
    pair_ptr, entry : the entries (of sets, then of stars) of every pair
    """

    full: bool
    weight: FloatArray
    row: IntArray
    set_ptr: IntArray
    pool: IntArray
    filled: IntArray
    star_ptr: IntArray
    near: IntArray
    cores: IntArray
    step_cost: int
    pair_ptr: IntArray
    entry: IntArray


@plain
def set_values(
    ptr: IntArray, share: FloatArray, pool: IntArray, filled: IntArray, step: int, distance: FloatArray
) -> float:
    """Sum of the least known cost of every set; ``distance`` receives the distances in those placements."""
    total = 0.0
    for i in range(len(ptr) - 1):
        best, which = np.inf, 0
        for p in range(filled[i]):
            cost = 0.0
            for e in range(ptr[i], ptr[i + 1]):
                cost += share[e] * pool[e, p]
            if cost < best:
                best, which = cost, p
        if filled[i] == 0:
            continue
        for e in range(ptr[i], ptr[i + 1]):
            distance[e] = pool[e, which] + step
            best += step * share[e]
        total += best
    return total


@kernel
def star_values(
    ptr: IntArray,
    share: FloatArray,
    near: IntArray,
    price: FloatArray,
    count: IntArray,
    distance: FloatArray,
    taken: FloatArray,
) -> float:
    """Gilmore-Lawler value of the stars at the ``price`` of the classes of cores.

    ``sum_u min_c (least scalar product of u's shares and near[c] - price[c]) + sum_c count[c] price[c]``;
    ``distance`` receives the slots, ``taken`` how many nodes chose each class.
    """
    total = 0.0
    classes, slots = near.shape
    taken[:] = 0.0
    for c in range(classes):
        total += count[c] * price[c]
    for u in range(len(ptr) - 1):
        a, z = ptr[u], ptr[u + 1]
        order = stable_order(-share[a:z])
        best, which = np.inf, 0
        for c in range(classes):
            value = -price[c]
            for r in range(z - a):
                s = share[a + order[r]]
                if s <= 0:
                    break
                value += s * near[c, min(r, slots - 1)]
            if value < best:
                best, which = value, c
        total += best
        taken[which] += 1.0
        for r in range(z - a):
            distance[a + order[r]] = near[which, min(r, slots - 1)]
    return total


@kernel
def capacities(weight: FloatArray, row: IntArray, tau: FloatArray, out: FloatArray) -> None:
    """Capacity of every pair; multipliers that ask for more than there is are cut down, nearest pairs first.

    A row takes from an edge and a pair and supplies a pair one hop further; ``row`` is sorted by that pair's hops, so
    what a pair gets is settled before anyone takes from it, except that cuts later on leave more.
    """
    used = np.zeros(len(weight))
    for t in range(len(row)):
        used[row[t, 0]] += tau[t]
        used[row[t, 1]] += tau[t]
    copy_to(out, weight)
    for t in range(len(row)):
        a, b = row[t, 0], row[t, 1]
        cut = 1.0
        if used[a] > out[a]:
            cut = out[a] / used[a]
        if used[b] > out[b]:
            cut = min(cut, out[b] / used[b])
        tau[t] *= cut
        out[row[t, 2]] += tau[t]
    for t in range(len(row)):
        out[row[t, 0]] -= tau[t]
        out[row[t, 1]] -= tau[t]
    for q in range(len(weight)):
        out[q] = max(0.0, out[q])


@kernel
def share_out(capacity: FloatArray, ptr: IntArray, entry: IntArray, share: FloatArray) -> None:
    """Nearest shares >= 0 that add up to every pair's capacity (Euclidean projection on a simplex)."""
    for q in range(len(capacity)):
        a, z = ptr[q], ptr[q + 1]
        if capacity[q] <= 0.0:
            for i in range(a, z):
                share[entry[i]] = 0.0
            continue
        value = np.empty(z - a)
        for i in range(z - a):
            value[i] = share[entry[a + i]]
        falling = np.sort(value)[::-1]
        total, level = 0.0, 0.0
        for i in range(z - a):
            total += falling[i]
            if falling[i] > (total - capacity[q]) / (i + 1):
                level = (total - capacity[q]) / (i + 1)
        for i in range(z - a):
            share[entry[a + i]] = max(0.0, value[i] - level)


@plain
def _means(
    ptr: IntArray, entry: IntArray, share: FloatArray, distance: FloatArray, idle: float, mean: FloatArray
) -> None:
    """Mean distance of every pair over its parts, weighted by their shares and ``idle``."""
    for q in range(len(mean)):
        total, weight = 0.0, 0.0
        for i in range(ptr[q], ptr[q + 1]):
            e = entry[i]
            s = share[e] + idle
            total += s * distance[e]
            weight += s
        mean[q] = total / weight


@plain
def _norm(
    parts: Parts,
    point: Multipliers,
    smooth: FloatArray,
    mean: FloatArray,
    slope: FloatArray,
    crowd: FloatArray,
    rate: float,
) -> float:
    """Square of the length of a step: of multipliers, shares and prices, except for those at a limit that stay there."""
    share, tau, price, ptr, entry = point.share, point.tau, point.price, parts.pair_ptr, parts.entry
    norm = 0.0
    for t in range(len(tau)):
        if slope[t] > 0 or tau[t] > 0:
            norm += ROW_RATE * slope[t] ** 2
    for q in range(len(mean)):
        for i in range(ptr[q], ptr[q + 1]):
            e = entry[i]
            move = smooth[e] - mean[q]
            if move > 0 or share[e] > 0:
                norm += move * move
    for c in range(len(price)):
        if parts.full or crowd[c] < 0 or price[c] < 0:
            norm += rate * crowd[c] ** 2
    return norm


@kernel
def ascend(
    steps: int,
    upper: float,
    theta: float,
    parts: Parts,
    point: Multipliers,
    smooth: FloatArray,
    crowd: FloatArray,
) -> tuple[float, float]:
    """Raise the model's value by subgradient steps of Polyak's length, ``theta`` times that towards ``upper``.

    Returns the best value and the factor that was left after the cuts.
    ``point`` is moved to where it was reached; ``smooth`` and ``crowd`` hold the running means of distances and of
    cores left over (all 0 at first).
    """
    share, tau, price = point.share, point.tau, point.price
    weight, row, near, count = parts.weight, parts.row, parts.near, parts.cores
    set_ptr, star_ptr, pair_ptr, entry = parts.set_ptr, parts.star_ptr, parts.pair_ptr, parts.entry
    sets = set_ptr[-1]
    distance, taken = np.zeros(len(share)), np.zeros(len(price))
    mean, capacity = np.zeros(len(weight)), np.zeros(len(weight))
    best, best_share, best_tau, best_price = 0.0, share.copy(), tau.copy(), price.copy()
    slope, idle = np.zeros(len(tau)), IDLE * weight.sum() / max(1, (weight > 0).sum())
    stale, rate = 0, PRICE_RATE / (len(star_ptr) - 1)
    longest = weight.sum()
    for at in range(steps):
        value = set_values(set_ptr, share[:sets], parts.pool, parts.filled, parts.step_cost, distance[:sets])
        value += star_values(star_ptr, share[sets:], near, price, count, distance[sets:], taken)
        if value > best * (1 + 1e-7) or at == 0:
            best, stale = value, 0
            best_share[:], best_tau[:], best_price[:] = share, tau, price
        else:
            stale += 1
            if stale >= PATIENCE:
                theta, stale = theta * CUT, 0
                share[:], tau[:], price[:] = best_share, best_tau, best_price
        fresh = FRESH if smooth.any() else 1.0
        for e in range(len(share)):
            smooth[e] += fresh * (distance[e] - smooth[e])
        for c in range(len(price)):
            crowd[c] += fresh * (count[c] - taken[c] - crowd[c])
        _means(pair_ptr, entry, share, smooth, idle, mean)
        for t in range(len(tau)):
            slope[t] = mean[row[t, 2]] - mean[row[t, 0]] - mean[row[t, 1]]
        norm = _norm(parts, point, smooth, mean, slope, crowd, rate)
        if norm < 1e-12:
            break
        length = theta * max(0.001 * best, upper - value) / norm
        length = min(length, longest / np.sqrt(norm))  # next to an optimum the norm says nothing
        for t in range(len(tau)):
            tau[t] = max(0.0, tau[t] + length * ROW_RATE * slope[t])
        for q in range(len(weight)):
            for i in range(pair_ptr[q], pair_ptr[q + 1]):
                share[entry[i]] += length * (smooth[entry[i]] - mean[q])
        for c in range(len(price)):
            price[c] += length * rate * crowd[c]
            if not parts.full:
                price[c] = min(0.0, price[c])
        capacities(weight, row, tau, capacity)
        share_out(capacity, pair_ptr, entry, share)
    share[:], tau[:], price[:] = best_share, best_tau, best_price
    return best, theta
