"""Re-checks of neighbour counting, one node at a time, and of the fan-out bound, one message after the other. No shared code.

Whole data give exact sums. Otherwise distances are rounded down, and every sum of products of numbers >= 0 loses what its
roundings can have added (docs/bounds.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum
from typing import Any

import numpy as np

from nmsolve.check.mapping.bounds.parts import (
    EPS,
    all_distances,
    both_ways,
    distances,
    expect,
    fits_with,
    limit_of,
    lowered,
    parallel,
    slot_rows,
    usable_cores,
    whole_distances,
)
from nmsolve.check.mapping.distances import line_costs, step_cost
from nmsolve.model.compiled import inlined, kernel
from nmsolve.model.graph import READERS
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray, FloatArray, Int32Array, IntArray

#: Most distances from cores to sets of allowed cores, and products of traffic and distance, that are looked at.
MOST_DISTANCES, MOST_PRODUCTS = 2**24, 2**27


def _slot_weights(problem: MappingProblem, u: int, partners: IntArray, weight: FloatArray) -> FloatArray:
    """Return traffic of node u by slot when its partners sit as near as they fit, heaviest first."""
    sizes, limit = problem.sizes[partners], limit_of(problem)
    own = fits_with(sizes, limit, problem.sizes[u])
    other = max(1, fits_with(sizes, limit, np.zeros_like(limit)))
    falling = np.sort(weight)[::-1]
    rest = falling[own:]
    return np.append(
        falling[:own].sum(), np.add.reduceat(rest, np.arange(0, len(rest), other)) if len(rest) else []
    )


def recheck_neighbours(problem: MappingProblem, certificate: Mapping[str, Any]) -> float:
    """Return half the sum over nodes of (traffic, falling) x (least distance of each slot over the node's domain, rising)."""
    expect(problem, "pairs", fewest=1)
    cores, w = usable_cores(problem), both_ways(problem)
    rows = slot_rows(distances(problem, down=True))
    least: dict[int, FloatArray] = {}
    every, most = [], 0
    for u in range(problem.n):
        part = slice(w.indptr[u], w.indptr[u + 1])
        if part.start == part.stop:
            continue
        domain = int(problem.domain_of[u])
        if domain not in least:
            mask = problem.domains[domain][cores]
            least[domain] = rows[mask].min(axis=0) if mask.any() else np.zeros(len(cores))
        by_slot = _slot_weights(problem, u, w.indices[part].astype(np.int64), w.data[part])
        near = least[domain][np.minimum(np.arange(len(by_slot)), len(cores) - 1)]
        every.append(float(by_slot @ near))
        most = max(most, part.stop - part.start)
    value = lowered(problem, fsum(every) / 2, 2 * most + parallel(problem))
    return max(value, _on_allowed_cores(problem))


def _on_allowed_cores(problem: MappingProblem) -> float:
    """Return what nodes pay on the cores that they and their neighbours may use; 0 where all may use all, or some none.

    What a node with one core exchanges with others is counted at those, and in full.
    """
    cores, w = usable_cores(problem), both_ways(problem)
    domains = {int(i): problem.domains[i][cores] for i in np.unique(problem.domain_of)}
    if all(mask.all() for mask in domains.values()) or not all(mask.any() for mask in domains.values()):
        return 0.0
    if max(len(domains) * len(cores) / MOST_DISTANCES, w.nnz * len(cores) / MOST_PRODUCTS) > 1:
        return 0.0
    d = distances(problem, down=True)
    limit = limit_of(problem)
    alone = fits_with(problem.sizes, limit, np.zeros_like(limit)) == 1
    away = np.where(np.eye(len(cores), dtype=bool), np.inf, d) if alone else d
    nearest = {i: away[:, mask].min(axis=1) for i, mask in domains.items()}
    # inf: with one core there is no other
    to = {i: np.where(np.isfinite(far), far, 0.0) for i, far in nearest.items()}
    at, spare = _fixed_and_spare(problem, cores, domains)
    rows = np.zeros((len(cores), int(spare.sum())))
    if spare.any():
        rows[spare] = slot_rows(d[np.ix_(spare, spare)])
    paid, most = [], 0
    for u in range(problem.n):
        part = slice(w.indptr[u], w.indptr[u + 1])
        partners, weight = w.indices[part].astype(np.int64), w.data[part]
        most = max(most, len(partners))
        open_ones = at[partners] < 0
        far = np.array([to[int(i)] for i in problem.domain_of[partners]]).reshape(len(partners), len(cores))
        sure = weight[~open_ones] @ far[~open_ones]
        if at[u] >= 0:
            paid.append(float(sure[at[u]]) / 2)
            continue
        here = domains[int(problem.domain_of[u])] & spare
        if here.any():
            by_slot = _slot_weights(problem, u, partners[open_ones], weight[open_ones])
            packed = rows[:, np.minimum(np.arange(len(by_slot)), rows.shape[1] - 1)] @ by_slot
            share = sure + np.maximum(weight[open_ones] @ far[open_ones], packed) / 2
            paid.append(float(share[here].min()))
    return lowered(problem, fsum(paid), 2 * most + parallel(problem) + 3)


def _fixed_and_spare(
    problem: MappingProblem, cores: IntArray, domains: Mapping[int, BoolArray]
) -> tuple[IntArray, BoolArray]:
    """Return (n,) the only core of every node, -1 for those with several, and (k,) cores with room for the least of these."""
    home = {i: int(np.flatnonzero(mask)[0]) if mask.sum() == 1 else -1 for i, mask in domains.items()}
    at = np.array([home[int(i)] for i in problem.domain_of])
    left = np.array(problem.capacity[cores], np.int64)
    np.subtract.at(left, at[at >= 0], problem.sizes[at >= 0])
    if (at >= 0).all():
        return at, np.zeros(len(cores), bool)
    return at, np.all(left >= problem.sizes[at < 0].min(axis=0), axis=1)


def recheck_fan_out(problem: MappingProblem, certificate: Mapping[str, Any]) -> float:
    """Sum over messages of rate x (what the least possible number of remote cores must cost).

    Messages that are paid edge by edge count their edges, the heaviest to the nearest cores. The certificate holds
    nothing: everything follows from the problem, whose messages may be on disk.

    Raises
    ------
    CertificateError : an objective over links, no usable core, or too many cores
    """
    expect(problem, fewest=1)
    d = all_distances(problem, down=True)
    near = slot_rows(np.minimum(d, d.T)).min(axis=0)
    tree = _trees(problem, near)
    trees = np.zeros(problem.graph.rows, bool)
    if problem.uses_nets:
        trees[:] = (problem.aim.reach) | problem.graph.multicast
    sizes, limit = np.array(problem.sizes, np.int64), limit_of(problem)
    longest, parts = 1, []
    for rows in problem.graph.blocks(READERS):
        fixed = rows.fixed
        parts.append(
            _sum_over_messages(
                fixed.indptr, fixed.source, fixed.targets, fixed.weights, fixed.rate, sizes, limit,
                trees[rows.first : rows.first + len(rows.source)], near, tree,
            )
        )  # fmt: skip
        longest = max(longest, int(np.diff(rows.indptr).max(initial=1)))
    return lowered(problem, fsum(parts), longest + 8)


def _trees(problem: MappingProblem, near: FloatArray) -> FloatArray:
    """What a message of rate 1 to 0, 1, 2 ... remote cores costs at least; ``near`` are the least distances of slots.

    Rounded down where anything is not whole.
    """
    remote: FloatArray = np.arange(len(near), dtype=np.float64)
    if problem.aim.reach:
        return remote
    quantity = problem.aim.quantity
    step = step_cost(problem.machine, quantity)
    down = 0.0 if whole_distances(problem) else EPS
    plain: FloatArray = np.maximum(near - step * (remote > 0) - 2 * down * (near + step), 0.0)
    if problem.machine.distance_matrix is not None:
        plain[0] = 0.0
        return np.asarray((step * remote + np.cumsum(plain)) * (1.0 - (len(near) + 4) * down))
    links = np.concatenate([line_costs(problem.machine, quantity, axis) for axis in (0, 1)])
    shortest = float(links.min()) if len(links) else 0.0
    return np.asarray((step * remote + np.maximum(remote * shortest, plain)) * (1.0 - 4 * down))


@kernel
def _sum_over_messages(
    indptr: IntArray,
    source: Int32Array,
    targets: Int32Array,
    weights: FloatArray,
    rate: FloatArray,
    sizes: IntArray,
    limit: IntArray,
    trees: BoolArray,
    near: FloatArray,
    tree: FloatArray,
) -> float:
    """The least cost of all messages of a block; ``trees`` says which are paid by their route tree.

    Every message is added up by itself and the sums with what rounding takes (Neumaier), so that a million messages are as
    exact as one.
    """
    total, lost, far = 0.0, 0.0, len(near) - 1
    longest = 0
    for i in range(len(source)):
        longest = max(longest, indptr[i + 1] - indptr[i])
    size, weight = np.empty(longest, np.int64), np.empty(longest)
    for i in range(len(source)):
        first, end = indptr[i], indptr[i + 1]
        m = end - first
        own, other = _room(sizes, targets[first:end], source[i], limit, size)
        if trees[i]:
            remote = max(0, m - own + other - 1) // other if m > own else 0
            part = rate[i] * tree[min(remote, far)]
            total, lost = _plus(total, lost, part)
            continue
        falling = weight[:m]
        falling[:] = -weights[first:end]
        if m > own:  # otherwise the order is of no account
            falling.sort()
        part = 0.0
        for k in range(m):
            slot = 0 if k < own else 1 + (k - own) // other
            part -= falling[k] * near[min(slot, far)]
        total, lost = _plus(total, lost, part)
    return total + lost


@inlined
def _plus(total: float, lost: float, part: float) -> tuple[float, float]:
    """``total + part``, and what all additions so far have lost; no number is below 0, but the larger one may be either."""
    after = total + part
    if total >= part:
        return after, lost + ((total - after) + part)
    return after, lost + ((part - after) + total)


@kernel
def _room(
    sizes: IntArray, targets: Int32Array, sender: int, limit: IntArray, size: IntArray
) -> tuple[int, int]:
    """How many of ``targets`` fit on a core beside their sender, and on another core (one at least); ``size`` is scratch."""
    m = len(targets)
    own, other = m, m
    for r in range(len(limit)):
        least, most = np.int64(2**62), np.int64(-1)
        for k in range(m):
            size[k] = sizes[targets[k], r]
            least, most = min(least, size[k]), max(most, size[k])
        if least < most:
            size[:m].sort()
        filled, beside, alone = np.int64(0), 0, 0
        for k in range(m):
            filled += size[k]
            if filled > limit[r]:
                break
            alone += 1
            if filled + sizes[sender, r] <= limit[r]:
                beside += 1
        own, other = min(own, beside), min(other, alone)
    return own, max(1, other)
